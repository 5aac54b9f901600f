"""abs: the absolute value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from paddlecli.ops._unary import Unary
from paddlecli.ops.base import Kernel

if TYPE_CHECKING:
    import numpy as np


class Abs(Unary):
    """y = |x|; the gradient at 0 is 0."""

    name = "abs"
    forward = Kernel("abs.forward(x: f32) -> (y: f32)", inplace={"y": "x"}, rowwise=True)
    backward = Kernel(
        "abs.backward(x: f32, dy: f32) -> (dx: f32)",
        inplace={"dx": "dy"},
        rowwise=True,
    )

    def f(self, x: np.ndarray, attrs: Mapping[str, Any]) -> np.ndarray:
        """|x|."""
        import numpy as np

        y: np.ndarray = np.abs(x)
        return y

    def kinks(self, attrs: Mapping[str, Any]) -> tuple[float, ...]:
        """At 0."""
        return (0.0,)


OP = Abs()
