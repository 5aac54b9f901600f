"""sigmoid: the logistic function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from paddlecli.ops._unary import Unary
from paddlecli.ops.base import Kernel

if TYPE_CHECKING:
    import numpy as np


class Sigmoid(Unary):
    """y = 1/(1 + exp(-x)). Gradient from y: dy*y*(1 - y)."""

    name = "sigmoid"
    forward = Kernel("sigmoid.forward(x: f32) -> (y: f32)", inplace={"y": "x"}, rowwise=True)
    backward = Kernel(
        "sigmoid.backward(y: f32, dy: f32) -> (dx: f32)",
        inplace={"dx": "dy"},
        rowwise=True,
    )

    def f(self, x: np.ndarray, attrs: Mapping[str, Any]) -> np.ndarray:
        """Written so that exp does not overflow."""
        import numpy as np

        e = np.exp(-np.abs(x))
        y: np.ndarray = np.where(x >= 0, 1.0, e) / (1.0 + e)
        return y


OP = Sigmoid()
