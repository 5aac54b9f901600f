"""Metrics of outputs that are pictures, and of any other numbers that are no scores of classes."""

from __future__ import annotations

from typing import Any

from paddlecli.config.registry import METRICS
from paddlecli.engine.metrics import NO_CLASS
from paddlecli.graph.builder import fault
from paddlecli.graph.ir import Tensor
from paddlecli.models.network import Network
from paddlecli.models.outside import PythonMetric
from paddlecli.ops.cast import code


@METRICS.register("mean_iou")
def mean_iou(net: Network, scores: Tensor, label: Tensor, *, ignore_index: int = NO_CLASS) -> None:
    """Of each class of pixels the area that prediction and label have in common, over the area of either; the
    mean over the classes that occur. Scores [N, classes, H, W], or [N, 1, H, W] which find class 1 above 0;
    label [N, H, W] or [N, 1, H, W]. Pixels whose label is ``ignore_index`` do not count."""
    with net.layer("mean_iou"):
        if scores.spec.ndim != 4 or not all(d.known for d in scores.spec.shape[1:]):
            raise fault(
                net.origin, f"[mean_iou] scores are {scores.spec}; [N, classes, H, W] is needed"
            )
        classes, *area = (d.coefficient for d in scores.spec.shape[1:])
        if classes == 1:
            classes, zero = 2, net.apply("scale", scores, a=0.0, b=0.0)
            scores = net.apply("concat", [zero, scores], axis=1)
        if label.spec.dtype != "i64":
            label = net.apply("cast", label, scale=1.0, shift=0.0, dtype=code("i64"))
        if label.spec.ndim == 4:
            label = net.apply("reshape", label, dims=(0, *area))
        args = {"scores": net.apply("transpose", scores, perm=(0, 2, 3, 1)), "label": label}
        attrs = {"classes": classes, "ignore_index": ignore_index}
        net.metric(net.called("mean_iou"), "confusion_matrix", args, attrs, ("mean_iou",))


SPREAD = ("mean", "min", "q1", "median", "q3", "max")
"""The numbers that `spread` gives."""


def spread(values: Any) -> dict[str, float]:
    """Mean, least, quartiles and largest of all values; NaN without any."""
    import numpy as np

    flat = np.asarray(values).reshape(-1)
    if not flat.size:
        return dict.fromkeys(SPREAD, float("nan"))
    points = np.quantile(flat.astype(np.float64), (0.0, 0.25, 0.5, 0.75, 1.0)).tolist()
    return dict(zip(SPREAD, (float(flat.mean(dtype=np.float64)), *points), strict=True))


@METRICS.register("spread")
class Spread(PythonMetric):
    """Mean, least, quartiles and largest of all elements of values [N, ...], as ``<name>_mean``,
    ``<name>_min``, ``<name>_q1``, ``<name>_median``, ``<name>_q3`` and ``<name>_max``. Evaluations
    only; all values are kept until the end."""

    values = SPREAD

    def __init__(self) -> None:
        self._seen: list[Any] = []

    def add(self, values: Any) -> None:
        """Takes a batch; of a ragged tensor one array a sample."""
        import numpy as np

        parts = values if isinstance(values, list) else [values]
        self._seen += [np.asarray(part).reshape(-1) for part in parts]

    def result(self) -> dict[str, float]:
        """The six numbers of all batches."""
        import numpy as np

        return spread(np.concatenate(self._seen) if self._seen else np.zeros(0))
