"""LAMB: Adam's steps, scaled to each parameter's norm.

Means m of d and v of d^2; r = m^/(sqrt(v^) + epsilon) + decay*p; p -= rate * |p|/|r| * r (You et
al. 2019).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from paddlecli.config.types import Fraction, NonNegative, Positive
from paddlecli.ops._optimizer import OptimizerOp, Slot, numbers, update_kernel
from paddlecli.ops.base import Attr, Kernel

if TYPE_CHECKING:
    from paddlecli.ops._optimizer import Array, Moved

_OWN = "beta1: float, beta2: float, epsilon: float, weight_decay: float, bias_correction: bool"


class Lamb(OptimizerOp):
    """A parameter that is all zero moves by the plain rate. Rows of a table without a gradient move
    too."""

    name: ClassVar[str] = "lamb"
    forward: ClassVar[Kernel] = update_kernel(
        "lamb", ("moment1", "moment2"), _OWN, counted=True, norms=True
    )
    update_rows: ClassVar[Kernel] = update_kernel(
        "lamb", ("moment1", "moment2"), _OWN, rows=True, counted=True, norms=True
    )
    counted: ClassVar[bool] = True
    norms: ClassVar[bool] = True

    def arguments(
        self,
        *,
        beta1: Fraction = 0.9,
        beta2: Fraction = 0.999,
        epsilon: Positive = 1e-6,
        weight_decay: NonNegative = 0.01,
        bias_correction: bool = True,
    ) -> dict[str, Attr]:
        """beta1, beta2: shares of the means that are kept. weight_decay: share of the parameter in
        the direction.
        bias_correction: false is the original's 2.0 form, which takes the means as they are."""
        return {
            "beta1": beta1,
            "beta2": beta2,
            "epsilon": epsilon,
            "weight_decay": weight_decay,
            "bias_correction": bias_correction,
        }

    def slots(self, attrs: Mapping[str, Attr]) -> tuple[Slot, ...]:
        return Slot("moment1", low=-1.0), Slot("moment2", low=0.01)

    def moves_rows(self, attrs: Mapping[str, Attr]) -> bool:
        return True

    def variants(self) -> Sequence[Mapping[str, Attr]]:
        return self.arguments(), self.arguments(beta1=0.5, weight_decay=0.2, bias_correction=False)

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

        beta1, beta2, epsilon, weight_decay = numbers(
            attrs, "beta1", "beta2", "epsilon", "weight_decay"
        )
        m = beta1 * slots["moment1"] + (1 - beta1) * d
        v = beta2 * slots["moment2"] + (1 - beta2) * d * d
        whole = (1 - beta1**t, 1 - beta2**t) if attrs["bias_correction"] else (1.0, 1.0)
        r = m / whole[0] / ((v / whole[1]) ** 0.5 + epsilon) + weight_decay * p
        size, length = np.linalg.norm(p), np.linalg.norm(r)
        trust = size / length if size > 0 and length > 0 else 1.0
        return p - rate * trust * r, {"moment1": m, "moment2": v}


OP = Lamb()
