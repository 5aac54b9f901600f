"""LeNet-5: LeCun et al., Gradient-based learning applied to document recognition, 1998."""

from __future__ import annotations

from typing import Literal

from paddlecli.config.registry import MODELS
from paddlecli.config.types import Count
from paddlecli.models import layers
from paddlecli.models.backbones._parts import Parts
from paddlecli.models.heads import classes_of, classify
from paddlecli.models.layers import Initializer
from paddlecli.models.network import Network


@MODELS.register("lenet5")
def lenet5(
    net: Network,
    *,
    classes: Count | None = None,
    activation: layers.Activation = "relu",
    pool: Literal["max", "average"] = "max",
    weight_init: Initializer | None = None,
) -> None:
    """LeNet-5 with every map of the first pooling in the second convolution: 61,706 parameters for 10
    classes of pictures 1 x 28 x 28 (padded by 2) or 1 x 32 x 32 (not padded). The paper has tanh and
    means.

    ``classes``: as many as the data have if left out. ``activation``: behind each layer. ``pool``: what
    a window of 2 x 2 becomes. ``weight_init``: first values of filters, He normal by a unit's outputs
    if left out.
    """
    p = Parts(net, weight_init)
    x = net.feature()
    padding = 0 if x.spec.ndim == 4 and x.spec.shape[2].coefficient >= 32 else 2
    x = p.conv("conv1", x, 6, 5, padding=padding, bias=True, activation=activation)
    x = layers.pool2d(net, x, size=2, stride=2, kind=pool)
    x = p.conv("conv2", x, 16, 5, padding=0, bias=True, activation=activation)
    x = layers.pool2d(net, x, size=2, stride=2, kind=pool)
    x = p.linear("fc1", x, 120, activation)
    x = p.linear("fc2", x, 84, activation)
    classify(net, p.linear("fc3", x, classes_of(net, classes)))
