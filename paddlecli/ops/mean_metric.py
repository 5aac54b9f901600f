"""mean_metric: an exact running mean of values, for losses."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from paddlecli.ops._metric import NAN, MetricOp
from paddlecli.ops.base import Arg, Attr, Kernel, Sample, check
from paddlecli.ops.spec import Spec, product

if TYPE_CHECKING:
    import numpy as np

_UNIT = 1 << 40


class MeanMetric(MetricOp):
    """values of any shape, counted i32 of as many elements (0: left out), state [5].

    State: sum in units of 2^40, of wholes (below one such unit), of fractions in units of 2^-40
        (below one whole); values counted; values that are not finite or 2^80 and above, one of
        which makes the mean NaN.
    """

    name = "mean_metric"
    usual: ClassVar[tuple[str, ...]] = ("mean",)
    forward = Kernel(
        "mean_metric.forward(values: f32, counted?: i32, state: i64) -> (state_out: i64)",
        inplace={"state_out": "state"},
        updates=True,
    )

    def state_shape(self, attrs: Mapping[str, Attr]) -> tuple[int, ...]:
        return (5,)

    def finish(self, state: Sequence[int], attrs: Mapping[str, Attr]) -> dict[str, float]:
        """The mean, and its exponential."""
        high, whole, part, count, bad = (int(s) for s in state)
        total = (high * _UNIT + whole) * _UNIT + part
        mean = NAN if bad or not count else total / (count * _UNIT)
        return {"mean": mean, "exp": math.exp(mean) if not mean > 709 else math.inf}

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        values, counted = args["values"], args.get("counted")
        check(
            counted is None or product(counted.shape) == product(values.shape),
            self.name,
            f"counted is {counted}, values are {values}",
        )
        return super().shape(args, attrs)

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: Any
    ) -> dict[str, Any]:
        """With the carry, which is not an addition."""
        out = super().reference(args, attrs, random)["state_out"].copy()
        for low in (2, 1):
            out[low - 1] += out[low] >> 40
            out[low] &= _UNIT - 1
        return {"state_out": out}

    def count(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> np.ndarray:
        import numpy as np

        values = args["values"].reshape(-1)
        if args.get("counted") is not None:
            values = values[args["counted"].reshape(-1) != 0]
        fine = np.abs(values) < float(_UNIT) ** 2
        kept = values[fine].astype(np.float64)
        large = np.abs(kept) >= _UNIT
        high = np.where(large, np.floor(kept / _UNIT), 0.0)
        kept = kept - high * _UNIT
        whole = np.floor(kept)
        part = np.floor((kept - whole) * _UNIT + 0.5)
        sums = [high.sum(), whole.sum(), part.sum(), fine.sum(), (~fine).sum()]
        return np.array(sums).astype(np.int64)

    def samples(self) -> Sequence[Sample]:
        state = Arg((5,), "i64", values=(0, 3, 7, 5, 0))
        odd = Arg((6,), values=(float("nan"), 1e30, -0.25, float("-inf"), 3e-6, -1e9))
        large = Arg((4,), values=(1e20, -3e15, 2.5e12, -0.25))
        marks = Arg(("N", 1), "i32", choices=(0, 1))
        return [
            Sample({"values": Arg(("N", 1), low=-3, high=8), "state": state}),
            Sample({"values": Arg(("N",), low=0, high=8), "counted": marks, "state": state}),
            Sample({"values": Arg(("t", 1), low=0, high=8), "state": state}, axes=("t",)),
            Sample({"values": odd, "state": state}),
            Sample({"values": large, "state": state}),
        ]


OP = MeanMetric()
