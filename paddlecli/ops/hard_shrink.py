"""hard_shrink: 0 near 0, x elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from paddlecli.ops._unary import Unary
from paddlecli.ops.base import Attr, Kernel

if TYPE_CHECKING:
    import numpy as np


class HardShrink(Unary):
    """y = x where |x| > threshold, else 0."""

    name = "hard_shrink"
    forward = Kernel(
        "hard_shrink.forward(x: f32; threshold: float) -> (y: f32)",
        inplace={"y": "x"},
        rowwise=True,
    )
    backward = Kernel(
        "hard_shrink.backward(x: f32, dy: f32; threshold: float) -> (dx: f32)",
        inplace={"dx": "dy"},
        rowwise=True,
    )
    defaults: ClassVar[Mapping[str, Attr]] = {"threshold": 0.5}
    variants: ClassVar[Sequence[Mapping[str, Attr]]] = (
        {"threshold": 0.5},
        {"threshold": 1.25},
    )

    def f(self, x: np.ndarray, attrs: Mapping[str, Any]) -> np.ndarray:
        """x outside of the band."""
        import numpy as np

        y: np.ndarray = np.where(np.abs(x) > attrs["threshold"], x, 0.0)
        return y

    def kinks(self, attrs: Mapping[str, Any]) -> tuple[float, ...]:
        """Both edges."""
        return (-attrs["threshold"], attrs["threshold"])


OP = HardShrink()
