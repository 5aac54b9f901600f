"""Ends of classifying networks: the output, and the loss against the data's label."""

from __future__ import annotations

from paddlecli.config.words import MIXED
from paddlecli.graph.builder import fault
from paddlecli.graph.ir import Tensor
from paddlecli.models import layers, losses
from paddlecli.models.network import Field, Network


def only_label(net: Network) -> Field:
    """The one label that a row of the data has; shares of mixed pictures do not count.

    Raises:
        ConfigError: no label, several, or one that is a sequence.
    """
    labels = [f for f in net.data.fields if f.role == "label" and f.name != MIXED]
    if len(labels) != 1 or labels[0].axes:
        raise fault(net.origin, f"this network needs one label a row; the data have {len(labels)}")
    return labels[0]


def classes_of(net: Network, given: int | None = None) -> int:
    """How many classes the network tells apart: what is given, or as many as the data's label has.

    Raises:
        ConfigError: nothing is given and the data do not say it.
    """
    if given is not None:
        return given
    label = only_label(net)
    if label.classes is None:
        raise fault(net.origin, f"nothing says how many classes the label {label.name!r} has")
    return label.classes


def classify(net: Network, logits: Tensor) -> None:
    """Probabilities as the output, cross-entropy of the logits [N, classes] as the loss; against the
    classes' shares where pictures are mixed."""
    with net.layer("softmax"):
        net.output("probability", layers.activate(net, logits, "softmax"))
    if all(f.name != MIXED for f in net.data.fields):
        losses.softmax_with_cross_entropy(net, logits, net.label())
        return
    target = net.label(only_label(net).name)
    losses.softmax_with_cross_entropy(net, logits, net.label(MIXED), soft_label=True)
    net.target = target
