"""The nets of the book's second chapter: softmax regression, a multi-layer perceptron, a
convolutional net."""

from __future__ import annotations

from paddlecli.config.registry import MODELS
from paddlecli.config.types import Count
from paddlecli.models import layers
from paddlecli.models.heads import classes_of, classify
from paddlecli.models.network import Network


@MODELS.register("digits_softmax")
def digits_softmax(net: Network, *, classes: Count | None = None) -> None:
    """One fully connected layer with softmax: 7,850 parameters on 28 x 28 pictures of 10 classes.

    ``classes``: as many as the data have if left out.
    """
    classify(net, layers.fc(net, net.feature(), size=classes_of(net, classes)))


@MODELS.register("digits_mlp")
def digits_mlp(
    net: Network,
    *,
    classes: Count | None = None,
    hidden: Count = 200,
    hidden_act: layers.Activation = "relu",
) -> None:
    """Two hidden layers and an output for each class: 199,210 parameters. The original's text has
    relu, its script tanh.

    ``classes``: as many as the data have if left out.
    """
    x = layers.fc(net, net.feature(), size=hidden, activation=hidden_act)
    x = layers.fc(net, x, size=hidden, activation=hidden_act)
    classify(net, layers.fc(net, x, size=classes_of(net, classes)))


@MODELS.register("digits_conv")
def digits_conv(net: Network, *, classes: Count | None = None) -> None:
    """Convolutions of 20 and 50 filters 5 x 5 with relu, each max-pooled by 2, batch norm between:
    33,620 parameters.

    ``classes``: as many as the data have if left out.
    """
    x = layers.conv2d(net, net.feature(), filters=20, size=5, activation="relu")
    x = layers.pool2d(net, x, size=2, stride=2)
    x = layers.batch_norm(net, x)
    x = layers.conv2d(net, x, filters=50, size=5, activation="relu")
    x = layers.pool2d(net, x, size=2, stride=2)
    classify(net, layers.fc(net, x, size=classes_of(net, classes)))
