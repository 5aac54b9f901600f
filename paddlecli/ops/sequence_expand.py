"""sequence_expand: whole sequences repeated, as often as those of another tensor have rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlecli.ops import _made
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
)
from paddlecli.ops.sequence_concat import check_top
from paddlecli.ops.spec import Spec


class SequenceExpand(Op):
    """y [T', ...]: sequence s of x [T, ...] once for every row that sequence s of ``like`` has, whose
    values are not read.

    y lies on an axis of its own, whose outer one is that of ``like``. Of one row a sequence see repeat_rows.
    """

    name = "sequence_expand"
    forward = Kernel("sequence_expand.forward(x: f32, like: any) -> (y: f32)")
    backward = Kernel("sequence_expand.backward(dy: f32, like: any) -> (dx: f32)")

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """On the axis of the repeated lengths."""
        x, like = args["x"], args["like"]
        check_top(self.name, "x", x)
        check_top(self.name, "like", like)
        axis = _made.make("expand", [x.axis, like.axis])
        return {"y": Spec((axis.total, *x.shape[1:]), "f32", axis)}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """Sums over the copies."""
        if not g.needs("x"):
            return {}
        args = {"dy": dy["y"], "like": node.args["like"]}
        return {"x": g.emit(self.backward, args, out={"dx": node.args["x"]})}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """Copy by copy."""
        import numpy as np

        x, like = args["x"], args["like"].offsets
        parts, edges = [x.values[:0]], [0]
        for s in range(len(like) - 1):
            own = x.values[x.offsets[s] : x.offsets[s + 1]]
            for _ in range(int(like[s + 1] - like[s])):
                parts.append(own)
                edges.append(edges[-1] + len(own))
        return {"y": Ragged(np.concatenate(parts), np.array(edges))}

    def samples(self) -> Sequence[Sample]:
        """Numbers and rows; like of another type, and on x's own axis."""
        like = Arg(("t",), "i64", 0, 5)
        return [
            Sample({"x": Arg(("s", 3)), "like": like}, axes=("s", "t")),
            Sample({"x": Arg(("s",)), "like": Arg(("s", 2))}, axes=("s",)),
            Sample({"x": Arg(("s", 2, 9)), "like": like}, axes=("s", "t")),
        ]


OP = SequenceExpand()
