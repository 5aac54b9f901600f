"""log_loss: cross-entropy of a probability with a label of 0 or 1, kept finite by ``epsilon``.
After PaddlePaddle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlecli.ops._loss import ElementLoss
from paddlecli.ops.base import Arg, Attr, Kernel, RandomKey, Sample


class LogLoss(ElementLoss):
    """``-label*log(x + epsilon) - (1 - label)*log(1 - x + epsilon)``; any equal shape, epsilon 1e-4
    by custom."""

    name = "log_loss"
    forward = Kernel(
        "log_loss.forward(x: f32, label: f32; epsilon: float) -> (loss: f32)",
        inplace={"loss": "x"},
        rowwise=True,
    )
    backward_x = Kernel(
        "log_loss.backward_x(x: f32, label: f32, dloss: f32; epsilon: float) -> (dx: f32)",
        inplace={"dx": "dloss"},
        rowwise=True,
    )

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        import numpy as np

        x, label, e = args["x"], args["label"], attrs["epsilon"]
        return {"loss": -label * np.log(x + e) - (1 - label) * np.log(1 - x + e)}

    def samples(self) -> Sequence[Sample]:
        probability = Arg(("N", 3), low=0.05, high=0.95)
        return [
            Sample({"x": probability, "label": Arg(("N", 3), choices=(0, 1))}, {"epsilon": 1e-4}),
            Sample({"x": probability, "label": Arg(("N", 3), low=0, high=1)}, {"epsilon": 1e-2}),
        ]


OP = LogLoss()
