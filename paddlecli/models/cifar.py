"""The nets of the book's third chapter for pictures of 32 x 32: VGG with batch norm and dropout, and a residual net."""

from __future__ import annotations

from paddlecli.config.registry import MODELS
from paddlecli.config.types import Count
from paddlecli.graph.builder import fault
from paddlecli.graph.ir import Tensor
from paddlecli.models import layers
from paddlecli.models.heads import classes_of, classify
from paddlecli.models.network import Network

VGG_GROUPS = (
    (64, (0.3, 0.0)),
    (128, (0.4, 0.0)),
    (256, (0.4, 0.4, 0.0)),
    (512, (0.4, 0.4, 0.0)),
    (512, (0.4, 0.4, 0.0)),
)
"""Filters of each group, and the drop rate behind each of its convolutions."""


@MODELS.register("vgg_bn_drop")
def vgg_bn_drop(net: Network, *, classes: Count | None = None) -> None:
    """Thirteen 3 x 3 convolutions in five groups, then 512, 512 and the classes: 15,254,602
    parameters on 3 x 32 x 32 pictures of 10 classes.

    ``classes``: as many as the data have if left out.
    """
    x = net.feature()
    for filters, rates in VGG_GROUPS:
        with net.layer("group"):
            for rate in rates:
                x = layers.conv2d(net, x, filters=filters, size=3, padding=1)
                x = layers.batch_norm(net, x, activation="relu")
                if rate:
                    x = layers.dropout(net, x, rate=rate)
            x = layers.pool2d(net, x, size=2, stride=2)
    x = layers.fc(net, layers.dropout(net, x, rate=0.5), size=512)
    x = layers.dropout(net, layers.batch_norm(net, x, activation="relu"), rate=0.5)
    x = layers.fc(net, x, size=512)
    classify(net, layers.fc(net, x, size=classes_of(net, classes)))


@MODELS.register("resnet_cifar10")
def resnet_cifar10(
    net: Network, *, depth: Count = 32, classes: Count | None = None, bias: bool = True
) -> None:
    """Three stages of (depth - 2) / 6 blocks with 16, 32 and 64 filters: 467,466 parameters at depth
    32. ``classes``: as many as the data have if left out. ``bias``: the second convolution of a block
    has one, as in the book.

    Raises:
        ConfigError: the depth is not 6 n + 2.
    """
    if depth < 8 or (depth - 2) % 6:
        raise fault(
            net.origin, f"[resnet_cifar10] depth must be 6 n + 2 (8, 14, 20, ...), not {depth}"
        )
    x = _conv_norm(net, net.feature(), 16, 3, 1, relu=True)
    for filters in (16, 32, 64):
        with net.layer("stage"):
            for _ in range((depth - 2) // 6):
                x = _block(net, x, filters, bias)
    x = layers.pool2d(net, x, kind="average", whole=True)
    classify(net, layers.fc(net, x, size=classes_of(net, classes)))


def _conv_norm(
    net: Network, x: Tensor, filters: int, size: int, stride: int, relu: bool, bias: bool = False
) -> Tensor:
    x = layers.conv2d(
        net, x, filters=filters, size=size, stride=stride, padding=size // 2, bias=bias
    )
    return layers.batch_norm(net, x, activation="relu" if relu else "none")


def _block(net: Network, x: Tensor, filters: int, bias: bool) -> Tensor:
    """relu(second(first(x)) + shortcut(x)); the shortcut is x itself where the filters stay the
    same, else the block halves the picture (``projection``)."""
    same = x.spec.shape[1].coefficient == filters
    stride = 1 if same else 2
    with net.layer("residual" if same else "projection"):
        y = _conv_norm(net, x, filters, 3, stride, relu=True)
        y = _conv_norm(net, y, filters, 3, 1, relu=False, bias=bias)
        short = x if same else _conv_norm(net, x, filters, 1, stride, relu=False)
        with net.layer("add"):
            y = net.apply("add", y, short)
        with net.layer("relu"):
            return layers.activate(net, y, "relu")
