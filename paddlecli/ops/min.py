"""min: the smaller of x and y, with broadcasting."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from paddlecli.ops._binary import Binary
from paddlecli.ops.base import Emitter, Kernel, NodeLike, TensorLike

if TYPE_CHECKING:
    import numpy as np


class Min(Binary):
    """z = the smaller one; a NaN wins. Equal values: the gradient goes to y."""

    name = "min"
    forward = Kernel(
        "min.forward(x: f32, y: f32; axis: int) -> (z: f32)", inplace={"z": "x"}, rowwise=True
    )
    backward_x = Kernel(
        "min.backward_x(x: f32, y: f32, dz: f32; axis: int) -> (d: f32)", rowwise=True
    )
    backward_y = Kernel(
        "min.backward_y(x: f32, y: f32, dz: f32; axis: int) -> (d: f32)", rowwise=True
    )
    choices: ClassVar[tuple[tuple[float, ...], tuple[float, ...]]] = (
        (-0.9, -0.3, 0.3, 0.9),
        (-0.6, 0.0, 0.6),
    )

    def f(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """numpy's minimum."""
        import numpy as np

        z: np.ndarray = np.minimum(x, y)
        return z

    def partial_x(self, g: Emitter, node: NodeLike, dz: TensorLike) -> tuple[TensorLike, float]:
        """dz where x < y."""
        args = {"x": node.args["x"], "y": node.args["y"], "dz": dz}
        return g.emit(self.backward_x, args, {"axis": node.attrs["axis"]}, out={"d": dz}), 1.0

    def partial_y(self, g: Emitter, node: NodeLike, dz: TensorLike) -> tuple[TensorLike, float]:
        """dz where y <= x."""
        args = {"x": node.args["x"], "y": node.args["y"], "dz": dz}
        return g.emit(self.backward_y, args, {"axis": node.attrs["axis"]}, out={"d": dz}), 1.0


OP = Min()
