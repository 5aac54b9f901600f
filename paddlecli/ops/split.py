"""split: a tensor cut into pieces along one dimension."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paddlecli.ops._attrs import axis_of, integer, integers
from paddlecli.ops._unary import like, values_of
from paddlecli.ops.base import Arg, Attr, Emitter, Kernel, NodeLike, Op, RandomKey, Sample, check
from paddlecli.ops.concat import MOST
from paddlecli.ops.spec import Dim, Spec


class Split(Op):
    """ys[i] takes ``sizes[i]`` of x along ``axis``, one after the other; any element type. ``axis`` is not the batch."""

    name = "split"
    forward = Kernel("split.forward(x: any; axis: int, sizes: list) -> (ys*: any)", rowwise=True)
    defaults: ClassVar[Mapping[str, Attr]] = {"axis": -1}

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """x's shape with each of the sizes."""
        x: Spec = args["x"]
        axis = axis_of(attrs, x.ndim)
        sizes = integers(attrs, "sizes")
        check(0 < axis < x.ndim, self.name, f"axis {attrs['axis']} of x {x}")
        fits = 0 < len(sizes) <= MOST and min(sizes) > 0 and Dim(sum(sizes)) == x.shape[axis]
        check(fits, self.name, f"x {x} does not fall into {list(sizes)} along axis {axis}")
        return {
            "ys": [
                Spec((*x.shape[:axis], Dim(s), *x.shape[axis + 1 :]), x.dtype, x.axis)
                for s in sizes
            ]
        }

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """The pieces put together; zeros for those without a gradient."""
        from paddlecli import ops

        zero = ops.get("fill").forward
        pairs = zip(dy["ys"], node.results["ys"], strict=True)
        parts = [
            g.emit(zero, {}, {"value": 0.0}, out={"y": y}) if d is None else d for d, y in pairs
        ]
        dx = g.emit(
            ops.get("concat").forward,
            {"xs": parts},
            {"axis": node.attrs["axis"]},
            out={"y": node.args["x"]},
        )
        return {"x": dx}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """numpy's split."""
        import numpy as np

        sizes = integers(attrs, "sizes")
        cuts = np.cumsum(sizes)[:-1]
        return {
            "ys": [
                like(args["x"], y)
                for y in np.split(values_of(args["x"]), cuts, integer(attrs, "axis"))
            ]
        }

    def samples(self) -> Sequence[Sample]:
        """Last and middle axis, one piece, bytes, packed rows."""
        return [
            Sample({"x": Arg(("N", 9))}, {"axis": -1, "sizes": (3, 5, 1)}),
            Sample({"x": Arg(("N", 4, 3))}, {"axis": 1, "sizes": (2, 2)}),
            Sample({"x": Arg(("N", 4))}, {"axis": 1, "sizes": (4,)}),
            Sample({"x": Arg(("N", 5), "u8", 0, 255)}, {"axis": 1, "sizes": (2, 3)}),
            Sample({"x": Arg(("s", 6))}, {"axis": 1, "sizes": (2, 4)}, axes=("s",)),
        ]


OP = Split()
