"""AdamW: p *= 1 - rate*decay, then Adam's step; the decay passes the gradient by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from paddlecli.config.types import Fraction, NonNegative, Positive
from paddlecli.ops._optimizer import numbers, update_kernel
from paddlecli.ops.adam import Adam
from paddlecli.ops.base import Attr, Kernel

if TYPE_CHECKING:
    from paddlecli.ops._optimizer import Array, Moved

_OWN = "beta1: float, beta2: float, epsilon: float, scale_epsilon: bool, weight_decay: float"


class AdamW(Adam):
    """Rows of a table without a gradient move too, unless it is lazy."""

    name: ClassVar[str] = "adamw"
    forward: ClassVar[Kernel] = update_kernel("adamw", ("moment1", "moment2"), _OWN, counted=True)
    update_rows: ClassVar[Kernel] = update_kernel(
        "adamw", ("moment1", "moment2"), _OWN + ", lazy: bool", rows=True, counted=True
    )

    def arguments(
        self,
        *,
        beta1: Fraction = 0.9,
        beta2: Fraction = 0.999,
        epsilon: Positive = 1e-8,
        weight_decay: NonNegative = 0.01,
        scale_epsilon: bool = True,
        lazy: bool = False,
    ) -> dict[str, Attr]:
        """beta1, beta2: shares of the means that are kept.
        weight_decay: share of the parameter, times the rate, that each update takes away.
        scale_epsilon: epsilon*sqrt(1 - beta2^t), as the original does from 2.0 on; false is its 1.x
            form.
        lazy: of a table with row-sparse gradients only the rows with a gradient move."""
        own = super().arguments(
            beta1=beta1, beta2=beta2, epsilon=epsilon, scale_epsilon=scale_epsilon, lazy=lazy
        )
        return {**own, "weight_decay": weight_decay}

    def rule(
        self,
        p: Array,
        d: Array,
        slots: Mapping[str, Array],
        rate: float,
        t: int,
        attrs: Mapping[str, Attr],
    ) -> Moved:
        (weight_decay,) = numbers(attrs, "weight_decay")
        return super().rule(p * (1 - rate * weight_decay), d, slots, rate, t, attrs)


OP = AdamW()
