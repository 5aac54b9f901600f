"""sigmoid_cross_entropy: cross-entropy of a score with a label between 0 and 1, without overflow.
After PaddlePaddle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlecli.ops._loss import ElementLoss
from paddlecli.ops.base import Arg, Attr, Kernel, RandomKey, Sample, check
from paddlecli.ops.spec import Spec


class SigmoidCrossEntropy(ElementLoss):
    """``max(x, 0) - x*label + log(1 + e^-|x|)``, 0 where the label is ``ignore_index``. Any equal
    shape.

    ``count`` [1], optional, is the original's ``normalize``: the number of labels of the **whole**
    batch that are not ignored, by which the losses are divided; 0 gives zeros. It is an input
    because a micro-batch does not know it.
    """

    name = "sigmoid_cross_entropy"
    forward = Kernel(
        "sigmoid_cross_entropy.forward(x: f32, label: f32, count?: f32; ignore_index: int) -> (loss: f32)",
        inplace={"loss": "x"},
        rowwise=True,
    )
    backward_x = Kernel(
        "sigmoid_cross_entropy.backward_x(x: f32, label: f32, dloss: f32, count?: f32; ignore_index: int) -> (dx: f32)",
        inplace={"dx": "dloss"},
        rowwise=True,
    )

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        count: Spec | None = args.get("count")
        check(
            count is None or count.shape == Spec.of(1).shape,
            self.name,
            f"count is {count}, one number is needed",
        )
        return super().shape(args, attrs)

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        import numpy as np

        x, label, count = args["x"], args["label"], args.get("count")
        loss = np.where(label == attrs["ignore_index"], 0, np.logaddexp(0, x) - x * label)
        return {"loss": loss if count is None else loss / count if count[0] > 0 else loss * 0}

    def samples(self) -> Sequence[Sample]:
        x, label = Arg(("N", 3), low=-4, high=4), Arg(("N", 3), choices=(0, 1, 0.3, -100))
        large = Arg(("N", 5), low=-60, high=60)
        return [
            Sample({"x": x, "label": label}, {"ignore_index": -100}),
            Sample(
                {"x": x, "label": label, "count": Arg((1,), values=(7.0,))}, {"ignore_index": -100}
            ),
            Sample({"x": large, "label": Arg(("N", 5), choices=(0, 1))}, {"ignore_index": 0}),
        ]


OP = SigmoidCrossEntropy()
