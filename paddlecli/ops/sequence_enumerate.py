"""sequence_enumerate: the window of ids that starts at each token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar

from paddlecli.ops._attrs import integer
from paddlecli.ops.base import Arg, Attr, Kernel, Op, Ragged, RandomKey, Sample, check
from paddlecli.ops.spec import Dim, Spec, product


class SequenceEnumerate(Op):
    """y[t, j] = x[t + j] for j < size, ``pad`` beyond the sequence; x i64 [T] or [T, 1], y [T, size]."""

    name = "sequence_enumerate"
    forward = Kernel("sequence_enumerate.forward(x: i64; size: int, pad: int) -> (y: i64)")
    defaults: ClassVar[Mapping[str, Attr]] = {"pad": 0}
    differentiable = False

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """[T, size]."""
        x, size = args["x"], integer(attrs, "size")
        one = x.axis is not None and product(x.shape) == x.shape[0]
        check(one, self.name, f"x is {x}; one id a token on a ragged axis is needed")
        check(size > 0, self.name, f"size is {size}, expected at least 1")
        return {"y": Spec((x.shape[0], Dim(size)), "i64", x.axis)}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """Sequence by sequence."""
        import numpy as np

        x, offsets, size = args["x"].values.reshape(-1), args["x"].offsets, integer(attrs, "size")
        y = np.full((len(x), size), integer(attrs, "pad"), np.int64)
        for first, last in pairwise(offsets):
            for t in range(first, last):
                window = x[t : min(t + size, last)]
                y[t, : len(window)] = window
        return {"y": Ragged(y, offsets)}

    def samples(self) -> Sequence[Sample]:
        """One id, some, more than sequences have."""
        return [
            Sample({"x": Arg(("s",), "i64", 0, 9)}, {"size": 1, "pad": 0}, axes=("s",)),
            Sample({"x": Arg(("s", 1), "i64", 0, 9)}, {"size": 2, "pad": -1}, axes=("s",)),
            Sample({"x": Arg(("s",), "i64", 0, 9)}, {"size": 6, "pad": 7}, axes=("s",)),
        ]


OP = SequenceEnumerate()
