"""One step of beam search: the best continuations of each sample's prefixes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlecli.ops._attrs import integer
from paddlecli.ops.base import Arg, Attr, Kernel, Op, RandomKey, Sample, check
from paddlecli.ops.spec import Spec


class BeamStep(Op):
    """scores [N * beam, V] are log-probabilities of the next id, total [N, beam] those of the prefixes so far, finished [N * beam].

    Of all total + score of a sample the ``beam`` best are taken; a finished prefix offers just itself, with ``end`` and its old total.
    Equal sums: the later prefix wins, of one prefix the smaller id. ids and parents [N * beam] (rows of this step) stand in the order
    of their parents; done [1]: all prefixes have ended. A score that is NaN is never taken.
    """

    name = "beam_step"
    differentiable = False
    forward = Kernel(
        "beam_step.forward(scores: f32, total: f32, finished: i32; end: int)"
        " -> (ids: i64, parents: i64, total_out: f32, finished_out: i32, done: i32)"
    )

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        """A row for each prefix."""
        scores, total, finished = args["scores"], args["total"], args["finished"]
        check(scores.ndim == 2, self.name, f"scores must be [rows, ids], got {scores}")
        check(
            total.ndim == 2 and total.shape[1].known,
            self.name,
            f"total must be [samples, beam], got {total}",
        )
        rows = total.shape[0] * total.shape[1]
        fits = finished.shape == scores.shape[:1] == (rows,)
        check(fits, self.name, f"total {total} and finished {finished} do not fit scores {scores}")
        check(integer(attrs, "end") >= 0, self.name, f"end must be an id, got {attrs['end']}")
        each = Spec((rows,), "i64")
        return {
            "ids": each,
            "parents": each,
            "total_out": total,
            "finished_out": finished,
            "done": Spec.of(1, dtype="i32"),
        }

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """All candidates of a sample, sorted."""
        import numpy as np

        total, end = args["total"], integer(attrs, "end")
        n, beam = total.shape
        scores = args["scores"].reshape(n, beam, args["scores"].shape[1])
        ended = args["finished"].reshape(n, beam) != 0
        chosen = []
        for s in range(n):
            offers = [(total[s, k], k, end) for k in range(beam) if ended[s, k]]
            offers += [
                (total[s, k] + x, k, i)
                for k in range(beam)
                if not ended[s, k]
                for i, x in enumerate(scores[s, k])
            ]
            best = sorted(offers, key=lambda c: (-c[0], -c[1], c[2]))[:beam]
            chosen += [(x, s * beam + k, i) for x, k, i in sorted(best, key=lambda c: c[1])]
        table = np.array(chosen).reshape(-1, 3)
        ids = table[:, 2].astype(np.int64)
        finished = (ids == end).astype(np.int32)
        return {
            "ids": ids, "parents": table[:, 1].astype(np.int64), "total_out": table[:, 0].reshape(n, beam),
            "finished_out": finished, "done": np.array([int(finished.all())], np.int32),
        }  # fmt: skip

    def samples(self) -> Sequence[Sample]:
        """A beam of one and wider ones (``N`` and beam give N * beam rows only for one); wide rows; equal scores."""
        flags = Arg(("N",), "i32", 0, 1)
        fixed = Arg((6,), "i32", 0, 1)
        return [
            Sample(
                {"scores": Arg(("N", 5)), "total": Arg(("N", 1)), "finished": flags}, {"end": 1}
            ),
            Sample(
                {
                    "scores": Arg((6, 40), low=-9, high=0),
                    "total": Arg((2, 3), low=-9, high=0),
                    "finished": fixed,
                },
                {"end": 0},
            ),
            Sample(
                {
                    "scores": Arg((6, 4), choices=(-1.0, -2.0)),
                    "total": Arg((3, 2), choices=(-1.0, -2.0)),
                    "finished": fixed,
                },
                {"end": 3},
            ),
        ]


OP = BeamStep()
