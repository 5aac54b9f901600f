"""sequence_erase: ids without those of a list; how many are left is counted, not a size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar

from paddlecli.ops._attrs import integers
from paddlecli.ops.base import Arg, Attr, Kernel, Op, Ragged, RandomKey, Sample, check
from paddlecli.ops.spec import Spec, product

MOST_IDS = 32
"""Ids that can be erased."""


class SequenceErase(Op):
    """Of each sequence of x (i64 [T] or [T, 1]) the ids that are not among ``ids``, moved to its start.

    y [T] lies on x's axis, -1 behind what is left; count [sequences] says how many are left: sizes of tensors never
    depend on values here.
    """

    name = "sequence_erase"
    forward = Kernel("sequence_erase.forward(x: i64; ids: list) -> (y: i64, count: i64)")
    defaults: ClassVar[Mapping[str, Attr]] = {}
    differentiable = False

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """[T] and [sequences]."""
        x, ids = args["x"], integers(attrs, "ids")
        one = x.axis is not None and product(x.shape) == x.shape[0]
        check(one, self.name, f"x is {x}; one id a token on a ragged axis is needed")
        check(len(ids) <= MOST_IDS, self.name, f"{len(ids)} ids, at most {MOST_IDS}")
        return {
            "y": Spec((x.shape[0],), "i64", x.axis),
            "count": Spec((x.axis.sequences,), "i64", x.axis.parent),
        }

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """Sequence by sequence."""
        import numpy as np

        x, offsets = args["x"].values.reshape(-1), args["x"].offsets
        y, count = np.full(len(x), -1, np.int64), np.zeros(len(offsets) - 1, np.int64)
        for s, (first, last) in enumerate(pairwise(offsets)):
            left = [i for i in x[first:last].tolist() if i not in integers(attrs, "ids")]
            y[first : first + len(left)], count[s] = left, len(left)
        return {"y": Ragged(y, offsets), "count": count}

    def samples(self) -> Sequence[Sample]:
        """None, one and several ids."""
        return [
            Sample({"x": Arg(("s",), "i64", 0, 3)}, {"ids": ()}, axes=("s",)),
            Sample({"x": Arg(("s", 1), "i64", 0, 2)}, {"ids": (1,)}, axes=("s",)),
            Sample({"x": Arg(("s",), "i64", 0, 4)}, {"ids": (0, 9, 3)}, axes=("s",)),
        ]


OP = SequenceErase()
