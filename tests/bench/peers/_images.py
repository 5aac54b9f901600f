"""Convolution networks for pictures, in the layouts that torch's users choose: plain and channels_last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from peers._case import Batch, Step, inferred, trained
from torch import Tensor, nn
from torch.nn import functional

VARIANTS = ("eager", "channels_last")
INFERENCE = (*VARIANTS, "trace", "trace_channels_last")


def placed(network: Any, pictures: Sequence[Tensor], variant: str) -> tuple[Any, list[Tensor]]:
    """The network and its pictures in the variant's memory format."""
    if not variant.endswith("channels_last"):
        return network, list(pictures)
    form = torch.channels_last
    return network.to(memory_format=form), [x.contiguous(memory_format=form) for x in pictures]


def training(
    network: nn.Module, variant: str, batches: Sequence[Batch], optimizer: Any, **settings: Any
) -> Step:
    """Steps on the fields `image` and `label`."""
    network, pictures = placed(network, [b["image"] for b in batches], variant)

    def loss(x: Tensor, label: Tensor) -> Tensor:
        return functional.cross_entropy(network(x), label)

    data = [(x, b["label"].flatten()) for x, b in zip(pictures, batches, strict=True)]
    return trained(loss, network.parameters(), optimizer, data, **settings)


def inference(network: nn.Module, variant: str, batches: Sequence[Batch]) -> Step:
    """Forward passes on the field `image`."""
    network, pictures = placed(network.eval(), [b["image"] for b in batches], variant)
    return inferred(network, [(x,) for x in pictures], trace=variant.startswith("trace"))


def conv_norm(
    channels: int,
    filters: int,
    size: int,
    stride: int = 1,
    groups: int = 1,
    relu: bool = True,
    bias: bool = False,
) -> nn.Sequential:
    """Convolution, batch norm, relu."""
    conv = nn.Conv2d(channels, filters, size, stride, size // 2, groups=groups, bias=bias)
    parts: list[nn.Module] = [conv, nn.BatchNorm2d(filters)]
    return nn.Sequential(*parts, *([nn.ReLU(inplace=True)] if relu else []))


class Residual(nn.Module):
    """Two 3 x 3 convolutions beside a shortcut."""

    def __init__(self, channels: int, filters: int, stride: int) -> None:
        super().__init__()
        self.first = conv_norm(channels, filters, 3, stride)
        self.second = conv_norm(filters, filters, 3, relu=False)
        same = channels == filters and stride == 1
        self.short = nn.Identity() if same else conv_norm(channels, filters, 1, stride, relu=False)

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.second(self.first(x)) + self.short(x), inplace=True)


def _classes(parts: list[nn.Module], channels: int, classes: int) -> nn.Sequential:
    return nn.Sequential(
        *parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes)
    )


def resnet_cifar(depth: int) -> nn.Sequential:
    """For pictures of 32 x 32: three stages of (depth - 2) / 6 blocks."""
    parts: list[nn.Module] = [conv_norm(3, 16, 3)]
    channels = 16
    for filters, stride in ((16, 1), (32, 2), (64, 2)):
        for i in range((depth - 2) // 6):
            parts.append(Residual(channels, filters, 1 if i else stride))
            channels = filters
    return _classes(parts, 64, 10)


def resnet18() -> nn.Sequential:
    """For pictures of 224 x 224."""
    parts: list[nn.Module] = [conv_norm(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for filters, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        parts += [Residual(channels, filters, stride), Residual(filters, filters, 1)]
        channels = filters
    return _classes(parts, 512, 1000)


def mobilenet_v1() -> nn.Sequential:
    """Depthwise and 1 x 1 convolutions in turn."""
    parts: list[nn.Module] = [conv_norm(3, 32, 3, 2)]
    channels = 32
    for filters, stride in ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5,
                            (1024, 2), (1024, 1)):  # fmt: skip
        parts += [conv_norm(channels, channels, 3, stride, channels), conv_norm(channels, filters, 1)]  # fmt: skip
        channels = filters
    return _classes(parts, 1024, 1000)


def vgg_bn_drop() -> nn.Sequential:
    """The book's VGG for pictures of 32 x 32."""
    parts: list[nn.Module] = []
    channels = 3
    for filters, rates in ((64, (0.3, 0)), (128, (0.4, 0)), (256, (0.4, 0.4, 0)), (512, (0.4, 0.4, 0)),
                           (512, (0.4, 0.4, 0))):  # fmt: skip
        for rate in rates:
            parts.append(conv_norm(channels, filters, 3, bias=True))
            parts += [nn.Dropout(rate)] if rate else []
            channels = filters
        parts.append(nn.MaxPool2d(2))
    return nn.Sequential(
        *parts, nn.Flatten(), nn.Dropout(0.5), nn.Linear(512, 512), nn.BatchNorm1d(512), nn.ReLU(inplace=True),
        nn.Dropout(0.5), nn.Linear(512, 512), nn.Linear(512, 10),
    )  # fmt: skip
