"""What layer_norm and group_norm share: rows of x, each normalised by its own mean and variance, then
scaled and shifted element by element."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paddlecli.ops.base import Emitter, Kernel, NodeLike, Op, check
from paddlecli.ops.spec import Dim


def kernels_of(op: str, cut: str) -> tuple[Kernel, Kernel, Kernel]:
    """Forward, gradient of x, gradients of w and b. ``cut``: the attribute that says what a row is."""
    return (
        Kernel(
            f"{op}.forward(x: f32, w?: f32, b?: f32; {cut}: int, epsilon: float)"
            " -> (y: f32, mean: f32, rstd: f32)",
            inplace={"y": "x"},
            rowwise=True,
        ),
        Kernel(
            f"{op}.backward_x(dy: f32, x: f32, w?: f32, mean: f32, rstd: f32; {cut}: int)"
            " -> (dx: f32)",
            inplace={"dx": "dy"},
            rowwise=True,
        ),
        Kernel(
            f"{op}.backward_w(dy: f32, x: f32, mean: f32, rstd: f32; {cut}: int)"
            " -> (dw?: f32, db?: f32)",
            rowwise=True,
        ),
    )


class RowNorm(Op):
    """``y = (x - mean) * rstd * w + b``; mean and rstd [rows], of the biased variance plus ``epsilon``."""

    cut: ClassVar[str]
    """The attribute that says what a row is."""
    backward_x: ClassVar[Kernel]
    backward_w: ClassVar[Kernel]

    def check_weights(self, args: Mapping[str, Any], count: Dim) -> None:
        """Raises ShapeError unless w and b have so many elements, where they are there."""
        for name in ("w", "b"):
            given = args[name]
            fits = given is None or given.size == count
            check(
                fits, self.name, f"{name} is {given}, expected {count} elements for x {args['x']}"
            )

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """Through mean and variance; sums over the rows."""
        a, r, cut = node.args, node.results, {self.cut: node.attrs[self.cut]}
        found: dict[str, Any] = {}
        args = {"dy": dy["y"], "x": a["x"], "mean": r["mean"], "rstd": r["rstd"]}
        if g.needs("x"):
            found["x"] = g.emit(self.backward_x, {**args, "w": a["w"]}, cut, {"dx": a["x"]})
        wanted = [p for p in ("w", "b") if a[p] is not None and g.needs(p)]
        if wanted:
            out: dict[str, Any] = {f"d{p}": a[p] if p in wanted else None for p in ("w", "b")}
            sums = g.emit(self.backward_w, args, cut, out=out)
            found |= {p: d for p, d in zip(("w", "b"), sums, strict=True) if d is not None}
        return found
