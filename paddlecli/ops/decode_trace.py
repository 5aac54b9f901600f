"""Turns the log of a decode loop into one row of ids for each sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlecli.ops.base import Arg, Attr, Kernel, Op, RandomKey, Sample, check
from paddlecli.ops.spec import Spec


class DecodeTrace(Op):
    """log [limit * N], step by step -> ids [N, limit] (``end`` behind the first end mark), length [N] without the mark."""

    name = "decode_trace"
    differentiable = False
    forward = Kernel(
        "decode_trace.forward(log: i64; end: int, limit: int) -> (ids: i64, length: i64)"
    )

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        log: Spec = args["log"]
        limit = int(attrs["limit"])  # type: ignore[arg-type]
        check(
            log.ndim == 1 and limit > 0,
            self.name,
            f"log must be [limit * rows], got {log} and limit {limit}",
        )
        check(
            log.shape[0].coefficient % limit == 0,
            self.name,
            f"{log} is not a multiple of {limit} steps",
        )
        rows = log.shape[0] // limit
        return {"ids": Spec.of(rows, limit, dtype="i64"), "length": Spec.of(rows, dtype="i64")}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        import numpy as np

        ids = args["log"].reshape(attrs["limit"], -1).T.copy()
        ended = np.cumsum(ids == attrs["end"], axis=1) > 0
        ids[ended] = attrs["end"]
        return {"ids": ids, "length": (~ended).sum(1)}

    def samples(self) -> Sequence[Sample]:
        return [
            Sample({"log": Arg((12,), "i64", 0, 3)}, {"end": 1, "limit": 4}),
            Sample({"log": Arg((5,), "i64", 0, 9)}, {"end": 0, "limit": 5}),
        ]


OP = DecodeTrace()
