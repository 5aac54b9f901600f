"""Layers that change the size of images [N, channels, height, width]. They stand beside `conv2d`
and `pool2d` of `layers.py`."""

from __future__ import annotations

from typing import Annotated, Literal

from annotated_types import Len

from paddlecli.config.registry import LAYERS
from paddlecli.config.types import Count, Natural, Pair, Positive
from paddlecli.graph.builder import fault
from paddlecli.graph.ir import Tensor
from paddlecli.models.layers import Activation, Initializer, activate, both, initial
from paddlecli.models.network import Network
from paddlecli.ops.pad2d import MODES

Sides = Annotated[tuple[Natural, ...], Len(1, 4)]
"""One, two (height, width) or four (top, bottom, left, right) whole numbers."""


def image_of(net: Network, layer: str, x: Tensor) -> tuple[int, int, int]:
    """Channels, height and width of x.

    Raises:
        ConfigError: x is no image.
    """
    if x.spec.ndim != 4 or not all(d.known for d in x.spec.shape[1:]):
        text = f"[{layer}] {x.name} must be [N, channels, height, width], it is {x.spec}"
        raise fault(net.origin, text)
    channels, height, width = (d.coefficient for d in x.spec.shape[1:])
    return channels, height, width


@LAYERS.register("conv2d_transpose")
def conv2d_transpose(
    net: Network,
    x: Tensor,
    *,
    filters: Count,
    size: Count | Pair,
    stride: Count | Pair = 1,
    padding: Natural | Pair = 0,
    output_padding: Natural | Pair = 0,
    output_size: Count | Pair | None = None,
    dilation: Count | Pair = 1,
    groups: Count = 1,
    activation: Activation = "none",
    bias: bool = True,
    weight_init: Initializer = "xavier",
) -> Tensor:
    """2-D transposed convolution (deconvolution) of x [N, C, H, W] with filters [C, filters /
    groups, k, k]: [N, filters, H', W'].

    ``size`` is k, one number or height and width. H' is (H - 1) * stride - 2 * padding + dilation
    * (k - 1) + 1 + output_padding. ``output_padding``: rows and columns more, fewer than the
    stride. ``output_size``: H' and W' instead of it; they may be that much larger, not more.
    """
    with net.layer("conv2d_transpose"):
        channels, *extent = image_of(net, "conv2d_transpose", x)
        if channels % groups or filters % groups:
            text = f"{channels} channels and {filters} filters do not divide into {groups} groups"
            raise fault(net.origin, f"[conv2d_transpose] {text}")
        k, s, p, d = (
            both(size),
            both(stride),
            both(padding),
            both(dilation),
        )
        extra = both(output_padding)
        if output_size is not None:
            least = [(extent[i] - 1) * s[i] - 2 * p[i] + d[i] * (k[i] - 1) + 1 for i in (0, 1)]
            extra = _extra(net, both(output_size), least, s, extra)
        shape = (channels, filters // groups, *k)
        w = net.parameter("w", shape, initial(weight_init))
        y = net.apply(
            "conv2d_transpose", x, w, stride=s, padding=p, output_padding=extra, dilation=d,
            groups=groups,
        )  # fmt: skip
        if bias:
            y = net.apply("bias", y, net.parameter("b", (filters,), "constant"), axis=1)
        return activate(net, y, activation)


def _extra(
    net: Network, wanted: tuple[int, int], least: list[int], stride: tuple[int, int],
    given: tuple[int, int],
) -> tuple[int, int]:  # fmt: skip
    """The output padding that gives an output size."""
    found = wanted[0] - least[0], wanted[1] - least[1]
    if any(given):
        text = "`output_padding` and `output_size` both say how large the result is"
        raise fault(net.origin, f"[conv2d_transpose] {text}")
    if any(not 0 <= e < s for e, s in zip(found, stride, strict=True)):
        most = [low + s - 1 for low, s in zip(least, stride, strict=True)]
        text = f"output_size is {list(wanted)}; {least} to {most} can be made"
        raise fault(net.origin, f"[conv2d_transpose] {text}")
    return found


@LAYERS.register("adaptive_pool2d")
def adaptive_pool2d(
    net: Network, x: Tensor, *, size: Count | Pair, kind: Literal["max", "average"] = "average"
) -> Tensor:
    """x [N, C, H, W] as [N, C, *size] whatever its height and width: cell i of H' takes the rows
    floor(i*H/H') to ceil((i + 1)*H/H') - 1, columns likewise.

    ``size`` is H', one number or height and width. ``kind`` says whether a cell is the mean or the
    largest value.
    """
    with net.layer("adaptive_pool2d"):
        result: Tensor = net.apply(
            "pool2d", x, average=kind == "average", window=both(size), adaptive=True
        )
        return result


@LAYERS.register("interpolate")
def interpolate(
    net: Network,
    x: Tensor,
    *,
    size: Count | Pair | None = None,
    scale: Positive | None = None,
    mode: Literal["nearest", "bilinear"] = "nearest",
    align_corners: bool = False,
    align_mode: Literal[0, 1] = 0,
) -> Tensor:
    """x [N, C, H, W] in another size: [N, C, *size].

    ``size``: height and width, or one number for both. ``scale``: instead of it, a factor of
    height and width, rounded down. ``mode``: each pixel is the nearest one of x or a mixture of the
    four around its place. ``align_corners``: the outer pixels of both lie on each other.
    ``align_mode``: without that, pixel i of H' lies at (i + 0.5)*H/H' - 0.5 (0) or at i*H/H' (1).
    """
    with net.layer("interpolate"):
        _, height, width = image_of(net, "interpolate", x)
        if (size is None) == (scale is None):
            raise fault(net.origin, "[interpolate] either `size` or `scale` must be given")
        if size is None:
            assert scale is not None
            size = (int(height * scale), int(width * scale))
            if not all(size):
                text = f"[interpolate] nothing is left of {height}x{width} at the scale {scale}"
                raise fault(net.origin, text)
        result: Tensor = net.apply(
            "interpolate", x, size=both(size), linear=mode == "bilinear",
            align_corners=align_corners, align_mode=align_mode,
        )  # fmt: skip
        return result


@LAYERS.register("pad2d")
def pad2d(
    net: Network,
    x: Tensor,
    *,
    padding: Natural | Sides,
    mode: Literal["constant", "reflect", "edge"] = "constant",
    value: float = 0.0,
) -> Tensor:
    """Rows and columns around x [N, C, H, W].

    ``padding``: how many, one number for all sides, two for height and width, or four for top,
    bottom, left and right. ``mode``: they hold ``value``, mirror the image at its outer pixels, or
    repeat those.
    """
    with net.layer("pad2d"):
        image_of(net, "pad2d", x)
        sides = (padding,) if isinstance(padding, int) else tuple(padding)
        if len(sides) == 3:
            text = f"[pad2d] padding is {list(sides)}; one, two or four numbers are needed"
            raise fault(net.origin, text)
        sides = sides * 2 if len(sides) == 1 else sides
        return net.apply("pad2d", x, padding=sides, mode=MODES.index(mode), value=value)  # type: ignore[no-any-return]
