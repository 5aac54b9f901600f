"""SqueezeNet: Iandola et al., AlexNet-level accuracy with 50x fewer parameters, 2016."""

from __future__ import annotations

from paddlecli.config.registry import MODELS
from paddlecli.config.types import Count, Fraction
from paddlecli.graph.ir import Tensor
from paddlecli.models import layers
from paddlecli.models.backbones._parts import SMALL, Parts
from paddlecli.models.heads import classes_of, classify
from paddlecli.models.layers import Initializer
from paddlecli.models.network import Network

FIRES = ((16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256), (64, 256))
"""Filters that squeeze, and filters of each of the two kinds that expand, of the eight fire blocks."""
NETS = {
    "squeezenet1_0": ((96, 7), (3, 4, 5, 7, 8, 9, 10, 12), "1,248,424"),
    "squeezenet1_1": ((64, 3), (3, 4, 6, 7, 9, 10, 11, 12), "1,235,496"),
}
"""By name: filters and size of the first convolution, places of the fire blocks (pools lie between),
parameters."""


def _register(name: str, first: tuple[int, int], places: tuple[int, ...], size: str) -> None:
    def network(
        net: Network,
        *,
        classes: Count | None = None,
        dropout: Fraction = 0.5,
        weight_init: Initializer | None = None,
    ) -> None:
        p = Parts(net, weight_init or "msra")
        with p.at("features", "stage"):
            x = _features(p, net.feature(), first, places)
        with p.at("classifier", "stage"):
            x = p.conv(
                1, p.drop(x, dropout), classes_of(net, classes), bias=True, activation="relu",
                weight_init=SMALL,
            )  # fmt: skip
            x = layers.flatten(net, p.mean(x))
        classify(net, x)

    network.__name__ = name
    network.__doc__ = f"""SqueezeNet {name[-3:].replace("_", ".")} of fire blocks, without fully connected layers: {size} parameters at
    1,000 classes.

    ``classes``: as many as the data have if left out. ``dropout``: rate before the last convolution.
    ``weight_init``: first values of filters, He uniform if left out.
    """
    MODELS.register(name)(network)


def _features(p: Parts, x: Tensor, first: tuple[int, int], places: tuple[int, ...]) -> Tensor:
    """The first convolution and the fire blocks; a layer's name is its place, activations and pools
    counted."""
    x = p.conv(0, x, first[0], first[1], stride=2, padding=0, bias=True, activation="relu")
    before = 1
    for place, (squeeze, expand) in zip(places, FIRES, strict=True):
        if place > before + 1:
            x = p.max_pool(x, 3, 2, ceil_mode=True)
        with p.at(place):
            x = p.conv("squeeze", x, squeeze, bias=True, activation="relu")
            narrow = p.conv("expand1x1", x, expand, bias=True, activation="relu")
            wide = p.conv("expand3x3", x, expand, 3, bias=True, activation="relu")
            x = layers.concat(p.net, narrow, wide)
        before = place
    return x


for _name, (_first, _places, _size) in NETS.items():
    _register(_name, _first, _places, _size)
