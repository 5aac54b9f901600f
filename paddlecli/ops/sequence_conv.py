"""sequence_conv: a convolution along each sequence, zeros beyond its ends; bias and activation in the
same pass."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
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
    Shape,
    check,
)
from paddlecli.ops.fc import ACTIVATIONS
from paddlecli.ops.spec import Spec


class SequenceConv(Op):
    """y[t] = act(sum over j < size of x[t + start + j] w_j + b), rows beyond the sequence are zeros.

    x [T, D] on a ragged axis, w [size*D, M] (block j is w_j [D, M]), b [M], y [T, M]. ``start`` is
    usually -(size // 2). ``activation`` is an index into :data:`fc.ACTIVATIONS`.
    """

    name = "sequence_conv"
    version = 2
    forward = Kernel(
        "sequence_conv.forward(x: f32, w: f32, b?: f32; size: int, start: int, activation: int) -> "
        "(y: f32)"
    )
    backward_x = Kernel(
        "sequence_conv.backward_x(dy: f32, w: f32; size: int, start: int) -> (dx: f32)"
    )
    backward_w = Kernel(
        "sequence_conv.backward_w(x: f32, dy: f32; size: int, start: int) -> (dw: f32)"
    )
    defaults: ClassVar[Mapping[str, Attr]] = {"activation": 0}

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """[T, M] on x's axis."""
        x, w, b, size = args["x"], args["w"], args["b"], integer(attrs, "size")
        check(x.axis is not None, self.name, f"x {x} holds no sequences")
        check(x.ndim == 2, self.name, f"x {x} must have 2 dimensions: tokens and their width")
        check(w.ndim == 2, self.name, f"w {w} must have 2 dimensions")
        check(size > 0, self.name, f"size is {size}, expected at least 1")
        rows = size * x.shape[1].coefficient
        check(
            w.shape[0].coefficient == rows,
            self.name,
            f"w has {w.shape[0]} rows, {size} tokens of width {x.shape[1]} are {rows}",
        )
        check(
            b is None or b.shape == w.shape[1:], self.name, f"b is {b}, w has {w.shape[1]} columns"
        )
        check(
            0 <= integer(attrs, "activation") < len(ACTIVATIONS),
            self.name,
            f"activation {attrs['activation']} is unknown",
        )
        return {"y": Spec((x.shape[0], w.shape[1]), "f32", x.axis)}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """Through the activation; each token gathers from the tokens that read it; w_j from all
        pairs j apart."""
        from paddlecli import ops

        x, w, b, dz = node.args["x"], node.args["w"], node.args["b"], dy["y"]
        if node.attrs["activation"]:
            act: Any = ops.get(ACTIVATIONS[integer(node.attrs, "activation")])
            dz = g.emit(act.backward, {"y": node.results["y"], "dy": dz}, out={"dx": dz})
        attrs = {name: node.attrs[name] for name, _ in self.backward_x.attrs}
        found = {}
        if g.needs("x"):
            found["x"] = g.emit(self.backward_x, {"dy": dz, "w": w}, attrs, out={"dx": x})
        if g.needs("w"):
            found["w"] = g.emit(self.backward_w, {"x": x, "dy": dz}, attrs, out={"dw": w})
        if b is not None and g.needs("b"):
            bias: Any = ops.get("bias")
            found["b"] = g.emit(bias.backward, {"dy": dz}, {"axis": -1}, out={"db": b})
        return found

    def decompose(self, g: Emitter, node: NodeLike) -> dict[str, Any] | None:
        """Convolution, bias, activation."""
        if node.args["b"] is None and not node.attrs["activation"]:
            return None
        plain: dict[str, Attr] = {**node.attrs, "activation": 0}
        y = g.apply(self.name, node.args["x"], node.args["w"], None, **plain)
        if node.args["b"] is not None:
            y = g.apply("bias", y, node.args["b"], axis=-1)
        activation = ACTIVATIONS[integer(node.attrs, "activation")]
        return {"y": y if activation == "none" else g.apply(activation, y)}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """Sequence by sequence, over a copy with zeros around it."""
        import numpy as np

        x, offsets, w = args["x"].values, args["x"].offsets, args["w"]
        size, start, width = integer(attrs, "size"), integer(attrs, "start"), x.shape[1]
        around = size + abs(start)
        y = np.zeros((len(x), w.shape[1]))
        for first, last in pairwise(offsets):
            wide = np.pad(x[first:last], ((around, around), (0, 0)))
            for j in range(size):
                shifted = wide[around + start + j :][: last - first]
                y[first:last] += shifted @ w[j * width : (j + 1) * width]
        y = y if args.get("b") is None else y + args["b"]
        act = (lambda v: v, lambda v: np.maximum(v, 0), np.tanh, lambda v: 1 / (1 + np.exp(-v)))
        return {"y": Ragged(act[integer(attrs, "activation")](y), offsets)}

    def samples(self) -> Sequence[Sample]:
        """Even and odd sizes, centred, causal, looking ahead and far off; narrow and wide; sums of
        more than one chunk; every activation (relu's kink out of reach of the sum), with and
        without bias."""
        shapes = [
            (2, 3, 3, -1, 0, False),
            (5, 19, 4, -2, 2, True),
            (3, 2, 3, 0, 3, True),
            (4, 4, 1, 0, 0, True),
            (3, 5, 2, -9, 2, False),
            (17, 33, 5, 1, 0, False),
            (90, 5, 3, -1, 0, True),
        ]
        relu = Sample(
            {
                "x": Arg(("s", 2)),
                "w": Arg((4, 6), low=-0.2, high=0.2),
                "b": Arg((6,), choices=(-1.0, 1.0)),
            },
            {"size": 2, "start": -1, "activation": 1},
            axes=("s",),
        )
        return [relu, *(_sample(*shape) for shape in shapes)]

    def flops(self, kernel: Kernel, shapes: Mapping[str, Shape], attrs: Mapping[str, Attr]) -> int:
        """2*size*D for each element of y or dy, whichever of the three products it is."""
        rows = shapes["w"][0] if "w" in shapes else shapes["dw"][0]
        return 2 * rows * math.prod(shapes["y"] if "y" in shapes else shapes["dy"])


def _sample(width: int, out: int, size: int, start: int, activation: int, bias: bool) -> Sample:
    args = {"x": Arg(("s", width)), "w": Arg((size * width, out))}
    args |= {"b": Arg((out,))} if bias else {}
    attrs: dict[str, Attr] = {"size": size, "start": start, "activation": activation}
    return Sample(args, attrs, axes=("s",))


OP = SequenceConv()
