"""hard_sigmoid: a straight line between 0 and 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from paddlecli.ops._unary import Unary
from paddlecli.ops.base import Attr, Kernel

if TYPE_CHECKING:
    import numpy as np


class HardSigmoid(Unary):
    """y = slope*x + offset, cut to [0, 1]; 2.x of the original has slope 1/6."""

    name = "hard_sigmoid"
    forward = Kernel(
        "hard_sigmoid.forward(x: f32; slope: float, offset: float) -> (y: f32)",
        inplace={"y": "x"},
        rowwise=True,
    )
    backward = Kernel(
        "hard_sigmoid.backward(x: f32, dy: f32; slope: float, offset: float) -> (dx: f32)",
        inplace={"dx": "dy"},
        rowwise=True,
    )
    defaults: ClassVar[Mapping[str, Attr]] = {"slope": 0.2, "offset": 0.5}
    variants: ClassVar[Sequence[Mapping[str, Attr]]] = (
        {"slope": 0.2, "offset": 0.5},
        {"slope": 0.5, "offset": 0.25},
    )

    def f(self, x: np.ndarray, attrs: Mapping[str, Any]) -> np.ndarray:
        """The line, cut."""
        import numpy as np

        y: np.ndarray = np.clip(attrs["slope"] * x + attrs["offset"], 0.0, 1.0)
        return y

    def kinks(self, attrs: Mapping[str, Any]) -> tuple[float, ...]:
        """Where the line meets 0 and 1."""
        return (-attrs["offset"] / attrs["slope"], (1.0 - attrs["offset"]) / attrs["slope"])


OP = HardSigmoid()
