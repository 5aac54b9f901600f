"""mish: x*tanh(softplus(x))."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from paddlecli.ops._unary import Unary
from paddlecli.ops.base import Kernel

if TYPE_CHECKING:
    import numpy as np


class Mish(Unary):
    """y = x*tanh(log(1 + exp(x)))."""

    name = "mish"
    forward = Kernel("mish.forward(x: f32) -> (y: f32)", inplace={"y": "x"}, rowwise=True)
    backward = Kernel(
        "mish.backward(x: f32, dy: f32) -> (dx: f32)",
        inplace={"dx": "dy"},
        rowwise=True,
    )

    def f(self, x: np.ndarray, attrs: Mapping[str, Any]) -> np.ndarray:
        """By its definition."""
        import numpy as np

        y: np.ndarray = x * np.tanh(np.logaddexp(0.0, x))
        return y


OP = Mish()
