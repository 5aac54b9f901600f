"""Stochastic gradient descent: p -= rate * d."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from paddlecli.ops._optimizer import OptimizerOp, update_kernel
from paddlecli.ops.base import Attr, Kernel

if TYPE_CHECKING:
    from paddlecli.ops._optimizer import Array, Moved


class SGD(OptimizerOp):
    """Without state. Of a table only the rows with a gradient move."""

    name: ClassVar[str] = "sgd"
    forward: ClassVar[Kernel] = update_kernel("sgd", ())
    update_rows: ClassVar[Kernel] = update_kernel("sgd", (), rows=True)

    def arguments(self) -> dict[str, Attr]:
        """It has none."""
        return {}

    def rule(
        self,
        p: Array,
        d: Array,
        slots: Mapping[str, Array],
        rate: float,
        t: int,
        attrs: Mapping[str, Attr],
    ) -> Moved:
        return p - rate * d, {}


OP = SGD()
