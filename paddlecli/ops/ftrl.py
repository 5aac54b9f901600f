"""FTRL-proximal (McMahan et al. 2013).

n' = n + d^2; z += d - (n'^q - n^q)/rate*p with q = -power; p = 0 where |z| <= l1, else
(l1*sign(z) - z) / (n'^q/rate + 2*l2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar

from annotated_types import Lt

from paddlecli.config.types import NonNegative
from paddlecli.ops._optimizer import OptimizerOp, Slot, numbers, update_kernel
from paddlecli.ops.base import Attr, Kernel

if TYPE_CHECKING:
    from paddlecli.ops._optimizer import Array, Moved

Negative = Annotated[float, Lt(0)]
_OWN = "shrink_l1: float, shrink_l2: float, power: float"


class Ftrl(OptimizerOp):
    """Of a table only the rows with a gradient move: the rule would put new ones to 0. With a rate
    of 0 nothing moves."""

    name: ClassVar[str] = "ftrl"
    forward: ClassVar[Kernel] = update_kernel("ftrl", ("squared", "linear"), _OWN)
    update_rows: ClassVar[Kernel] = update_kernel("ftrl", ("squared", "linear"), _OWN, rows=True)

    def arguments(
        self, *, l1: NonNegative = 0.0, l2: NonNegative = 0.0, power: Negative = -0.5
    ) -> dict[str, Attr]:
        """l1, l2: shrinkage inside the rule (not the regulariser). power: of the sum of squares,
        below 0."""
        return {"shrink_l1": l1, "shrink_l2": l2, "power": power}

    def slots(self, attrs: Mapping[str, Attr]) -> tuple[Slot, ...]:
        return Slot("squared", low=0.1), Slot("linear", low=-1.0)

    def variants(self) -> Sequence[Mapping[str, Attr]]:
        return self.arguments(), self.arguments(l1=0.1, l2=0.2), self.arguments(l1=0.05, power=-0.7)

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

        shrink_l1, shrink_l2, power = numbers(attrs, "shrink_l1", "shrink_l2", "power")
        l1, l2 = shrink_l1 + 1e-10, shrink_l2 + 1e-10
        n = slots["squared"] + d * d
        root = n**-power
        z = slots["linear"] + d - (root - slots["squared"] ** -power) / rate * p
        inside = (l1 * np.sign(z) - z) / (root / rate + 2 * l2)
        return np.where(np.abs(z) <= l1, 0.0, inside), {"squared": n, "linear": z}


OP = Ftrl()
