"""concat: tensors side by side along one dimension."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paddlecli.ops._attrs import axis_of, integer
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
from paddlecli.ops.spec import ZERO, Spec

MOST = 32
"""Tensors that one node takes."""


class Concat(Op):
    """y holds xs[0], xs[1] ... one after the other along ``axis``; any element type."""

    name = "concat"
    forward = Kernel("concat.forward(xs*: any; axis: int) -> (y: any)", rowwise=True)
    backward = Kernel("concat.backward(dy: any; axis: int) -> (dxs*: any)", rowwise=True)
    defaults: ClassVar[Mapping[str, Attr]] = {"axis": 0}

    def is_rowwise(self, kernel: Kernel, attrs: Mapping[str, Attr]) -> bool:
        """Not along the rows."""
        return attrs["axis"] != 0

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """Sizes along ``axis`` added; the other sizes, and a packed axis, must agree."""
        xs: list[Spec] = args["xs"]
        text = f"shapes {', '.join(str(s) for s in xs)} along axis {attrs['axis']}"
        check(0 < len(xs) <= MOST, self.name, f"{len(xs)} tensors; takes 1 to {MOST}")
        axis = axis_of(attrs, xs[0].ndim)
        check(0 <= axis < xs[0].ndim, self.name, text)
        size = ZERO
        for x in xs:
            rest = (*x.shape[:axis], *x.shape[axis + 1 :])
            check(
                rest == (*xs[0].shape[:axis], *xs[0].shape[axis + 1 :]) and x.dtype == xs[0].dtype,
                self.name,
                text,
            )
            check(axis == 0 or x.axis == xs[0].axis, self.name, f"{text} run along different axes")
            size = size + x.shape[axis]
        shape = (*xs[0].shape[:axis], size, *xs[0].shape[axis + 1 :])
        return {"y": Spec(shape, xs[0].dtype, xs[0].axis if axis else None)}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """dy cut again."""
        return {
            "xs": _list(
                g.emit(self.backward, {"dy": dy["y"]}, node.attrs, out={"dxs": node.args["xs"]})
            )
        }

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """numpy's concatenate."""
        import numpy as np

        first = args["xs"][0]
        y = np.concatenate([values_of(x) for x in args["xs"]], integer(attrs, "axis"))
        packed = isinstance(first, Ragged) and attrs["axis"] != 0
        return {"y": Ragged(y, first.offsets) if packed else y}

    def samples(self) -> Sequence[Sample]:
        """Each axis, unequal sizes, bytes, packed rows."""
        return [
            Sample({"xs": (Arg(("N", 3)), Arg(("N", 5)), Arg(("N", 1)))}, {"axis": 1}),
            Sample({"xs": (Arg(("N", 3)), Arg(("N", 3)))}, {"axis": 0}),
            Sample({"xs": (Arg((2, 3)), Arg(("N", 3)))}, {"axis": 0}),
            Sample({"xs": (Arg(("N", 2, 4, 3)), Arg(("N", 1, 4, 3)))}, {"axis": 1}),
            Sample({"xs": (Arg(("N", 2, 4)), Arg(("N", 2, 1)))}, {"axis": -1}),
            Sample({"xs": (Arg(("N", 2), "u8", 0, 255), Arg(("N", 3), "u8", 0, 255))}, {"axis": 1}),
            Sample({"xs": (Arg(("N", 4)),)}, {"axis": 1}),
            Sample({"xs": (Arg(("s", 3)), Arg(("s", 2)))}, {"axis": 1}, axes=("s",)),
        ]


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


OP = Concat()
