"""sub: x - y with broadcasting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddlecli.ops._binary import Binary
from paddlecli.ops.base import Emitter, Kernel, NodeLike, TensorLike

if TYPE_CHECKING:
    import numpy as np


class Sub(Binary):
    """z = x - y."""

    name = "sub"
    forward = Kernel(
        "sub.forward(x: f32, y: f32; axis: int) -> (z: f32)", inplace={"z": "x"}, rowwise=True
    )

    def f(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """x - y."""
        z: np.ndarray = x - y
        return z

    def partial_x(self, g: Emitter, node: NodeLike, dz: TensorLike) -> tuple[TensorLike, float]:
        """dz."""
        return dz, 1.0

    def partial_y(self, g: Emitter, node: NodeLike, dz: TensorLike) -> tuple[TensorLike, float]:
        """-dz."""
        return dz, -1.0


OP = Sub()
