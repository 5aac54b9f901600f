"""softsign: x/(1 + |x|)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from paddlecli.ops._unary import Unary
from paddlecli.ops.base import Kernel

if TYPE_CHECKING:
    import numpy as np


class Softsign(Unary):
    """y = x/(1 + |x|)."""

    name = "softsign"
    forward = Kernel("softsign.forward(x: f32) -> (y: f32)", inplace={"y": "x"}, rowwise=True)
    backward = Kernel(
        "softsign.backward(x: f32, dy: f32) -> (dx: f32)",
        inplace={"dx": "dy"},
        rowwise=True,
    )

    def f(self, x: np.ndarray, attrs: Mapping[str, Any]) -> np.ndarray:
        """x/(1 + |x|)."""
        import numpy as np

        y: np.ndarray = x / (1.0 + np.abs(x))
        return y


OP = Softsign()
