"""Decayed Adagrad: m = rho*m + (1 - rho)*d^2; p -= rate*d / (sqrt(m) + epsilon)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from paddlecli.config.types import Fraction, Positive
from paddlecli.ops._optimizer import OptimizerOp, Slot, numbers, update_kernel
from paddlecli.ops.base import Attr, Kernel

if TYPE_CHECKING:
    from paddlecli.ops._optimizer import Array, Moved

_OWN = "rho: float, epsilon: float"


class DecayedAdagrad(OptimizerOp):
    """The mean squares of table rows without a gradient decay."""

    name: ClassVar[str] = "decayed_adagrad"
    forward: ClassVar[Kernel] = update_kernel("decayed_adagrad", ("moment",), _OWN)
    update_rows: ClassVar[Kernel] = update_kernel("decayed_adagrad", ("moment",), _OWN, rows=True)

    def arguments(self, *, rho: Fraction = 0.95, epsilon: Positive = 1e-6) -> dict[str, Attr]:
        """rho: share of the mean square that is kept."""
        return {"rho": rho, "epsilon": epsilon}

    def slots(self, attrs: Mapping[str, Attr]) -> tuple[Slot, ...]:
        return (Slot("moment"),)

    def moves_rows(self, attrs: Mapping[str, Attr]) -> bool:
        return True

    def rule(
        self,
        p: Array,
        d: Array,
        slots: Mapping[str, Array],
        rate: float,
        t: int,
        attrs: Mapping[str, Attr],
    ) -> Moved:
        rho, epsilon = numbers(attrs, "rho", "epsilon")
        m = rho * slots["moment"] + (1 - rho) * d * d
        return p - rate * d / (m**0.5 + epsilon), {"moment": m}


OP = DecayedAdagrad()
