"""mul: x*y with broadcasting, element by element."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddlecli.ops._binary import Binary
from paddlecli.ops.base import Emitter, Kernel, NodeLike, TensorLike

if TYPE_CHECKING:
    import numpy as np


class Mul(Binary):
    """z = x*y."""

    name = "mul"
    forward = Kernel(
        "mul.forward(x: f32, y: f32; axis: int) -> (z: f32)", inplace={"z": "x"}, rowwise=True
    )

    def f(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """x*y."""
        z: np.ndarray = x * y
        return z

    def partial_x(self, g: Emitter, node: NodeLike, dz: TensorLike) -> tuple[TensorLike, float]:
        """dz*y."""
        args = {"x": dz, "y": node.args["y"]}
        return g.emit(self.forward, args, {"axis": node.attrs["axis"]}, out={"z": dz}), 1.0

    def partial_y(self, g: Emitter, node: NodeLike, dz: TensorLike) -> tuple[TensorLike, float]:
        """dz*x."""
        return g.emit(
            self.forward, {"x": dz, "y": node.args["x"]}, {"axis": -1}, out={"z": dz}
        ), 1.0


OP = Mul()
