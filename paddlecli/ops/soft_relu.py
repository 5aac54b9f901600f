"""soft_relu: softplus of x cut to [-threshold, threshold]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from paddlecli.ops._unary import Unary
from paddlecli.ops.base import Attr, Kernel

if TYPE_CHECKING:
    import numpy as np


class SoftRelu(Unary):
    """y = log(1 + exp(min(max(x, -threshold), threshold)))."""

    name = "soft_relu"
    forward = Kernel(
        "soft_relu.forward(x: f32; threshold: float) -> (y: f32)",
        inplace={"y": "x"},
        rowwise=True,
    )
    backward = Kernel(
        "soft_relu.backward(x: f32, dy: f32; threshold: float) -> (dx: f32)",
        inplace={"dx": "dy"},
        rowwise=True,
    )
    defaults: ClassVar[Mapping[str, Attr]] = {"threshold": 40.0}
    variants: ClassVar[Sequence[Mapping[str, Attr]]] = (
        {"threshold": 40.0},
        {"threshold": 2.0},
    )

    def f(self, x: np.ndarray, attrs: Mapping[str, Any]) -> np.ndarray:
        """softplus of the cut x."""
        import numpy as np

        y: np.ndarray = np.logaddexp(0.0, np.clip(x, -attrs["threshold"], attrs["threshold"]))
        return y

    def kinks(self, attrs: Mapping[str, Any]) -> tuple[float, ...]:
        """Both ends."""
        return (-attrs["threshold"], attrs["threshold"])


OP = SoftRelu()
