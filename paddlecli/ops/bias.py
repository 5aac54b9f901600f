"""bias: a vector added along one dimension."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paddlecli.ops._attrs import integer
from paddlecli.ops._unary import like, values_of
from paddlecli.ops.base import Arg, Attr, Emitter, Kernel, NodeLike, Op, RandomKey, Sample, check


class Bias(Op):
    """y = x + b, b [n] along dimension ``axis`` of x: -1 the last one, 1 the channels of an NCHW image."""

    name = "bias"
    forward = Kernel(
        "bias.forward(x: f32, b: f32; axis: int) -> (y: f32)", inplace={"y": "x"}, rowwise=True
    )
    backward = Kernel("bias.backward(dy: f32; axis: int) -> (db: f32)", rowwise=True)
    defaults: ClassVar[Mapping[str, Attr]] = {"axis": -1}

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """Same as x."""
        x, b, axis = args["x"], args["b"], integer(attrs, "axis")
        check(
            0 < (axis + x.ndim if axis < 0 else axis) < x.ndim, self.name, f"axis {axis} of x {x}"
        )
        check(
            b.shape == (x.shape[axis],), self.name, f"b {b} does not fit dimension {axis} of x {x}"
        )
        return {"y": x}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """dy itself, and its sum over the other dimensions."""
        found = {"x": dy["y"]}
        if g.needs("b"):
            found["b"] = g.emit(
                self.backward, {"dy": dy["y"]}, node.attrs, out={"db": node.args["b"]}
            )
        return found

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """x + b."""
        x = values_of(args["x"])
        shape = [1] * x.ndim
        shape[integer(attrs, "axis")] = -1
        return {"y": like(args["x"], x + args["b"].reshape(shape))}

    def samples(self) -> Sequence[Sample]:
        """Rows, images, many rows, packed rows."""
        return [
            Sample({"x": Arg(("N", 10)), "b": Arg((10,))}, {"axis": -1}),
            Sample({"x": Arg(("N", 3, 4, 5)), "b": Arg((3,))}, {"axis": 1}),
            Sample({"x": Arg(("N", 90, 70)), "b": Arg((70,))}, {"axis": 2}),
            Sample({"x": Arg(("N", 1)), "b": Arg((1,))}, {"axis": 1}),
            Sample({"x": Arg(("s", 4)), "b": Arg((4,))}, {"axis": -1}, axes=("s",)),
        ]


OP = Bias()
