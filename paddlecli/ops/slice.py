"""slice: a stretch of one dimension."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlecli.ops._attrs import axis_of, integer
from paddlecli.ops._unary import like, values_of
from paddlecli.ops.base import Arg, Attr, Emitter, Kernel, NodeLike, Op, RandomKey, Sample, check
from paddlecli.ops.spec import Dim, Spec


class Slice(Op):
    """y = x from ``start`` to before ``end`` along ``axis`` (not the batch); negative ones count from the end."""

    name = "slice"
    forward = Kernel(
        "slice.forward(x: any; axis: int, start: int, end: int) -> (y: any)", rowwise=True
    )
    backward = Kernel("slice.backward(dy: f32; axis: int, start: int) -> (dx: f32)", rowwise=True)

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """x's shape with the stretch's size."""
        x: Spec = args["x"]
        axis = axis_of(attrs, x.ndim)
        check(
            0 < axis < x.ndim and x.shape[axis].known,
            self.name,
            f"axis {attrs['axis']} of x {x} has no fixed size",
        )
        size = x.shape[axis].coefficient
        start, end = (
            integer(attrs, k) + (size if integer(attrs, k) < 0 else 0) for k in ("start", "end")
        )
        check(
            0 <= start < end <= size,
            self.name,
            f"from {attrs['start']} to {attrs['end']} of {size} along axis {axis}",
        )
        return {
            "y": Spec((*x.shape[:axis], Dim(end - start), *x.shape[axis + 1 :]), x.dtype, x.axis)
        }

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """dy in its place, 0 elsewhere."""
        attrs = {"axis": node.attrs["axis"], "start": node.attrs["start"]}
        return {"x": g.emit(self.backward, {"dy": dy["y"]}, attrs, out={"dx": node.args["x"]})}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """numpy's take."""
        x = values_of(args["x"])
        size = x.shape[integer(attrs, "axis")]
        where = range(size)[integer(attrs, "start") : integer(attrs, "end")]
        return {"y": like(args["x"], x.take(list(where), integer(attrs, "axis")))}

    def samples(self) -> Sequence[Sample]:
        """Front, middle, end, negative numbers, bytes, packed rows."""

        def case(
            shape: tuple[int | str, ...], axis: int, start: int, end: int, dtype: str = "f32"
        ) -> Sample:
            x = Arg(shape) if dtype == "f32" else Arg(shape, dtype, 0, 255)
            return Sample(
                {"x": x},
                {"axis": axis, "start": start, "end": end},
                axes=("s",) if shape[0] == "s" else (),
            )

        return [
            case(("N", 9), 1, 0, 4),
            case(("N", 9), -1, -3, 9),
            case(("N", 5, 3), 1, 1, -1),
            case((6, 3), 1, 2, 3),
            case(("N", 9), 1, 2, 5, "u8"),
            case(("s", 4), 1, 1, 3),
        ]


OP = Slice()
