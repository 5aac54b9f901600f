"""pow: x to the power y, with broadcasting."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from paddlecli.ops._binary import Binary
from paddlecli.ops.base import Emitter, Kernel, NodeLike, TensorLike

if TYPE_CHECKING:
    import numpy as np


class Pow(Binary):
    """z = x**y; NaN for a negative x with a fractional y."""

    name = "pow"
    forward = Kernel(
        "pow.forward(x: f32, y: f32; axis: int) -> (z: f32)", inplace={"z": "x"}, rowwise=True
    )
    backward_x = Kernel(
        "pow.backward_x(x: f32, y: f32, dz: f32; axis: int) -> (d: f32)", rowwise=True
    )
    backward_y = Kernel(
        "pow.backward_y(x: f32, y: f32, dz: f32; axis: int) -> (d: f32)", rowwise=True
    )
    low: ClassVar[float] = 0.3
    high: ClassVar[float] = 3.0

    def f(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """x**y."""
        z: np.ndarray = x**y
        return z

    def partial_x(self, g: Emitter, node: NodeLike, dz: TensorLike) -> tuple[TensorLike, float]:
        """dz*y*x**(y - 1)."""
        args = {"x": node.args["x"], "y": node.args["y"], "dz": dz}
        return g.emit(self.backward_x, args, {"axis": node.attrs["axis"]}, out={"d": dz}), 1.0

    def partial_y(self, g: Emitter, node: NodeLike, dz: TensorLike) -> tuple[TensorLike, float]:
        """dz*z*log(x)."""
        args = {"x": node.args["x"], "y": node.args["y"], "dz": dz}
        return g.emit(self.backward_y, args, {"axis": node.attrs["axis"]}, out={"d": dz}), 1.0


OP = Pow()
