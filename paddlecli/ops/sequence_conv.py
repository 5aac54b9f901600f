"""sequence_conv: a convolution along each sequence, zeros beyond its ends."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar

from paddlecli.ops._attrs import integer
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
    Shape,
    check,
)
from paddlecli.ops.spec import Spec


class SequenceConv(Op):
    """y[t] = sum over j < size of x[t + start + j] w_j, rows beyond the sequence are zeros.

    x [T, D] on a ragged axis, w [size*D, M] (block j is w_j [D, M]), y [T, M]. ``start`` is usually -(size // 2).
    """

    name = "sequence_conv"
    forward = Kernel("sequence_conv.forward(x: f32, w: f32; size: int, start: int) -> (y: f32)")
    backward_x = Kernel(
        "sequence_conv.backward_x(dy: f32, w: f32; size: int, start: int) -> (dx: f32)"
    )
    backward_w = Kernel(
        "sequence_conv.backward_w(x: f32, dy: f32; size: int, start: int) -> (dw: f32)"
    )
    defaults: ClassVar[Mapping[str, Attr]] = {}

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """[T, M] on x's axis."""
        x, w, size = args["x"], args["w"], integer(attrs, "size")
        check(x.axis is not None, self.name, f"x {x} holds no sequences")
        check(x.ndim == 2, self.name, f"x {x} must have 2 dimensions: tokens and their width")
        check(w.ndim == 2, self.name, f"w {w} must have 2 dimensions")
        check(size > 0, self.name, f"size is {size}, expected at least 1")
        rows = size * x.shape[1].coefficient
        check(
            w.shape[0].coefficient == rows,
            self.name,
            f"w has {w.shape[0]} rows, {size} tokens of width {x.shape[1]} are {rows}",
        )
        return {"y": Spec((x.shape[0], w.shape[1]), "f32", x.axis)}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """Each token gathers from the tokens that read it; w_j from all pairs j apart."""
        x, w, found = node.args["x"], node.args["w"], {}
        if g.needs("x"):
            found["x"] = g.emit(
                self.backward_x, {"dy": dy["y"], "w": w}, dict(node.attrs), out={"dx": x}
            )
        if g.needs("w"):
            found["w"] = g.emit(
                self.backward_w, {"x": x, "dy": dy["y"]}, dict(node.attrs), out={"dw": w}
            )
        return found

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """Sequence by sequence, over a copy with zeros around it."""
        import numpy as np

        x, offsets, w = args["x"].values, args["x"].offsets, args["w"]
        size, start, width = integer(attrs, "size"), integer(attrs, "start"), x.shape[1]
        around = size + abs(start)
        y = np.zeros((len(x), w.shape[1]))
        for first, last in pairwise(offsets):
            wide = np.pad(x[first:last], ((around, around), (0, 0)))
            for j in range(size):
                shifted = wide[around + start + j :][: last - first]
                y[first:last] += shifted @ w[j * width : (j + 1) * width]
        return {"y": Ragged(y, offsets)}

    def samples(self) -> Sequence[Sample]:
        """Even and odd sizes, centred, causal, looking ahead and far off; narrow and wide."""
        return [
            Sample(
                {"x": Arg(("s", width)), "w": Arg((size * width, out))},
                {"size": size, "start": start},
                axes=("s",),
            )
            for width, out, size, start in (
                (2, 3, 3, -1),
                (5, 19, 4, -2),
                (3, 2, 3, 0),
                (4, 4, 1, 0),
                (3, 5, 2, -9),
                (17, 33, 5, 1),
            )
        ]

    def flops(self, kernel: Kernel, shapes: Mapping[str, Shape], attrs: Mapping[str, Attr]) -> int:
        """2*size*D for each element of y or dy, whichever of the three products it is."""
        rows = shapes["w"][0] if "w" in shapes else shapes["dw"][0]
        return 2 * rows * math.prod(shapes["y"] if "y" in shapes else shapes["dy"])


OP = SequenceConv()
