"""One choice of greedy decoding: the best id of each row, once a row has chosen the end mark always that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlecli.ops.base import Arg, Attr, Kernel, Op, RandomKey, Sample, check
from paddlecli.ops.spec import Spec


class GreedyStep(Op):
    """scores [N, V], finished [N] (non-zero: the row has ended) -> ids [N], finished_out [N], done [1] (all rows have ended).

    Equal scores: the smallest id wins.
    """

    name = "greedy_step"
    differentiable = False
    forward = Kernel(
        "greedy_step.forward(scores: f32, finished: i32; end: int) -> (ids: i64, finished_out: i32, done: i32)"
    )

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        scores: Spec = args["scores"]
        finished: Spec = args["finished"]
        check(scores.ndim == 2, self.name, f"scores must be [rows, ids], got {scores}")
        check(
            finished.shape == scores.shape[:1],
            self.name,
            f"finished is {finished}, scores have {scores.shape[0]} rows",
        )
        check(int(attrs["end"]) >= 0, self.name, f"end must be an id, got {attrs['end']}")  # type: ignore[arg-type]
        return {
            "ids": Spec((scores.shape[0],), "i64"),
            "finished_out": finished,
            "done": Spec.of(1, dtype="i32"),
        }

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        import numpy as np

        scores, ended = args["scores"], args["finished"] != 0
        best = scores.argmax(1) if len(scores) else np.zeros(0, np.int64)
        ids = np.where(ended, attrs["end"], best)
        ended = ids == attrs["end"]
        return {
            "ids": ids,
            "finished_out": ended.astype(np.int32),
            "done": np.array([int(ended.all())], np.int32),
        }

    def samples(self) -> Sequence[Sample]:
        flags = Arg(("N",), "i32", 0, 1)
        return [
            Sample({"scores": Arg(("N", 5)), "finished": flags}, {"end": 1}),
            Sample({"scores": Arg(("N", 33)), "finished": flags}, {"end": 0}),
            Sample({"scores": Arg(("N", 4), choices=(0.0, 1.0)), "finished": flags}, {"end": 2}),
        ]


OP = GreedyStep()
