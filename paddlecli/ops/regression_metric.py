"""regression_metric: MAE, MSE, RMSE and R2 from exact sums."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from paddlecli.ops._exact_sum import LIMBS, UNIT, carried, limbs_of, whole
from paddlecli.ops._metric import NAN, MetricOp
from paddlecli.ops.base import Arg, Attr, Kernel, Sample, check
from paddlecli.ops.spec import Spec, product

if TYPE_CHECKING:
    import numpy as np

_SUMS = 4


class RegressionMetric(MetricOp):
    """prediction and label of any shape and as many elements, each of which counts once.

    State [82]: elements; elements that are not finite, one of which makes every value NaN; exact
    sums
        of |error|, error^2, label, label^2 (every finite float, nothing rounded but each error and
        each square to float64, 2^62 elements).
    """

    name = "regression_metric"
    forward = Kernel(
        "regression_metric.forward(prediction: f32, label: f32, state: i64) -> (state_out: i64)",
        inplace={"state_out": "state"},
        updates=True,
    )

    def state_shape(self, attrs: Mapping[str, Attr]) -> tuple[int, ...]:
        return (2 + _SUMS * LIMBS,)

    def finish(self, state: Sequence[int], attrs: Mapping[str, Attr]) -> dict[str, float]:
        """``r2`` is NaN where all labels are equal: there is nothing to explain."""
        count, bad = int(state[0]), int(state[1])
        if bad or not count:
            return dict.fromkeys(("mae", "mse", "rmse", "r2"), NAN)
        starts = range(2, 2 + _SUMS * LIMBS, LIMBS)
        absolute, squared, label, label_squared = (whole(state[i : i + LIMBS]) for i in starts)
        mse = squared / (count * UNIT)
        left, spread = count * squared * UNIT, count * label_squared * UNIT - label * label
        return {
            "mae": absolute / (count * UNIT),
            "mse": mse,
            "rmse": math.sqrt(mse),
            "r2": _share(spread - left, spread),
        }

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        prediction, label = args["prediction"], args["label"]
        check(
            product(prediction.shape) == product(label.shape),
            self.name,
            f"prediction is {prediction}, label is {label}",
        )
        return super().shape(args, attrs)

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: Any
    ) -> dict[str, Any]:
        """With the carry, which is not an addition."""
        out = super().reference(args, attrs, random)["state_out"].copy()
        for i in range(2, out.size, LIMBS):
            out[i : i + LIMBS] = carried(whole(out[i : i + LIMBS].tolist()))
        return {"state_out": out}

    def count(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> np.ndarray:
        import numpy as np

        prediction, label = (
            args[k].reshape(-1).astype(np.float64) for k in ("prediction", "label")
        )
        error = prediction - label
        fine = np.isfinite(error)
        error, label = error[fine], label[fine]
        sums = [limbs_of(v) for v in (np.abs(error), error * error, label, label * label)]
        return np.concatenate([[fine.sum(), (~fine).sum()], *sums])

    def samples(self) -> Sequence[Sample]:
        state = Arg((2 + _SUMS * LIMBS,), "i64", low=0, high=(1 << 32) - 1)
        odd = Arg((6,), values=(float("nan"), 3e38, -1e-45, float("-inf"), 3e-6, -3e38))
        plain = Arg((6,), values=(1.0, -3e38, 1e-45, 2.0, -3e-6, 0.0))
        rows = {"prediction": Arg(("N", 3), low=-9), "label": Arg(("N", 3), low=-9, high=9)}
        tokens = {"prediction": Arg(("t", 1)), "label": Arg(("t",))}
        return [
            Sample({**rows, "state": state}),
            Sample({**tokens, "state": state}, axes=("t",)),
            Sample({"prediction": odd, "label": plain, "state": state}),
        ]


def _share(part: int, of: int) -> float:
    """part / of, correctly rounded; NaN where ``of`` is 0."""
    if not of:
        return NAN
    try:
        return part / of
    except OverflowError:
        return math.copysign(math.inf, part)


OP = RegressionMetric()
