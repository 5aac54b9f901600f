"""What reductions over chosen dimensions share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from paddlecli.ops._unary import values_of
from paddlecli.ops.base import (
    Arg,
    Attr,
    Emitter,
    Kernel,
    NodeLike,
    Op,
    Ragged,
    RandomKey,
    Sample,
    check,
)
from paddlecli.ops.spec import ONE, Spec

if TYPE_CHECKING:
    import numpy as np


def chosen(dims: Any, ndim: int) -> tuple[int, ...]:
    """Dimensions of a list with negative ones counted from the end; all of them when the list is empty."""
    return tuple(sorted({d + ndim if d < 0 else d for d in dims})) or tuple(range(ndim))


class Reduce(Op):
    """y = f(x over ``dims``): none means all. ``keep_dim`` leaves them with size 1; a full reduction gives [1]."""

    backward: ClassVar[Kernel]
    defaults: ClassVar[Mapping[str, Attr]] = {"dims": (), "keep_dim": False}

    def f(self, x: np.ndarray, dims: tuple[int, ...]) -> np.ndarray:
        """The reduction in float64, with the dimensions kept at size 1."""
        raise NotImplementedError

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """x's shape without the dimensions, or with 1 in their place."""
        x: Spec = args["x"]
        dims = chosen(attrs["dims"], x.ndim)
        check(all(0 <= d < x.ndim for d in dims), self.name, f"dimensions {attrs['dims']} of x {x}")
        kept = [
            (ONE if attrs["keep_dim"] else None) if i in dims else d for i, d in enumerate(x.shape)
        ]
        shape = tuple(d for d in kept if d is not None) or (ONE,)
        return {"y": Spec(shape, "f32", None if 0 in dims else x.axis)}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """dy repeated along the dimensions."""
        x = node.args["x"]
        return {
            "x": g.emit(self.backward, {"dy": dy["y"]}, {"dims": node.attrs["dims"]}, out={"dx": x})
        }

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """f, then the shape."""
        x = values_of(args["x"])
        dims = chosen(attrs["dims"], x.ndim)
        kept = self.f(x, dims)
        shape = [s for i, s in enumerate(x.shape) if i not in dims] or [1]
        y = kept if attrs["keep_dim"] else kept.reshape(shape)
        return {
            "y": Ragged(y, args["x"].offsets)
            if isinstance(args["x"], Ragged) and 0 not in dims
            else y
        }

    def samples(self) -> Sequence[Sample]:
        """Last, first, middle, several, all dimensions; many rows; packed rows."""
        x = Arg(("N", 3, 4, 5))
        dims: list[tuple[int, ...]] = [(-1,), (0,), (1,), (0, 2), (1, 3), (2, 3), ()]
        return [
            *(Sample({"x": x}, {"dims": d, "keep_dim": k}) for d in dims for k in (False, True)),
            Sample({"x": Arg(("N", 600, 70))}, {"dims": (1,), "keep_dim": False}),
            Sample({"x": Arg(("s", 6))}, {"dims": (1,), "keep_dim": False}, axes=("s",)),
            Sample({"x": Arg(("s", 6))}, {"dims": (0,), "keep_dim": True}, axes=("s",)),
        ]
