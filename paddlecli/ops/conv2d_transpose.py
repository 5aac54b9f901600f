"""conv2d_transpose: the convolution that reads conv2d backwards and so makes images larger. After
PaddlePaddle."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paddlecli.ops._attrs import integer, integers
from paddlecli.ops._window import four, image, two
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
from paddlecli.ops.spec import Spec

_ATTRS = "stride: list, padding: list, output_padding: list, dilation: list, groups: int"


class Conv2dTranspose(Op):
    """x [N, C, H, W] and w [C, out/groups, kh, kw] to y [N, out, H', W'], the gradient that conv2d
    with w has of its input.

    H' is ``(H - 1)*stride - pads + dilation*(kh - 1) + 1 + output_padding``. ``padding``: two
    numbers (height, width) or four (top, bottom, left, right). ``output_padding``: rows and columns
    more at the bottom and right, fewer than the stride; a stride goes over several heights that
    conv2d maps to one, and this says which.
    """

    name = "conv2d_transpose"
    forward = Kernel(
        f"conv2d_transpose.forward(x: f32, w: f32; {_ATTRS}) -> (y: f32)", rowwise=True
    )
    backward_x = Kernel(
        f"conv2d_transpose.backward_x(dy: f32, w: f32; {_ATTRS}) -> (dx: f32)", rowwise=True
    )
    backward_w = Kernel(
        f"conv2d_transpose.backward_w(x: f32, dy: f32; {_ATTRS}) -> (dw: f32)", rowwise=True
    )
    defaults: ClassVar[Mapping[str, Attr]] = {
        "stride": (1, 1),
        "padding": (0, 0),
        "output_padding": (0, 0),
        "dilation": (1, 1),
        "groups": 1,
    }

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        x, w, groups = args["x"], args["w"], integer(attrs, "groups")
        channels, height, width = image(self.name, x)
        check(
            w.ndim == 4 and all(d.known and d.coefficient > 0 for d in w.shape),
            self.name,
            f"w is {w}; [channels, out/groups, kh, kw] is needed",
        )
        read, share, *size = (d.coefficient for d in w.shape)
        check(
            groups >= 1 and read == channels and channels % groups == 0,
            self.name,
            f"w is {w}, x {x} has {channels} channels, groups are {groups}",
        )
        high, wide = self._sizes((height, width), (size[0], size[1]), attrs)
        check(
            high > 0 and wide > 0,
            self.name,
            f"nothing is left of {height}x{width} with a {size[0]}x{size[1]} filter and paddings",
        )
        return {"y": x.with_shape(x.shape[0], share * groups, high, wide)}

    def _sizes(
        self, image: tuple[int, int], size: tuple[int, int], attrs: Mapping[str, Attr]
    ) -> tuple[int, int]:
        """Height and width of y."""
        stride, dilation = two(attrs, "stride", self.name), two(attrs, "dilation", self.name)
        pads, extra = four(attrs, self.name), integers(attrs, "output_padding")
        check(
            len(extra) == 2 and all(0 <= e < s for e, s in zip(extra, stride, strict=True)),
            self.name,
            f"output_padding is {list(extra)}, must be two numbers below the stride {list(stride)}",
        )
        high, wide = (
            (image[i] - 1) * stride[i]
            - pads[2 * i]
            - pads[2 * i + 1]
            + dilation[i] * (size[i] - 1)
            + 1
            + extra[i]
            for i in range(2)
        )
        return high, wide

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        x, w, found = node.args["x"], node.args["w"], {}
        if g.needs("w"):
            args = {"x": x, "dy": dy["y"]}
            found["w"] = g.emit(self.backward_w, args, node.attrs, out={"dw": w})
        if g.needs("x"):
            args = {"dy": dy["y"], "w": w}
            found["x"] = g.emit(self.backward_x, args, node.attrs, out={"dx": x})
        return found

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """Each pixel of x puts the filter, times its value, at its place."""
        import numpy as np

        x, w, groups = args["x"], args["w"], integer(attrs, "groups")
        n, channels, height, width = x.shape
        stride, dilation = two(attrs, "stride", self.name), two(attrs, "dilation", self.name)
        top, bottom, left, right = four(attrs, self.name)
        high, wide = self._sizes((height, width), w.shape[2:], attrs)
        pixels = x.reshape(n, groups, channels // groups, height, width)
        filters = w.reshape(groups, channels // groups, *w.shape[1:])
        y = np.zeros((n, groups, w.shape[1], top + high + bottom, left + wide + right))
        for i, j in np.ndindex(w.shape[2:]):
            h, v = i * dilation[0], j * dilation[1]
            rows = slice(h, h + (height - 1) * stride[0] + 1, stride[0])
            columns = slice(v, v + (width - 1) * stride[1] + 1, stride[1])
            y[..., rows, columns] += np.einsum("ngchw,gco->ngohw", pixels, filters[..., i, j])
        y = y[..., top : top + high, left : left + wide]
        return {"y": y.reshape(n, groups * w.shape[1], high, wide)}

    def samples(self) -> Sequence[Sample]:
        """Odd sizes, groups, dilation, four paddings, every extra row, one-pixel images."""

        def case(x: tuple[int, int, int], w: tuple[int, int, int, int], **attrs: Attr) -> Sample:
            return Sample({"x": Arg(("N", *x)), "w": Arg(w)}, {**self.defaults, **attrs})

        return [
            case((3, 4, 3), (3, 4, 3, 2)),
            case((2, 4, 3), (2, 3, 3, 3), stride=(2, 2), padding=(1, 1), output_padding=(1, 1)),
            case((2, 2, 3), (2, 2, 2, 3), stride=(3, 3), padding=(0, 1), output_padding=(2, 0)),
            case((2, 3, 4), (2, 3, 3, 2), stride=(1, 2), dilation=(2, 3), padding=(2, 1)),
            case((4, 3, 5), (4, 3, 3, 3), groups=2, padding=(1, 1)),
            case((3, 3, 2), (3, 1, 2, 2), groups=3, stride=(2, 2)),
            case((2, 4, 5), (2, 2, 3, 3), padding=(0, 2, 1, 0), stride=(2, 2)),
            case((4, 1, 1), (4, 2, 3, 3), stride=(2, 1), output_padding=(1, 0)),
            case((3, 1, 1), (3, 5, 1, 1)),
            case((2, 3, 4), (2, 3, 1, 1), stride=(3, 2), output_padding=(2, 1)),
            case((17, 5, 9), (17, 16, 5, 5), stride=(2, 2), padding=(2, 2), output_padding=(1, 0)),
        ]

    def flops(self, kernel: Kernel, shapes: Mapping[str, Shape], attrs: Mapping[str, Attr]) -> int:
        """2*(out/groups)*kh*kw for each element of x or dx."""
        w = shapes["w"] if "w" in shapes else shapes["dw"]
        return 2 * math.prod(w[1:]) * math.prod(shapes["x"] if "x" in shapes else shapes["dx"])


OP = Conv2dTranspose()
