"""prelu: leaky relu whose slopes below 0 are learned. He et al., "Delving Deep into Rectifiers", 2015."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlecli.ops.base import Arg, Attr, Emitter, Kernel, NodeLike, Op, RandomKey, Sample, check
from paddlecli.ops.spec import Spec, product


class Prelu(Op):
    """y = x above 0, alpha * x elsewhere, of x [N, C, ...].

    alpha has one number for all, one for each channel, or one for each element of a row: its size says which.
    """

    name = "prelu"
    forward = Kernel(
        "prelu.forward(x: f32, alpha: f32) -> (y: f32)", inplace={"y": "x"}, rowwise=True
    )
    backward_x = Kernel(
        "prelu.backward_x(x: f32, alpha: f32, dy: f32) -> (dx: f32)",
        inplace={"dx": "dy"},
        rowwise=True,
    )
    backward_alpha = Kernel("prelu.backward_alpha(x: f32, dy: f32) -> (dalpha: f32)", rowwise=True)

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        """As x."""
        x, alpha = args["x"], args["alpha"]
        fixed = x.ndim >= 2 and x.axis is None and all(d.known for d in x.shape[1:])
        check(fixed, self.name, f"x is {x}; [N, channels, ...] is needed")
        channels, row = x.shape[1].coefficient, product(x.shape[1:]).coefficient
        sizes, size = (1, channels, row), alpha.size
        fits = size.known and size.coefficient in sizes
        check(fits, self.name, f"alpha is {alpha}; 1, {channels} or {row} numbers fit x {x}")
        return {"y": x}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """Of x and of the slopes."""
        x, alpha = node.args["x"], node.args["alpha"]
        found: dict[str, Any] = {}
        if g.needs("x"):
            args = {"x": x, "alpha": alpha, "dy": dy["y"]}
            found["x"] = g.emit(self.backward_x, args, out={"dx": x})
        if g.needs("alpha"):
            args = {"x": x, "dy": dy["y"]}
            found["alpha"] = g.emit(self.backward_alpha, args, out={"dalpha": alpha})
        return found

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """By the definition."""
        import numpy as np

        x, alpha = args["x"], args["alpha"].reshape(-1)
        row = int(np.prod(x.shape[1:]))
        slopes = np.repeat(alpha, row // alpha.size).reshape(x.shape[1:])
        return {"y": np.where(x > 0, x, slopes * x)}

    def samples(self) -> Sequence[Sample]:
        """All three kinds of slopes, planes above and below sixteen, one pixel, columns."""

        def case(alpha: tuple[int, ...], *shape: int) -> Sample:
            args = {"x": Arg(("N", *shape), low=-2, high=2), "alpha": Arg(alpha, low=-0.5, high=1)}
            return Sample(args, kinks=(0.0,))

        return [
            case((1,), 3, 4, 5),
            case((3,), 3, 4, 5),
            case((3, 4, 5), 3, 4, 5),
            case((2,), 2, 1, 1),
            case((37,), 37),
            case((1,), 19),
        ]


OP = Prelu()
