"""sequence_pad: packed sequences as rows of one length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar

from paddlecli.ops._attrs import integer, number
from paddlecli.ops.base import Arg, Attr, Emitter, Kernel, NodeLike, Op, RandomKey, Sample, check
from paddlecli.ops.spec import Dim, Spec


class SequencePad(Op):
    """y [sequences, size, ...] = the rows of each sequence of x [T, ...], then ``value`` up to the ``size``-th.

    What is longer than ``size`` is cut off. ``size`` 0: the length of the batch's longest sequence.
    """

    name = "sequence_pad"
    forward = Kernel("sequence_pad.forward(x: f32; size: int, value: float) -> (y: f32)")
    backward = Kernel("sequence_pad.backward(dy: f32) -> (dx: f32)")
    defaults: ClassVar[Mapping[str, Attr]] = {"size": 0, "value": 0.0}

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """[sequences, size, ...]."""
        x, size = args["x"], integer(attrs, "size")
        if x.axis is None:
            check(False, self.name, f"x {x} holds no sequences")
        check(size >= 0, self.name, f"size is {size}, expected at least 0")
        steps = Dim(size) if size > 0 else x.axis.longest
        return {"y": Spec((x.axis.sequences, steps, *x.shape[1:]), "f32", x.axis.parent)}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """dy's rows packed again."""
        return {"x": g.emit(self.backward, {"dy": dy["y"]}, out={"dx": node.args["x"]})}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """Sequence by sequence."""
        import numpy as np

        x, offsets = args["x"].values, args["x"].offsets
        size = integer(attrs, "size") or int(np.diff(offsets).max(initial=0))
        y = np.full((len(offsets) - 1, size, *x.shape[1:]), number(attrs, "value"))
        for s, (first, last) in enumerate(pairwise(offsets)):
            rows = min(size, last - first)
            y[s, :rows] = x[first : first + rows]
        return {"y": y}

    def samples(self) -> Sequence[Sample]:
        """Longer and shorter than sequences; numbers and rows."""
        return [
            Sample({"x": Arg(("s", 3))}, {"size": 6, "value": 0.0}, axes=("s",)),
            Sample({"x": Arg(("s", 2, 9))}, {"size": 2, "value": -1.5}, axes=("s",)),
            Sample({"x": Arg(("s",))}, {"size": 3, "value": 0.5}, axes=("s",)),
        ]


OP = SequencePad()
