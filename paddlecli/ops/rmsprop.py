"""RMSProp, plain and centred.

s = rho*s + (1 - rho)*d^2; v = mu*v + rate*d / sqrt(s + epsilon); p -= v. Centred: the root of
s - a^2 + epsilon, a the mean of d.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from paddlecli.config.types import Fraction, Positive
from paddlecli.ops._optimizer import OptimizerOp, Slot, numbers, update_kernel
from paddlecli.ops.base import Attr, Kernel

if TYPE_CHECKING:
    from paddlecli.ops._optimizer import Array, Moved

_PLAIN = ("mean_square", "velocity")
_OWN = "rho: float, epsilon: float, momentum: float"


class RMSProp(OptimizerOp):
    """The means of table rows without a gradient decay, and their velocity moves them on."""

    name: ClassVar[str] = "rmsprop"
    forward: ClassVar[Kernel] = update_kernel("rmsprop", _PLAIN, _OWN)
    update_rows: ClassVar[Kernel] = update_kernel("rmsprop", _PLAIN, _OWN, rows=True)
    update_centered: ClassVar[Kernel] = update_kernel(
        "rmsprop", (*_PLAIN, "mean_grad"), _OWN, suffix="_centered"
    )
    update_rows_centered: ClassVar[Kernel] = update_kernel(
        "rmsprop", (*_PLAIN, "mean_grad"), _OWN, rows=True, suffix="_centered"
    )

    def arguments(
        self,
        *,
        rho: Fraction = 0.95,
        epsilon: Positive = 1e-6,
        momentum: Fraction = 0.0,
        centered: bool = False,
    ) -> dict[str, Attr]:
        """rho: share of the means that is kept. epsilon stands inside the root. centered: take the
        mean gradient's square off the mean square; costs a third slot."""
        return {"rho": rho, "epsilon": epsilon, "momentum": momentum, "centered": centered}

    def slots(self, attrs: Mapping[str, Attr]) -> tuple[Slot, ...]:
        plain = Slot("mean_square", low=0.1), Slot("velocity", low=-1.0)
        return (*plain, Slot("mean_grad", low=-0.2, high=0.2)) if attrs["centered"] else plain

    def kernel(self, attrs: Mapping[str, Attr], rows: bool) -> Kernel:
        if not attrs["centered"]:
            return super().kernel(attrs, rows)
        return self.update_rows_centered if rows else self.update_centered

    def moves_rows(self, attrs: Mapping[str, Attr]) -> bool:
        return True

    def variants(self) -> Sequence[Mapping[str, Attr]]:
        return self.arguments(), self.arguments(rho=0.9, momentum=0.9)

    def rule(
        self,
        p: Array,
        d: Array,
        slots: Mapping[str, Array],
        rate: float,
        t: int,
        attrs: Mapping[str, Attr],
    ) -> Moved:
        rho, epsilon, momentum = numbers(attrs, "rho", "epsilon", "momentum")
        s = rho * slots["mean_square"] + (1 - rho) * d * d
        new, inside = {"mean_square": s}, s
        if "mean_grad" in slots:
            new["mean_grad"] = a = rho * slots["mean_grad"] + (1 - rho) * d
            inside = s - a * a
        new["velocity"] = v = momentum * slots["velocity"] + rate * d / (inside + epsilon) ** 0.5
        return p - v, new


OP = RMSProp()
