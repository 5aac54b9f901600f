"""auc: area under the ROC curve from 4095 buckets, by trapezoids. After PaddlePaddle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from paddlecli.ops._metric import MetricOp, check_labels, positive, ratio
from paddlecli.ops.base import Arg, Attr, Kernel, Sample
from paddlecli.ops.spec import Spec

if TYPE_CHECKING:
    import numpy as np

BUCKETS = 4095
"""A score falls into bucket floor(score * BUCKETS), so there are BUCKETS + 1 of them."""


class Auc(MetricOp):
    """scores [N], [N, 1] or [N, 2] (the second column) within [0, 1], label i64 of 0 and 1.

    State [2, BUCKETS + 1]: how many rows of label 1, then of label 0, fell into each bucket.
    """

    name = "auc"
    forward = Kernel(
        "auc.forward(scores: f32, label: i64, state: i64) -> (state_out: i64)",
        inplace={"state_out": "state"},
        updates=True,
    )

    def state_shape(self, attrs: Mapping[str, Attr]) -> tuple[int, ...]:
        return (2, BUCKETS + 1)

    def finish(self, state: Sequence[int], attrs: Mapping[str, Attr]) -> dict[str, float]:
        """Twice the area in whole numbers, from the highest bucket down; NaN where one label is
        missing."""
        counts = [int(s) for s in state]
        ones = zeros = area = 0
        for one, zero in zip(
            reversed(counts[: BUCKETS + 1]), reversed(counts[BUCKETS + 1 :]), strict=True
        ):
            area += zero * (2 * ones + one)
            ones, zeros = ones + one, zeros + zero
        return {"auc": ratio(area, 2 * ones * zeros)}

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        check_labels(self.name, args["scores"], args["label"], classes=False)
        return super().shape(args, attrs)

    def count(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> np.ndarray:
        import numpy as np

        bucket = (positive(args["scores"]) * BUCKETS).astype(np.int64)
        one = args["label"].reshape(-1) == 1
        return np.stack([np.bincount(bucket[of], minlength=BUCKETS + 1) for of in (one, ~one)])

    def samples(self) -> Sequence[Sample]:
        state, label = (
            Arg((2, BUCKETS + 1), "i64", low=0, high=3),
            Arg(("N", 1), "i64", low=0, high=1),
        )
        return [
            Sample({"scores": Arg(("N", 1), low=0, high=1), "label": label, "state": state}),
            Sample(
                {
                    "scores": Arg(("N", 2), choices=(0.0, 0.25, 0.5, 1.0)),
                    "label": label,
                    "state": state,
                }
            ),
        ]


OP = Auc()
