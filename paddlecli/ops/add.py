"""add: x + y with broadcasting; home of the sum back to an operand's shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddlecli.ops._binary import Binary
from paddlecli.ops.base import Emitter, Kernel, NodeLike, TensorLike

if TYPE_CHECKING:
    import numpy as np


class Add(Binary):
    """z = x + y. ``reduce`` sums ``scale*dz`` over the dimensions that an operand of d's shape was spread along."""

    name = "add"
    forward = Kernel(
        "add.forward(x: f32, y: f32; axis: int) -> (z: f32)", inplace={"z": "x"}, rowwise=True
    )
    reduce = Kernel("add.reduce(dz: f32; axis: int, scale: float) -> (d: f32)", rowwise=True)

    def f(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """x + y."""
        z: np.ndarray = x + y
        return z

    def partial_x(self, g: Emitter, node: NodeLike, dz: TensorLike) -> tuple[TensorLike, float]:
        """dz."""
        return dz, 1.0

    def partial_y(self, g: Emitter, node: NodeLike, dz: TensorLike) -> tuple[TensorLike, float]:
        """dz."""
        return dz, 1.0


OP = Add()
