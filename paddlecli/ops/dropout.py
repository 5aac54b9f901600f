"""dropout: zeroes a share of the values; the mask is drawn again in the backward kernel, never
stored. After PaddlePaddle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlecli.ops import _random
from paddlecli.ops._attrs import number
from paddlecli.ops._unary import like, values_of
from paddlecli.ops.base import Arg, Attr, Emitter, Kernel, NodeLike, Op, RandomKey, Sample, check
from paddlecli.ops.spec import Spec


class Dropout(Op):
    """The training form: each value of x passes with probability 1 - ``rate``, else it becomes 0; x
    and y of any shape.

    ``upscale`` (upscale_in_train) divides what passes by 1 - rate; without it (downgrade_in_infer)
    the inference graph multiplies by 1 - rate instead.
    """

    name = "dropout"
    forward = Kernel(
        "dropout.forward(x: f32; rate: float, upscale: bool) -> (y: f32)",
        inplace={"y": "x"},
        random=True,
    )
    backward = Kernel(
        "dropout.backward(dy: f32; rate: float, upscale: bool) -> (dx: f32)",
        inplace={"dx": "dy"},
        random=True,
    )

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        rate = number(attrs, "rate")
        check(0.0 <= rate < 1.0, self.name, f"rate {rate} is not in [0, 1)")
        return {"y": args["x"]}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        return {"x": g.emit(self.backward, {"dy": dy["y"]}, node.attrs, out={"dx": node.args["x"]})}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        import numpy as np

        x, rate = values_of(args["x"]), number(attrs, "rate")
        size = int(np.prod(x.shape[1:]))
        drawn = _random.bits(random, random.first * size, x.size).reshape(x.shape)
        passed = drawn >= np.uint32(int(rate * 2**32))
        return {
            "y": like(args["x"], np.where(passed, x / (1 - rate) if attrs["upscale"] else x, 0.0))
        }

    def samples(self) -> Sequence[Sample]:
        return [
            Sample({"x": Arg(("N", 3, 7))}, {"rate": 0.5, "upscale": False}),
            Sample({"x": Arg(("N", 531))}, {"rate": 0.3, "upscale": True}),
            Sample({"x": Arg(("t", 5))}, {"rate": 0.9, "upscale": True}, axes=("t",)),
            Sample({"x": Arg(("N", 4))}, {"rate": 0.0, "upscale": True}),
        ]


OP = Dropout()
