"""reshape: the same bytes under another shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paddlecli.ops._attrs import integers
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
from paddlecli.ops.spec import Dim, Spec, product


class Reshape(Op):
    """y holds x's elements in the same order under ``dims``: a number is a size, 0 is x's size at that place, one -1 is the rest.

    A dimension that depends on the batch is written 0 or -1. A packed x stays packed where dimension 0 stays.
    """

    name = "reshape"
    forward = Kernel("reshape.forward(x: any; dims: list) -> (y: any)", rowwise=True)
    inplace_views: ClassVar[bool] = True

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """x's size under ``dims``."""
        x: Spec = args["x"]
        dims = integers(attrs, "dims")
        text = f"x {x} does not fit the shape {list(dims)}"
        known: list[Dim | None] = []
        for i, d in enumerate(dims):
            check(d >= -1 and (d != 0 or i < x.ndim), self.name, text)
            known.append(None if d == -1 else x.shape[i] if d == 0 else Dim(d))
        check(known.count(None) <= 1 and len(known) <= 8, self.name, text)
        if None in known:
            known[known.index(None)] = self._rest(
                x.size, product(d for d in known if d is not None), text
            )
        shape = tuple(d for d in known if d is not None)
        check(product(shape) == x.size, self.name, text)
        return {"y": Spec(shape, x.dtype, x.axis if shape and shape[0] == x.shape[0] else None)}

    def _rest(self, size: Dim, others: Dim, text: str) -> Dim:
        try:
            return size // others
        except ValueError:
            check(False, self.name, text)
            raise

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """dy under x's shape."""
        x: Spec = node.args["x"].spec
        dims = tuple(d.coefficient if d.known else -1 for d in x.shape)
        return {"x": g.emit(self.forward, {"x": dy["y"]}, {"dims": dims}, out={"y": x})}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """numpy's reshape."""
        x, dims = values_of(args["x"]), integers(attrs, "dims")
        sizes = [x.shape[i] if d == 0 else d for i, d in enumerate(dims)]
        if -1 in sizes:  # numpy cannot find the rest of an empty array
            others = 1
            for s in sizes:
                others *= s if s > 0 else 1
            empty = x.size == 0 and 0 in sizes
            i = sizes.index(-1)
            whole = 1
            for s in x.shape:
                whole *= max(s, 1)
            sizes[i] = whole // others if empty else x.size // others
        y = x.reshape(sizes)
        keeps = isinstance(args["x"], Ragged) and y.shape[0] == x.shape[0]
        return {"y": Ragged(y, args["x"].offsets) if keeps else y}

    def samples(self) -> Sequence[Sample]:
        """Batch kept, batch folded in and out, bytes, packed rows."""
        return [
            Sample({"x": Arg(("N", 3, 4))}, {"dims": (0, 12)}),
            Sample({"x": Arg(("N", 3, 4))}, {"dims": (-1, 4)}),
            Sample({"x": Arg(("N", 12))}, {"dims": (0, 2, -1)}),
            Sample({"x": Arg(("N", 6), "u8", 0, 255)}, {"dims": (-1, 3, 2)}),
            Sample({"x": Arg(("s", 2, 3))}, {"dims": (0, -1)}, axes=("s",)),
            Sample({"x": Arg((4, 3))}, {"dims": (2, 6)}),
        ]


OP = Reshape()
