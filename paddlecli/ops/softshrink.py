"""softshrink: x moved towards 0 by the threshold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from paddlecli.ops._unary import Unary
from paddlecli.ops.base import Attr, Kernel

if TYPE_CHECKING:
    import numpy as np


class Softshrink(Unary):
    """y = x - threshold above it, x + threshold below -threshold, 0 between."""

    name = "softshrink"
    forward = Kernel(
        "softshrink.forward(x: f32; threshold: float) -> (y: f32)",
        inplace={"y": "x"},
        rowwise=True,
    )
    backward = Kernel(
        "softshrink.backward(x: f32, dy: f32; threshold: float) -> (dx: f32)",
        inplace={"dx": "dy"},
        rowwise=True,
    )
    defaults: ClassVar[Mapping[str, Attr]] = {"threshold": 0.5}
    variants: ClassVar[Sequence[Mapping[str, Attr]]] = (
        {"threshold": 0.5},
        {"threshold": 1.25},
    )

    def f(self, x: np.ndarray, attrs: Mapping[str, Any]) -> np.ndarray:
        """sign(x)*max(|x| - threshold, 0)."""
        import numpy as np

        y: np.ndarray = np.sign(x) * np.maximum(np.abs(x) - attrs["threshold"], 0.0)
        return y

    def kinks(self, attrs: Mapping[str, Any]) -> tuple[float, ...]:
        """Both edges."""
        return (-attrs["threshold"], attrs["threshold"])


OP = Softshrink()
