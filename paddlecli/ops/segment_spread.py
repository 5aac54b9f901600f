"""One number a parameter, repeated over the parameter's elements in a flat range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paddlecli.ops.base import Arg, Attr, Kernel, Op, RandomKey, Sample, check
from paddlecli.ops.spec import Spec


class SegmentSpread(Op):
    """values [segments], bounds [segments, 2], like [n] (for its size alone) -> y [n], 0 outside the
    segments."""

    name: ClassVar[str] = "segment_spread"
    differentiable: ClassVar[bool] = False
    forward: ClassVar[Kernel] = Kernel(
        "segment_spread.forward(values: f32, bounds: i64, like: f32) -> (y: f32)"
    )

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        values, bounds = args["values"], args["bounds"]
        fits = values.shape == bounds.shape[:1]
        check(fits, self.name, f"values is {values}, bounds is {bounds}")
        return {"y": args["like"]}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        import numpy as np

        y = np.zeros_like(args["like"])
        for value, (first, length) in zip(args["values"], args["bounds"].astype(int), strict=True):
            y[first : first + length] = value
        return {"y": y}

    def samples(self) -> Sequence[Sample]:
        def case(n: int, *bounds: float) -> Sample:
            count = len(bounds) // 2
            pairs = Arg((count, 2), "i64", values=bounds)
            return Sample({"values": Arg((count,)), "bounds": pairs, "like": Arg((n,))})

        return [case(40, 0, 6, 16, 13, 32, 7), case(9024, 0, 5001, 5024, 4000), case(5), case(0)]


OP = SegmentSpread()
