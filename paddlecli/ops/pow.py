"""pow: x to the power y, with broadcasting."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from paddlecli.ops._binary import OwnPartials
from paddlecli.ops.base import Kernel

if TYPE_CHECKING:
    import numpy as np


class Pow(OwnPartials):
    """z = x**y; NaN for a negative x with a fractional y."""

    name = "pow"
    forward = Kernel(
        "pow.forward(x: f32, y: f32; axis: int) -> (z: f32)", inplace={"z": "x"}, rowwise=True
    )
    backward_x = Kernel(  # dz*y*x**(y - 1)
        "pow.backward_x(x: f32, y: f32, dz: f32; axis: int) -> (d: f32)", rowwise=True
    )
    backward_y = Kernel(  # dz*z*log(x)
        "pow.backward_y(x: f32, y: f32, dz: f32; axis: int) -> (d: f32)", rowwise=True
    )
    low: ClassVar[float] = 0.3
    high: ClassVar[float] = 3.0

    def f(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """x**y."""
        z: np.ndarray = x**y
        return z


OP = Pow()
