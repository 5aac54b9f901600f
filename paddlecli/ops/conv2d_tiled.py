"""conv2d_tiled: conv2d with 3x3 filters at stride 1, in tiles of 4x4 outputs by the method of Winograd
(``core/cpu/winograd.h``): a quarter of the products, and a rounding error some times larger.

The compiler's pass ``tiles`` puts it in the place of conv2d (:mod:`paddlecli.compiler.tiles`), for the
CPU alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paddlecli.ops.base import Attr, Emitter, Kernel, NodeLike, RandomKey, Sample, check
from paddlecli.ops.conv2d import Conv2d
from paddlecli.ops.spec import Spec

TILE, POINTS, VECTOR = 4, 36, 16
CHUNK, ROW, WIDE = 64, 80, 32
"""Channels that one product sums over, floats of a tile's channels, channels that one makes."""
MOST_WIDTH = 224
SEGMENT_FLOATS = 3 << 20
FILTER_TILES, FILTER_FLOATS = 96, 384 << 10


class Conv2dTiled(Conv2d):
    """As :class:`Conv2d`; stride, dilation and groups are 1. The kernels refuse what they cannot
    compute, and a room that is too small."""

    name = "conv2d_tiled"
    version = 1
    forward = Kernel(
        "conv2d_tiled.forward(x: f32, w: f32, b?: f32, scale?: f32, z?: f32; padding: list, "
        "activation: int) -> (y: f32, work: f32)",
        rowwise=True,
    )
    backward_x = Kernel(
        "conv2d_tiled.backward_x(dy: f32, w: f32; padding: list) -> (dx: f32, work: f32)",
        rowwise=True,
    )
    backward_w = Kernel(
        "conv2d_tiled.backward_w(x: f32, dy: f32; padding: list) -> (dw: f32, work: f32)",
        rowwise=True,
    )
    defaults: ClassVar[Mapping[str, Attr]] = {"padding": (0, 0), "activation": 0}

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """Without the bias gradient, which is conv2d's."""
        return (self.forward, self.backward_x, self.backward_w)

    def kernel(self, name: str) -> Kernel | None:
        """The kernel that computes what conv2d's of that name does, None where there is none."""
        return next((k for k in self.kernels if k.name == name), None)

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        found = super().shape(args, {**Conv2d.defaults, **attrs})
        x, w, y = args["x"], args["w"], found["y"]
        assert isinstance(y, Spec)
        size = tuple(d.coefficient for d in w.shape[2:])
        check(size == (3, 3), self.name, f"filters are 3x3, not {size[0]}x{size[1]}")
        wide = max(x.shape[3].coefficient, y.shape[3].coefficient)
        check(wide <= MOST_WIDTH, self.name, f"images are at most {MOST_WIDTH} wide, not {wide}")
        return {**found, **self.room(self.forward, x, w, y)}

    def room(self, kernel: Kernel, x: Spec, w: Spec, y: Spec) -> dict[str, Spec]:
        """``work``, as large as ``pk_winograd_floats`` says."""
        out, channels = w.shape[0].coefficient, w.shape[1].coefficient
        width = y.shape[3].coefficient
        if kernel is self.backward_w:
            return {"work": Spec.of(_filter_floats(channels, out, -(-width // TILE)))}
        if kernel is self.backward_x:
            channels, out, width = out, channels, x.shape[3].coefficient
        return {"work": Spec.of(_floats(channels, out, -(-width // TILE)))}

    def decompose(self, g: Emitter, node: NodeLike) -> dict[str, Any]:
        """conv2d."""
        return {"y": g.apply("conv2d", *node.args.values(), **{**Conv2d.defaults, **node.attrs})}

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        return super().reference(args, {**Conv2d.defaults, **attrs}, random)

    def samples(self) -> Sequence[Sample]:
        """Channels and outputs that do not fill a vector, or more than one product sums over; cut
        tiles, four paddings; an image of one pixel."""
        case = self.case
        return [
            case((16, 4, 4), (18, 16, 3, 3), True, tolerance=1e-5, padding=(1, 1), z=(18, 4, 4)),
            case((16, 4, 6), (17, 16, 3, 3), True, tolerance=1e-5, padding=(1, 1), activation=1),
            case((18, 9, 5), (16, 18, 3, 3), tolerance=1e-5, padding=(2, 0, 1, 2)),
            case((65, 4, 4), (16, 65, 3, 3), True, tolerance=1e-5, padding=(1, 1)),
            case((3, 1, 1), (2, 3, 3, 3), True, tolerance=1e-5, padding=(1, 1), activation=2),
        ]


def pays(x: Spec, w: Spec, y: Spec, attrs: Mapping[str, Attr]) -> bool:
    """Whether a conv2d is worth computing in tiles, by its static sizes: x [N, C, H, W],
    w [out, C/groups, kh, kw], y [N, out, H', W'].

    At least half of the products must be saved: the transforms take their share, and the edges of
    small images waste tiles. Channels are lanes of a vector.
    """
    out, channels, kh, kw = (d.coefficient for d in w.shape)
    _, _, oh, ow = (d.coefficient for d in y.shape)
    numbers = {k: attrs[k] for k in ("stride", "dilation", "groups")}
    return (
        numbers == {"stride": (1, 1), "dilation": (1, 1), "groups": 1}
        and (kh, kw) == (3, 3)
        and min(channels, out) >= VECTOR
        and max(x.shape[3].coefficient, ow) <= MOST_WIDTH
        and 2 * POINTS * -(-oh // TILE) * -(-ow // TILE) <= 9 * oh * ow
    )


def _floats(channels: int, outputs: int, across: int) -> int:
    """Filters where channels are few, else the tiles of a segment of whole rows."""
    chunks = -(-channels // CHUNK)
    if chunks == 1:
        return -(-outputs // WIDE) * WIDE * POINTS * channels
    rows = max(1, SEGMENT_FLOATS // (chunks * POINTS * ROW) // across)
    return chunks * POINTS * (rows * across * ROW + 16)


def _filter_floats(channels: int, outputs: int, across: int) -> int:
    """Inputs and gradients of a segment's tiles, and the sums."""
    x_row, y_row = ((-(-c // VECTOR) | 1) * VECTOR for c in (channels, outputs))
    tiles = max(FILTER_TILES, FILTER_FLOATS // (POINTS * (x_row + y_row)))
    tiles = max(1, tiles // across) * across
    sums = outputs * -(-channels // VECTOR) * VECTOR
    return POINTS * (tiles * (x_row + y_row) + sums + 3 * 16)


OP = Conv2dTiled()
