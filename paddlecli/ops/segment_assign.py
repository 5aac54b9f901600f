"""New values of the parameters that lie in a flat range: what a composed optimizer ends with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paddlecli.ops.base import Arg, Attr, Kernel, Op, RandomKey, Sample, check
from paddlecli.ops.spec import Spec


class SegmentAssign(Op):
    """x [n], values [n], bounds [segments, 2] -> x_out, the same memory: values inside the segments,
    untouched elsewhere."""

    name: ClassVar[str] = "segment_assign"
    differentiable: ClassVar[bool] = False
    forward: ClassVar[Kernel] = Kernel(
        "segment_assign.forward(x: f32, values: f32, bounds: i64) -> (x_out: f32)",
        inplace={"x_out": "x"},
        updates=True,
    )

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        x, values = args["x"], args["values"]
        check(x.shape == values.shape, self.name, f"x is {x}, values is {values}")
        return {"x_out": x}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        x = args["x"].copy()
        for first, length in args["bounds"].astype(int):
            x[first : first + length] = args["values"][first : first + length]
        return {"x_out": x}

    def samples(self) -> Sequence[Sample]:
        def case(n: int, *bounds: float) -> Sample:
            pairs = Arg((len(bounds) // 2, 2), "i64", values=bounds)
            return Sample({"x": Arg((n,)), "values": Arg((n,)), "bounds": pairs})

        return [case(40, 0, 6, 16, 13, 32, 7), case(9024, 0, 5001, 5024, 4000), case(5), case(0)]


OP = SegmentAssign()
