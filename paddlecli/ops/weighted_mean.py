"""weighted_mean: the last step of every loss, the sum of all values over the weight of the whole
batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlecli.ops._unary import values_of
from paddlecli.ops.base import Arg, Attr, Emitter, Kernel, NodeLike, Op, RandomKey, Sample, check
from paddlecli.ops.spec import Spec


class WeightedMean(Op):
    """``y [1] = sum(values) / weight [1]``; values of any shape, summed in double in pieces of
    fixed size. Weight 0 gives 0."""

    name = "weighted_mean"
    forward = Kernel("weighted_mean.forward(values: f32, weight: f32) -> (y: f32)")
    backward_values = Kernel(
        "weighted_mean.backward_values(weight: f32, dy: f32) -> (dvalues: f32)"
    )

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        weight: Spec = args["weight"]
        check(
            weight.shape == Spec.of(1).shape, self.name, f"weight is {weight}, one number is needed"
        )
        return {"y": Spec.of(1)}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """Of the values only: the weight is given, not computed."""
        if not g.needs("values"):
            return {}
        args = {"weight": node.args["weight"], "dy": dy["y"]}
        return {"values": g.emit(self.backward_values, args, out={"dvalues": node.args["values"]})}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        weight = args["weight"]
        return {"y": values_of(args["values"]).sum() / weight if weight[0] else weight * 0}

    def samples(self) -> Sequence[Sample]:
        weight = Arg((1,), values=(7.0,))
        return [
            Sample({"values": Arg(("N", 1)), "weight": weight}),
            Sample({"values": Arg(("N", 3, 5)), "weight": weight}),
            Sample({"values": Arg(("t", 2)), "weight": weight}, axes=("t",)),
            Sample({"values": Arg((9001,), low=0, high=1), "weight": weight}),
        ]


OP = WeightedMean()
