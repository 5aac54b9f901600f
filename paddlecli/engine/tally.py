"""Predictions of classes against labels that the inputs carried: accuracy, and which class is taken for which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

_WIDEST = 12
"""Classes up to which a whole table is shown."""
_SHOWN = 8


class Tally:
    """Counts of pairs of a label and the class that was predicted.

    Args:
        names: of the classes.
        label: the field that holds the labels.
    """

    def __init__(self, names: Sequence[str], label: str) -> None:
        self.names, self.label = tuple(names), label
        self.counts = np.zeros((len(names), len(names)), np.int64)

    def add(self, label: int, predicted: int) -> None:
        """One input; labels that are no class are passed over."""
        if 0 <= label < len(self.names):
            self.counts[label, predicted] += 1

    @property
    def total(self) -> int:
        """Inputs that were counted."""
        return int(self.counts.sum())

    def accuracy(self) -> float:
        """Share of the inputs whose label was predicted; only where there are any."""
        return float(np.trace(self.counts)) / self.total

    def as_dict(self) -> dict[str, Any]:
        """Plain data: `classes`, and `counts` with a line for each label and a column for each class predicted."""
        return {"classes": list(self.names), "counts": self.counts.tolist()}

    def lines(self) -> list[str]:
        """For people: a table of labels by predictions, of many classes the most frequent mistakes; nothing without mistakes."""
        wrong = self.counts - np.diag(np.diag(self.counts))
        if not wrong.any():
            return []
        if len(self.names) <= _WIDEST:
            return self._table()
        order = np.argsort(-wrong, axis=None, kind="stable")[:_SHOWN]
        pairs = [divmod(int(i), len(self.names)) for i in order if wrong.flat[i]]
        return [
            f"{self.names[a]} taken for {self.names[b]}: {wrong[a, b]} of {self.counts[a].sum()}"
            for a, b in pairs
        ]

    def _table(self) -> list[str]:
        rows = [["label \\ predicted", *self.names]]
        rows += [
            [name, *map(str, line)]
            for name, line in zip(self.names, self.counts.tolist(), strict=True)
        ]
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        return [
            "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
            for row in rows
        ]  # fmt: skip
