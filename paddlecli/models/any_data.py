"""Networks that take their sizes from the data: whatever fields a data set has, they fit."""

from __future__ import annotations

from paddlecli.config.registry import MODELS
from paddlecli.config.types import Count, Fraction
from paddlecli.graph.builder import fault
from paddlecli.graph.ir import Tensor
from paddlecli.models import layers, losses
from paddlecli.models.heads import classes_of, classify, only_label
from paddlecli.models.network import Field, Network


@MODELS.register("mlp")
def mlp(
    net: Network, *, hidden: tuple[Count, ...] = (64, 64), dropout: Fraction = 0.0, dim: Count = 16
) -> None:
    """Fully connected layers on all inputs side by side, for classes or numbers.

    Ids become rows of a table, a sequence the mean of its items, anything else its numbers. The loss
    follows from the label: cross-entropy for classes, for numbers the mean square error in standard
    deviations of the train rows.

    ``hidden`` are the widths of the layers, ``dropout`` is the rate behind each, ``dim`` the width of
    the rows of tables.
    """
    rows = [_row(net, field, dim) for field in net.data.fields if field.role == "input"]
    x = rows[0] if len(rows) == 1 else layers.concat(net, *rows, axis=1)
    for size in hidden:
        x = layers.fc(net, x, size=size, activation="relu")
        if dropout:
            x = layers.dropout(net, x, rate=dropout)
    answer(net, x)


@MODELS.register("small_conv")
def small_conv(
    net: Network, *, filters: tuple[Count, ...] = (16, 32, 64), dropout: Fraction = 0.25
) -> None:
    """A stack of 3 x 3 convolutions with batch norm and relu, each but the last max-pooled by 2, the mean
    over the picture, and an output for each class of the data: for pictures of any size.

    ``filters`` are those of the convolutions, ``dropout`` is the rate before the output.
    """
    x = net.feature()
    for place, count in enumerate(filters):
        if place:
            x = layers.pool2d(net, x, size=2, stride=2)
        x = layers.conv2d(net, x, filters=count, size=3, padding=1, bias=False)
        x = layers.batch_norm(net, x, activation="relu")
    x = layers.pool2d(net, x, kind="average", whole=True)
    if dropout:
        x = layers.dropout(net, x, rate=dropout)
    answer(net, x)


def _row(net: Network, field: Field, dim: int) -> Tensor:
    """One row of numbers [N, width] of an input."""
    x = net.feature(field.name)
    if field.dtype.startswith("int"):
        if field.classes is None:
            raise fault(net.origin, f"[mlp] nothing says how many ids the field {field.name!r} has")
        with net.naming(field.name):
            x = layers.embedding(net, x, size=field.classes, dim=dim)
    if len(field.axes) > 1:
        raise fault(net.origin, f"[mlp] the field {field.name!r} has sequences of sequences")
    if field.axes:
        x = layers.sequence_pool(net, x, kind="average")
    return layers.flatten(net, x) if x.spec.ndim != 2 else x


def answer(net: Network, x: Tensor) -> None:
    """An output and a loss for the label of the data, from rows [N, width]: ``probability`` [N, classes]
    or ``prediction`` [N, numbers].

    Raises:
        ConfigError: no label, several, or one that is a sequence.
    """
    label = only_label(net)
    if label.dtype.startswith("float"):
        _numbers(net, x, label)
    else:
        classify(net, layers.fc(net, x, size=classes_of(net)))


def _numbers(net: Network, x: Tensor, label: Field) -> None:
    """The prediction in the label's own unit; the loss in standard deviations of the train rows, so that
    no rate depends on the unit. Metrics see the label's unit."""
    raw = layers.fc(net, x, size=label.shape[0] if label.shape else 1)
    target = net.label(label.name)
    if not label.shape:
        target = layers.reshape(net, target, shape=(1,))
    centre, spread = label.usual or (0.0, 1.0)
    spread = spread or 1.0
    with net.layer("unit"):
        prediction = net.apply("scale", raw, a=spread, b=centre)
        wanted = net.apply("scale", target, a=1.0 / spread, b=-centre / spread)
    net.output("prediction", prediction)
    losses.square_error_cost(net, raw, wanted)
    net.prediction, net.target = prediction, target
