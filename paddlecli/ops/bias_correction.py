"""What a mean that began at 0 is divided by: 1 - beta^t, t the number of the update (Kingma and Ba
2014, section 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paddlecli.ops._attrs import number
from paddlecli.ops.base import Arg, Attr, Kernel, Op, RandomKey, Sample, check
from paddlecli.ops.spec import Spec


class BiasCorrection(Op):
    """count [1], the updates done before this one -> y [1] = 1 - beta^(count + 1), in double until
    the end: near 1 a float's beta^t would leave no digits."""

    name: ClassVar[str] = "bias_correction"
    differentiable: ClassVar[bool] = False
    forward: ClassVar[Kernel] = Kernel(
        "bias_correction.forward(count: i64; beta: float) -> (y: f32)"
    )

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        check(args["count"].shape == Spec.of(1).shape, self.name, f"count is {args['count']}")
        return {"y": Spec.of(1)}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        return {"y": 1.0 - number(attrs, "beta") ** (args["count"] + 1.0)}

    def samples(self) -> Sequence[Sample]:
        return [
            Sample({"count": Arg((1,), "i64", values=(float(count),))}, {"beta": beta})
            for count, beta in ((0, 0.999), (4, 0.9), (100_000, 0.9999), (7, 0.0))
        ]


OP = BiasCorrection()
