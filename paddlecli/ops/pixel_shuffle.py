"""pixel_shuffle: channels become pixels. Shi et al., "Real-Time Single Image and Video Super-Resolution Using an Efficient
Sub-Pixel Convolutional Neural Network", CVPR 2016."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlecli.ops._attrs import integer
from paddlecli.ops.base import Arg, Attr, Emitter, Kernel, NodeLike, Op, RandomKey, Sample, check
from paddlecli.ops.spec import Spec


class PixelShuffle(Op):
    """x [N, C * f * f, H, W] gives y [N, C, H * f, W * f]; f is ``factor``: channel ``(c * f + i) * f + j`` of x is the pixels
    of y's channel c in rows i, i + f ... and columns j, j + f ..."""

    name = "pixel_shuffle"
    forward = Kernel("pixel_shuffle.forward(x: f32; factor: int) -> (y: f32)", rowwise=True)
    backward = Kernel("pixel_shuffle.backward(dy: f32; factor: int) -> (dx: f32)", rowwise=True)

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        """Fewer channels, larger pictures."""
        x, f = args["x"], integer(attrs, "factor")
        fixed = x.ndim == 4 and all(d.known for d in x.shape[1:])
        check(fixed, self.name, f"x is {x}; [N, channels, height, width] is needed")
        c, h, w = (d.coefficient for d in x.shape[1:])
        fits = f > 0 and c % (f * f) == 0
        check(fits, self.name, f"{c} channels do not divide by the square of the factor {f}")
        return {"y": Spec.of(x.shape[0], c // (f * f), h * f, w * f)}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """The other way round."""
        return {"x": g.emit(self.backward, {"dy": dy["y"]}, node.attrs, out={"dx": node.args["x"]})}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """Dimensions in another order."""
        x, f = args["x"], integer(attrs, "factor")
        n, c, h, w = x.shape
        split = x.reshape(n, c // (f * f), f, f, h, w).transpose(0, 1, 4, 2, 5, 3)
        return {"y": split.reshape(n, c // (f * f), h * f, w * f)}

    def samples(self) -> Sequence[Sample]:
        """Factors from 1 to 3, one pixel."""
        return [
            Sample({"x": Arg(("N", *shape))}, {"factor": factor})
            for factor, shape in ((2, (8, 3, 5)), (3, (9, 1, 1)), (1, (2, 2, 3)), (2, (4, 1, 19)))
        ]


OP = PixelShuffle()
