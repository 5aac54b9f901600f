"""moving_average: an average over the updates of a training, that forgets old values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paddlecli.ops._attrs import number
from paddlecli.ops.base import Arg, Attr, Kernel, Op, RandomKey, Sample, check
from paddlecli.ops.spec import Spec


class MovingAverage(Op):
    """``average += (1 - d)*(value - average)``, one shape; d is ``decay``, with ``warmup`` at most
    (1 + n)/(10 + n) in update n. ``count`` [1] is n, 1 at the first update."""

    name: ClassVar[str] = "moving_average"
    differentiable: ClassVar[bool] = False
    forward: ClassVar[Kernel] = Kernel(
        "moving_average.forward(average: f32, value: f32, count: i64; decay: float, warmup: bool) "
        "-> (average_out: f32)",
        inplace={"average_out": "average"},
        updates=True,
    )

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        average, value = args["average"], args["value"]
        check(
            average.shape == value.shape, self.name, f"average is {average}, the value is {value}"
        )
        return {"average_out": average}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        decay, n = number(attrs, "decay"), int(args["count"].reshape(-1)[0])
        d = min(decay, (1 + n) / (10 + n)) if attrs["warmup"] else decay
        return {"average_out": args["average"] + (1 - d) * (args["value"] - args["average"])}

    def samples(self) -> Sequence[Sample]:
        """Early and late updates, with the warm-up and without."""

        def case(shape: tuple[int, ...], count: int, warmup: bool) -> Sample:
            args = {
                "average": Arg(shape),
                "value": Arg(shape),
                "count": Arg((1,), "i64", low=count, high=count),
            }
            return Sample(args, {"decay": 0.99, "warmup": warmup})

        return [
            case((7,), 1, True),
            case((33, 5), 10**6, True),
            case((5000,), 3, False),
            case((0,), 1, False),
        ]


OP = MovingAverage()
