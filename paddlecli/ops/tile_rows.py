"""tile_rows: every row several times, one behind the other; the prefixes of a beam start alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlecli.ops._attrs import integer
from paddlecli.ops.base import Arg, Attr, Kernel, Op, RandomKey, Sample, check
from paddlecli.ops.spec import Spec


class TileRows(Op):
    """y[i * times + j] = x[i] for j below ``times``; any element type. It has no gradient."""

    name = "tile_rows"
    differentiable = False
    forward = Kernel("tile_rows.forward(x: any; times: int) -> (y: any)")

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """[rows * times, ...]."""
        x, times = args["x"], integer(attrs, "times")
        check(
            x.ndim >= 1 and times > 0,
            self.name,
            f"x {x} must have rows, times {times} must be at least 1",
        )
        return {"y": Spec((x.shape[0] * times, *x.shape[1:]), x.dtype)}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """numpy's repeat."""
        return {"y": args["x"].repeat(integer(attrs, "times"), axis=0)}

    def samples(self) -> Sequence[Sample]:
        """Once and several times; ids, rows of several dimensions."""
        return [
            Sample({"x": Arg((4, 3))}, {"times": 3}),
            Sample({"x": Arg((3,), "i64", 0, 9)}, {"times": 2}),
            Sample({"x": Arg((2, 2, 3))}, {"times": 1}),
        ]


OP = TileRows()
