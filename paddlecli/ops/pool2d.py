"""pool2d: largest or mean value of windows over NCHW images. After PaddlePaddle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paddlecli.ops._window import four, image, output_size, two
from paddlecli.ops.base import Arg, Attr, Emitter, Kernel, NodeLike, Op, RandomKey, Sample, check
from paddlecli.ops.spec import Spec

_ATTRS = "average: bool, window: list, stride: list, padding: list, ceil_mode: bool, exclusive: bool, adaptive: bool"


class Pool2d(Op):
    """x [N, C, H, W] to y [N, C, H', W'] with H' = (H - window + pads) // stride + 1, rounded up
    when ``ceil_mode``.

    ``average`` takes the mean instead of the largest value; ``exclusive`` leaves the padding out of
    its count, else it divides by the whole window. ``adaptive``: ``window`` is H', W'; cell i
    covers floor(i*H/H') to ceil((i+1)*H/H') - 1 (one window pools the whole image; more windows
    than pixels share them). A window without cells gives 0. Equal values: the first one gets the
    gradient.
    """

    name = "pool2d"
    forward = Kernel(f"pool2d.forward(x: f32; {_ATTRS}) -> (y: f32)", rowwise=True)
    backward_max = Kernel(
        f"pool2d.backward_max(x: f32, y: f32, dy: f32; {_ATTRS}) -> (dx: f32)", rowwise=True
    )
    backward_average = Kernel(
        f"pool2d.backward_average(dy: f32; {_ATTRS}) -> (dx: f32)", rowwise=True
    )
    defaults: ClassVar[Mapping[str, Attr]] = {
        "average": False,
        "stride": (1, 1),
        "padding": (0, 0),
        "ceil_mode": False,
        "exclusive": True,
        "adaptive": False,
    }

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        x: Spec = args["x"]
        channels, height, width = image(self.name, x)
        window, stride = two(attrs, "window", self.name), two(attrs, "stride", self.name)
        pads, ceil = four(attrs, self.name), bool(attrs["ceil_mode"])
        if attrs["adaptive"]:
            return {"y": x.with_shape(x.shape[0], channels, *window)}
        check(
            max(pads[:2]) < window[0] and max(pads[2:]) < window[1],
            self.name,
            f"paddings {list(pads)} must be smaller than the window {list(window)}",
        )
        oh = output_size(height, window[0], stride[0], *pads[:2], ceil=ceil)
        ow = output_size(width, window[1], stride[1], *pads[2:], ceil=ceil)
        check(
            oh > 0 and ow > 0,
            self.name,
            f"a {window[0]}x{window[1]} window does not fit into {height}x{width}",
        )
        return {"y": x.with_shape(x.shape[0], channels, oh, ow)}

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        x, out = node.args["x"], {"dx": node.args["x"]}
        if node.attrs["average"]:
            return {"x": g.emit(self.backward_average, {"dy": dy["y"]}, node.attrs, out=out)}
        args = {"x": x, "y": node.results["y"], "dy": dy["y"]}
        return {"x": g.emit(self.backward_max, args, node.attrs, out=out)}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        import numpy as np

        x = args["x"]
        y_spec = self.shape(
            {"x": Spec.of(*x.shape)} if x.shape[0] else {"x": Spec.of(1, *x.shape[1:])}, attrs
        )["y"]
        assert isinstance(y_spec, Spec)
        oh, ow = y_spec.shape[2].coefficient, y_spec.shape[3].coefficient
        y = np.zeros((*x.shape[:2], oh, ow))
        window = two(attrs, "window", self.name)
        for i in range(oh):
            for j in range(ow):
                h, w = self._cells(attrs, 0, i, x.shape[2]), self._cells(attrs, 1, j, x.shape[3])
                part = x[:, :, h[0] : h[1], w[0] : w[1]]
                if part.shape[2] == 0 or part.shape[3] == 0:
                    continue
                if not attrs["average"]:
                    y[:, :, i, j] = part.max(axis=(2, 3))
                    continue
                whole = not (attrs["exclusive"] or attrs["adaptive"])
                y[:, :, i, j] = part.sum(axis=(2, 3)) / (
                    window[0] * window[1] if whole else part.shape[2] * part.shape[3]
                )
        return {"y": y}

    def _cells(self, attrs: Mapping[str, Attr], side: int, i: int, size: int) -> tuple[int, int]:
        window = two(attrs, "window", self.name)[side]
        if attrs["adaptive"]:
            return i * size // window, -(-(i + 1) * size // window)
        begin = i * two(attrs, "stride", self.name)[side] - four(attrs, self.name)[2 * side]
        return max(0, begin), max(0, min(size, begin + window))

    def samples(self) -> Sequence[Sample]:
        """The fast window sizes and others, odd images, both paddings, ceil, adaptive, global."""

        def case(x: tuple[int, int, int], window: tuple[int, int], **attrs: Attr) -> Sample:
            # Values of a coarse grid would tie and make finite differences meaningless; evenly drawn ones do not.
            return Sample(
                {"x": Arg(("N", *x), low=-4, high=4)}, {**self.defaults, "window": window, **attrs}
            )

        two_, three = {"stride": (2, 2)}, {"stride": (2, 2), "padding": (1, 1)}
        return [
            case((2, 6, 8), (2, 2), **two_),
            case((2, 5, 7), (2, 2), **two_),
            case((1, 5, 37), (2, 2), ceil_mode=True, **two_),
            case((2, 7, 7), (3, 3), **three),
            case((2, 6, 5), (3, 3), ceil_mode=True, stride=(2, 2)),
            case((1, 4, 4), (2, 2), padding=(1, 1)),
            case((1, 5, 6), (3, 2), stride=(1, 3), padding=(0, 2, 1, 0)),
            case((2, 6, 5), (3, 3), average=True, ceil_mode=True, **three),
            case((1, 5, 5), (3, 3), average=True, exclusive=False, **three),
            case((2, 6, 36), (2, 2), average=True, **two_),
            case((1, 4, 5), (3, 3), average=True, exclusive=False),
            case((2, 5, 7), (3, 4), adaptive=True),
            case((1, 5, 7), (3, 4), adaptive=True, average=True),
            case((3, 4, 5), (1, 1), adaptive=True, average=True),
            case((2, 3, 1), (5, 4), adaptive=True, average=True),
            case((1, 3, 2), (4, 5), adaptive=True),
            case((1, 1, 1), (1, 1)),
        ]


OP = Pool2d()
