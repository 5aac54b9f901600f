"""precision_recall: binary precision, recall and F1 at the threshold 0.5. After PaddlePaddle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from paddlecli.ops._metric import NAN, MetricOp, check_labels, positive, ratio
from paddlecli.ops.base import Arg, Attr, Kernel, Sample
from paddlecli.ops.spec import Spec

if TYPE_CHECKING:
    import numpy as np


class PrecisionRecall(MetricOp):
    """scores [N], [N, 1] or [N, 2] (the second column), label i64 of 0 and 1.

    State: right and wrong among scores >= 0.5, then found and missed among labels of 1, found
        meaning a score > 0.5: the original's two metrics treat exactly 0.5 differently.
    """

    name = "precision_recall"
    forward = Kernel(
        "precision_recall.forward(scores: f32, label: i64, state: i64) -> (state_out: i64)",
        inplace={"state_out": "state"},
        updates=True,
    )

    def state_shape(self, attrs: Mapping[str, Attr]) -> tuple[int, ...]:
        return (4,)

    def finish(self, state: Sequence[int], attrs: Mapping[str, Attr]) -> dict[str, float]:
        right, wrong, found, missed = (int(s) for s in state)
        precision, recall = ratio(right, right + wrong), ratio(found, found + missed)
        if right and found:
            f1 = 2 * precision * recall / (precision + recall)
        else:  # nothing is right; where there was nothing to find or be found it has no value
            f1 = 0.0 if right + wrong + found + missed else NAN
        return {"precision": precision, "recall": recall, "f1": f1}

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        check_labels(self.name, args["scores"], args["label"], classes=False)
        return super().shape(args, attrs)

    def count(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> np.ndarray:
        import numpy as np

        scores, one = positive(args["scores"]), args["label"].reshape(-1) == 1
        yes, sure = scores >= 0.5, scores > 0.5
        return np.array(
            [(yes & one).sum(), (yes & ~one).sum(), (sure & one).sum(), (~sure & one).sum()]
        )

    def samples(self) -> Sequence[Sample]:
        state, label = Arg((4,), "i64", low=0, high=9), Arg(("N",), "i64", low=0, high=1)
        grid = (0.0, 0.3, 0.5, 0.7, 1.0)
        return [
            Sample({"scores": Arg(("N",), choices=grid), "label": label, "state": state}),
            Sample({"scores": Arg(("N", 2), choices=grid), "label": label, "state": state}),
        ]


OP = PrecisionRecall()
