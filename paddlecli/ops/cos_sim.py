"""cos_sim: cosine of the angle between rows. After PaddlePaddle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlecli.ops._unary import values_of
from paddlecli.ops.base import Arg, Attr, Emitter, Kernel, NodeLike, Op, RandomKey, Sample, check
from paddlecli.ops.spec import Dim, Spec


class CosSim(Op):
    """``cos = x·y / (|x| |y|)`` row by row, each squared norm held at 1e-8 or above.

    x [rows, size]; y of the same shape, or [1, size] for all rows (its gradient is the sum). cos
    [rows, 1]; inverse [rows, 2] holds 1/|x| and 1/|y| for the gradient.
    """

    name = "cos_sim"
    forward = Kernel("cos_sim.forward(x: f32, y: f32) -> (cos: f32, inverse: f32)", rowwise=True)
    backward_x = Kernel(
        "cos_sim.backward_x(x: f32, y: f32, cos: f32, inverse: f32, dcos: f32) -> (dx: f32)",
        inplace={"dx": "x"},
    )
    backward_y = Kernel(
        "cos_sim.backward_y(x: f32, y: f32, cos: f32, inverse: f32, dcos: f32) -> (dy: f32)"
    )

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        x, y = args["x"], args["y"]
        check(
            x.ndim == 2 and y.ndim == 2 and x.shape[1] == y.shape[1],
            self.name,
            f"x is {x}, y is {y}; [rows, size] of one size are needed",
        )
        check(
            (y.shape[0] == x.shape[0] and y.axis == x.axis) or y.shape[0] == Dim(1),
            self.name,
            f"x is {x}, y {y} must have its rows or one",
        )
        return {"cos": x.with_shape(x.shape[0], 1), "inverse": x.with_shape(x.shape[0], 2)}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        args = {**node.args, **node.results, "dcos": dy["cos"]}
        found = {}
        if g.needs("x"):
            found["x"] = g.emit(self.backward_x, args, out={"dx": node.args["x"]})
        if g.needs("y"):
            found["y"] = g.emit(self.backward_y, args, out={"dy": node.args["y"]})
        return found

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        import numpy as np

        x, y = values_of(args["x"]), values_of(args["y"])
        y = np.broadcast_to(y, x.shape)
        inverse = [
            1 / np.sqrt(np.maximum((v * v).sum(axis=1, keepdims=True), 1e-8)) for v in (x, y)
        ]
        cos = (x * y).sum(axis=1, keepdims=True) * inverse[0] * inverse[1]
        return {"cos": cos, "inverse": np.concatenate(inverse, axis=1)}

    def samples(self) -> Sequence[Sample]:
        return [
            Sample({"x": Arg(("N", 3)), "y": Arg(("N", 3))}),
            Sample({"x": Arg(("N", 21)), "y": Arg((1, 21))}),
            Sample({"x": Arg(("t", 4)), "y": Arg(("t", 4))}, axes=("t",)),
        ]


OP = CosSim()
