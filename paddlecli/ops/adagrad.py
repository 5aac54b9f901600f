"""Adagrad: m += d^2; p -= rate*d / (sqrt(m) + epsilon)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from paddlecli.config.types import NonNegative, Positive
from paddlecli.ops._optimizer import OptimizerOp, Slot, numbers, update_kernel
from paddlecli.ops.base import Attr, Kernel

if TYPE_CHECKING:
    from paddlecli.ops._optimizer import Array, Moved

_OWN = "epsilon: float"


class Adagrad(OptimizerOp):
    """Of a table only the rows with a gradient move."""

    name: ClassVar[str] = "adagrad"
    forward: ClassVar[Kernel] = update_kernel("adagrad", ("moment",), _OWN)
    update_rows: ClassVar[Kernel] = update_kernel("adagrad", ("moment",), _OWN, rows=True)

    def arguments(self, *, epsilon: Positive = 1e-6, initial: NonNegative = 0.0) -> dict[str, Attr]:
        """initial: first value of the sum of squares."""
        return {"epsilon": epsilon, "initial": initial}

    def slots(self, attrs: Mapping[str, Attr]) -> tuple[Slot, ...]:
        return (Slot("moment", *numbers(attrs, "initial")),)

    def rule(
        self,
        p: Array,
        d: Array,
        slots: Mapping[str, Array],
        rate: float,
        t: int,
        attrs: Mapping[str, Attr],
    ) -> Moved:
        (epsilon,) = numbers(attrs, "epsilon")
        m = slots["moment"] + d * d
        return p - rate * d / (m**0.5 + epsilon), {"moment": m}


OP = Adagrad()
