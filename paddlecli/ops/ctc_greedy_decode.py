"""ctc_greedy_decode: each frame's best class, repeats and blanks taken out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any, ClassVar

from paddlecli.ops._attrs import integer
from paddlecli.ops.base import Arg, Attr, Kernel, Op, Ragged, RandomKey, Sample, check
from paddlecli.ops.spec import Spec


class CtcGreedyDecode(Op):
    """Of scores x [T, classes] the best class of each frame (of equal ones the first), runs of one class made one, then
    ``blank`` left out.

    y i64 [T] lies on x's axis: the classes at the start of each sequence, -1 behind them; count [sequences] says how
    many there are.
    """

    name = "ctc_greedy_decode"
    forward = Kernel("ctc_greedy_decode.forward(x: f32; blank: int) -> (y: i64, count: i64)")
    defaults: ClassVar[Mapping[str, Attr]] = {"blank": 0}
    differentiable = False

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """[T] and [sequences]."""
        x = args["x"]
        known = x.axis is not None and x.ndim == 2 and x.shape[1].coefficient > 0
        check(known, self.name, f"x {x} are no rows on an axis")
        return {
            "y": Spec((x.shape[0],), "i64", x.axis),
            "count": Spec((x.axis.sequences,), "i64", x.axis.parent),
        }

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """Sequence by sequence."""
        import numpy as np

        x, offsets, blank = args["x"].values, args["x"].offsets, integer(attrs, "blank")
        y, count = np.full(len(x), -1, np.int64), np.zeros(len(offsets) - 1, np.int64)
        for s, (first, last) in enumerate(pairwise(offsets)):
            best = x[first:last].argmax(axis=1).tolist()
            left = [c for c, _ in groupby(best) if c != blank]
            y[first : first + len(left)], count[s] = left, len(left)
        return {"y": Ragged(y, offsets), "count": count}

    def samples(self) -> Sequence[Sample]:
        """Few classes, so that they repeat, ties included; many."""
        few = Arg(("s", 3), choices=(0.0, 1.0))
        return [
            Sample({"x": few}, {"blank": 0}, axes=("s",), lengths={"s": (1, 12)}),
            Sample({"x": Arg(("s", 2))}, {"blank": 1}, axes=("s",), lengths={"s": (4, 9)}),
            Sample({"x": Arg(("s", 40))}, {"blank": 7}, axes=("s",)),
        ]


OP = CtcGreedyDecode()
