"""sequence_concat: the sequences of several tensors one behind the other."""

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
    check,
)
from paddlecli.ops.spec import Spec


def check_top(op: str, name: str, x: Spec) -> None:
    """Made axes have no outer one."""
    check(x.axis is not None and x.axis.parent is None, op, f"{name} {x} is no sequence of rows")


class SequenceConcat(Op):
    """y [T', ...]: sequence s of all xs [T, ...] in their order, for each s; on an axis of its own.

    All xs have the same rows; each may lie on another axis.
    """

    name = "sequence_concat"
    forward = Kernel("sequence_concat.forward(xs*: f32) -> (y: f32)")
    backward = Kernel("sequence_concat.backward(dy: f32) -> (dxs*: f32)")

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """On the axis of the lengths' sums."""
        xs = args["xs"]
        check(len(xs) > 0, self.name, "there are no tensors")
        for x in xs:
            check_top(self.name, "x", x)
            fits = x.shape[1:] == xs[0].shape[1:]
            check(fits, self.name, f"the rows of {x} are not those of {xs[0]}")
        axis = _made.make("concat", [x.axis for x in xs])
        return {"y": Spec((axis.total, *xs[0].shape[1:]), "f32", axis)}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """dy cut up again."""
        xs = list(node.args["xs"])
        found = g.emit(self.backward, {"dy": dy["y"]}, out={"dxs": xs})
        return {"xs": found if isinstance(found, list) else [found]}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """Sequence by sequence."""
        import numpy as np

        xs = args["xs"]
        parts, edges = [xs[0].values[:0]], [0]
        for s in range(len(xs[0].offsets) - 1):
            parts += [x.values[x.offsets[s] : x.offsets[s + 1]] for x in xs]
            edges.append(edges[-1] + sum(len(p) for p in parts[-len(xs) :]))
        return {"y": Ragged(np.concatenate(parts), np.array(edges))}

    def samples(self) -> Sequence[Sample]:
        """One, two of one axis, three of two axes; numbers and rows."""
        return [
            Sample({"xs": (Arg(("s", 3)),)}, axes=("s",)),
            Sample({"xs": (Arg(("s",)), Arg(("s",)))}, axes=("s",)),
            Sample({"xs": (Arg(("s", 2, 9)), Arg(("t", 2, 9)), Arg(("s", 2, 9)))}, axes=("s", "t")),
        ]


OP = SequenceConcat()
