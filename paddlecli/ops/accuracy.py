"""accuracy: share of rows whose label is among the k largest scores. After PaddlePaddle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from paddlecli.ops._metric import MetricOp, check_labels, ratio
from paddlecli.ops.base import Arg, Attr, Kernel, Sample, check
from paddlecli.ops.spec import Spec

if TYPE_CHECKING:
    import numpy as np


class Accuracy(MetricOp):
    """scores [..., classes], label i64 [...] or [..., 1]; state [correct, total].

    Of equal scores the first counts as the larger one. Rows whose label is ``ignore_index`` do not
    count.
    """

    name = "accuracy"
    forward = Kernel(
        "accuracy.forward(scores: f32, label: i64, state: i64; k: int, ignore_index: int) -> (state_out: i64)",
        inplace={"state_out": "state"},
        updates=True,
    )
    defaults: ClassVar[Mapping[str, Attr]] = {"k": 1, "ignore_index": -100}

    def state_shape(self, attrs: Mapping[str, Attr]) -> tuple[int, ...]:
        return (2,)

    def finish(self, state: Sequence[int], attrs: Mapping[str, Attr]) -> dict[str, float]:
        return {"accuracy": ratio(int(state[0]), int(state[1]))}

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        scores: Spec = args["scores"]
        check(
            isinstance(attrs["k"], int) and attrs["k"] >= 1,
            self.name,
            f"k is {attrs['k']}, must be at least 1",
        )
        check(scores.ndim >= 2, self.name, f"scores are {scores}; [N, classes] is needed")
        check_labels(self.name, scores, args["label"], classes=True)
        return super().shape(args, attrs)

    def count(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> np.ndarray:
        import numpy as np

        scores = args["scores"].reshape(-1, args["scores"].shape[-1])
        label = args["label"].reshape(-1).astype(np.int64)
        counted = label != attrs["ignore_index"]
        best = np.argsort(-scores, axis=1, kind="stable")[:, : attrs["k"]]
        right = (best == label[:, None]).any(axis=1)
        return np.array([(right & counted).sum(), counted.sum()])

    def samples(self) -> Sequence[Sample]:
        # Scores of a coarse grid tie often.
        state, ties = Arg((2,), "i64", low=0, high=9), (-1.0, 0.0, 0.5, 1.0)

        def label(*shape: int | str) -> Arg:
            return Arg(shape, "i64", choices=(0, 1, 2, 3, -100))

        plain: dict[str, Attr] = {"k": 1, "ignore_index": -100}
        scores = Arg(("N", 4), choices=ties)
        return [
            Sample({"scores": scores, "label": label("N", 1), "state": state}, plain),
            Sample({"scores": scores, "label": label("N"), "state": state}, {**plain, "k": 2}),
            Sample(
                {"scores": Arg(("N", 3, 37)), "label": label("N", 3), "state": state},
                {**plain, "k": 5},
            ),
            Sample(
                {"scores": Arg(("t", 4)), "label": label("t", 1), "state": state},
                plain,
                axes=("t",),
            ),
        ]


OP = Accuracy()
