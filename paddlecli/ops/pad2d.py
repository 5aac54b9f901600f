"""pad2d: rows and columns around NCHW images. After PaddlePaddle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paddlecli.ops._attrs import integer, number
from paddlecli.ops._window import four, image
from paddlecli.ops.base import Arg, Attr, Emitter, Kernel, NodeLike, Op, RandomKey, Sample, check
from paddlecli.ops.spec import Spec

MODES = ("constant", "reflect", "edge")
"""What the new pixels hold, by the attribute ``mode``."""


class Pad2d(Op):
    """x [N, C, H, W] to y [N, C, top + H + bottom, left + W + right].

    ``padding``: two numbers (height, width, both sides each) or four (top, bottom, left, right).
    ``mode`` is an index into :data:`MODES`: ``value``, the image mirrored at its outer pixels
    (which are not repeated, so the padding is smaller than the image), or the outer pixels.
    """

    name = "pad2d"
    forward = Kernel(
        "pad2d.forward(x: f32; padding: list, mode: int, value: float) -> (y: f32)", rowwise=True
    )
    backward = Kernel(
        "pad2d.backward(dy: f32; padding: list, mode: int) -> (dx: f32)", rowwise=True
    )
    defaults: ClassVar[Mapping[str, Attr]] = {"mode": 0, "value": 0.0}

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        x: Spec = args["x"]
        channels, height, width = image(self.name, x)
        top, bottom, left, right = four(attrs, self.name)
        mode = attrs["mode"]
        check(mode in range(len(MODES)), self.name, f"mode {mode} is unknown")
        check(
            mode != 1 or (max(top, bottom) < height and max(left, right) < width),
            self.name,
            f"paddings {[top, bottom, left, right]} must be smaller than the image "
            f"{height}x{width} that they mirror",
        )
        return {
            "y": x.with_shape(x.shape[0], channels, top + height + bottom, left + width + right)
        }

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        attrs = {k: node.attrs[k] for k in ("padding", "mode")}
        out = {"dx": node.args["x"]}
        return {"x": g.emit(self.backward, {"dy": dy["y"]}, attrs, out=out)}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        import numpy as np

        top, bottom, left, right = four(attrs, self.name)
        pads, mode = ((0, 0), (0, 0), (top, bottom), (left, right)), integer(attrs, "mode")
        if mode == 0:
            return {"y": np.pad(args["x"], pads, constant_values=number(attrs, "value"))}
        return {"y": np.pad(args["x"], pads, mode="reflect" if mode == 1 else "edge")}

    def samples(self) -> Sequence[Sample]:
        """Both paddings and none, every mode, as much as can be mirrored, one-pixel images."""

        def case(x: tuple[int, int, int], padding: tuple[int, ...], **attrs: Attr) -> Sample:
            return Sample({"x": Arg(("N", *x))}, {**self.defaults, "padding": padding, **attrs})

        return [
            case((2, 3, 4), (1, 2), value=0.5),
            case((1, 3, 5), (0, 2, 1, 0)),
            case((2, 3, 4), (0, 0)),
            case((2, 3, 5), (2, 1, 3, 4), mode=1),
            case((1, 4, 17), (3, 3), mode=1),
            case((3, 1, 1), (0, 0), mode=1),
            case((2, 3, 4), (2, 5, 0, 3), mode=2),
            case((2, 1, 1), (2, 1), mode=2),
            case((3, 1, 1), (1, 0, 0, 2), value=-1.0),
        ]


OP = Pad2d()
