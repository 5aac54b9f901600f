"""sequence_reshape: the numbers of each sequence in rows of another width."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlecli.ops import _made
from paddlecli.ops._attrs import integer
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
from paddlecli.ops.sequence_concat import check_top
from paddlecli.ops.spec import Dim, Spec


class SequenceReshape(Op):
    """y [T', width]: the numbers of each sequence of x [T, D] in rows of ``width``, on an axis of its own.

    A sequence whose numbers are no whole rows is an error when its batch is bound.
    """

    name = "sequence_reshape"
    forward = Kernel("sequence_reshape.forward(x: f32; width: int) -> (y: f32)", inplace={"y": "x"})
    backward = Kernel("sequence_reshape.backward(dy: f32) -> (dx: f32)", inplace={"dx": "dy"})

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """On the axis of other lengths."""
        x, width = args["x"], integer(attrs, "width")
        check_top(self.name, "x", x)
        check(x.ndim == 2, self.name, f"x {x} must have 2 dimensions: tokens and their width")
        check(width > 0, self.name, f"width is {width}, expected at least 1")
        axis = _made.make("reshape", [x.axis], x.shape[1].coefficient, width)
        return {"y": Spec((axis.total, Dim(width)), "f32", axis)}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """dy's numbers in rows of x."""
        return {"x": g.emit(self.backward, {"dy": dy["y"]}, out={"dx": node.args["x"]})}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """The same numbers."""
        x, width = args["x"], integer(attrs, "width")
        edges = x.offsets * x.values.shape[1] // width
        return {"y": Ragged(x.values.reshape(-1, width), edges)}

    def samples(self) -> Sequence[Sample]:
        """Narrower and wider rows, as wide ones."""
        return [
            Sample({"x": Arg(("s", 6))}, {"width": 2}, axes=("s",)),
            Sample({"x": Arg(("s", 6))}, {"width": 12}, axes=("s",), lengths={"s": (2, 2)}),
            Sample({"x": Arg(("s", 3))}, {"width": 3}, axes=("s",)),
        ]


OP = SequenceReshape()
