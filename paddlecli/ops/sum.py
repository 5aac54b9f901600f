"""sum: the sum of several tensors of one shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlecli.ops._unary import like, values_of
from paddlecli.ops.base import Arg, Attr, Emitter, Kernel, NodeLike, Op, RandomKey, Sample, check


class Sum(Op):
    """y = xs[0] + xs[1] + ..., added in that order."""

    name = "sum"
    forward = Kernel("sum.forward(xs*: f32) -> (y: f32)", rowwise=True)

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """That of each of them."""
        xs = args["xs"]
        check(len(xs) > 0, self.name, "needs at least one tensor")
        for x in xs:
            fits = x.shape == xs[0].shape and x.axis == xs[0].axis
            check(fits, self.name, f"shapes differ: {', '.join(str(s) for s in xs)}")
        return {"y": xs[0]}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """dy for each."""
        return {"xs": [dy["y"]] * len(node.args["xs"])}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """Their sum."""
        import numpy as np

        total: np.ndarray = np.sum([values_of(x) for x in args["xs"]], 0)
        return {"y": like(args["xs"][0], total)}

    def samples(self) -> Sequence[Sample]:
        """One, two, three; packed rows."""
        return [
            *(Sample({"xs": (Arg(("N", 3, 7)),) * n}) for n in (1, 2, 3)),
            Sample({"xs": (Arg(("s", 5)), Arg(("s", 5)))}, axes=("s",)),
        ]


OP = Sum()
