"""log: the natural logarithm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from paddlecli.ops._unary import Unary
from paddlecli.ops.base import Kernel

if TYPE_CHECKING:
    import numpy as np


class Log(Unary):
    """y = log(x); -inf at 0, NaN below."""

    name = "log"
    forward = Kernel("log.forward(x: f32) -> (y: f32)", inplace={"y": "x"}, rowwise=True)
    backward = Kernel(
        "log.backward(x: f32, dy: f32) -> (dx: f32)",
        inplace={"dx": "dy"},
        rowwise=True,
    )
    low: ClassVar[float] = 0.05
    high: ClassVar[float] = 5.0

    def f(self, x: np.ndarray, attrs: Mapping[str, Any]) -> np.ndarray:
        """log(x)."""
        import numpy as np

        y: np.ndarray = np.log(x)
        return y


OP = Log()
