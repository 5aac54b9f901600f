"""AlexNet on one device: Krizhevsky, One weird trick for parallelizing convolutional neural networks,
2014."""

from __future__ import annotations

from paddlecli.config.registry import MODELS
from paddlecli.config.types import Count, Fraction
from paddlecli.models.backbones._parts import SMALL, Parts
from paddlecli.models.heads import classes_of, classify
from paddlecli.models.image_layers import adaptive_pool2d
from paddlecli.models.layers import Initializer
from paddlecli.models.network import Network


@MODELS.register("alexnet")
def alexnet(
    net: Network,
    *,
    classes: Count | None = None,
    dropout: Fraction = 0.5,
    hidden: Count = 4096,
    weight_init: Initializer | None = None,
) -> None:
    """Five convolutions and three fully connected layers: 61,100,840 parameters at 1,000 classes.

    ``classes``: as many as the data have if left out. ``dropout``: rate before each of the two hidden
    layers. ``hidden``: their width. ``weight_init``: first values of filters, He normal by a unit's
    outputs if left out.
    """
    p = Parts(net, weight_init)
    with p.at("features", "stage"):
        x = p.conv(0, net.feature(), 64, 11, stride=4, padding=2, bias=True, activation="relu")
        x = p.max_pool(x, 3, 2)
        x = p.conv(3, x, 192, 5, bias=True, activation="relu")
        x = p.max_pool(x, 3, 2)
        for place, filters in ((6, 384), (8, 256), (10, 256)):
            x = p.conv(place, x, filters, 3, bias=True, activation="relu")
        x = p.max_pool(x, 3, 2)
    x = adaptive_pool2d(net, x, size=6)
    with p.at("classifier", "stage"):
        x = p.linear(1, p.drop(x, dropout), hidden, "relu", SMALL)
        x = p.linear(4, p.drop(x, dropout), hidden, "relu", SMALL)
        x = p.linear(6, x, classes_of(net, classes), init=SMALL)
    classify(net, x)
