"""confusion_matrix: counts of rows by label and predicted class; reports macro averages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from paddlecli.ops._attrs import integer
from paddlecli.ops._metric import NAN, MetricOp, check_labels, ratio
from paddlecli.ops.base import Arg, Attr, Kernel, Sample, check
from paddlecli.ops.spec import Dim, Spec

if TYPE_CHECKING:
    import numpy as np


MOST_CELLS = 64
"""Classes whose single counts are given too."""


class ConfusionMatrix(MetricOp):
    """scores [..., classes], label i64 [...] or [..., 1]; state [classes, classes], row the label,
    column the prediction.

    The prediction is the first largest score. Rows whose label is ``ignore_index`` do not count.
    """

    name = "confusion_matrix"
    usual: ClassVar[tuple[str, ...]] = ("accuracy", "macro_precision", "macro_recall", "macro_f1")
    forward = Kernel(
        "confusion_matrix.forward(scores: f32, label: i64, state: i64; classes: int, ignore_index: int) -> "
        "(state_out: i64)",
        inplace={"state_out": "state"},
        updates=True,
    )
    defaults: ClassVar[Mapping[str, Attr]] = {"ignore_index": -100}

    def state_shape(self, attrs: Mapping[str, Attr]) -> tuple[int, ...]:
        classes = int(attrs["classes"])  # type: ignore[arg-type]
        return (classes, classes)

    def matrix(self, state: Sequence[int], attrs: Mapping[str, Attr]) -> list[list[int]]:
        """The counts: row the label, column the prediction."""
        n = self.state_shape(attrs)[0]
        return [[int(c) for c in state[i * n : (i + 1) * n]] for i in range(n)]

    def finish(self, state: Sequence[int], attrs: Mapping[str, Attr]) -> dict[str, float]:
        """Accuracy, which is the micro-averaged F1 too; precision, recall, F1 and the intersection
        over the union averaged over the classes that occur (as label or prediction); up to
        MOST_CELLS classes each count, as ``<label>_<prediction>``."""
        rows = self.matrix(state, attrs)
        n = len(rows) if len(rows) <= MOST_CELLS else 0
        cells = {f"{i}_{j}": float(rows[i][j]) for i in range(n) for j in range(n)}
        return {**self._averages(rows), **cells}

    def _averages(self, rows: list[list[int]]) -> dict[str, float]:
        columns = [sum(c) for c in zip(*rows, strict=True)]
        right = [rows[i][i] for i in range(len(rows))]
        seen = [i for i in range(len(rows)) if columns[i] or sum(rows[i])]
        if not seen:
            return dict.fromkeys((*self.usual, "micro_f1", "mean_iou"), NAN)
        precision = [right[i] / columns[i] if columns[i] else 0.0 for i in seen]
        recall = [right[i] / sum(rows[i]) if sum(rows[i]) else 0.0 for i in seen]
        f1 = [2 * right[i] / (columns[i] + sum(rows[i])) for i in seen]
        means = [sum(values) / len(seen) for values in (precision, recall, f1)]
        accuracy = ratio(sum(right), sum(columns))
        averages = zip(self.usual, (accuracy, *means), strict=True)
        shared = [right[i] / (columns[i] + sum(rows[i]) - right[i]) for i in seen]
        return {**dict(averages), "micro_f1": accuracy, "mean_iou": sum(shared) / len(seen)}

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        scores: Spec = args["scores"]
        check(
            scores.ndim >= 2 and scores.shape[-1] == Dim(integer(attrs, "classes")),
            self.name,
            f"scores are {scores}; [N, {attrs['classes']}] is needed",
        )
        check_labels(self.name, scores, args["label"], classes=True)
        return super().shape(args, attrs)

    def count(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> np.ndarray:
        import numpy as np

        classes, label = integer(attrs, "classes"), args["label"].reshape(-1).astype(np.int64)
        best = args["scores"].reshape(-1, classes).argmax(axis=1)
        kept = label != attrs["ignore_index"]
        return np.bincount(label[kept] * classes + best[kept], minlength=classes * classes)

    def samples(self) -> Sequence[Sample]:
        state, scores = Arg((3, 3), "i64", low=0, high=9), Arg(("N", 3), choices=(-1.0, 0.0, 1.0))
        label = Arg(("N", 1), "i64", choices=(0, 1, 2, -100))
        return [
            Sample(
                {"scores": scores, "label": label, "state": state},
                {"classes": 3, "ignore_index": -100},
            )
        ]


OP = ConfusionMatrix()
