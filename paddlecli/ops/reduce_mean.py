"""reduce_mean: the mean over chosen dimensions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from paddlecli.ops._reduce import Reduce
from paddlecli.ops.base import Kernel

if TYPE_CHECKING:
    import numpy as np


class ReduceMean(Reduce):
    """y = mean of x over ``dims``; 0 where there is nothing."""

    name = "reduce_mean"
    forward = Kernel("reduce_mean.forward(x: f32; dims: list, keep_dim: bool) -> (y: f32)")
    backward = Kernel("reduce_mean.backward(dy: f32; dims: list) -> (dx: f32)")

    def f(self, x: np.ndarray, dims: tuple[int, ...]) -> np.ndarray:
        """The mean."""
        y: np.ndarray = x.sum(dims, keepdims=True) / max(1, math.prod(x.shape[d] for d in dims))
        return y


OP = ReduceMean()
