"""sqrt: the square root."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from paddlecli.ops._unary import Unary
from paddlecli.ops.base import Kernel

if TYPE_CHECKING:
    import numpy as np


class Sqrt(Unary):
    """y = sqrt(x); NaN below 0. Gradient from y."""

    name = "sqrt"
    forward = Kernel("sqrt.forward(x: f32) -> (y: f32)", inplace={"y": "x"}, rowwise=True)
    backward = Kernel(
        "sqrt.backward(y: f32, dy: f32) -> (dx: f32)",
        inplace={"dx": "dy"},
        rowwise=True,
    )
    low: ClassVar[float] = 0.05
    high: ClassVar[float] = 5.0

    def f(self, x: np.ndarray, attrs: Mapping[str, Any]) -> np.ndarray:
        """sqrt(x)."""
        import numpy as np

        y: np.ndarray = np.sqrt(x)
        return y


OP = Sqrt()
