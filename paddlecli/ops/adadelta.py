"""Adadelta (Zeiler 2012).

e = rho*e + (1 - rho)*d^2; s = -sqrt((u + eps)/(e + eps))*d; u = rho*u + (1 - rho)*s^2; p += rate*s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from paddlecli.config.types import Fraction, Positive
from paddlecli.ops._optimizer import OptimizerOp, Slot, numbers, update_kernel
from paddlecli.ops.base import Attr, Kernel

if TYPE_CHECKING:
    from paddlecli.ops._optimizer import Array, Moved

_OWN = "rho: float, epsilon: float, uses_rate: bool"


class Adadelta(OptimizerOp):
    """The means of table rows without a gradient decay."""

    name: ClassVar[str] = "adadelta"
    forward: ClassVar[Kernel] = update_kernel("adadelta", ("squared_grad", "squared_step"), _OWN)
    update_rows: ClassVar[Kernel] = update_kernel(
        "adadelta", ("squared_grad", "squared_step"), _OWN, rows=True
    )

    def arguments(
        self, *, rho: Fraction = 0.95, epsilon: Positive = 1e-6, uses_rate: bool = True
    ) -> dict[str, Attr]:
        """rho: share of both means that is kept. uses_rate: false is the original's form up to 2.0,
        which leaves the learning rate out."""
        return {"rho": rho, "epsilon": epsilon, "uses_rate": uses_rate}

    def slots(self, attrs: Mapping[str, Attr]) -> tuple[Slot, ...]:
        return Slot("squared_grad"), Slot("squared_step")

    def moves_rows(self, attrs: Mapping[str, Attr]) -> bool:
        return True

    def variants(self) -> Sequence[Mapping[str, Attr]]:
        return self.arguments(), self.arguments(rho=0.7, epsilon=1e-3, uses_rate=False)

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
        e = rho * slots["squared_grad"] + (1 - rho) * d * d
        step = -(((slots["squared_step"] + epsilon) / (e + epsilon)) ** 0.5) * d
        u = rho * slots["squared_step"] + (1 - rho) * step * step
        return p + (rate if attrs["uses_rate"] else 1.0) * step, {
            "squared_grad": e,
            "squared_step": u,
        }


OP = Adadelta()
