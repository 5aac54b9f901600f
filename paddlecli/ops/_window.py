"""Sizes of sliding windows, for conv2d and pool2d. After PaddlePaddle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from paddlecli.ops.base import Attr, check
from paddlecli.ops.spec import Spec


def two(attrs: Mapping[str, Attr], name: str, op: str) -> tuple[int, int]:
    """An attribute of two numbers, height and width, each at least 1."""
    value = cast("tuple[int, ...]", attrs[name])
    check(
        len(value) == 2 and min(value) >= 1,
        op,
        f"{name} is {list(value)}; two numbers of at least 1 are needed",
    )
    return value[0], value[1]


def four(attrs: Mapping[str, Attr], op: str) -> tuple[int, int, int, int]:
    """The attribute ``padding`` as top, bottom, left, right; two numbers are height and width, both
    sides each."""
    value = cast("tuple[int, ...]", attrs["padding"])
    check(
        len(value) in (2, 4) and min(value) >= 0,
        op,
        f"padding is {list(value)}; two or four numbers of at least 0 are needed",
    )
    return (
        (value[0], value[0], value[1], value[1])
        if len(value) == 2
        else cast("tuple[int, int, int, int]", value)
    )


def output_size(
    size: int,
    window: int,
    stride: int,
    before: int,
    after: int,
    dilation: int = 1,
    ceil: bool = False,
) -> int:
    """Number of windows along one side; 0 or less where none fits."""
    room = size + before + after - dilation * (window - 1) - 1
    return (room + (stride - 1 if ceil else 0)) // stride + 1


def image(op: str, x: Spec) -> tuple[int, int, int]:
    """Channels, height and width of x.

    Raises:
        ShapeError: x is not [rows, channels, height, width] with fixed sizes behind the rows.
    """
    check(
        x.ndim == 4 and all(d.known and d.coefficient > 0 for d in x.shape[1:]),
        op,
        f"x is {x}; [N, channels, height, width] is needed",
    )
    return x.shape[1].coefficient, x.shape[2].coefficient, x.shape[3].coefficient


def windows_of(
    x: Any,
    size: tuple[int, int],
    stride: tuple[int, int],
    dilation: tuple[int, int],
    out: tuple[int, int],
) -> Any:
    """For references: a view [N, C, out_h, out_w, kh, kw] of the windows of the padded numpy images
    x [N, C, H, W]."""
    import numpy as np

    reach = [d * (k - 1) + 1 for d, k in zip(dilation, size, strict=True)]
    view = np.lib.stride_tricks.sliding_window_view(x, reach, axis=(2, 3))
    return view[:, :, :: stride[0], :: stride[1], :: dilation[0], :: dilation[1]][
        :, :, : out[0], : out[1]
    ]
