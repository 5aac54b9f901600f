"""thresholded_relu: x above the threshold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from paddlecli.ops._unary import Unary
from paddlecli.ops.base import Attr, Kernel

if TYPE_CHECKING:
    import numpy as np


class ThresholdedRelu(Unary):
    """y = x where x > threshold, else 0."""

    name = "thresholded_relu"
    forward = Kernel(
        "thresholded_relu.forward(x: f32; threshold: float) -> (y: f32)",
        inplace={"y": "x"},
        rowwise=True,
    )
    backward = Kernel(
        "thresholded_relu.backward(x: f32, dy: f32; threshold: float) -> (dx: f32)",
        inplace={"dx": "dy"},
        rowwise=True,
    )
    defaults: ClassVar[Mapping[str, Attr]] = {"threshold": 1.0}
    variants: ClassVar[Sequence[Mapping[str, Attr]]] = (
        {"threshold": 1.0},
        {"threshold": -0.5},
    )

    def f(self, x: np.ndarray, attrs: Mapping[str, Any]) -> np.ndarray:
        """x above the threshold."""
        import numpy as np

        y: np.ndarray = np.where(x > attrs["threshold"], x, 0.0)
        return y

    def kinks(self, attrs: Mapping[str, Any]) -> tuple[float, ...]:
        """At the threshold."""
        return (attrs["threshold"],)


OP = ThresholdedRelu()
