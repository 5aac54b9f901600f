"""hard_swish: x times a line cut to [0, threshold]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from paddlecli.ops._unary import Unary
from paddlecli.ops.base import Attr, Kernel

if TYPE_CHECKING:
    import numpy as np


class HardSwish(Unary):
    """y = x*min(max(x + offset, 0), threshold)/scale."""

    name = "hard_swish"
    forward = Kernel(
        "hard_swish.forward(x: f32; threshold: float, scale: float, offset: float) -> (y: f32)",
        inplace={"y": "x"},
        rowwise=True,
    )
    backward = Kernel(
        "hard_swish.backward(x: f32, dy: f32; threshold: float, scale: float, offset: float) -> (dx: f32)",
        inplace={"dx": "dy"},
        rowwise=True,
    )
    defaults: ClassVar[Mapping[str, Attr]] = {"threshold": 6.0, "scale": 6.0, "offset": 3.0}
    variants: ClassVar[Sequence[Mapping[str, Attr]]] = (
        {"threshold": 6.0, "scale": 6.0, "offset": 3.0},
        {"threshold": 2.0, "scale": 3.0, "offset": 1.5},
    )

    def f(self, x: np.ndarray, attrs: Mapping[str, Any]) -> np.ndarray:
        """x times the cut line."""
        import numpy as np

        y: np.ndarray = x * np.clip(x + attrs["offset"], 0.0, attrs["threshold"]) / attrs["scale"]
        return y

    def kinks(self, attrs: Mapping[str, Any]) -> tuple[float, ...]:
        """Both ends of the line."""
        return (-attrs["offset"], attrs["threshold"] - attrs["offset"])


OP = HardSwish()
