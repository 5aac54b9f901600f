"""reduce_sum: the sum over chosen dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddlecli.ops._reduce import Reduce
from paddlecli.ops.base import Kernel

if TYPE_CHECKING:
    import numpy as np


class ReduceSum(Reduce):
    """y = sum of x over ``dims``; 0 where there is nothing."""

    name = "reduce_sum"
    forward = Kernel(
        "reduce_sum.forward(x: f32; dims: list, keep_dim: bool) -> (y: f32)", rowwise=True
    )
    backward = Kernel("reduce_sum.backward(dy: f32; dims: list) -> (dx: f32)", rowwise=True)

    def f(self, x: np.ndarray, dims: tuple[int, ...]) -> np.ndarray:
        """The sum."""
        y: np.ndarray = x.sum(dims, keepdims=True)
        return y


OP = ReduceSum()
