"""square_error_cost: ``(x - label)^2`` element by element, without a factor of one half.
After PaddlePaddle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlecli.ops._loss import ElementLoss
from paddlecli.ops.base import Arg, Attr, Kernel, RandomKey, Sample


class SquareErrorCost(ElementLoss):
    """``x``, ``label`` and ``loss``: any equal shape."""

    name = "square_error_cost"
    gradients = ("x", "label")
    forward = Kernel(
        "square_error_cost.forward(x: f32, label: f32) -> (loss: f32)",
        inplace={"loss": "x"},
        rowwise=True,
    )
    backward_x = Kernel(
        "square_error_cost.backward_x(x: f32, label: f32, dloss: f32) -> (dx: f32)",
        inplace={"dx": "dloss"},
        rowwise=True,
    )
    backward_label = Kernel(
        "square_error_cost.backward_label(x: f32, label: f32, dloss: f32) -> (dlabel: f32)",
        inplace={"dlabel": "dloss"},
        rowwise=True,
    )

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        return {"loss": (args["x"] - args["label"]) ** 2}

    def samples(self) -> Sequence[Sample]:
        return [
            Sample({"x": Arg(("N", 1)), "label": Arg(("N", 1))}),
            Sample({"x": Arg(("N", 5, 7)), "label": Arg(("N", 5, 7))}),
        ]


OP = SquareErrorCost()
