"""elu: exponential below 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from paddlecli.ops._unary import Unary
from paddlecli.ops.base import Attr, Kernel

if TYPE_CHECKING:
    import numpy as np


class Elu(Unary):
    """y = x above 0, alpha*(exp(x) - 1) elsewhere."""

    name = "elu"
    forward = Kernel(
        "elu.forward(x: f32; alpha: float) -> (y: f32)",
        inplace={"y": "x"},
        rowwise=True,
    )
    backward = Kernel(
        "elu.backward(x: f32, dy: f32; alpha: float) -> (dx: f32)",
        inplace={"dx": "dy"},
        rowwise=True,
    )
    defaults: ClassVar[Mapping[str, Attr]] = {"alpha": 1.0}
    variants: ClassVar[Sequence[Mapping[str, Attr]]] = (
        {"alpha": 1.0},
        {"alpha": 0.3},
    )

    def f(self, x: np.ndarray, attrs: Mapping[str, Any]) -> np.ndarray:
        """alpha*(exp(x) - 1) below 0."""
        import numpy as np

        y: np.ndarray = np.where(x > 0, x, attrs["alpha"] * np.expm1(np.minimum(x, 0.0)))
        return y

    def kinks(self, attrs: Mapping[str, Any]) -> tuple[float, ...]:
        """At 0 (no jump when alpha is 1)."""
        return (0.0,)


OP = Elu()
