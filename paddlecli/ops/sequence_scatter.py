"""sequence_scatter: a sequence of places and values added to each row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from paddlecli.ops._unary import values_of
from paddlecli.ops.base import Arg, Attr, Emitter, Kernel, NodeLike, Op, RandomKey, Sample, check
from paddlecli.ops.spec import product


class SequenceScatter(Op):
    """y = x [sequences, D], then ``y[s, ids[t]] += updates[t]`` for every token t of sequence s, in their order.

    ids i64 and updates f32 have one number a token, on one axis. An id outside of 0 .. D - 1 is an error.
    """

    name = "sequence_scatter"
    forward = Kernel("sequence_scatter.forward(x: f32, ids: i64, updates: f32) -> (y: f32)")
    backward_updates = Kernel(
        "sequence_scatter.backward_updates(dy: f32, ids: i64) -> (dupdates: f32)"
    )

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """As x."""
        x, ids, updates = args["x"], args["ids"], args["updates"]
        packed = ids.axis is not None and ids.axis == updates.axis
        one = packed and product(ids.shape) == product(updates.shape) == ids.shape[0]
        check(one, self.name, f"ids {ids} and updates {updates} are not one number a token")
        fits = x.ndim == 2 and x.shape[0] == ids.axis.sequences
        check(fits, self.name, f"x {x} has not one row for each sequence of ids {ids}")
        return {"y": x}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """dy itself, and its elements at the places."""
        found, a = {"x": dy["y"]}, node.args
        if g.needs("updates"):
            args, out = {"dy": dy["y"], "ids": a["ids"]}, {"dupdates": a["updates"]}
            found["updates"] = g.emit(self.backward_updates, args, out=out)
        return found

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """Token by token."""
        y = args["x"].copy()
        ids, updates = (values_of(args[k]).reshape(-1) for k in ("ids", "updates"))
        for s, (first, last) in enumerate(pairwise(args["ids"].offsets)):
            for t in range(first, last):
                y[s, ids[t]] += updates[t]
        return {"y": y}

    def samples(self) -> Sequence[Sample]:
        """Repeated places; narrow and wide rows."""

        def case(width: int, *rest: int) -> Sample:
            ids = Arg(("s", *rest), "i64", 0, width - 1)
            args = {"x": Arg(("N", width)), "ids": ids, "updates": Arg(("s", *rest))}
            return Sample(args, axes=("s",))

        return [case(2), case(5, 1), case(40)]


OP = SequenceScatter()
