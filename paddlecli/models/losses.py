"""Losses: each gives one value a row; the entry's loss is their sum over the total weight of the
batch.

A loss also says which scores and labels the metrics read when a recipe names none.
"""

from __future__ import annotations

import math

from paddlecli.config.registry import LOSSES
from paddlecli.config.types import Positive
from paddlecli.graph.builder import fault
from paddlecli.graph.ir import Tensor
from paddlecli.models import targets
from paddlecli.models.network import Network
from paddlecli.ops.base import Attr


def finish(
    net: Network, values: Tensor, scores: Tensor, label: Tensor, *, count: str = ""
) -> Tensor:
    """Makes per-row values [N, ...] the entry's loss: a row's value is the mean of its elements.
    Returns the loss [1]."""
    row = math.prod(d.coefficient for d in values.spec.shape[1:])
    if row > 1:
        values = net.apply("reduce_mean", values, dims=tuple(range(1, values.spec.ndim)))
    net.prediction, net.target = scores, label
    counted = None
    if count.startswith("labels:"):
        counted = net.apply("label_mask", label, ignore_index=int(count.rpartition(":")[2]))
    return net.loss(values, net.loss_name, count, counted)


@LOSSES.register("square_error_cost")
def square_error_cost(net: Network, prediction: Tensor, label: Tensor) -> Tensor:
    """Mean of (prediction - label)^2, [N, ...] both."""
    with net.layer("square_error_cost"):
        return finish(net, net.apply("square_error_cost", prediction, label), prediction, label)


@LOSSES.register("softmax_with_cross_entropy")
def softmax_with_cross_entropy(
    net: Network,
    logits: Tensor,
    label: Tensor,
    *,
    soft_label: bool = False,
    ignore_index: int = -100,
) -> Tensor:
    """Cross-entropy of softmax(logits [N, classes]) against a label [N] or [N, 1] of class ids, or
    [N, classes] of probabilities when ``soft_label``.

    Rows whose label is ``ignore_index`` count as nothing when it is a class (>= 0), and as zeros
    otherwise.
    """
    with net.layer("softmax_with_cross_entropy"):
        _check_classes(net, logits, label, soft_label, ignore_index)
        made = targets.made(net, label, logits, soft_label, ignore_index)
        values = net.apply(
            "softmax_with_cross_entropy",
            logits,
            label if made is None else made,
            None,
            soft_label=soft_label or made is not None,
            axis=-1,
            ignore_index=ignore_index,
        )[0]
        return finish(
            net, values, logits, label, count=_count(net, label, soft_label, ignore_index)
        )


@LOSSES.register("cross_entropy")
def cross_entropy(
    net: Network,
    probability: Tensor,
    label: Tensor,
    *,
    soft_label: bool = False,
    ignore_index: int = -100,
) -> Tensor:
    """-log of the label's probability; probability [N, classes], label [N] or [N, 1] as in
    ``softmax_with_cross_entropy``."""
    with net.layer("cross_entropy"):
        _check_classes(net, probability, label, soft_label, ignore_index)
        made = targets.made(net, label, probability, soft_label, ignore_index)
        values = net.apply(
            "cross_entropy",
            probability,
            label if made is None else made,
            soft_label=soft_label or made is not None,
            ignore_index=ignore_index,
        )
        return finish(
            net, values, probability, label, count=_count(net, label, soft_label, ignore_index)
        )


@LOSSES.register("sigmoid_cross_entropy")
def sigmoid_cross_entropy(net: Network, logits: Tensor, label: Tensor) -> Tensor:
    """Cross-entropy of sigmoid(logits) against targets in [0, 1], both [N, ...]."""
    with net.layer("sigmoid_cross_entropy"):
        values = net.apply("sigmoid_cross_entropy", logits, label, None, ignore_index=-100)
        return finish(net, values, logits, label)


@LOSSES.register("huber_loss")
def huber_loss(net: Network, prediction: Tensor, label: Tensor, *, delta: Positive = 1.0) -> Tensor:
    """Half the squared error up to ``delta``, straight beyond it, [N, ...] both."""
    return _plain(net, "huber_loss", prediction, label, delta=delta)


@LOSSES.register("log_loss")
def log_loss(
    net: Network, probability: Tensor, label: Tensor, *, epsilon: Positive = 1e-4
) -> Tensor:
    """Cross-entropy of probabilities in [0, 1] against targets 0 or 1, [N, ...] both."""
    return _plain(net, "log_loss", probability, label, epsilon=epsilon)


@LOSSES.register("kl_div")
def kl_div(net: Network, log_probability: Tensor, label: Tensor) -> Tensor:
    """label * (log(label) - log_probability), [N, ...] both; the mean over the elements."""
    return _plain(net, "kl_div", log_probability, label)


@LOSSES.register("hinge_loss")
def hinge_loss(net: Network, score: Tensor, label: Tensor) -> Tensor:
    """max(0, 1 - (2 label - 1) score) for labels 0 or 1, [N, ...] both."""
    return _plain(net, "hinge_loss", score, label)


def _plain(net: Network, op: str, scores: Tensor, label: Tensor, **attrs: Attr) -> Tensor:
    """A loss that is one op of scores and labels of one shape."""
    with net.layer(op):
        return finish(net, net.apply(op, scores, label, **attrs), scores, label)


def _check_classes(net: Network, scores: Tensor, label: Tensor, soft: bool, ignore: int) -> None:
    """Every label that the data can hold has a score, but for one class that is ignored."""
    classes, width = net.classes(label), scores.spec.shape[-1].coefficient
    if soft or classes is None or classes <= width + (ignore == width):
        return
    raise fault(
        net.origin,
        f"[cross_entropy] the label has {classes} classes, the scores {scores.spec} have {width}",
    )


def _count(net: Network, label: Tensor, soft: bool, ignore: int) -> str:
    if soft or ignore < 0:
        return ""
    if label.role != "input":
        raise fault(
            net.origin,
            f"[cross_entropy] ignore_index {ignore} needs labels that are an input of the network",
        )
    return f"labels:{label.name}:{ignore}"
