"""What the backbones share: layers under the names that their parameters are to have."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from paddlecli.graph.ir import Tensor
from paddlecli.models import layers
from paddlecli.models.layers import Activation, Initializer
from paddlecli.models.network import Network

HE = {"msra": {"distribution": "normal", "fan": "out"}}
"""He et al. 2015 by a unit's outputs, normal: first values of most filters here."""
SMALL = {"normal": {"std": 0.01}}
"""First values of classifiers behind wide rows."""


class Parts:
    """Writes layers of a network, each under a given name.

    Args:
        net: the network.
        weight_init: first values of filters.
        momentum: share of the old value that running statistics keep.
        epsilon: added to variances.
    """

    def __init__(
        self,
        net: Network,
        weight_init: Initializer | None = None,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
    ) -> None:
        self.net = net
        self.weight_init: Any = weight_init or HE
        self.momentum, self.epsilon = momentum, epsilon

    @contextmanager
    def at(self, name: str | int, kind: str = "block") -> Iterator[None]:
        """Layers written inside stand under ``name``."""
        with self.net.naming(str(name)), self.net.layer(kind):
            yield

    def conv(
        self, name: str | int, x: Tensor, filters: int, size: int = 1, *, stride: int = 1,
        padding: int | None = None, groups: int = 1, bias: bool = False,
        activation: Activation = "none", weight_init: Initializer | None = None,
    ) -> Tensor:  # fmt: skip
        """Convolution of x [N, C, H, W]; padded to keep the picture's size unless told."""
        with self.net.naming(str(name)):
            return layers.conv2d(
                self.net, x, filters=filters, size=size, stride=stride, groups=groups, bias=bias,
                padding=size // 2 if padding is None else padding, activation=activation,
                weight_init=weight_init or self.weight_init,
            )  # fmt: skip

    def norm(self, name: str | int, x: Tensor, activation: Activation = "none") -> Tensor:
        """Batch norm, then an activation."""
        with self.net.naming(str(name)):
            return layers.batch_norm(
                self.net, x, activation=activation, momentum=self.momentum, epsilon=self.epsilon
            )

    def linear(
        self,
        name: str | int,
        x: Tensor,
        size: int,
        activation: Activation = "none",
        init: Initializer | None = None,
    ) -> Tensor:
        """Fully connected layer from all that a row of x has; even within 1 / sqrt(inputs) unless
        ``init`` says else."""
        inputs = math.prod(d.coefficient for d in x.spec.shape[1:])
        bound = 1.0 / math.sqrt(inputs)
        first = init or {"uniform": {"low": -bound, "high": bound}}
        with self.net.naming(str(name)):
            return layers.fc(self.net, x, size=size, activation=activation, weight_init=first)

    def drop(self, x: Tensor, rate: float) -> Tensor:
        """Dropout that leaves prediction alone."""
        return layers.dropout(self.net, x, rate=rate, mode="upscale_in_train") if rate else x

    def add(self, x: Tensor, y: Tensor, activation: Activation = "none") -> Tensor:
        """The end of a residual block."""
        with self.net.layer("add"):
            z = self.net.apply("add", x, y)
        if activation == "none":
            return z  # type: ignore[no-any-return]
        with self.net.layer(activation):
            return layers.activate(self.net, z, activation)

    def max_pool(
        self, x: Tensor, size: int, stride: int, padding: int = 0, ceil_mode: bool = False
    ) -> Tensor:
        """The largest values of windows."""
        return layers.pool2d(
            self.net, x, size=size, stride=stride, padding=padding, ceil_mode=ceil_mode
        )

    def mean(self, x: Tensor) -> Tensor:
        """Each channel's mean over the picture, [N, C, 1, 1]."""
        return layers.pool2d(self.net, x, kind="average", whole=True)


def rounded(channels: float, divisor: int = 8) -> int:
    """A multiple of ``divisor`` near ``channels``, never below 90 % of it: how MobileNets of other
    widths count their channels."""
    found = max(divisor, int(channels + divisor / 2) // divisor * divisor)
    return found + divisor if found < 0.9 * channels else found
