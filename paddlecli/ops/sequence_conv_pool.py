"""sequence_conv_pool: a convolution along each sequence, pooled to one row without holding what every
token gives."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paddlecli.ops import sequence_conv, sequence_pool
from paddlecli.ops._attrs import integer
from paddlecli.ops.base import (
    Arg,
    Attr,
    Emitter,
    Kernel,
    NodeLike,
    Op,
    RandomKey,
    Sample,
    Shape,
    check,
)

MODES = sequence_pool.MODES[:4]
"""What the attribute ``mode`` counts."""


class SequenceConvPool(Op):
    """sequence_conv with bias and activation, then sequence_pool of the first four modes; y [sequences, M].

    The compiler makes it where nothing else reads the convolution's result; gradients do.
    """

    name = "sequence_conv_pool"
    forward = Kernel(
        "sequence_conv_pool.forward(x: f32, w: f32, b?: f32; size: int, start: int, activation: int, "
        "mode: int, pad_value: float) -> (y: f32)"
    )
    differentiable = False
    defaults: ClassVar[Mapping[str, Attr]] = {"activation": 0, "pad_value": 0.0}

    def shape(self, args: Mapping[str, Any], attrs: Mapping[str, Attr]) -> dict[str, Any]:
        """[sequences, M]."""
        check(
            0 <= integer(attrs, "mode") < len(MODES), self.name, f"mode {attrs['mode']} is unknown"
        )
        y = sequence_conv.OP.shape(args, attrs)["y"]
        return sequence_pool.OP.shape({"x": y}, attrs)

    def decompose(self, g: Emitter, node: NodeLike) -> dict[str, Any]:
        """Convolution, pool."""
        a = node.attrs
        conv = {k: a[k] for k in ("size", "start", "activation")}
        y = g.apply("sequence_conv", node.args["x"], node.args["w"], node.args["b"], **conv)
        return {"y": g.apply("sequence_pool", y, mode=a["mode"], pad_value=a["pad_value"])}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """Both references."""
        y = sequence_conv.OP.reference(args, attrs, random)["y"]
        return sequence_pool.OP.reference({"x": y}, attrs, random)

    def samples(self) -> Sequence[Sample]:
        """Every mode; narrow, and more filters than a task takes; with and without bias."""
        return [
            Sample(
                {"x": Arg(("s", width)), "w": Arg((size * width, out))}
                | ({"b": Arg((out,))} if bias else {}),
                {"size": size, "start": start, "activation": act, "mode": mode, "pad_value": pad},
                axes=("s",),
            )
            for width, out, size, start, act, mode, pad, bias in (
                (2, 3, 3, -1, 2, 0, 0.0, True),
                (5, 130, 4, -2, 0, 2, -1.0, True),
                (3, 2, 3, 0, 3, 1, 0.0, False),
                (4, 17, 2, -1, 0, 3, -9.0, True),
            )
        ]

    def flops(self, kernel: Kernel, shapes: Mapping[str, Shape], attrs: Mapping[str, Attr]) -> int:
        """2*size*D*M for each token."""
        return 2 * math.prod(shapes["w"]) * shapes["x"][0]


OP = SequenceConvPool()
