"""max: the larger of x and y, with broadcasting."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from paddlecli.ops._binary import OwnPartials
from paddlecli.ops.base import Kernel

if TYPE_CHECKING:
    import numpy as np


class Max(OwnPartials):
    """z = the larger one; a NaN wins. Equal values: the gradient goes to y."""

    name = "max"
    forward = Kernel(
        "max.forward(x: f32, y: f32; axis: int) -> (z: f32)", inplace={"z": "x"}, rowwise=True
    )
    backward_x = Kernel(  # dz where x > y
        "max.backward_x(x: f32, y: f32, dz: f32; axis: int) -> (d: f32)", rowwise=True
    )
    backward_y = Kernel(  # dz where y >= x
        "max.backward_y(x: f32, y: f32, dz: f32; axis: int) -> (d: f32)", rowwise=True
    )
    choices: ClassVar[tuple[tuple[float, ...], tuple[float, ...]]] = (
        (-0.9, -0.3, 0.3, 0.9),
        (-0.6, 0.0, 0.6),
    )

    def f(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """numpy's maximum."""
        import numpy as np

        z: np.ndarray = np.maximum(x, y)
        return z


OP = Max()
