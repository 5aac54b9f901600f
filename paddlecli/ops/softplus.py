"""softplus: the smooth relu."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from paddlecli.ops._unary import Unary
from paddlecli.ops.base import Kernel

if TYPE_CHECKING:
    import numpy as np


class Softplus(Unary):
    """y = log(1 + exp(x))."""

    name = "softplus"
    forward = Kernel("softplus.forward(x: f32) -> (y: f32)", inplace={"y": "x"}, rowwise=True)
    backward = Kernel(
        "softplus.backward(x: f32, dy: f32) -> (dx: f32)",
        inplace={"dx": "dy"},
        rowwise=True,
    )

    def f(self, x: np.ndarray, attrs: Mapping[str, Any]) -> np.ndarray:
        """log(1 + exp(x)) without overflow."""
        import numpy as np

        y: np.ndarray = np.logaddexp(0.0, x)
        return y


OP = Softplus()
