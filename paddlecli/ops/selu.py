"""selu: elu with the scales that keep mean 0 and variance 1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from paddlecli.ops._unary import Unary
from paddlecli.ops.base import Attr, Kernel

if TYPE_CHECKING:
    import numpy as np


class Selu(Unary):
    """y = scale*x above 0, scale*alpha*(exp(x) - 1) elsewhere."""

    name = "selu"
    forward = Kernel(
        "selu.forward(x: f32; scale: float, alpha: float) -> (y: f32)",
        inplace={"y": "x"},
        rowwise=True,
    )
    backward = Kernel(
        "selu.backward(x: f32, dy: f32; scale: float, alpha: float) -> (dx: f32)",
        inplace={"dx": "dy"},
        rowwise=True,
    )
    defaults: ClassVar[Mapping[str, Attr]] = {
        "scale": 1.0507009873554805,
        "alpha": 1.6732632423543772,
    }

    def f(self, x: np.ndarray, attrs: Mapping[str, Any]) -> np.ndarray:
        """scale times elu."""
        import numpy as np

        a = attrs["alpha"] * np.expm1(np.minimum(x, 0.0))
        y: np.ndarray = attrs["scale"] * np.where(x > 0, x, a)
        return y

    def kinks(self, attrs: Mapping[str, Any]) -> tuple[float, ...]:
        """At 0."""
        return (0.0,)


OP = Selu()
