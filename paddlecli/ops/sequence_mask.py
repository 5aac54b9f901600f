"""sequence_mask: ones where a padded row holds a token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

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
from paddlecli.ops.spec import Dim, Spec, product


class SequenceMask(Op):
    """y[s, t] = 1 for t below the length of sequence s, else 0; y [sequences, size] f32.

    The lengths are those of the sequences of ``like``, whose values are not read, or itself where it lies on no axis:
    i64 [N] or [N, 1].
    ``size`` 0 is the length of the longest sequence, which only an axis knows.
    """

    name = "sequence_mask"
    forward = Kernel("sequence_mask.forward(like: any; size: int) -> (y: f32)")
    defaults: ClassVar[Mapping[str, Attr]] = {"size": 0}

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """[sequences, size]."""
        x, size = args["like"], integer(attrs, "size")
        check(size >= 0, self.name, f"size is {size}, expected at least 0")
        if x.axis is not None:
            steps = Dim(size) if size > 0 else x.axis.longest
            return {"y": Spec((x.axis.sequences, steps), "f32", x.axis.parent)}
        lengths = x.dtype == "i64" and x.ndim >= 1 and product(x.shape) == x.shape[0]
        check(lengths, self.name, f"like is {x}; sequences or one i64 length a row are needed")
        check(size > 0, self.name, f"like {x} lies on no axis; size must be given")
        return {"y": Spec((x.shape[0], Dim(size)))}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """None: lengths are data."""
        return {}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """A comparison."""
        import numpy as np

        x, size = args["like"], integer(attrs, "size")
        lengths = np.diff(x.offsets) if isinstance(x, Ragged) else x.reshape(-1)
        steps = np.arange(size or int(lengths.max(initial=0)))
        return {"y": (steps < lengths[:, None]).astype(np.float64)}

    def samples(self) -> Sequence[Sample]:
        """Sequences, lengths; some longer than the mask."""
        return [
            Sample({"like": Arg(("s", 2))}, {"size": 5}, axes=("s",)),
            Sample({"like": Arg(("s",), "i64", 0, 9)}, {"size": 2}, axes=("s",)),
            Sample({"like": Arg(("N",), "i64", 0, 6)}, {"size": 4}),
            Sample({"like": Arg(("N", 1), "i64", 0, 30)}, {"size": 40}),
        ]


OP = SequenceMask()
