"""Residual networks for large pictures: He et al., Deep residual learning for image recognition, 2015."""

from __future__ import annotations

from paddlecli.config.registry import MODELS
from paddlecli.config.types import Count, Fraction
from paddlecli.graph.ir import Tensor
from paddlecli.models.backbones._parts import Parts
from paddlecli.models.heads import classes_of, classify
from paddlecli.models.layers import Initializer
from paddlecli.models.network import Network

NETS = {
    "resnet18": (1, (2, 2, 2, 2), "11,689,512"),
    "resnet34": (1, (3, 4, 6, 3), "21,797,672"),
    "resnet50": (4, (3, 4, 6, 3), "25,557,032"),
    "resnet101": (4, (3, 4, 23, 3), "44,549,160"),
    "resnet152": (4, (3, 8, 36, 3), "60,192,808"),
}
"""By name: how much wider a block ends than it is inside, blocks of the four stages, parameters."""


def _register(name: str, widening: int, counts: tuple[int, ...], size: str) -> None:
    def network(
        net: Network,
        *,
        classes: Count | None = None,
        dropout: Fraction = 0.0,
        small_pictures: bool = False,
        weight_init: Initializer | None = None,
    ) -> None:
        p = Parts(net, weight_init)
        x = _stem(p, net.feature(), small_pictures)
        for stage, blocks in enumerate(counts):
            with p.at(f"layer{stage + 1}", "stage"):
                for block in range(blocks):
                    with p.at(block):
                        stride = 2 if stage and not block else 1
                        x = _block(p, x, 64 << stage, widening, stride)
        x = p.drop(p.mean(x), dropout)
        classify(net, p.linear("fc", x, classes_of(net, classes)))

    network.__name__ = name
    network.__doc__ = f"""Residual network of depth {name.removeprefix("resnet")}: {size} parameters at 1,000 classes.

    ``classes``: as many as the data have if left out. ``dropout``: rate before the classifier.
    ``small_pictures``: for pictures of 32 to 64 pixels, a first convolution 3 x 3 with stride 1 and no
    pooling. ``weight_init``: first values of filters, He normal by a unit's outputs if left out.
    """
    MODELS.register(name)(network)


def _stem(p: Parts, x: Tensor, small: bool) -> Tensor:
    if small:
        return p.norm("bn1", p.conv("conv1", x, 64, 3), "relu")
    x = p.norm("bn1", p.conv("conv1", x, 64, 7, stride=2), "relu")
    return p.max_pool(x, 3, 2, 1)


def _block(p: Parts, x: Tensor, inner: int, widening: int, stride: int) -> Tensor:
    """Two convolutions 3 x 3, or one between two 1 x 1 that narrow and widen; then the sum with x. Where
    sizes differ x passes a 1 x 1 convolution, ``downsample``."""
    outer = inner * widening
    if widening == 1:
        y = p.norm("bn1", p.conv("conv1", x, inner, 3, stride=stride), "relu")
        y = p.norm("bn2", p.conv("conv2", y, inner, 3))
    else:
        y = p.norm("bn1", p.conv("conv1", x, inner), "relu")
        y = p.norm("bn2", p.conv("conv2", y, inner, 3, stride=stride), "relu")
        y = p.norm("bn3", p.conv("conv3", y, outer))
    if stride != 1 or x.spec.shape[1].coefficient != outer:
        with p.at("downsample", "projection"):
            x = p.norm(1, p.conv(0, x, outer, stride=stride))
    return p.add(y, x, "relu")


for _name, (_widening, _counts, _size) in NETS.items():
    _register(_name, _widening, _counts, _size)
