"""dropout2d: zeroes whole channels. Tompson et al., "Efficient Object Localization Using Convolutional Networks", CVPR 2015."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlecli.ops import _random
from paddlecli.ops._attrs import number
from paddlecli.ops.base import Arg, Attr, Emitter, Kernel, NodeLike, Op, RandomKey, Sample, check
from paddlecli.ops.spec import Spec


class Dropout2d(Op):
    """The training form: each channel of each sample of x [N, C, ...] passes with probability 1 - ``rate``, else it becomes 0.

    One random number a channel: element ``sample * C + channel`` of the stream, the sample counted in the whole batch. It is
    drawn again in the backward kernel. ``upscale`` as in dropout.
    """

    name = "dropout2d"
    forward = Kernel(
        "dropout2d.forward(x: f32; rate: float, upscale: bool) -> (y: f32)",
        inplace={"y": "x"},
        random=True,
    )
    backward = Kernel(
        "dropout2d.backward(dy: f32; rate: float, upscale: bool) -> (dx: f32)",
        inplace={"dx": "dy"},
        random=True,
    )

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        """As x."""
        x, rate = args["x"], number(attrs, "rate")
        check(0.0 <= rate < 1.0, self.name, f"rate {rate} is not in [0, 1)")
        check(x.ndim >= 2, self.name, f"x is {x}; [N, channels, ...] is needed")
        return {"y": x}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """The same channels pass."""
        return {"x": g.emit(self.backward, {"dy": dy["y"]}, node.attrs, out={"dx": node.args["x"]})}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """With the numbers that the kernel draws."""
        import numpy as np

        x, rate = args["x"], number(attrs, "rate")
        n, channels = x.shape[:2]
        drawn = _random.bits(random, random.first * channels, n * channels)
        passed = (drawn >= np.uint32(int(rate * 2**32))).reshape(n, channels, *[1] * (x.ndim - 2))
        return {"y": np.where(passed, x / (1 - rate) if attrs["upscale"] else x, 0.0)}

    def samples(self) -> Sequence[Sample]:
        """Planes, pixels and columns."""
        return [
            Sample({"x": Arg(("N", *shape))}, {"rate": rate, "upscale": upscale})
            for rate, upscale, shape in (
                (0.5, False, (3, 4, 5)), (0.3, True, (21, 2, 3)), (0.7, True, (6, 1, 1)),
                (0.4, True, (9,)), (0.0, True, (2, 3)),
            )
        ]  # fmt: skip


OP = Dropout2d()
