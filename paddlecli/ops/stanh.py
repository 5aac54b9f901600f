"""stanh: a scaled tanh."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from paddlecli.ops._unary import Unary
from paddlecli.ops.base import Attr, Kernel

if TYPE_CHECKING:
    import numpy as np


class Stanh(Unary):
    """y = scale_b*tanh(scale_a*x). Gradient from y."""

    name = "stanh"
    forward = Kernel(
        "stanh.forward(x: f32; scale_a: float, scale_b: float) -> (y: f32)",
        inplace={"y": "x"},
        rowwise=True,
    )
    backward = Kernel(
        "stanh.backward(y: f32, dy: f32; scale_a: float, scale_b: float) -> (dx: f32)",
        inplace={"dx": "dy"},
        rowwise=True,
    )
    defaults: ClassVar[Mapping[str, Attr]] = {"scale_a": 0.67, "scale_b": 1.7159}
    variants: ClassVar[Sequence[Mapping[str, Attr]]] = (
        {"scale_a": 0.67, "scale_b": 1.7159},
        {"scale_a": 1.5, "scale_b": -0.5},
    )

    def f(self, x: np.ndarray, attrs: Mapping[str, Any]) -> np.ndarray:
        """scale_b*tanh(scale_a*x)."""
        import numpy as np

        y: np.ndarray = attrs["scale_b"] * np.tanh(attrs["scale_a"] * x)
        return y


OP = Stanh()
