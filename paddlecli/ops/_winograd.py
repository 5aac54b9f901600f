"""Room for the convolutions that ``core/cpu/winograd.c`` computes: 3x3, stride 1, in tiles of 4x4
outputs.

The rule and the sizes are those of ``pk_winograd_floats``; a kernel refuses a room that is too
small.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from paddlecli.ops.base import Attr, Kernel
from paddlecli.ops.spec import Spec

TILE, POINTS, VECTOR = 4, 36, 16
CHUNK, ROW, WIDE = 64, 80, 32
"""Channels that one product sums over, floats of a tile's channels, channels that one makes."""
MOST_WIDTH = 224
SEGMENT_FLOATS = 3 << 20
FILTER_TILES, FILTER_FLOATS = 96, 384 << 10


def fits(x: Spec, w: Spec, y: Spec, attrs: Mapping[str, Attr]) -> bool:
    """True where at least half of the products are saved: x [N, C, H, W], w [out, C/groups, kh, kw],
    y [N, out, H', W']."""
    out, channels, kh, kw = (d.coefficient for d in w.shape)
    _, _, oh, ow = (d.coefficient for d in y.shape)
    ones = (attrs["stride"], attrs["dilation"], attrs["groups"]) == ((1, 1), (1, 1), 1)
    return (
        ones
        and (kh, kw) == (3, 3)
        and min(channels, out) >= VECTOR
        and max(x.shape[3].coefficient, ow) <= MOST_WIDTH
        and 2 * POINTS * -(-oh // TILE) * -(-ow // TILE) <= 9 * oh * ow
    )


def work(kernel: Kernel, x: Spec, w: Spec, y: Spec, attrs: Mapping[str, Attr]) -> Spec:
    """The scratch output of a kernel of conv2d; x, w, y are the shapes of the forward pass."""
    stride, dilation = (tuple(cast("tuple[int, ...]", attrs[k])) for k in ("stride", "dilation"))
    if not fits(x, w, y, {**attrs, "stride": stride, "dilation": dilation}):
        return Spec.of(1)
    out, channels = w.shape[0].coefficient, w.shape[1].coefficient
    width = y.shape[3].coefficient
    if kernel.name == "backward_w":
        return Spec.of(_filter_floats(channels, out, -(-width // TILE)))
    if kernel.name == "backward_x":
        channels, out, width = out, channels, x.shape[3].coefficient
    return Spec.of(_floats(channels, out, -(-width // TILE)))


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
