"""interpolate: NCHW images in another size, by the nearest pixel or bilinearly. After
PaddlePaddle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paddlecli.ops._attrs import integer
from paddlecli.ops._window import image, two
from paddlecli.ops.base import Arg, Attr, Emitter, Kernel, NodeLike, Op, RandomKey, Sample, check
from paddlecli.ops.spec import Spec

_ATTRS = "size: list, linear: bool, align_corners: bool, align_mode: int"


class Interpolate(Op):
    """x [N, C, H, W] to y [N, C, H', W'] with ``size`` = H', W'.

    Pixel i of y lies at a place of x, and takes the pixel there or, when ``linear``, a mixture of
    the two around it in each direction. The place is ``i*(H - 1)/(H' - 1)`` with
    ``align_corners`` (the nearest pixel is the rounded one, 0.5 up). Else it is ``i*H/H'`` for the
    nearest pixel (rounded down) and for ``align_mode`` 1, and ``(i + 0.5)*H/H' - 0.5`` but at
    least 0 for ``align_mode`` 0.
    """

    name = "interpolate"
    forward = Kernel(f"interpolate.forward(x: f32; {_ATTRS}) -> (y: f32)", rowwise=True)
    backward = Kernel(f"interpolate.backward(dy: f32; {_ATTRS}) -> (dx: f32)", rowwise=True)
    defaults: ClassVar[Mapping[str, Attr]] = {
        "linear": False,
        "align_corners": False,
        "align_mode": 0,
    }

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        x: Spec = args["x"]
        channels, _, _ = image(self.name, x)
        mode = attrs["align_mode"]
        check(mode in (0, 1), self.name, f"align_mode is {mode}; 0 or 1 is needed")
        return {"y": x.with_shape(x.shape[0], channels, *two(attrs, "size", self.name))}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        out = {"dx": node.args["x"]}
        return {"x": g.emit(self.backward, {"dy": dy["y"]}, node.attrs, out=out)}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """Two products with matrices of shares."""
        import numpy as np

        x, (high, wide) = args["x"], two(attrs, "size", self.name)
        rows = self._shares(x.shape[2], high, attrs)
        columns = self._shares(x.shape[3], wide, attrs)
        return {"y": np.einsum("nchw,ih,jw->ncij", x, rows, columns)}

    def _shares(self, size: int, out: int, attrs: Mapping[str, Attr]) -> Any:
        """[out, size]: how much of each pixel a pixel of the result takes along one side."""
        import numpy as np

        i = np.arange(out)
        if attrs["align_corners"]:
            place = i * (size - 1) / max(1, out - 1)
        elif attrs["linear"] and integer(attrs, "align_mode") == 0:
            place = np.maximum(0, ((2 * i + 1) * size - out) / (2 * out))
        else:
            place = i * size / out
        if not attrs["linear"]:
            at = np.floor(place + (0.5 if attrs["align_corners"] else 0.0)).astype(np.int64)
            return np.eye(size)[at]
        low = np.floor(place).astype(np.int64)
        share = (place - low)[:, None]
        one = np.eye(size)
        return one[low] * (1 - share) + one[np.minimum(low + 1, size - 1)] * share

    def samples(self) -> Sequence[Sample]:
        """Larger, smaller, odd sizes, one-pixel images and results, every way to align."""

        def case(x: tuple[int, int, int], size: tuple[int, int], **attrs: Attr) -> Sample:
            return Sample({"x": Arg(("N", *x))}, {**self.defaults, "size": size, **attrs})

        corners: dict[str, Attr] = {"align_corners": True}
        linear: dict[str, Attr] = {"linear": True}
        return [
            case((2, 3, 4), (6, 8)),
            case((2, 5, 7), (3, 4)),
            case((1, 5, 7), (7, 11), **corners),
            case((2, 3, 4), (5, 6), **linear),
            case((2, 3, 4), (5, 6), **linear, align_mode=1),
            case((1, 3, 5), (7, 4), **linear, **corners),
            case((3, 5, 6), (2, 1), **linear),
            case((1, 5, 6), (2, 4), **linear, align_mode=1),
            case((1, 4, 5), (1, 1), **linear, **corners),
            case((1, 4, 5), (1, 1), **corners),
            case((2, 1, 1), (3, 2), **linear),
            case((2, 1, 1), (3, 2), **linear, **corners),
            case((2, 1, 1), (3, 2)),
            case((1, 9, 33), (18, 66), **linear),
        ]


OP = Interpolate()
