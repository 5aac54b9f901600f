"""div: x/y with broadcasting."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from paddlecli.ops._binary import Binary
from paddlecli.ops.base import Emitter, Kernel, NodeLike, TensorLike

if TYPE_CHECKING:
    import numpy as np


class Div(Binary):
    """z = x/y."""

    name = "div"
    forward = Kernel(
        "div.forward(x: f32, y: f32; axis: int) -> (z: f32)", inplace={"z": "x"}, rowwise=True
    )
    low: ClassVar[float] = 0.5
    high: ClassVar[float] = 2.0

    def f(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """x/y."""
        z: np.ndarray = x / y
        return z

    def partial_x(self, g: Emitter, node: NodeLike, dz: TensorLike) -> tuple[TensorLike, float]:
        """dz/y."""
        args = {"x": dz, "y": node.args["y"]}
        return g.emit(self.forward, args, {"axis": node.attrs["axis"]}, out={"z": dz}), 1.0

    def partial_y(self, g: Emitter, node: NodeLike, dz: TensorLike) -> tuple[TensorLike, float]:
        """-dz*z/y."""
        product = g.apply("mul", dz, node.results["z"], axis=-1)
        args = {"x": product, "y": node.args["y"]}
        return g.emit(self.forward, args, {"axis": node.attrs["axis"]}, out={"z": dz}), -1.0


OP = Div()
