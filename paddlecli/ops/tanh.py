"""tanh: the hyperbolic tangent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from paddlecli.ops._unary import Unary
from paddlecli.ops.base import Kernel

if TYPE_CHECKING:
    import numpy as np


class Tanh(Unary):
    """y = tanh(x). Gradient from y: dy*(1 - y*y)."""

    name = "tanh"
    forward = Kernel("tanh.forward(x: f32) -> (y: f32)", inplace={"y": "x"}, rowwise=True)
    backward = Kernel(
        "tanh.backward(y: f32, dy: f32) -> (dx: f32)",
        inplace={"dx": "dy"},
        rowwise=True,
    )

    def f(self, x: np.ndarray, attrs: Mapping[str, Any]) -> np.ndarray:
        """tanh(x)."""
        import numpy as np

        y: np.ndarray = np.tanh(x)
        return y


OP = Tanh()
