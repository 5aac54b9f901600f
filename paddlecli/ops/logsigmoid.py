"""logsigmoid: the logarithm of the sigmoid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from paddlecli.ops._unary import Unary
from paddlecli.ops.base import Kernel

if TYPE_CHECKING:
    import numpy as np


class Logsigmoid(Unary):
    """y = -log(1 + exp(-x))."""

    name = "logsigmoid"
    forward = Kernel("logsigmoid.forward(x: f32) -> (y: f32)", inplace={"y": "x"}, rowwise=True)
    backward = Kernel(
        "logsigmoid.backward(x: f32, dy: f32) -> (dx: f32)",
        inplace={"dx": "dy"},
        rowwise=True,
    )

    def f(self, x: np.ndarray, attrs: Mapping[str, Any]) -> np.ndarray:
        """Without overflow."""
        import numpy as np

        y: np.ndarray = -np.logaddexp(0.0, -x)
        return y


OP = Logsigmoid()
