"""swish: x times its sigmoid (silu when beta is 1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from paddlecli.ops._unary import Unary
from paddlecli.ops.base import Attr, Kernel

if TYPE_CHECKING:
    import numpy as np


class Swish(Unary):
    """y = x*sigmoid(beta*x)."""

    name = "swish"
    forward = Kernel(
        "swish.forward(x: f32; beta: float) -> (y: f32)",
        inplace={"y": "x"},
        rowwise=True,
    )
    backward = Kernel(
        "swish.backward(x: f32, dy: f32; beta: float) -> (dx: f32)",
        inplace={"dx": "dy"},
        rowwise=True,
    )
    defaults: ClassVar[Mapping[str, Attr]] = {"beta": 1.0}
    variants: ClassVar[Sequence[Mapping[str, Attr]]] = (
        {"beta": 1.0},
        {"beta": 1.5},
    )

    def f(self, x: np.ndarray, attrs: Mapping[str, Any]) -> np.ndarray:
        """x/(1 + exp(-beta*x))."""
        import numpy as np

        y: np.ndarray = x / (1.0 + np.exp(-attrs["beta"] * x))
        return y


OP = Swish()
