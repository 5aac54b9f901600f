"""kl_div: Kullback-Leibler divergence of log-probabilities from probabilities, element by element.
After PaddlePaddle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlecli.ops._loss import ElementLoss
from paddlecli.ops.base import Arg, Attr, Kernel, RandomKey, Sample


class KlDiv(ElementLoss):
    """``x`` holds log-probabilities, ``label`` probabilities: ``label*(log(label) - x)``, 0 where
    the label is 0."""

    name = "kl_div"
    forward = Kernel(
        "kl_div.forward(x: f32, label: f32) -> (loss: f32)", inplace={"loss": "x"}, rowwise=True
    )
    backward_x = Kernel(
        "kl_div.backward_x(label: f32, dloss: f32) -> (dx: f32)",
        inplace={"dx": "dloss"},
        rowwise=True,
    )

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        import numpy as np

        x, label = args["x"], args["label"]
        return {"loss": np.where(label > 0, label * (np.log(np.where(label > 0, label, 1)) - x), 0)}

    def samples(self) -> Sequence[Sample]:
        return [
            Sample(
                {
                    "x": Arg(("N", 4), low=-3, high=0),
                    "label": Arg(("N", 4), choices=(0.0, 0.25, 0.6, 1.0)),
                }
            ),
            Sample(
                {"x": Arg(("N", 17), low=-3, high=0), "label": Arg(("N", 17), low=0.05, high=1)}
            ),
        ]


OP = KlDiv()
