"""row_conv: a convolution along each sequence that looks ahead, each column by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from paddlecli.ops.base import (
    Arg,
    Attr,
    Emitter,
    Kernel,
    NodeLike,
    Op,
    Ragged,
    RandomKey,
    Sample,
    check,
)


class RowConv(Op):
    """y[t] = sum over j < size of x[t + j] * w[j], rows beyond the sequence are zeros.

    x [T, D] on a ragged axis, w [size, D], y [T, D].
    """

    name = "row_conv"
    forward = Kernel("row_conv.forward(x: f32, w: f32) -> (y: f32)")
    backward_x = Kernel("row_conv.backward_x(dy: f32, w: f32) -> (dx: f32)")
    backward_w = Kernel("row_conv.backward_w(x: f32, dy: f32) -> (dw: f32)")

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """As x."""
        x, w = args["x"], args["w"]
        check(x.axis is not None and x.ndim == 2, self.name, f"x {x} is no sequence of rows")
        fits = w.ndim == 2 and w.shape[1] == x.shape[1] and w.shape[0].coefficient > 0
        check(fits, self.name, f"w {w} is not [size, {x.shape[1]}]")
        return {"y": x}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """Each row gathers from the rows before it that read it; w[j] from all pairs j apart."""
        x, w, found = node.args["x"], node.args["w"], {}
        if g.needs("x"):
            found["x"] = g.emit(self.backward_x, {"dy": dy["y"], "w": w}, out={"dx": x})
        if g.needs("w"):
            found["w"] = g.emit(self.backward_w, {"x": x, "dy": dy["y"]}, out={"dw": w})
        return found

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """Sequence by sequence."""
        import numpy as np

        x, offsets, w = args["x"].values, args["x"].offsets, args["w"]
        y = np.zeros(x.shape)
        for first, last in pairwise(offsets):
            for j in range(min(len(w), last - first)):
                y[first : last - j] += x[first + j : last] * w[j]
        return {"y": Ragged(y, offsets)}

    def samples(self) -> Sequence[Sample]:
        """The row alone, some rows ahead, further than sequences reach; narrow and wide."""
        return [
            Sample({"x": Arg(("s", width)), "w": Arg((size, width))}, axes=("s",))
            for width, size in ((3, 1), (2, 3), (20, 2), (4, 7))
        ]


OP = RowConv()
