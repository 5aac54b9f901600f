"""Runs the metrics that are Python: cuts the outputs of evaluations into samples and feeds them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paddlecli.compiler.artifact import EntryInfo
from paddlecli.config.plugins import place_of
from paddlecli.config.recipe import Recipe
from paddlecli.config.registry import METRICS
from paddlecli.config.schema import Mode
from paddlecli.data.axes import levels
from paddlecli.data.columns import Split
from paddlecli.errors import ConfigError
from paddlecli.models.outside import PythonMetric, is_outside, read_by

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Outside:
    """A metric of the recipe that is Python: its name there, how one is made, the outputs it reads."""

    name: str
    make: Callable[[], PythonMetric]
    kind: type[PythonMetric]
    outputs: tuple[str, ...]

    def names(self) -> list[str]:
        """Names of its numbers."""
        return [f"{self.name}_{v}" for v in self.kind.values] or [self.name]

    def modes(self) -> dict[str, Mode | None]:
        """Which way each number is better."""
        return dict.fromkeys(self.names(), self.kind.better)

    def numbers(self, metric: PythonMetric) -> dict[str, float]:
        """What a metric found, by name.

        Raises:
            ConfigError: it gives other values than its class says.
        """
        found = metric.result()
        values = dict(found) if isinstance(found, Mapping) else {"": found}
        if list(values) != list(self.kind.values or ("",)):
            wanted = ", ".join(self.kind.values) or "one number"
            given = ", ".join(values) if isinstance(found, Mapping) else f"{found!r}"
            raise ConfigError(
                f"the metric `{self.name}` says that it gives {wanted}; it gave {given}: it is "
                f"written in {place_of(self.kind)}"
            )
        return {n: self._number(v) for n, v in zip(self.names(), values.values(), strict=True)}

    def _number(self, value: Any) -> float:
        try:
            return float(value)
        except (TypeError, ValueError):
            raise ConfigError(
                f"the metric `{self.name}` gave {value!r}, not a number: it is written in "
                f"{place_of(self.kind)}"
            ) from None


def outside_of(recipe: Recipe, outputs: Iterable[str]) -> tuple[Outside, ...]:
    """The recipe's metrics that are Python, from the names of the outputs of the entry that evaluates.

    Raises:
        ConfigError: one is not known here, or is no such metric any more.
    """
    read = read_by(outputs)
    found = []
    for call in recipe.metrics:
        name = call.name or call.call
        if name not in read:
            continue
        kind = METRICS.get(call.call).function
        if not is_outside(kind):
            raise ConfigError(f"the metric `{call.call}` was Python when the network was built")
        make = partial(kind, **METRICS.bind(call.call, call.arguments))
        found.append(Outside(name, make, kind, tuple(read[name])))  # type: ignore[arg-type]
    return tuple(found)


class Feeder:
    """Feeds one evaluation of a split, batch by batch in its order."""

    def __init__(self, metrics: tuple[Outside, ...], entry: EntryInfo, split: Split) -> None:
        self._metrics = [(m, m.make()) for m in metrics]
        self._entry, self._split, self._row = entry, split, 0

    def add(self, count: int, outputs: Arrays) -> None:
        """A batch of so many samples."""
        for known, metric in self._metrics:
            metric.add(*(self._samples(name, outputs[name], count) for name in known.outputs))
        self._row += count

    def numbers(self) -> dict[str, float]:
        """What all metrics found."""
        return {k: v for known, m in self._metrics for k, v in known.numbers(m).items()}

    def _samples(self, name: str, array: NDArray[Any], count: int) -> Any:
        axis = self._entry.outputs[name].axis
        if axis is None:
            return array
        edges = np.arange(self._row, self._row + count + 1)
        for offsets in levels(self._split, axis):
            edges = offsets[edges]
        return np.split(array, edges[1:-1] - edges[0])
