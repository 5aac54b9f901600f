"""sequence_slice_at: some rows of each sequence, which ones a tensor says; how many they are is counted, not a size."""

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
from paddlecli.ops.spec import Spec, product


class SequenceSliceAt(Op):
    """Of each sequence s of x [T, ...] at most ``length[s]`` rows from row ``offset[s]`` on, moved to its start; a negative
    offset counts from the end.

    offset, length i64, one number a sequence. y lies on x's axis, zeros behind the slice; count [sequences] says how many rows it
    has: sizes of tensors never depend on values here.
    """

    name = "sequence_slice_at"
    forward = Kernel(
        "sequence_slice_at.forward(x: f32, offset: i64, length: i64) -> (y: f32, count: i64)"
    )
    backward = Kernel("sequence_slice_at.backward(dy: f32, offset: i64, length: i64) -> (dx: f32)")

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """As x, and one number a sequence."""
        x = args["x"]
        check(x.axis is not None, self.name, f"x is {x}; rows on a ragged axis are needed")
        for name in ("offset", "length"):
            one = product(args[name].shape) == x.axis.sequences
            check(one, self.name, f"{name} is {args[name]}; one number for each sequence of x {x}")
        return {"y": x, "count": Spec((x.axis.sequences,), "i64", x.axis.parent)}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """dy's rows where they were, zeros around them."""
        a = node.args
        args = {"dy": dy["y"], "offset": a["offset"], "length": a["length"]}
        return {"x": g.emit(self.backward, args, out={"dx": a["x"]})}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """Sequence by sequence."""
        import numpy as np

        x, edges = args["x"].values, args["x"].offsets
        y, count = np.zeros_like(x), np.zeros(len(edges) - 1, np.int64)
        offset, length = args["offset"].reshape(-1), args["length"].reshape(-1)
        for s, (first, last) in enumerate(pairwise(edges)):
            start = int(offset[s]) if offset[s] >= 0 else max(last - first + int(offset[s]), 0)
            found = x[first:last][start : start + int(length[s])]
            y[first : first + len(found)], count[s] = found, len(found)
        return {"y": Ragged(y, edges), "count": count}

    def samples(self) -> Sequence[Sample]:
        """Inside, beyond the end, from the end, nothing."""

        def case(*rest: int, low: int = -2) -> Sample:
            numbers = Arg(("N", 1) if rest else ("N",), "i64", low, 3)
            args = {"x": Arg(("s", *rest)), "offset": numbers, "length": Arg(("N",), "i64", 0, 4)}
            return Sample(args, axes=("s",))

        return [case(3), case(), case(2, 9, low=0)]


OP = SequenceSliceAt()
