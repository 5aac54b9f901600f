"""Layers on the channels of pictures: norms beside batch norm, learned slopes, whole channels dropped, channels and pixels
moved.

In shapes N is the batch, C the channels.
"""

from __future__ import annotations

from typing import Literal

from paddlecli.config.registry import LAYERS
from paddlecli.config.types import Count, Fraction, Positive
from paddlecli.graph.builder import fault
from paddlecli.graph.ir import Tensor
from paddlecli.models.layers import Activation, activate
from paddlecli.models.network import Network


@LAYERS.register("group_norm")
def group_norm(
    net: Network,
    x: Tensor,
    *,
    groups: Count,
    activation: Activation = "none",
    epsilon: Positive = 1e-5,
    scale: bool = True,
    shift: bool = True,
) -> Tensor:
    """Normalises each group of channels of x [N, C, ...] by its own mean and variance, then scales and shifts each channel.

    ``groups``: how many; they divide C. ``scale``: has a factor for each channel. ``shift``: adds
    a number for each channel.
    """
    with net.layer("group_norm"):
        y = _normalise(net, "group_norm", x, groups, epsilon, scale, shift)
        return activate(net, y, activation)


@LAYERS.register("instance_norm")
def instance_norm(
    net: Network,
    x: Tensor,
    *,
    activation: Activation = "none",
    epsilon: Positive = 1e-5,
    scale: bool = True,
    shift: bool = True,
) -> Tensor:
    """Normalises each channel of each sample of x [N, C, ...] by its own mean and variance, then scales and shifts it: group
    norm with a channel a group.

    ``scale``: has a factor for each channel. ``shift``: adds a number for each channel.
    """
    with net.layer("instance_norm"):
        channels = _channels(net, "instance_norm", x)
        y = _normalise(net, "instance_norm", x, channels, epsilon, scale, shift)
        return activate(net, y, activation)


def _normalise(
    net: Network, layer: str, x: Tensor, groups: int, epsilon: float, scale: bool, shift: bool
) -> Tensor:
    channels = _channels(net, layer, x)
    ones = {"name": "constant", "value": 1.0}
    w = net.parameter("w", (channels,), ones) if scale else None
    b = net.parameter("b", (channels,), "constant") if shift else None
    return net.apply("group_norm", x, w, b, groups=groups, epsilon=epsilon)[0]  # type: ignore[no-any-return]


def _channels(net: Network, layer: str, x: Tensor) -> int:
    if x.spec.ndim < 2 or not x.spec.shape[1].known:
        raise fault(net.origin, f"[{layer}] {x.name} is {x.spec}: [N, channels, ...] is needed")
    return x.spec.shape[1].coefficient


@LAYERS.register("prelu")
def prelu(
    net: Network,
    x: Tensor,
    *,
    mode: Literal["all", "channel", "element"] = "all",
    alpha: float = 0.25,
) -> Tensor:
    """x [N, C, ...] above 0, a learned slope times x elsewhere.

    ``mode``: one slope for all, one for each channel, or one for each element of a sample.
    ``alpha``: what the slopes begin with.
    """
    with net.layer("prelu"):
        channels = _channels(net, "prelu", x)
        row = tuple(d.coefficient for d in x.spec.shape[1:])
        shape = {"all": (1,), "channel": (channels,), "element": row}[mode]
        slopes = net.parameter("alpha", shape, {"name": "constant", "value": alpha})
        return net.apply("prelu", x, slopes)  # type: ignore[no-any-return]


@LAYERS.register("dropout2d")
def dropout2d(
    net: Network,
    x: Tensor,
    *,
    rate: Fraction = 0.5,
    mode: Literal["downgrade_in_infer", "upscale_in_train"] = "upscale_in_train",
) -> Tensor:
    """Zeroes a share ``rate`` of the channels of x [N, C, ...] in training, each as a whole. ``upscale_in_train`` divides by 1 -
    rate in training, ``downgrade_in_infer`` multiplies by it elsewhere."""
    with net.layer("dropout2d"):
        upscale = mode == "upscale_in_train"
        if net.training:
            return net.apply("dropout2d", x, rate=rate, upscale=upscale)  # type: ignore[no-any-return]
        return x if upscale else net.apply("scale", x, a=1.0 - rate, b=0.0)


@LAYERS.register("channel_shuffle")
def channel_shuffle(net: Network, x: Tensor, *, groups: Count) -> Tensor:
    """The channels of x [N, C, ...], which lie group behind group, with the first of each group first, then the second of each,
    and so on.

    ``groups``: how many; they divide C.
    """
    with net.layer("channel_shuffle"):
        return net.apply("channel_shuffle", x, groups=groups)  # type: ignore[no-any-return]


@LAYERS.register("pixel_shuffle")
def pixel_shuffle(net: Network, x: Tensor, *, factor: Count) -> Tensor:
    """x [N, C * factor * factor, H, W] as pictures [N, C, H * factor, W * factor]: channels become pixels.

    ``factor``: how many times as high and wide the pictures get.
    """
    with net.layer("pixel_shuffle"):
        return net.apply("pixel_shuffle", x, factor=factor)  # type: ignore[no-any-return]
