"""sequence_unpad: rows of one length packed as another tensor's sequences are."""

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
from paddlecli.ops.spec import Spec


class SequenceUnpad(Op):
    """y [T, ...] = of x [sequences, size, ...] the first rows of each sequence, as many as ``like`` has there.

    The values of ``like`` are not read. A sequence that is longer than ``size`` is an error.
    """

    name = "sequence_unpad"
    forward = Kernel("sequence_unpad.forward(x: f32, like: any) -> (y: f32)")
    backward = Kernel("sequence_unpad.backward(dy: f32) -> (dx: f32)")

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """[tokens of like, ...]."""
        x, like = args["x"], args["like"]
        fits = like.axis is not None and x.ndim >= 2 and x.shape[0] == like.axis.sequences
        check(fits, self.name, f"x {x} has not one row for each sequence of like {like}")
        return {"y": Spec((like.shape[0], *x.shape[2:]), "f32", like.axis)}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """dy's rows, zeros behind them."""
        if not g.needs("x"):
            return {}
        return {"x": g.emit(self.backward, {"dy": dy["y"]}, out={"dx": node.args["x"]})}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """Sequence by sequence."""
        import numpy as np

        x, offsets = args["x"], args["like"].offsets
        parts = [
            row[: last - first] for row, (first, last) in zip(x, pairwise(offsets), strict=True)
        ]
        return {"y": Ragged(np.concatenate([x[:0].reshape(0, *x.shape[2:]), *parts]), offsets)}

    def samples(self) -> Sequence[Sample]:
        """As long as the longest sequence, longer; numbers and rows."""
        like = Arg(("s",), "i64", 0, 5)
        return [
            Sample({"x": Arg(("N", 4, 3)), "like": like}, axes=("s",)),
            Sample({"x": Arg(("N", 9, 2, 9)), "like": like}, axes=("s",)),
            Sample({"x": Arg(("N", 5)), "like": like}, axes=("s",)),
        ]


OP = SequenceUnpad()
