"""repeat_rows: the row of each sequence repeated for its tokens (sequence_expand of one row a sequence)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlecli.ops._unary import values_of
from paddlecli.ops.base import (
    Arg,
    Attr,
    Emitter,
    Kernel,
    NodeLike,
    Op,
    Ragged,
    RandomKey,
    Sample,
    check,
)
from paddlecli.ops.spec import Spec


class RepeatRows(Op):
    """y[t] = x[s] for every token t of sequence s of ``like``, whose values are not read."""

    name = "repeat_rows"
    forward = Kernel("repeat_rows.forward(x: f32, like: any) -> (y: f32)")
    backward = Kernel("repeat_rows.backward(dy: f32) -> (dx: f32)")

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """[tokens of like, ...]."""
        x, like = args["x"], args["like"]
        fits = like.axis is not None and x.shape[:1] == (like.axis.sequences,)
        check(fits, self.name, f"x {x} has not one row for each sequence of like {like}")
        return {"y": Spec((like.shape[0], *x.shape[1:]), "f32", like.axis)}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """Sums over the tokens."""
        return (
            {"x": g.emit(self.backward, {"dy": dy["y"]}, out={"dx": node.args["x"]})}
            if g.needs("x")
            else {}
        )

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """numpy's repeat."""
        import numpy as np

        offsets = args["like"].offsets
        return {"y": Ragged(np.repeat(values_of(args["x"]), np.diff(offsets), 0), offsets)}

    def samples(self) -> Sequence[Sample]:
        """Narrow and wide rows; like of another type."""
        return [
            Sample({"x": Arg(("N", 3)), "like": Arg(("s", 2))}, axes=("s",)),
            Sample({"x": Arg(("N", 2, 20)), "like": Arg(("s",), "i64", 0, 5)}, axes=("s",)),
        ]


OP = RepeatRows()
