"""margin_rank_loss: a pair in the wrong order, or too close, costs its distance to the margin.
After PaddlePaddle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlecli.ops._loss import ElementLoss
from paddlecli.ops.base import Arg, Attr, Kernel, RandomKey, Sample


class MarginRankLoss(ElementLoss):
    """``max(0, margin - label*(left - right))``, label +1 where left should rank higher, else -1.
    Any equal shape."""

    name = "margin_rank_loss"
    gradients = ("left", "right")
    alike = ("label", "left", "right")
    forward = Kernel(
        "margin_rank_loss.forward(label: f32, left: f32, right: f32; margin: float) -> (loss: f32)",
        inplace={"loss": "left"},
        rowwise=True,
    )
    backward_left = Kernel(
        "margin_rank_loss.backward_left(label: f32, left: f32, right: f32, dloss: f32; margin: float) -> (dleft: f32)",
        inplace={"dleft": "dloss"},
        rowwise=True,
    )
    backward_right = Kernel(
        "margin_rank_loss.backward_right(label: f32, left: f32, right: f32, dloss: f32; margin: float) -> (dright: f32)",
        inplace={"dright": "dloss"},
        rowwise=True,
    )

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        import numpy as np

        return {
            "loss": np.maximum(0, attrs["margin"] - args["label"] * (args["left"] - args["right"]))
        }

    def samples(self) -> Sequence[Sample]:
        # left below 0, right above: the distance to the kink at label*(left - right) = margin stays away from 0.
        left, right = Arg(("N", 3), low=-2, high=-0.3), Arg(("N", 3), low=0.2, high=2)
        return [
            Sample(
                {"label": Arg(("N", 3), choices=(-1, 1)), "left": left, "right": right},
                {"margin": 0.1},
            )
        ]


OP = MarginRankLoss()
