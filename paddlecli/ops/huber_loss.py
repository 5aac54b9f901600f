"""huber_loss: quadratic near 0, linear beyond ``delta``; 2.x calls it ``smooth_l1_loss``.
After PaddlePaddle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlecli.ops._attrs import number
from paddlecli.ops._loss import ElementLoss
from paddlecli.ops.base import Arg, Attr, Kernel, RandomKey, Sample


class HuberLoss(ElementLoss):
    """``d = x - label``: ``d^2/2`` where ``|d| <= delta``, else ``delta*(|d| - delta/2)``. Any
    equal shape."""

    name = "huber_loss"
    gradients = ("x", "label")
    forward = Kernel(
        "huber_loss.forward(x: f32, label: f32; delta: float) -> (loss: f32)",
        inplace={"loss": "x"},
        rowwise=True,
    )
    backward_x = Kernel(
        "huber_loss.backward_x(x: f32, label: f32, dloss: f32; delta: float) -> (dx: f32)",
        inplace={"dx": "dloss"},
        rowwise=True,
    )
    backward_label = Kernel(
        "huber_loss.backward_label(x: f32, label: f32, dloss: f32; delta: float) -> (dlabel: f32)",
        inplace={"dlabel": "dloss"},
        rowwise=True,
    )

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        import numpy as np

        d, delta = np.abs(args["x"] - args["label"]), number(attrs, "delta")
        return {"loss": np.where(d <= delta, d * d / 2, delta * (d - delta / 2))}

    def samples(self) -> Sequence[Sample]:
        return [
            Sample({"x": Arg(("N", 3), low=-2, high=2), "label": Arg(("N", 3))}, {"delta": 1.0}),
            Sample({"x": Arg(("N", 19), low=-2, high=2), "label": Arg(("N", 19))}, {"delta": 0.6}),
        ]


OP = HuberLoss()
