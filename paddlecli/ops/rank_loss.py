"""rank_loss: RankNet's pairwise cost. After PaddlePaddle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlecli.ops._loss import ElementLoss
from paddlecli.ops.base import Arg, Attr, Kernel, RandomKey, Sample


class RankLoss(ElementLoss):
    """``o = left - right``: ``log(1 + e^o) - label*o``, label 1 where left should rank higher. Any
    equal shape."""

    name = "rank_loss"
    gradients = ("left", "right")
    alike = ("label", "left", "right")
    forward = Kernel(
        "rank_loss.forward(label: f32, left: f32, right: f32) -> (loss: f32)",
        inplace={"loss": "left"},
        rowwise=True,
    )
    backward_left = Kernel(
        "rank_loss.backward_left(label: f32, left: f32, right: f32, dloss: f32) -> (dleft: f32)",
        inplace={"dleft": "dloss"},
        rowwise=True,
    )
    backward_right = Kernel(
        "rank_loss.backward_right(label: f32, left: f32, right: f32, dloss: f32) -> (dright: f32)",
        inplace={"dright": "dloss"},
        rowwise=True,
    )

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        import numpy as np

        o = args["left"] - args["right"]
        return {"loss": np.logaddexp(0, o) - args["label"] * o}

    def samples(self) -> Sequence[Sample]:
        scores = Arg(("N", 1), low=-3, high=3)
        return [
            Sample({"label": Arg(("N", 1), choices=(0, 0.5, 1)), "left": scores, "right": scores})
        ]


OP = RankLoss()
