"""exp: the exponential function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from paddlecli.ops._unary import Unary
from paddlecli.ops.base import Kernel

if TYPE_CHECKING:
    import numpy as np


class Exp(Unary):
    """y = exp(x). Gradient from y."""

    name = "exp"
    forward = Kernel("exp.forward(x: f32) -> (y: f32)", inplace={"y": "x"}, rowwise=True)
    backward = Kernel(
        "exp.backward(y: f32, dy: f32) -> (dx: f32)",
        inplace={"dx": "dy"},
        rowwise=True,
    )

    def f(self, x: np.ndarray, attrs: Mapping[str, Any]) -> np.ndarray:
        """exp(x)."""
        import numpy as np

        y: np.ndarray = np.exp(x)
        return y


OP = Exp()
