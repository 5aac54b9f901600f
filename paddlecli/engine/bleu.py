"""BLEU: how many words and runs of words two sets of sentences have in common.

K. Papineni, S. Roukos, T. Ward and W. Zhu, BLEU: a method for automatic evaluation of machine
translation, ACL 2002; over a whole set, with one reference a sentence. Where no run of n words is
right, its precision is taken as 1 / (2^k * runs), k counting such n (the smoothing "exp" of mteval-v13a).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

from paddlecli.config.registry import METRICS
from paddlecli.config.types import Count, Natural
from paddlecli.models.outside import PythonMetric

Words = Sequence[Hashable]


class Counts:
    """What BLEU counts over sentences; made for runs of up to `order` words."""

    def __init__(self, order: int = 4) -> None:
        self.order = order
        self.right, self.runs = [0] * order, [0] * order
        self.said = self.wanted = 0

    def add(self, said: Words, wanted: Words) -> None:
        """One sentence and its reference."""
        self.said += len(said)
        self.wanted += len(wanted)
        for n in range(1, self.order + 1):
            have, want = _runs(said, n), _runs(wanted, n)
            self.right[n - 1] += sum((have & want).values())
            self.runs[n - 1] += max(len(said) - n + 1, 0)

    def score(self) -> float:
        """From 0 to 100; NaN of nothing."""
        if not self.wanted:
            return math.nan
        if not any(self.right) or not all(self.runs):
            return 0.0
        smooth, total = 1.0, 0.0
        for right, runs in zip(self.right, self.runs, strict=True):
            smooth *= 1 if right else 2
            total += math.log((right or 1 / smooth) / runs)
        brief = min(0.0, 1 - self.wanted / self.said)
        return 100 * math.exp(total / self.order + brief)


def _runs(words: Words, n: int) -> Counter[tuple[Hashable, ...]]:
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


@METRICS.register("bleu")
class Bleu(PythonMetric):
    """BLEU of decoded sentences against the label, over all words of a split, from 0 to 100.

    Ids [N, L], or the best ones of [N, beam, L], and label [T] up to the id ``end``; runs of up to
    ``order`` words. An id ``unknown`` in the label is a word that nobody can say: nothing equals it.
    """

    better = "max"

    def __init__(self, *, end: Natural = 1, unknown: Natural = 2, order: Count = 4) -> None:
        self.end, self.unknown = end, unknown
        self.counts = Counts(order)

    def add(self, ids: Any, label: Any) -> None:
        """See `PythonMetric.add`."""
        best = ids[:, 0] if ids.ndim == 3 else ids
        for said, wanted in zip(best, label, strict=True):
            reference = self._until_end(wanted)
            known = [None if word == self.unknown else word for word in reference]
            self.counts.add(self._until_end(said), known)

    def _until_end(self, ids: Any) -> list[int]:
        found: list[int] = ids.reshape(-1).tolist()
        return found[: found.index(self.end)] if self.end in found else found

    def result(self) -> float:
        """See `PythonMetric.result`."""
        return self.counts.score()
