"""gelu: x times the normal distribution function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from paddlecli.ops._unary import Unary
from paddlecli.ops.base import Attr, Kernel

if TYPE_CHECKING:
    import numpy as np


class Gelu(Unary):
    """y = x*P(Z < x), exactly by erf or, when approximate, by tanh(sqrt(2/pi)*(x + 0.044715 x^3))."""

    name = "gelu"
    forward = Kernel(
        "gelu.forward(x: f32; approximate: bool) -> (y: f32)",
        inplace={"y": "x"},
        rowwise=True,
    )
    backward = Kernel(
        "gelu.backward(x: f32, dy: f32; approximate: bool) -> (dx: f32)",
        inplace={"dx": "dy"},
        rowwise=True,
    )
    defaults: ClassVar[Mapping[str, Attr]] = {"approximate": False}
    variants: ClassVar[Sequence[Mapping[str, Attr]]] = (
        {"approximate": False},
        {"approximate": True},
    )

    def f(self, x: np.ndarray, attrs: Mapping[str, Any]) -> np.ndarray:
        """By math.erf or the tanh formula."""
        import math

        import numpy as np

        if attrs["approximate"]:
            inner = np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
        else:
            inner = np.vectorize(math.erf, otypes=[float])(x / math.sqrt(2))
        y: np.ndarray = 0.5 * x * (1.0 + inner)
        return y


OP = Gelu()
