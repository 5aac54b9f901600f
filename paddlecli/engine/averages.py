"""Running means of the numbers that steps report: by sample, and by batch as the book does."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paddlecli.compiler.artifact import EntryInfo
from paddlecli.engine.requests import TURN, Call, Work

FINITE = "finite"
"""The fetch that says whether the loss is finite; every other fetch is a number to report."""


def reporters(calls: Sequence[Call]) -> list[tuple[str, list[EntryInfo]]]:
    """Who reports: (prefix of the names, entries). The entries that run parts of one batch report together; a single
    reporter needs no prefix, several are told apart by `<entry>.`."""
    groups: dict[int, dict[str, EntryInfo]] = {}
    for call in calls:
        if set(call.entry.fetches) - {FINITE} or call.entry.metrics:
            groups.setdefault(-1 if call.parts > 1 else call.entry.index, {})[call.entry.name] = (
                call.entry
            )
    found = [list(group.values()) for group in groups.values()]
    return [("" if len(found) == 1 else f"{group[0].name}.", group) for group in found]


def keys_of(calls: Sequence[Call]) -> dict[tuple[int, int], str]:
    """The name under which each fetch (entry index, column of the result row) is reported."""
    return {
        (entry.index, column): prefix + fetch
        for prefix, group in reporters(calls)
        for entry in group
        for column, fetch in enumerate(entry.fetches)
        if fetch != FINITE
    }


def by_iteration(
    keys: Mapping[tuple[int, int], str], work: Work, results: NDArray[np.float64], iterations: int
) -> dict[str, NDArray[np.float64]]:
    """The reported numbers of the first `iterations` iterations; parts of a batch are added, and of an entry that runs more
    than once in an iteration the mean is taken."""
    stop = int(np.searchsorted(work.iterations, iterations))
    found = {key: np.zeros(iterations) for key in keys.values()}
    for (entry, column), key in keys.items():
        steps = np.flatnonzero(work.entries[:stop] == entry)
        at = work.iterations[steps]
        turns = np.ones(iterations, np.int64)
        np.maximum.at(turns, at, work.steps[steps] // TURN + 1)
        total = np.bincount(at, weights=results[steps, column], minlength=iterations)
        found[key] += total / turns
    return found


def as_json(number: float) -> float | str:
    """The number, or `nan`, `inf`, `-inf` as text; `float` takes both back."""
    return number if math.isfinite(number) else str(number)


class Averages:
    """Sums over batches. `state` and `restore` carry them through a checkpoint without loss."""

    def __init__(self) -> None:
        self._sums: dict[str, list[float]] = {}
        self._samples = 0
        self._batches = 0

    def add(self, values: Mapping[str, NDArray[np.float64]], counts: NDArray[np.int64]) -> None:
        """Adds batches: their reported numbers, and how many samples each has. One by one, so that the result does not
        depend on how many came at a time."""
        self._samples += int(counts.sum())
        self._batches += counts.size
        for key, numbers in values.items():
            by_sample, by_batch = self._sums.setdefault(key, [0.0, 0.0])
            for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
                by_sample += number * count
                by_batch += number
            self._sums[key] = [by_sample, by_batch]

    @property
    def samples(self) -> int:
        """Samples added."""
        return self._samples

    @property
    def batches(self) -> int:
        """Batches added."""
        return self._batches

    def by_sample(self) -> dict[str, float]:
        """Means weighted by samples."""
        return {k: s[0] / self._samples for k, s in self._sums.items() if self._samples}

    def by_batch(self) -> dict[str, float]:
        """Unweighted means over batches."""
        return {k: s[1] / self._batches for k, s in self._sums.items() if self._batches}

    def state(self) -> dict[str, Any]:
        """Plain data; numbers that are not finite as text, since JSON has none."""
        sums = {k: [as_json(x) for x in v] for k, v in self._sums.items()}
        return {"sums": sums, "samples": self._samples, "batches": self._batches}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Takes what `state` gave."""
        self._sums = {k: [float(x) for x in v] for k, v in state["sums"].items()}
        self._samples, self._batches = int(state["samples"]), int(state["batches"])
