"""The metrics that recipes name, and what each is: an op that counts, with its attributes.

A registered function's keyword-only parameters are what a recipe may give. The graph adds a node of
the op, fed with the network's scores and labels; the op's ``report`` makes the numbers of the
counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from paddlecli.config.registry import METRICS
from paddlecli.config.types import Count
from paddlecli.ops.base import Attr

NO_CLASS = -100
"""A label that counts as nothing, as everywhere."""


@dataclass(frozen=True)
class Definition:
    """A metric: the name of its op (a ``MetricOp`` with the inputs scores and label) and the op's
    attributes."""

    op: str
    attrs: Mapping[str, Attr] = field(default_factory=dict)


def report(op: str, name: str, state: Sequence[int], attrs: Mapping[str, Attr]) -> dict[str, float]:
    """The numbers of a counted metric: a single one under ``name``, several as ``name_<value>``."""
    from paddlecli import ops
    from paddlecli.ops._metric import MetricOp

    return cast(MetricOp, ops.get(op)).report(name, state, attrs)


@METRICS.register("accuracy")
def accuracy(*, k: Count = 1, ignore_index: int = NO_CLASS) -> Definition:
    """Share of rows whose label is among the ``k`` largest scores; labels of ``ignore_index`` do
    not count."""
    return Definition("accuracy", {"k": k, "ignore_index": ignore_index})


@METRICS.register("precision_recall")
def precision_recall() -> Definition:
    """Precision, recall and F1 of a score for class 1 at 0.5; scores [N, 1], or [N, 2] and then the
    second column."""
    return Definition("precision_recall")


@METRICS.register("auc")
def auc() -> Definition:
    """Area under the ROC curve of a probability for class 1; scores [N, 1], or [N, 2] and then the
    second column."""
    return Definition("auc")


@METRICS.register("confusion_matrix")
def confusion_matrix(*, classes: Count, ignore_index: int = NO_CLASS) -> Definition:
    """Accuracy and macro-averaged precision, recall and F1 over ``classes`` classes."""
    return Definition("confusion_matrix", {"classes": classes, "ignore_index": ignore_index})
