"""What training losses make of labels of classes: smoothed, and weighted by class.

With both the loss of a row is the sum over classes c of weight[c] * q[c] * -log p[c], where q is the
label smoothed by s: (1 - s) * label + s / classes. Rows are not divided by their weights: the loss of a
batch is the sum over its rows divided by their number, as it is without weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from paddlecli import ops
from paddlecli.config.nodes import close_names
from paddlecli.config.words import BALANCED
from paddlecli.graph.builder import fault
from paddlecli.graph.ir import Origin, Tensor
from paddlecli.ops.base import Attr

if TYPE_CHECKING:
    from paddlecli.models.network import Network

LOSSES = "one of softmax_with_cross_entropy, cross_entropy, pixel_cross_entropy"
"""The losses that take classes."""
Weights = str | Sequence[float] | Mapping[str, float]
"""By class: in their order, or by name; `balanced` stands for numbers that the data will give."""


@dataclass
class Targets:
    """What the recipe asks for.

    Attributes:
        smoothing: share of a label that is spread over all classes.
        weights: what the classes count.
        origin: where it asks for weights.
        used: whether a loss has obeyed.
    """

    smoothing: float = 0.0
    weights: Weights | None = None
    origin: Origin = field(default_factory=Origin)
    used: bool = False

    @property
    def wanted(self) -> bool:
        """Whether anything is asked for."""
        return bool(self.smoothing) or self.weights is not None


def made(net: Network, label: Tensor, scores: Tensor, soft: bool, ignore: int) -> Tensor | None:
    """Soft labels, shaped as the scores [N, ..., classes], of a training loss; None where the labels are
    to be used as they are.

    Raises:
        ConfigError: the weights do not fit the classes.
    """
    asked = net.targets
    if not net.training or not asked.wanted:
        return None
    asked.used = True
    classes = scores.spec.shape[-1].coefficient
    weights = _weights(net, label, classes)
    if not soft:
        given = None if weights is None else net.constant(weights)
        args = {"label": label, "weight": given}
        attrs: dict[str, Attr] = {
            "classes": classes,
            "epsilon": asked.smoothing,
            "ignore_index": ignore,
        }
        return net.emit(ops.get("class_targets").forward, args, attrs, out={"y": scores})  # type: ignore[no-any-return]
    found = label
    if asked.smoothing:
        found = net.apply("label_smooth", found, None, epsilon=asked.smoothing)
    if weights is not None:
        found = net.apply("mul", found, net.constant(weights), axis=-1)
    return found


def class_weights(net: Network, label: Tensor, classes: int) -> Tensor | None:
    """What classes count in a training loss that takes weights beside hard labels, [classes]; None where
    nothing is asked for.

    Raises:
        ConfigError: the weights do not fit the classes.
    """
    if not net.training or net.targets.weights is None:
        return None
    net.targets.used = True
    weights = _weights(net, label, classes)
    return None if weights is None else net.constant(weights)


def _weights(net: Network, label: Tensor, classes: int) -> list[float] | None:
    asked = net.targets.weights
    if asked is None:
        return None
    if asked == BALANCED:
        return [1.0] * classes  # what they are does not change the network; training puts them here
    if isinstance(asked, Mapping):
        return _some(net, _by_name(net, label, asked))
    if len(asked) != classes:
        text = f"train.class_weights has {len(asked)} numbers, there are {classes} classes"
        raise fault(net.targets.origin, text)
    return _some(net, [float(w) for w in asked])


def _some(net: Network, weights: list[float]) -> list[float]:
    if not any(weights):
        text = "train.class_weights: every class weighs 0, there is nothing to learn from"
        raise fault(net.targets.origin, text)
    return weights


def _by_name(net: Network, label: Tensor, asked: Mapping[str, float]) -> list[float]:
    names = net.class_names(label)
    if not names:  # shares of classes, whose names are those of the label that they are made of
        others = [f.names for f in net.data.fields if f.role == "label" and f.names]
        names = others[0] if len(others) == 1 else ()
    if not names:
        text = "train.class_weights goes by names, and the data have none for the classes"
        raise fault(net.targets.origin, text, "a list of numbers, in the order of the classes")
    odd = [name for name in asked if name not in names]
    if odd:
        listed = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
        near = close_names(odd[0], list(names))
        raise fault(net.targets.origin, f"train.class_weights: no class `{odd[0]}`", listed, near)
    return [float(asked.get(name, 1.0)) for name in names]
