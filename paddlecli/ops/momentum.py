"""Momentum: v = mu*v + d; p -= rate*v, or with nesterov p -= rate*(d + mu*v)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from paddlecli.config.types import Fraction
from paddlecli.ops._optimizer import OptimizerOp, Slot, numbers, update_kernel
from paddlecli.ops.base import Attr, Kernel

if TYPE_CHECKING:
    from paddlecli.ops._optimizer import Array, Moved

_OWN = "momentum: float, nesterov: bool"


class Momentum(OptimizerOp):
    """Rows of a table without a gradient move on with their velocity."""

    name: ClassVar[str] = "momentum"
    forward: ClassVar[Kernel] = update_kernel("momentum", ("velocity",), _OWN)
    update_rows: ClassVar[Kernel] = update_kernel("momentum", ("velocity",), _OWN, rows=True)

    def arguments(self, *, momentum: Fraction = 0.9, nesterov: bool = False) -> dict[str, Attr]:
        """momentum: share of the velocity that is kept. nesterov: look one step ahead."""
        return {"momentum": momentum, "nesterov": nesterov}

    def slots(self, attrs: Mapping[str, Attr]) -> tuple[Slot, ...]:
        return (Slot("velocity", low=-1.0),)

    def moves_rows(self, attrs: Mapping[str, Attr]) -> bool:
        return True

    def variants(self) -> Sequence[Mapping[str, Attr]]:
        return self.arguments(), self.arguments(momentum=0.8, nesterov=True)

    def rule(
        self,
        p: Array,
        d: Array,
        slots: Mapping[str, Array],
        rate: float,
        t: int,
        attrs: Mapping[str, Attr],
    ) -> Moved:
        (momentum,) = numbers(attrs, "momentum")
        v = momentum * slots["velocity"] + d
        step = d + momentum * v if attrs["nesterov"] else v
        return p - rate * step, {"velocity": v}


OP = Momentum()
