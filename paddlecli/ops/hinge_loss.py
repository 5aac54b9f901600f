"""hinge_loss: the support-vector cost of a score with a label of 0 or 1. After PaddlePaddle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlecli.ops._loss import ElementLoss
from paddlecli.ops.base import Arg, Attr, Kernel, RandomKey, Sample


class HingeLoss(ElementLoss):
    """``max(0, 1 - (2*label - 1)*x)``; any equal shape."""

    name = "hinge_loss"
    forward = Kernel(
        "hinge_loss.forward(x: f32, label: f32) -> (loss: f32)", inplace={"loss": "x"}, rowwise=True
    )
    backward_x = Kernel(
        "hinge_loss.backward_x(x: f32, label: f32, dloss: f32) -> (dx: f32)",
        inplace={"dx": "dloss"},
        rowwise=True,
    )

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        import numpy as np

        return {"loss": np.maximum(0, 1 - (2 * args["label"] - 1) * args["x"])}

    def samples(self) -> Sequence[Sample]:
        x = Arg(("N", 1), low=-3, high=3)
        return [Sample({"x": x, "label": Arg(("N", 1), choices=(0, 1))}, kinks=(-1.0, 1.0))]


OP = HingeLoss()
