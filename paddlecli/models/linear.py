"""Linear regression, the net of the book's first chapter."""

from __future__ import annotations

from paddlecli.config.registry import MODELS
from paddlecli.config.types import Count
from paddlecli.models import layers, losses
from paddlecli.models.network import Network


@MODELS.register("linear")
def linear(net: Network, *, size: Count = 1) -> None:
    """One fully connected layer without activation, mean square error. Features [N, ...] ->
    prediction [N, size]."""
    with net.naming("prediction"):
        prediction = layers.fc(net, net.feature(), size=size)
    net.output("prediction", prediction)
    losses.square_error_cost(net, prediction, net.label())
