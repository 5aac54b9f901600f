"""VGG: Simonyan and Zisserman, Very deep convolutional networks for large-scale image recognition, 2014."""

from __future__ import annotations

from paddlecli.config.registry import MODELS
from paddlecli.config.types import Count, Fraction
from paddlecli.graph.ir import Tensor
from paddlecli.models.backbones._parts import SMALL, Parts
from paddlecli.models.heads import classes_of, classify
from paddlecli.models.image_layers import adaptive_pool2d
from paddlecli.models.layers import Initializer
from paddlecli.models.network import Network

NETS = {
    "vgg11": ((1, 1, 2, 2, 2), "132,863,336"),
    "vgg11_bn": ((1, 1, 2, 2, 2), "132,868,840"),
    "vgg13": ((2, 2, 2, 2, 2), "133,047,848"),
    "vgg13_bn": ((2, 2, 2, 2, 2), "133,053,736"),
    "vgg16": ((2, 2, 3, 3, 3), "138,357,544"),
    "vgg16_bn": ((2, 2, 3, 3, 3), "138,365,992"),
    "vgg19": ((2, 2, 4, 4, 4), "143,667,240"),
    "vgg19_bn": ((2, 2, 4, 4, 4), "143,678,248"),
}
"""By name: convolutions of the five groups, parameters."""


def _register(name: str, counts: tuple[int, ...], size: str, norm: bool) -> None:
    def network(
        net: Network,
        *,
        classes: Count | None = None,
        dropout: Fraction = 0.5,
        hidden: Count = 4096,
        pool: Count = 7,
        weight_init: Initializer | None = None,
    ) -> None:
        p = Parts(net, weight_init)
        with p.at("features", "stage"):
            x = _features(p, net.feature(), counts, norm)
        x = adaptive_pool2d(net, x, size=pool)
        with p.at("classifier", "stage"):
            x = p.drop(p.linear(0, x, hidden, "relu", SMALL), dropout)
            x = p.drop(p.linear(3, x, hidden, "relu", SMALL), dropout)
            x = p.linear(6, x, classes_of(net, classes), init=SMALL)
        classify(net, x)

    network.__name__ = name
    network.__doc__ = f"""VGG of depth {name[3:].partition("_")[0]}{" with batch norm" if norm else ""}: {size} parameters at 1,000 classes.

    ``classes``: as many as the data have if left out. ``dropout``: rate behind each of the two hidden
    layers. ``hidden``: their width. ``pool``: cells a side that reach them, whatever the picture's
    size. ``weight_init``: first values of filters, He normal by a unit's outputs if left out.
    """
    MODELS.register(name)(network)


def _features(p: Parts, x: Tensor, counts: tuple[int, ...], norm: bool) -> Tensor:
    """Groups of convolutions 3 x 3, each max-pooled by 2. A layer's name is its place, activations and
    pools counted."""
    place = 0
    for group, count in enumerate(counts):
        filters = min(64 << group, 512)
        for _ in range(count):
            if norm:
                x = p.norm(place + 1, p.conv(place, x, filters, 3, bias=True), "relu")
            else:
                x = p.conv(place, x, filters, 3, bias=True, activation="relu")
            place += 3 if norm else 2
        x = p.max_pool(x, 2, 2)
        place += 1
    return x


for _name, (_counts, _size) in NETS.items():
    _register(_name, _counts, _size, norm=_name.endswith("_bn"))
