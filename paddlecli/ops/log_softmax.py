"""log_softmax along one axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paddlecli.ops._attrs import integer
from paddlecli.ops._unary import like, values_of
from paddlecli.ops.base import Attr, Emitter, Kernel, NodeLike, Op, RandomKey, Sample, check
from paddlecli.ops.softmax import axis_samples
from paddlecli.ops.spec import Spec


class LogSoftmax(Op):
    """``y = x - max - log(sum(exp(x - max)))`` along ``axis``; x and y of any shape."""

    name = "log_softmax"
    forward = Kernel(
        "log_softmax.forward(x: f32; axis: int) -> (y: f32)", inplace={"y": "x"}, rowwise=True
    )
    backward = Kernel(
        "log_softmax.backward(y: f32, dy: f32; axis: int) -> (dx: f32)",
        inplace={"dx": "dy"},
        rowwise=True,
    )
    defaults: ClassVar[Mapping[str, Attr]] = {"axis": -1}

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        x: Spec = args["x"]
        axis = attrs["axis"]
        check(
            isinstance(axis, int) and -x.ndim <= axis < x.ndim and axis % x.ndim > 0,
            self.name,
            f"x is {x}: axis {axis} is not one of its trailing axes",
        )
        return {"y": x}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        args = {"y": node.results["y"], "dy": dy["y"]}
        return {"x": g.emit(self.backward, args, node.attrs, out={"dx": node.args["x"]})}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        import numpy as np

        x, axis = values_of(args["x"]), integer(attrs, "axis")
        m = x.max(axis=axis, keepdims=True)
        y = x - m - np.log(np.exp(x - m).sum(axis=axis, keepdims=True))
        return {"y": like(args["x"], y)}

    def samples(self) -> Sequence[Sample]:
        return axis_samples()


OP = LogSoftmax()
