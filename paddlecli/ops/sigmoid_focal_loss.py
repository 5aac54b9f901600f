"""sigmoid_focal_loss: cross-entropy of a score that counts easy examples less (Lin et al., 2017;
2.x)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paddlecli.ops._loss import ElementLoss
from paddlecli.ops.base import Arg, Attr, Kernel, RandomKey, Sample


class SigmoidFocalLoss(ElementLoss):
    """``alpha_t * (1 - p_t)^gamma * sigmoid cross-entropy``; labels 0 or 1, gamma >= 0; any equal
    shape.

    p_t is the probability of the label, alpha_t is alpha for a label of 1 and 1 - alpha for 0.
    """

    name = "sigmoid_focal_loss"
    forward = Kernel(
        "sigmoid_focal_loss.forward(x: f32, label: f32; alpha: float, gamma: float) -> (loss: f32)",
        inplace={"loss": "x"},
        rowwise=True,
    )
    backward_x = Kernel(
        "sigmoid_focal_loss.backward_x(x: f32, label: f32, dloss: f32; alpha: float, gamma: float) -> (dx: f32)",
        inplace={"dx": "dloss"},
        rowwise=True,
    )
    defaults: ClassVar[Mapping[str, Attr]] = {"alpha": 0.25, "gamma": 2.0}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        import numpy as np

        alpha, gamma = float(attrs["alpha"]), float(attrs["gamma"])  # type: ignore[arg-type]
        z = np.where(args["label"] > 0.5, args["x"], -args["x"])
        weight = np.where(args["label"] > 0.5, alpha, 1 - alpha)
        return {"loss": weight * np.exp(-gamma * np.logaddexp(0, z)) * np.logaddexp(0, -z)}

    def samples(self) -> Sequence[Sample]:
        args = {"x": Arg(("N", 3), low=-5, high=5), "label": Arg(("N", 3), choices=(0, 1))}
        return [
            Sample(args, {"alpha": a, "gamma": g}) for a, g in ((0.25, 2.0), (0.4, 1.0), (0.5, 0.0))
        ]


OP = SigmoidFocalLoss()
