"""DenseNet: Huang et al., Densely connected convolutional networks, 2016."""

from __future__ import annotations

from paddlecli.config.registry import MODELS
from paddlecli.config.types import Count, Fraction
from paddlecli.graph.ir import Tensor
from paddlecli.models import layers
from paddlecli.models.backbones._parts import Parts
from paddlecli.models.heads import classes_of, classify
from paddlecli.models.layers import Initializer
from paddlecli.models.network import Network

NETS = {
    "densenet121": ((6, 12, 24, 16), "7,978,856"),
    "densenet169": ((6, 12, 32, 32), "14,149,480"),
    "densenet201": ((6, 12, 48, 32), "20,013,928"),
}
"""By name: layers of the four dense blocks, parameters."""
WIDENING = 4
"""The 1 x 1 convolution of a layer has so many times the filters of its 3 x 3 one."""


def _register(name: str, counts: tuple[int, ...], size: str) -> None:
    def network(
        net: Network,
        *,
        classes: Count | None = None,
        growth: Count = 32,
        dropout: Fraction = 0.0,
        weight_init: Initializer | None = None,
    ) -> None:
        p = Parts(net, weight_init or {"msra": {"distribution": "normal"}})
        with p.at("features", "stage"):
            x = p.norm("norm0", p.conv("conv0", net.feature(), 2 * growth, 7, stride=2), "relu")
            x = p.max_pool(x, 3, 2, 1)
            for block, count in enumerate(counts):
                if block:
                    with p.at(f"transition{block}"):
                        x = _halved(p, x)
                with p.at(f"denseblock{block + 1}"):
                    for layer in range(count):
                        with p.at(f"denselayer{layer + 1}"):
                            x = layers.concat(net, x, _layer(p, x, growth, dropout))
            x = p.norm("norm5", x, "relu")
        classify(net, p.linear("classifier", p.mean(x), classes_of(net, classes)))

    network.__name__ = name
    network.__doc__ = f"""DenseNet of depth {name[8:]}: each layer reads all layers of its block before it; {size} parameters at
    1,000 classes.

    ``classes``: as many as the data have if left out. ``growth``: filters that a layer adds.
    ``dropout``: rate behind each of them. ``weight_init``: first values of filters, He normal if left
    out.
    """
    MODELS.register(name)(network)


def _layer(p: Parts, x: Tensor, growth: int, dropout: float) -> Tensor:
    """What a layer adds to x."""
    y = p.conv("conv1", p.norm("norm1", x, "relu"), WIDENING * growth)
    y = p.conv("conv2", p.norm("norm2", y, "relu"), growth, 3)
    return p.drop(y, dropout)


def _halved(p: Parts, x: Tensor) -> Tensor:
    """Half the channels and half the picture."""
    y = p.conv("conv", p.norm("norm", x, "relu"), x.spec.shape[1].coefficient // 2)
    return layers.pool2d(p.net, y, size=2, stride=2, kind="average")


for _name, (_counts, _size) in NETS.items():
    _register(_name, _counts, _size)
