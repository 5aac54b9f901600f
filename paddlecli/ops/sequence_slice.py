"""sequence_slice: some rows of each sequence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

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
from paddlecli.ops.spec import Spec


class SequenceSlice(Op):
    """y [T', ...]: of each sequence of x [T, ...] at most ``size`` rows from row ``start`` on, a negative one counted
    from its end; on an axis of its own. A sequence may have none there.
    """

    name = "sequence_slice"
    forward = Kernel("sequence_slice.forward(x: f32; start: int, size: int) -> (y: f32)")
    backward = Kernel("sequence_slice.backward(dy: f32; start: int) -> (dx: f32)")
    defaults: ClassVar[Mapping[str, Attr]] = {"start": 0}

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """On the axis of the shorter lengths."""
        x, start, size = args["x"], integer(attrs, "start"), integer(attrs, "size")
        check_top(self.name, "x", x)
        check(size > 0, self.name, f"size is {size}, expected at least 1")
        axis = _made.make("slice", [x.axis], start, size)
        return {"y": Spec((axis.total, *x.shape[1:]), "f32", axis)}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """dy's rows where they were, zeros around them."""
        start = {"start": node.attrs["start"]}
        return {"x": g.emit(self.backward, {"dy": dy["y"]}, start, {"dx": node.args["x"]})}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """Sequence by sequence."""
        import numpy as np

        x, start, size = args["x"], integer(attrs, "start"), integer(attrs, "size")
        parts, edges = [x.values[:0]], [0]
        for s in range(len(x.offsets) - 1):
            own = x.values[x.offsets[s] : x.offsets[s + 1]]
            first = start if start >= 0 else max(len(own) + start, 0)
            parts.append(own[first : first + size])
            edges.append(edges[-1] + len(parts[-1]))
        return {"y": Ragged(np.concatenate(parts), np.array(edges))}

    def samples(self) -> Sequence[Sample]:
        """From the start, behind it, from the end; more and fewer rows than there are."""

        def case(start: int, size: int, *rest: int) -> Sample:
            return Sample({"x": Arg(("s", *rest))}, {"start": start, "size": size}, axes=("s",))

        return [case(0, 2, 3), case(1, 2), case(2, 9, 2, 9), case(-2, 1, 4), case(-3, 5)]


OP = SequenceSlice()
