"""sequence_reverse: the rows of each sequence in the opposite order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

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


class SequenceReverse(Op):
    """y = x [T, ...] with each sequence read from its end, on the same axis."""

    name = "sequence_reverse"
    forward = Kernel("sequence_reverse.forward(x: f32) -> (y: f32)")

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """As x."""
        check(args["x"].axis is not None, self.name, f"x {args['x']} holds no sequences")
        return {"y": args["x"]}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """The same of dy."""
        return {"x": g.emit(self.forward, {"x": dy["y"]}, out={"y": node.args["x"]})}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """Sequence by sequence."""
        x, y = args["x"].values, args["x"].values.copy()
        for first, last in pairwise(args["x"].offsets):
            y[first:last] = x[first:last][::-1]
        return {"y": Ragged(y, args["x"].offsets)}

    def samples(self) -> Sequence[Sample]:
        """Numbers, narrow and wide rows."""
        shapes: Sequence[tuple[int | str, ...]] = (("s",), ("s", 3), ("s", 4, 9))
        return [Sample({"x": Arg(shape)}, axes=("s",)) for shape in shapes]


OP = SequenceReverse()
