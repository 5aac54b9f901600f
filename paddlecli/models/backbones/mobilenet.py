"""MobileNets: Howard et al. 2017 (V1), Sandler et al. 2018 (V2), Howard et al. 2019 (V3)."""

from __future__ import annotations

from dataclasses import dataclass

from paddlecli.config.registry import MODELS
from paddlecli.config.types import Count, Fraction, Positive
from paddlecli.graph.ir import Tensor
from paddlecli.models.backbones._parts import SMALL, Parts, rounded
from paddlecli.models.heads import classes_of, classify
from paddlecli.models.layers import Activation, Initializer
from paddlecli.models.network import Network

V1 = (
    (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1), (512, 1), (512, 1),
    (512, 1), (512, 1), (1024, 2), (1024, 1),
)  # fmt: skip
"""Filters and stride of each pair of a depthwise and a 1 x 1 convolution."""
V2 = (
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
    (6, 320, 1, 1),
)  # fmt: skip
"""Expansion, filters, blocks and first stride of each stage."""


@dataclass(frozen=True)
class Bottleneck:
    """A block of V3: size of the depthwise filter, width inside, filters, whether channels are weighed
    by what the whole picture shows, activation, stride."""

    size: int
    inner: int
    filters: int
    weighed: bool
    activation: Activation
    stride: int


_R, _H = "relu", "hard_swish"
V3: dict[str, tuple[tuple[Bottleneck, ...], int, str]] = {
    "mobilenet_v3_large": (tuple(Bottleneck(*row) for row in (  # type: ignore[arg-type]
        (3, 16, 16, False, _R, 1), (3, 64, 24, False, _R, 2), (3, 72, 24, False, _R, 1),
        (5, 72, 40, True, _R, 2), (5, 120, 40, True, _R, 1), (5, 120, 40, True, _R, 1),
        (3, 240, 80, False, _H, 2), (3, 200, 80, False, _H, 1), (3, 184, 80, False, _H, 1),
        (3, 184, 80, False, _H, 1), (3, 480, 112, True, _H, 1), (3, 672, 112, True, _H, 1),
        (5, 672, 160, True, _H, 2), (5, 960, 160, True, _H, 1), (5, 960, 160, True, _H, 1),
    )), 1280, "5,483,032"),
    "mobilenet_v3_small": (tuple(Bottleneck(*row) for row in (  # type: ignore[arg-type]
        (3, 16, 16, True, _R, 2), (3, 72, 24, False, _R, 2), (3, 88, 24, False, _R, 1),
        (5, 96, 40, True, _H, 2), (5, 240, 40, True, _H, 1), (5, 240, 40, True, _H, 1),
        (5, 120, 48, True, _H, 1), (5, 144, 48, True, _H, 1), (5, 288, 96, True, _H, 2),
        (5, 576, 96, True, _H, 1), (5, 576, 96, True, _H, 1),
    )), 1024, "2,542,856"),
}  # fmt: skip
"""By name: blocks, width of the hidden layer, parameters."""


@MODELS.register("mobilenet_v1")
def mobilenet_v1(
    net: Network,
    *,
    classes: Count | None = None,
    width: Positive = 1.0,
    dropout: Fraction = 0.0,
    weight_init: Initializer | None = None,
) -> None:
    """MobileNet of depthwise and 1 x 1 convolutions in turn: 4,231,976 parameters at 1,000 classes.

    ``classes``: as many as the data have if left out. ``width``: all channels times this. ``dropout``:
    rate before the classifier. ``weight_init``: first values of filters, He normal by a unit's
    outputs if left out.
    """
    p = Parts(net, weight_init)
    with p.at("stem"):
        x = p.norm("bn", p.conv("conv", net.feature(), rounded(32 * width), 3, stride=2), "relu")
    for place, (filters, stride) in enumerate(V1):
        with p.at(f"block{place + 1}"):
            inner = x.spec.shape[1].coefficient
            x = p.conv("depthwise", x, inner, 3, stride=stride, groups=inner)
            x = p.norm("depthwise_bn", x, "relu")
            x = p.conv("pointwise", x, rounded(filters * width))
            x = p.norm("pointwise_bn", x, "relu")
    x = p.drop(p.mean(x), dropout)
    classify(net, p.linear("fc", x, classes_of(net, classes), init=SMALL))


@MODELS.register("mobilenet_v2")
def mobilenet_v2(
    net: Network,
    *,
    classes: Count | None = None,
    width: Positive = 1.0,
    dropout: Fraction = 0.2,
    weight_init: Initializer | None = None,
) -> None:
    """MobileNet of inverted residual blocks: 3,504,872 parameters at 1,000 classes.

    ``classes``: as many as the data have if left out. ``width``: all channels times this, but for the
    last 1,280, which are never fewer. ``dropout``: rate before the classifier. ``weight_init``: first
    values of filters, He normal by a unit's outputs if left out.
    """
    p = Parts(net, weight_init)
    with p.at("features", "stage"):
        x = _conv_norm(p, 0, net.feature(), rounded(32 * width), 3, "relu6", stride=2)
        place = 1
        for expansion, filters, blocks, stride in V2:
            for block in range(blocks):
                with p.at(place):
                    here = 1 if block else stride
                    x = _inverted(p, x, expansion, rounded(filters * width), here)
                place += 1
        x = _conv_norm(p, place, x, rounded(1280 * max(1.0, width)), 1, "relu6")
    x = p.drop(p.mean(x), dropout)
    with p.at("classifier", "stage"):
        x = p.linear(1, x, classes_of(net, classes), init=SMALL)
    classify(net, x)


def _conv_norm(
    p: Parts,
    name: str | int,
    x: Tensor,
    filters: int,
    size: int,
    activation: Activation,
    stride: int = 1,
    groups: int = 1,
) -> Tensor:
    """Convolution ``0`` and batch norm ``1`` under one name."""
    with p.at(name):
        x = p.conv(0, x, filters, size, stride=stride, groups=groups)
        return p.norm(1, x, activation)


def _inverted(p: Parts, x: Tensor, expansion: int, filters: int, stride: int) -> Tensor:
    """Widen, filter each channel, narrow without an activation; x is added where sizes are the same."""
    before = x.spec.shape[1].coefficient
    inner = before * expansion
    with p.at("conv"):
        y, place = x, 0
        if expansion != 1:
            y, place = _conv_norm(p, 0, y, inner, 1, "relu6"), 1
        y = _conv_norm(p, place, y, inner, 3, "relu6", stride, inner)
        y = p.norm(place + 2, p.conv(place + 1, y, filters))
    return p.add(x, y) if stride == 1 and before == filters else y


def _register_v3(name: str, blocks: tuple[Bottleneck, ...], hidden: int, size: str) -> None:
    def network(
        net: Network,
        *,
        classes: Count | None = None,
        width: Positive = 1.0,
        dropout: Fraction = 0.2,
        weight_init: Initializer | None = None,
    ) -> None:
        p = Parts(net, weight_init, momentum=0.99, epsilon=1e-3)
        with p.at("features", "stage"):
            x = _conv_norm(p, 0, net.feature(), rounded(16 * width), 3, "hard_swish", stride=2)
            for place, block in enumerate(blocks):
                with p.at(place + 1):
                    x = _weighed(p, x, block, width)
            wide = 6 * x.spec.shape[1].coefficient
            x = _conv_norm(p, len(blocks) + 1, x, wide, 1, "hard_swish")
        x = p.mean(x)
        with p.at("classifier", "stage"):
            x = p.drop(p.linear(0, x, hidden, "hard_swish", SMALL), dropout)
            x = p.linear(3, x, classes_of(net, classes), init=SMALL)
        classify(net, x)

    network.__name__ = name
    network.__doc__ = f"""MobileNet of inverted residual blocks that weigh their channels: {size} parameters at 1,000 classes.

    ``classes``: as many as the data have if left out. ``width``: all channels times this, but for the
    hidden layer's {hidden:,}. ``dropout``: rate before the classifier. ``weight_init``: first values of
    filters, He normal by a unit's outputs if left out.
    """
    MODELS.register(name)(network)


def _weighed(p: Parts, x: Tensor, block: Bottleneck, width: float) -> Tensor:
    """A block of V3."""
    before, filters = x.spec.shape[1].coefficient, rounded(block.filters * width)
    inner = rounded(block.inner * width)
    with p.at("block"):
        y, place = x, 0
        if inner != before:
            y, place = _conv_norm(p, 0, y, inner, 1, block.activation), 1
        y = _conv_norm(p, place, y, inner, block.size, block.activation, block.stride, inner)
        if block.weighed:
            place += 1
            with p.at(place):
                y = _squeeze(p, y)
        y = _conv_norm(p, place + 1, y, filters, 1, "none")
    return p.add(x, y) if block.stride == 1 and before == filters else y


def _squeeze(p: Parts, x: Tensor) -> Tensor:
    """Each channel times a number in [0, 1] that follows from all channels' means: squeeze and
    excitation, Hu et al. 2017."""
    channels = x.spec.shape[1].coefficient
    s = p.conv("fc1", p.mean(x), rounded(channels // 4), bias=True, activation="relu")
    s = p.conv("fc2", s, channels, bias=True)
    with p.net.layer("hard_sigmoid"):
        s = p.net.apply("hard_sigmoid", s, slope=1.0 / 6.0, offset=0.5)
    with p.net.layer("mul"):
        return p.net.apply("mul", x, s)  # type: ignore[no-any-return]


for _name, (_blocks, _hidden, _size) in V3.items():
    _register_v3(_name, _blocks, _hidden, _size)
