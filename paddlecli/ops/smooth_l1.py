"""smooth_l1: fluid's loss, summed over each row; ``huber_loss`` is the element-wise form of 2.x.
After PaddlePaddle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlecli.ops._attrs import number
from paddlecli.ops._loss import ElementLoss
from paddlecli.ops.base import Arg, Attr, Kernel, RandomKey, Sample
from paddlecli.ops.spec import Spec


class SmoothL1(ElementLoss):
    """With ``d = x - label``: per row the sum of ``0.5*sigma^2*d^2`` where ``|d| < 1/sigma^2``,
    else ``|d| - 0.5/sigma^2``.

    x and label [rows, ...] of one shape, loss [rows, 1].
    """

    name = "smooth_l1"
    gradients = ("x", "label")
    forward = Kernel(
        "smooth_l1.forward(x: f32, label: f32; sigma: float) -> (loss: f32)", rowwise=True
    )
    backward_x = Kernel(
        "smooth_l1.backward_x(x: f32, label: f32, dloss: f32; sigma: float) -> (dx: f32)",
        inplace={"dx": "x"},
        rowwise=True,
    )
    backward_label = Kernel(
        "smooth_l1.backward_label(x: f32, label: f32, dloss: f32; sigma: float) -> (dlabel: f32)",
        inplace={"dlabel": "label"},
        rowwise=True,
    )

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        super().shape(args, attrs)
        x: Spec = args["x"]
        return {"loss": x.with_shape(x.shape[0], 1)}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        import numpy as np

        square = number(attrs, "sigma") ** 2
        d = np.abs(args["x"] - args["label"])
        d = d.reshape(d.shape[0], int(np.prod(d.shape[1:])))
        return {
            "loss": np.where(d < 1 / square, 0.5 * square * d * d, d - 0.5 / square).sum(
                axis=1, keepdims=True
            )
        }

    def samples(self) -> Sequence[Sample]:
        return [
            Sample({"x": Arg(("N", 3), low=-2, high=2), "label": Arg(("N", 3))}, {"sigma": 1.0}),
            Sample(
                {"x": Arg(("N", 4, 5), low=-2, high=2), "label": Arg(("N", 4, 5))}, {"sigma": 2.0}
            ),
        ]


OP = SmoothL1()
