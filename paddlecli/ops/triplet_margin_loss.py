"""triplet_margin_loss: the anchor should be nearer to the positive than to the negative by a margin
(2.x)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paddlecli.ops._loss import ElementLoss
from paddlecli.ops.base import Arg, Attr, Kernel, RandomKey, Sample, check
from paddlecli.ops.spec import Spec

_IN = "anchor: f32, positive: f32, negative: f32"


class TripletMarginLoss(ElementLoss):
    """``max(0, d(a, p) - d(a, n) + margin)`` with ``d(a, b) = sqrt(sum((a - b + epsilon)^2))`` over
    each row.

    anchor, positive, negative [rows, size]; loss [rows, 1].
    """

    name = "triplet_margin_loss"
    gradients = ("anchor", "positive", "negative")
    alike = ("anchor", "positive", "negative")
    forward = Kernel(
        f"triplet_margin_loss.forward({_IN}; margin: float, epsilon: float) -> (loss: f32)",
        rowwise=True,
    )
    backward_anchor = Kernel(
        f"triplet_margin_loss.backward_anchor({_IN}, dloss: f32; margin: float, epsilon: float) -> (danchor: f32)",
        rowwise=True,
    )
    backward_positive = Kernel(
        f"triplet_margin_loss.backward_positive({_IN}, dloss: f32; margin: float, epsilon: float) -> (dpositive: f32)",
        rowwise=True,
    )
    backward_negative = Kernel(
        f"triplet_margin_loss.backward_negative({_IN}, dloss: f32; margin: float, epsilon: float) -> (dnegative: f32)",
        rowwise=True,
    )
    defaults: ClassVar[Mapping[str, Attr]] = {"margin": 1.0, "epsilon": 1e-6}

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        super().shape(args, attrs)
        anchor: Spec = args["anchor"]
        check(anchor.ndim == 2, self.name, f"anchor is {anchor}; [rows, size] is needed")
        return {"loss": anchor.with_shape(anchor.shape[0], 1)}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        import numpy as np

        near, far = (
            np.sqrt(((args["anchor"] - args[p] + attrs["epsilon"]) ** 2).sum(axis=1, keepdims=True))
            for p in ("positive", "negative")
        )
        return {"loss": np.maximum(0, near - far + attrs["margin"])}

    def samples(self) -> Sequence[Sample]:
        """All rows within the margin, and all outside: the kink lies in between."""
        a, p = Arg(("N", 3), low=-1, high=1), Arg(("N", 3), low=1.5, high=3)
        far = Arg(("N", 3), low=20, high=30)
        return [
            Sample(
                {"anchor": a, "positive": p, "negative": Arg(("N", 3))},
                {"margin": 6.0, "epsilon": 1e-6},
            ),
            Sample({"anchor": a, "positive": p, "negative": far}, {"margin": 1.0, "epsilon": 1e-6}),
            Sample(
                {
                    "anchor": Arg(("N", 35)),
                    "positive": Arg(("N", 35), low=1, high=2),
                    "negative": Arg(("N", 35)),
                },
                {"margin": 20.0, "epsilon": 1e-3},
            ),
        ]


OP = TripletMarginLoss()
