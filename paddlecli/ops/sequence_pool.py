"""sequence_pool: one row for each sequence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paddlecli.ops._attrs import integer, number
from paddlecli.ops.base import Arg, Attr, Emitter, Kernel, NodeLike, Op, RandomKey, Sample, check
from paddlecli.ops.spec import Spec

MODES = ("sum", "average", "sqrt", "max", "first", "last")
"""What the attribute ``mode`` counts; ``sqrt`` is the sum over the root of the length."""


class SequencePool(Op):
    """y[s] = pool of x's rows of sequence s; ``pad_value`` where it is empty. ``mode`` is an index into :data:`MODES`.

    Of equal largest values the first one gets the gradient.
    """

    name = "sequence_pool"
    forward = Kernel("sequence_pool.forward(x: f32; mode: int, pad_value: float) -> (y: f32)")
    backward = Kernel("sequence_pool.backward(dy: f32; mode: int) -> (dx: f32)")
    backward_max = Kernel("sequence_pool.backward_max(x: f32, y: f32, dy: f32) -> (dx: f32)")
    defaults: ClassVar[Mapping[str, Attr]] = {"pad_value": 0.0}

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """[sequences, ...]."""
        x: Spec = args["x"]
        if x.axis is None:
            check(False, self.name, f"x {x} holds no sequences")
            raise AssertionError
        check(
            0 <= integer(attrs, "mode") < len(MODES), self.name, f"mode {attrs['mode']} is unknown"
        )
        return {"y": Spec((x.axis.sequences, *x.shape[1:]), "f32", x.axis.parent)}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """dy's row for every token, weighted by the mode."""
        x = node.args["x"]
        if MODES[integer(node.attrs, "mode")] == "max":
            args = {"x": x, "y": node.results["y"], "dy": dy["y"]}
            return {"x": g.emit(self.backward_max, args, out={"dx": x})}
        return {
            "x": g.emit(self.backward, {"dy": dy["y"]}, {"mode": node.attrs["mode"]}, out={"dx": x})
        }

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """Sequence by sequence."""
        import numpy as np

        x, offsets = args["x"].values, args["x"].offsets
        pools = (
            lambda v: v.sum(0),
            lambda v: v.mean(0),
            lambda v: v.sum(0) / np.sqrt(len(v)),
            lambda v: v.max(0),
            lambda v: v[0],
            lambda v: v[-1],
        )
        pool = pools[integer(attrs, "mode")]
        y = np.full((len(offsets) - 1, *x.shape[1:]), number(attrs, "pad_value"))
        for s in range(len(y)):
            if offsets[s] < offsets[s + 1]:
                y[s] = pool(x[offsets[s] : offsets[s + 1]])  # type: ignore[no-untyped-call]
        return {"y": y}

    def samples(self) -> Sequence[Sample]:
        """Every mode, narrow and wide rows."""
        return [
            Sample({"x": Arg(("s", width))}, {"mode": mode, "pad_value": pad}, axes=("s",))
            for mode in range(len(MODES))
            for width, pad in ((3, 0.0), (40, -9.0))
        ]


OP = SequencePool()
