"""tanh_shrink: x - tanh(x)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from paddlecli.ops._unary import Unary
from paddlecli.ops.base import Kernel

if TYPE_CHECKING:
    import numpy as np


class TanhShrink(Unary):
    """y = x - tanh(x)."""

    name = "tanh_shrink"
    forward = Kernel("tanh_shrink.forward(x: f32) -> (y: f32)", inplace={"y": "x"}, rowwise=True)
    backward = Kernel(
        "tanh_shrink.backward(x: f32, dy: f32) -> (dx: f32)",
        inplace={"dx": "dy"},
        rowwise=True,
    )

    def f(self, x: np.ndarray, attrs: Mapping[str, Any]) -> np.ndarray:
        """x - tanh(x)."""
        import numpy as np

        y: np.ndarray = x - np.tanh(x)
        return y


OP = TanhShrink()
