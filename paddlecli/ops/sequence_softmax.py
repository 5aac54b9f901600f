"""sequence_softmax: softmax over the tokens of each sequence."""

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
from paddlecli.ops.spec import Spec


class SequenceSoftmax(Op):
    """y[t] = exp(x[t] - max) / sum over the tokens of t's sequence, column by column; x and y [T, ...] on one axis."""

    name = "sequence_softmax"
    forward = Kernel("sequence_softmax.forward(x: f32) -> (y: f32)")
    backward = Kernel("sequence_softmax.backward(y: f32, dy: f32) -> (dx: f32)")

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """x's."""
        x: Spec = args["x"]
        check(x.axis is not None, self.name, f"x {x} holds no sequences")
        return {"y": x}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """y (dy - sum of y dy)."""
        args = {"y": node.results["y"], "dy": dy["y"]}
        return {"x": g.emit(self.backward, args, out={"dx": node.args["x"]})}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """Sequence by sequence."""
        import numpy as np

        x, offsets = args["x"].values, args["x"].offsets
        y = np.zeros_like(x)
        for first, last in pairwise(offsets):
            if first < last:
                e = np.exp(x[first:last] - x[first:last].max(axis=0))
                y[first:last] = e / e.sum(axis=0)
        return {"y": Ragged(y, offsets)}

    def samples(self) -> Sequence[Sample]:
        """No column, one, several, more than a vector."""
        shapes: tuple[tuple[int | str, ...], ...] = (("s",), ("s", 1), ("s", 3), ("s", 2, 9))
        return [Sample({"x": Arg(shape, low=-4, high=4)}, axes=("s",)) for shape in shapes]


OP = SequenceSoftmax()
