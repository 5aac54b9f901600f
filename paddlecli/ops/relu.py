"""relu: max(x, 0)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from paddlecli.ops._unary import Unary
from paddlecli.ops.base import Kernel

if TYPE_CHECKING:
    import numpy as np


class Relu(Unary):
    """y = max(x, 0); a NaN stays one. Gradient from y."""

    name = "relu"
    forward = Kernel("relu.forward(x: f32) -> (y: f32)", inplace={"y": "x"}, rowwise=True)
    backward = Kernel(
        "relu.backward(y: f32, dy: f32) -> (dx: f32)",
        inplace={"dx": "dy"},
        rowwise=True,
    )

    def f(self, x: np.ndarray, attrs: Mapping[str, Any]) -> np.ndarray:
        """max(x, 0)."""
        import numpy as np

        y: np.ndarray = np.maximum(x, 0.0)
        return y

    def kinks(self, attrs: Mapping[str, Any]) -> tuple[float, ...]:
        """At 0."""
        return (0.0,)


OP = Relu()
