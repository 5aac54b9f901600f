"""ShuffleNet V2: Ma et al., Practical guidelines for efficient CNN architecture design, 2018."""

from __future__ import annotations

from paddlecli.config.registry import MODELS
from paddlecli.config.types import Count, Fraction
from paddlecli.graph.ir import Tensor
from paddlecli.models import layers, shape_layers
from paddlecli.models.backbones._parts import Parts
from paddlecli.models.channel_layers import channel_shuffle
from paddlecli.models.heads import classes_of, classify
from paddlecli.models.layers import Initializer
from paddlecli.models.network import Network

NETS = {
    "shufflenet_v2_x0_5": ((24, 48, 96, 192, 1024), "1,366,792"),
    "shufflenet_v2_x1_0": ((24, 116, 232, 464, 1024), "2,278,604"),
    "shufflenet_v2_x1_5": ((24, 176, 352, 704, 1024), "3,503,624"),
    "shufflenet_v2_x2_0": ((24, 244, 488, 976, 2048), "7,393,996"),
}
"""By name: channels of the first convolution, of the three stages and of the last convolution;
parameters."""
BLOCKS = (4, 8, 4)
"""Of the three stages."""


def _register(name: str, channels: tuple[int, ...], size: str) -> None:
    def network(
        net: Network,
        *,
        classes: Count | None = None,
        dropout: Fraction = 0.0,
        weight_init: Initializer | None = None,
    ) -> None:
        p = Parts(net, weight_init)
        with p.at("conv1"):
            x = p.norm(1, p.conv(0, net.feature(), channels[0], 3, stride=2), "relu")
        x = p.max_pool(x, 3, 2, 1)
        for stage, blocks in enumerate(BLOCKS):
            with p.at(f"stage{stage + 2}", "stage"):
                for block in range(blocks):
                    with p.at(block):
                        x = _block(p, x) if block else _halving(p, x, channels[stage + 1])
        with p.at("conv5"):
            x = p.norm(1, p.conv(0, x, channels[-1]), "relu")
        x = p.drop(p.mean(x), dropout)
        classify(net, p.linear("fc", x, classes_of(net, classes)))

    network.__name__ = name
    network.__doc__ = f"""ShuffleNet V2 of {name[-3:].replace("_", ".")} times the channels: {size} parameters at 1,000 classes.

    ``classes``: as many as the data have if left out. ``dropout``: rate before the classifier.
    ``weight_init``: first values of filters, He normal by a unit's outputs if left out.
    """
    MODELS.register(name)(network)


def _block(p: Parts, x: Tensor) -> Tensor:
    """Half of the channels pass, the others are filtered; then the halves are mixed."""
    kept, filtered = shape_layers.split(p.net, x, parts=2, axis=1)
    with p.at("branch2"):
        filtered = _filtered(p, filtered, kept.spec.shape[1].coefficient, 1)
    return channel_shuffle(p.net, layers.concat(p.net, kept, filtered), groups=2)


def _halving(p: Parts, x: Tensor, filters: int) -> Tensor:
    """Both branches read all channels and halve the picture."""
    half, before = filters // 2, x.spec.shape[1].coefficient
    with p.at("branch1"):
        y = p.norm(1, p.conv(0, x, before, 3, stride=2, groups=before))
        y = p.norm(3, p.conv(2, y, half), "relu")
    with p.at("branch2"):
        z = _filtered(p, x, half, 2)
    return channel_shuffle(p.net, layers.concat(p.net, y, z), groups=2)


def _filtered(p: Parts, x: Tensor, filters: int, stride: int) -> Tensor:
    """Convolutions 1 x 1, depthwise 3 x 3, 1 x 1; a layer's name is its place, activations counted."""
    x = p.norm(1, p.conv(0, x, filters), "relu")
    x = p.norm(4, p.conv(3, x, filters, 3, stride=stride, groups=filters))
    return p.norm(6, p.conv(5, x, filters), "relu")


for _name, (_channels, _size) in NETS.items():
    _register(_name, _channels, _size)
