"""What element-wise ops of two inputs share: broadcasting, and gradients summed back to the operands' shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from paddlecli.ops._attrs import integer
from paddlecli.ops._unary import like, values_of
from paddlecli.ops.base import (
    Arg,
    Attr,
    Emitter,
    Kernel,
    NodeLike,
    Op,
    RandomKey,
    Sample,
    TensorLike,
    check,
)
from paddlecli.ops.spec import ONE, Dim, Spec

if TYPE_CHECKING:
    import numpy as np


def place(own: int, full: int, axis: int) -> int:
    """The dimension of a result of ``full`` dimensions at which an operand of ``own`` dimensions begins."""
    return full - own if own == full or axis < 0 else axis


def broadcast(op: str, x: Spec, y: Spec, axis: int) -> Spec:
    """The result of two operands: numpy's rule when ``axis`` is -1, else y's dimensions stand at x's from ``axis`` on.

    Raises:
        ShapeError: the shapes do not fit.
    """
    ndim = max(x.ndim, y.ndim)
    text = f"x {x} and y {y} do not broadcast (axis {axis})"
    check(axis < 0 or (y.ndim <= x.ndim and axis + y.ndim <= x.ndim), op, text)
    shape: list[Dim] = []
    for d in range(ndim):
        a, b = (_at(s, d - place(s.ndim, ndim, axis)) for s in (x, y))
        check(a == b or ONE in (a, b), op, text)
        shape.append(b if a == ONE else a)
    axes = {
        s.axis for s in (x, y) if s.axis is not None and s.ndim == ndim and s.shape[0] == shape[0]
    }
    check(len(axes) < 2, op, f"x {x} and y {y} run along different axes")
    return Spec(tuple(shape), x.dtype, axes.pop() if axes else None)


def _at(spec: Spec, d: int) -> Dim:
    return spec.shape[d] if 0 <= d < spec.ndim else ONE


class Binary(Op):
    """z = f(x, y), element by element with broadcasting. A subclass gives ``f`` in numpy, its kernels and ``partials``."""

    defaults: ClassVar[Mapping[str, Attr]] = {"axis": -1}
    low: ClassVar[float] = -1.0
    high: ClassVar[float] = 1.0
    choices: ClassVar[tuple[tuple[float, ...], tuple[float, ...]]] = ((), ())
    tolerance: ClassVar[float] = 2e-6

    def f(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The function in float64."""
        raise NotImplementedError

    def partial_x(self, g: Emitter, node: NodeLike, dz: TensorLike) -> tuple[TensorLike, float]:
        """dz times df/dx over the result's shape, and a factor still to be applied."""
        raise NotImplementedError

    def partial_y(self, g: Emitter, node: NodeLike, dz: TensorLike) -> tuple[TensorLike, float]:
        """dz times df/dy over the result's shape, and a factor still to be applied."""
        raise NotImplementedError

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """The broadcast shape."""
        return {"z": broadcast(self.name, args["x"], args["y"], integer(attrs, "axis"))}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """The partial products, summed over the dimensions that an operand was spread along."""
        found: dict[str, Any] = {}
        for port, partial, axis in (
            ("x", self.partial_x, -1),
            ("y", self.partial_y, node.attrs["axis"]),
        ):
            if g.needs(port):
                full, factor = partial(g, node, dy["z"])
                found[port] = _sum_to(g, full, factor, node.args[port], axis)
        return found

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """f of the operands, y set to its place."""
        x, y = values_of(args["x"]), values_of(args["y"])
        first = place(y.ndim, max(x.ndim, y.ndim), integer(attrs, "axis"))
        after = max(x.ndim, y.ndim) - first - y.ndim
        packed = args["x"] if values_of(args["x"]) is not args["x"] else args["y"]
        return {"z": like(packed, self.f(x, y.reshape(y.shape + (1,) * after)))}

    def samples(self) -> Sequence[Sample]:
        """Equal shapes; y along the end, the middle and the start; both spread; a scalar; packed rows."""
        shapes: list[tuple[tuple[int | str, ...], tuple[int | str, ...], int]] = [
            (("N", 3, 7), ("N", 3, 7), -1),
            (("N", 20), (20,), -1),
            (("N", 3, 2, 5), (3,), 1),
            (("N", 4, 3), ("N",), 0),
            (("N", 17), ("N", 1), -1),
            ((19,), ("N", 19), -1),
            (("N", 1, 3), (4, 1), -1),
            (("N", 5), (1,), -1),
            (("N", 3, 2, 2), (3, 2), 1),
        ]
        cases = [self._sample(x, y, axis, ()) for x, y, axis in shapes]
        return [
            *cases,
            self._sample(("s", 4), ("s", 4), -1, ("s",)),
            self._sample(("s", 4), (4,), -1, ("s",)),
        ]

    def _sample(
        self, x: tuple[int | str, ...], y: tuple[int | str, ...], axis: int, axes: tuple[str, ...]
    ) -> Sample:
        made = [
            Arg(s, low=self.low, high=self.high, choices=c)
            for s, c in zip((x, y), self.choices, strict=True)
        ]
        return Sample(
            {"x": made[0], "y": made[1]}, {"axis": axis}, axes=axes, tolerance=self.tolerance
        )


class OwnPartials(Binary):
    """A binary op with kernels for its partial products: ``backward_x(x, y, dz) -> (d)`` and ``backward_y``."""

    backward_x: ClassVar[Kernel]
    backward_y: ClassVar[Kernel]

    def partial_x(self, g: Emitter, node: NodeLike, dz: TensorLike) -> tuple[TensorLike, float]:
        """What its kernel gives."""
        return self._partial(g, self.backward_x, node, dz), 1.0

    def partial_y(self, g: Emitter, node: NodeLike, dz: TensorLike) -> tuple[TensorLike, float]:
        """What its kernel gives."""
        return self._partial(g, self.backward_y, node, dz), 1.0

    def _partial(self, g: Emitter, kernel: Kernel, node: NodeLike, dz: TensorLike) -> TensorLike:
        args = {"x": node.args["x"], "y": node.args["y"], "dz": dz}
        found: TensorLike = g.emit(kernel, args, {"axis": node.attrs["axis"]}, out={"d": dz})
        return found


def _sum_to(
    g: Emitter, full: TensorLike, factor: float, target: TensorLike, axis: Any
) -> TensorLike:
    """``factor * full``, summed to the target's shape; ``full`` itself where there is nothing to do."""
    from paddlecli import ops

    if factor == 1.0 and target.spec.shape == full.spec.shape:
        return full
    reduce: Kernel = ops.get("add").reduce  # type: ignore[attr-defined]
    found: TensorLike = g.emit(
        reduce, {"dz": full}, {"axis": axis, "scale": factor}, out={"d": target}
    )
    return found
