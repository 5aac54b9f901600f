"""Momentum with a rate for each parameter (LARS, You et al. 2017).

l = rate*c*|p| / (|d| + decay*|p| + epsilon); v = mu*v + l*(d + decay*p); p -= v.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from paddlecli.config.types import Fraction, NonNegative, Positive
from paddlecli.ops._optimizer import OptimizerOp, Slot, numbers, update_kernel
from paddlecli.ops.base import Attr, Kernel

if TYPE_CHECKING:
    from paddlecli.ops._optimizer import Array, Moved

_OWN = "momentum: float, coefficient: float, weight_decay: float, epsilon: float"


class LarsMomentum(OptimizerOp):
    """A parameter that is all zero, or has no gradient, takes the plain rate."""

    name: ClassVar[str] = "lars_momentum"
    forward: ClassVar[Kernel] = update_kernel("lars_momentum", ("velocity",), _OWN, norms=True)
    update_rows: ClassVar[Kernel] = update_kernel(
        "lars_momentum", ("velocity",), _OWN, rows=True, norms=True
    )
    norms: ClassVar[bool] = True

    def arguments(
        self,
        *,
        momentum: Fraction = 0.9,
        coefficient: Positive = 0.001,
        weight_decay: NonNegative = 0.0005,
        epsilon: NonNegative = 0.0,
    ) -> dict[str, Attr]:
        """coefficient: the trust put into a layer's own scale. weight_decay: added to the gradient
        inside the rule."""
        return {
            "momentum": momentum,
            "coefficient": coefficient,
            "weight_decay": weight_decay,
            "epsilon": epsilon,
        }

    def slots(self, attrs: Mapping[str, Attr]) -> tuple[Slot, ...]:
        return (Slot("velocity", low=-1.0),)

    def moves_rows(self, attrs: Mapping[str, Attr]) -> bool:
        return True

    def variants(self) -> Sequence[Mapping[str, Attr]]:
        return self.arguments(), self.arguments(coefficient=0.3, weight_decay=0.1, epsilon=0.01)

    def rule(
        self,
        p: Array,
        d: Array,
        slots: Mapping[str, Array],
        rate: float,
        t: int,
        attrs: Mapping[str, Attr],
    ) -> Moved:
        import numpy as np

        momentum, coefficient = numbers(attrs, "momentum", "coefficient")
        weight_decay, epsilon = numbers(attrs, "weight_decay", "epsilon")
        size, slope = np.linalg.norm(p), np.linalg.norm(d)
        if size > 0 and slope > 0:
            rate = float(rate * coefficient * size / (slope + weight_decay * size + epsilon))
        v = momentum * slots["velocity"] + rate * (d + weight_decay * p)
        return p - v, {"velocity": v}


OP = LarsMomentum()
