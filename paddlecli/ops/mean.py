"""mean: the mean of all elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlecli.ops._unary import values_of
from paddlecli.ops.base import Arg, Attr, Emitter, Kernel, NodeLike, Op, RandomKey, Sample
from paddlecli.ops.spec import Spec


class Mean(Op):
    """y [1] = mean of x; 0 of nothing."""

    name = "mean"
    forward = Kernel("mean.forward(x: f32) -> (y: f32)")
    backward = Kernel("mean.backward(dy: f32) -> (dx: f32)")

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """[1]."""
        return {"y": Spec.of(1)}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """dy/count everywhere."""
        return {"x": g.emit(self.backward, {"dy": dy["y"]}, out={"dx": node.args["x"]})}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """The mean."""
        x = values_of(args["x"])
        return {"y": (x.sum() / max(1, x.size)).reshape(1)}

    def samples(self) -> Sequence[Sample]:
        """Dense and packed."""
        return [
            Sample({"x": Arg(("N", 3, 7))}),
            Sample({"x": Arg(("N", 20000))}),
            Sample({"x": Arg(("s", 2))}, axes=("s",)),
        ]


OP = Mean()
