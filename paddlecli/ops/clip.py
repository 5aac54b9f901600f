"""clip: x cut to [low, high] (relu6, brelu and hardtanh are clips)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from paddlecli.ops._unary import Unary
from paddlecli.ops.base import Attr, Kernel

if TYPE_CHECKING:
    import numpy as np


class Clip(Unary):
    """y = min(max(x, low), high); the gradient passes strictly inside."""

    name = "clip"
    forward = Kernel(
        "clip.forward(x: f32; low: float, high: float) -> (y: f32)",
        inplace={"y": "x"},
        rowwise=True,
    )
    backward = Kernel(
        "clip.backward(x: f32, dy: f32; low: float, high: float) -> (dx: f32)",
        inplace={"dx": "dy"},
        rowwise=True,
    )
    defaults: ClassVar[Mapping[str, Attr]] = {"low": 0.0, "high": 24.0}
    variants: ClassVar[Sequence[Mapping[str, Attr]]] = (
        {"low": 0.0, "high": 24.0},
        {"low": 0.0, "high": 3.0},
        {"low": -1.0, "high": 1.0},
    )

    def f(self, x: np.ndarray, attrs: Mapping[str, Any]) -> np.ndarray:
        """numpy's clip."""
        import numpy as np

        y: np.ndarray = np.clip(x, attrs["low"], attrs["high"])
        return y

    def kinks(self, attrs: Mapping[str, Any]) -> tuple[float, ...]:
        """Both ends."""
        return (attrs["low"], attrs["high"])


OP = Clip()
