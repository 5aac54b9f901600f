"""Adamax: mean m of d; u = max(|d|, b2*u + epsilon); p -= rate/(1 - b1^t) * m/u."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from paddlecli.config.types import Fraction, Positive
from paddlecli.ops._optimizer import OptimizerOp, Slot, numbers, update_kernel
from paddlecli.ops.base import Attr, Kernel

if TYPE_CHECKING:
    from paddlecli.ops._optimizer import Array, Moved

_OWN = "beta1: float, beta2: float, epsilon: float"


class Adamax(OptimizerOp):
    """Rows of a table without a gradient move with their decaying mean."""

    name: ClassVar[str] = "adamax"
    forward: ClassVar[Kernel] = update_kernel("adamax", ("moment", "norm"), _OWN, counted=True)
    update_rows: ClassVar[Kernel] = update_kernel(
        "adamax", ("moment", "norm"), _OWN, rows=True, counted=True
    )
    counted: ClassVar[bool] = True

    def arguments(
        self, *, beta1: Fraction = 0.9, beta2: Fraction = 0.999, epsilon: Positive = 1e-8
    ) -> dict[str, Attr]:
        """beta1, beta2: shares of the mean and of the largest gradient that are kept."""
        return {"beta1": beta1, "beta2": beta2, "epsilon": epsilon}

    def slots(self, attrs: Mapping[str, Attr]) -> tuple[Slot, ...]:
        return Slot("moment", low=-1.0), Slot("norm", low=0.1)

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
        import numpy as np

        beta1, beta2, epsilon = numbers(attrs, "beta1", "beta2", "epsilon")
        m = beta1 * slots["moment"] + (1 - beta1) * d
        u = np.maximum(np.abs(d), beta2 * slots["norm"] + epsilon)
        return p - rate / (1 - beta1**t) * m / u, {"moment": m, "norm": u}


OP = Adamax()
