"""softmax along one axis. x - max is held above -64, as the original does on the CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paddlecli.ops._attrs import integer
from paddlecli.ops._unary import like, values_of
from paddlecli.ops.base import Arg, Attr, Emitter, Kernel, NodeLike, Op, RandomKey, Sample, check
from paddlecli.ops.spec import Spec


class Softmax(Op):
    """``y = exp(x - max) / sum`` along ``axis``; x and y of any shape. No probability becomes 0."""

    name = "softmax"
    forward = Kernel(
        "softmax.forward(x: f32; axis: int) -> (y: f32)", inplace={"y": "x"}, rowwise=True
    )
    backward = Kernel(
        "softmax.backward(y: f32, dy: f32; axis: int) -> (dx: f32)",
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
        e = np.exp(np.maximum(x - x.max(axis=axis, keepdims=True), -64.0))
        return {"y": like(args["x"], e / e.sum(axis=axis, keepdims=True))}

    def samples(self) -> Sequence[Sample]:
        """Cases along the last axis and along others, short and long, dense and packed."""
        return [
            Sample({"x": Arg(("N", 3), low=-4, high=4)}, {"axis": -1}),
            Sample({"x": Arg(("N", 37), low=-4, high=4)}, {"axis": 1}),
            Sample({"x": Arg(("N", 3, 5, 7), low=-4, high=4)}, {"axis": 1}),
            Sample({"x": Arg(("N", 2, 4, 5), low=-4, high=4)}, {"axis": -2}),
            Sample({"x": Arg(("t", 6), low=-4, high=4)}, {"axis": -1}, axes=("t",)),
            Sample({"x": Arg(("N", 1))}, {"axis": -1}),
        ]


OP = Softmax()
