"""leaky_relu: a small slope below 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from paddlecli.ops._attrs import number
from paddlecli.ops._unary import Unary
from paddlecli.ops.base import Attr, Kernel, check

if TYPE_CHECKING:
    import numpy as np


class LeakyRelu(Unary):
    """y = x above 0, alpha*x elsewhere. Gradient from y, so alpha must not be negative."""

    name = "leaky_relu"
    forward = Kernel(
        "leaky_relu.forward(x: f32; alpha: float) -> (y: f32)",
        inplace={"y": "x"},
        rowwise=True,
    )
    backward = Kernel(
        "leaky_relu.backward(y: f32, dy: f32; alpha: float) -> (dx: f32)",
        inplace={"dx": "dy"},
        rowwise=True,
    )
    defaults: ClassVar[Mapping[str, Attr]] = {"alpha": 0.02}
    variants: ClassVar[Sequence[Mapping[str, Attr]]] = (
        {"alpha": 0.02},
        {"alpha": 0.0},
        {"alpha": 0.3},
    )

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """Same as x."""
        check(
            number(attrs, "alpha") >= 0.0,
            self.name,
            f"alpha is {attrs['alpha']}, must not be negative",
        )
        return {"y": args["x"]}

    def f(self, x: np.ndarray, attrs: Mapping[str, Any]) -> np.ndarray:
        """Slope 1 above 0, alpha below."""
        import numpy as np

        y: np.ndarray = np.where(x > 0, x, attrs["alpha"] * x)
        return y

    def kinks(self, attrs: Mapping[str, Any]) -> tuple[float, ...]:
        """At 0."""
        return (0.0,)


OP = LeakyRelu()
