"""Turns the log of a beam search into the sequences of each sample, best first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlecli.ops._attrs import integer
from paddlecli.ops.base import Arg, Attr, Kernel, Op, RandomKey, Sample, check
from paddlecli.ops.spec import Spec


class BeamTrace(Op):
    """ids and parents [limit * N * beam], step by step, total [N, beam] -> sequences [N, beam, limit] (``end`` behind the first end
    mark), length [N, beam] without the mark, scores [N, beam].

    Parents are rows of the step before; one below 0 says that its step wrote nothing. Sequences stand by falling score; equal scores:
    the later row first.
    """

    name = "beam_trace"
    differentiable = False
    forward = Kernel(
        "beam_trace.forward(ids: i64, parents: i64, total: f32; end: int, limit: int) -> (sequences: i64, length: i64, scores: f32)"
    )

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        """``beam`` rows a sample."""
        ids, parents, total, limit = (
            args["ids"],
            args["parents"],
            args["total"],
            integer(attrs, "limit"),
        )
        check(
            total.ndim == 2 and total.shape[1].known,
            self.name,
            f"total must be [samples, beam], got {total}",
        )
        rows = total.shape[0] * total.shape[1]
        fits = limit > 0 and ids.shape == parents.shape == (rows * limit,)
        check(
            fits, self.name, f"ids {ids} and parents {parents} are not {limit} steps of {rows} rows"
        )
        kept = total.shape
        return {
            "sequences": Spec.of(*kept, limit, dtype="i64"),
            "length": Spec(kept, "i64"),
            "scores": Spec(kept, "f32"),
        }

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """Row by row, from the end."""
        import numpy as np

        limit, end, total = integer(attrs, "limit"), integer(attrs, "end"), args["total"]
        n, beam = total.shape
        ids, parents = (args[k].reshape(limit, n * beam).astype(int) for k in ("ids", "parents"))
        sequences = np.full((n, beam, limit), end, np.int64)
        for s in range(n):
            for place, k in enumerate(sorted(range(beam), key=lambda k: (-total[s, k], -k))):
                row = s * beam + k
                for t in range(limit - 1, -1, -1):
                    if parents[t, row] >= 0:
                        sequences[s, place, t] = ids[t, row]
                        row = parents[t, row]
        ended = np.cumsum(sequences == end, axis=2) > 0
        sequences[ended] = end
        return {
            "sequences": sequences,
            "length": (~ended).sum(2),
            "scores": -np.sort(-total, axis=1),
        }

    def samples(self) -> Sequence[Sample]:
        """One sample that ran to the limit, one that stopped early; equal totals."""
        ids = Arg((12,), "i64", 0, 3)
        ran = Arg((12,), "i64", choices=(0.0, 1.0, 2.0))
        early = Arg((12,), "i64", values=(0, 0, 2, 2, 1, 0, 3, 3, -1, -1, -1, -1))
        total = Arg((2, 2), choices=(-1.0, -2.5))
        return [
            Sample({"ids": ids, "parents": ran, "total": Arg((1, 3))}, {"end": 1, "limit": 4}),
            Sample({"ids": ids, "parents": early, "total": total}, {"end": 3, "limit": 3}),
        ]


OP = BeamTrace()
