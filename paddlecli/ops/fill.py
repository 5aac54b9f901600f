"""fill: one number everywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlecli.ops._attrs import number
from paddlecli.ops.base import Attr, Emitter, Kernel, NodeLike, Op, RandomKey, Sample, ShapeError


class Fill(Op):
    """y = value. It has no inputs, so whoever emits it gives y's spec (``out=``); any element type."""

    name = "fill"
    forward = Kernel("fill.forward(; value: float) -> (y: any)", rowwise=True)
    differentiable = False

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """Cannot be known."""
        raise ShapeError("[fill] the output's shape must be given")

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """No inputs, no gradients."""
        return {}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """A number that numpy spreads."""
        import numpy as np

        return {"y": np.float64(number(attrs, "value"))}

    def samples(self) -> Sequence[Sample]:
        """Two numbers; the shapes and types are the test's."""
        return [Sample({}, {"value": 0.0}), Sample({}, {"value": -2.0})]


OP = Fill()
