"""Transforms for columns of tables: scaling, missing values, categories."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from paddlecli.config.registry import TRANSFORMS
from paddlecli.data.own.frame import Faults, Kind, Values
from paddlecli.data.transforms.base import Transform
from paddlecli.data.vocab import natural_key
from paddlecli.errors import ConfigError, DataError

Numbers = NDArray[np.float64]


class Scaling(Transform):
    """(x - offset) / divisor for each column, learned from the train rows. A constant column becomes
    0."""

    takes: ClassVar[tuple[Kind, ...]] = ("numbers",)

    def __init__(self) -> None:
        self.offset = self.divisor = np.zeros(0)
        self.constant: list[int] = []

    def fit(self, values: Values, faults: Faults) -> None:
        """See `Transform.fit`; missing values are passed over."""
        parts = [_statistics(values.rows[:, few]) for few in _few(values.rows.shape[1])]
        mean, spread, low, high = (np.concatenate(part) for part in zip(*parts, strict=True))
        self.offset, self.divisor = self.rule(mean, spread, low, high)
        self.constant = np.flatnonzero(low == high).tolist()
        self.divisor = np.where(low == high, 1.0, self.divisor)
        self.offset = np.where(low == high, low, self.offset)

    def rule(
        self, mean: Numbers, spread: Numbers, low: Numbers, high: Numbers
    ) -> tuple[Numbers, Numbers]:
        """Offset and divisor from mean, standard deviation, least and greatest value."""
        raise NotImplementedError

    def apply(self, values: Values, faults: Faults) -> Values:
        """See `Transform.apply`."""
        made = values.rows - self.offset
        made /= self.divisor
        made[:, self.constant] = 0.0
        return Values("numbers", made)

    def state(self) -> dict[str, Any]:
        """See `Transform.state`."""
        return {
            "offset": self.offset.tolist(),
            "divisor": self.divisor.tolist(),
            "constant": self.constant,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """See `Transform.restore`."""
        self.offset = np.asarray(state["offset"], np.float64)
        self.divisor = np.asarray(state["divisor"], np.float64)
        self.constant = list(state["constant"])

    def notes(self, names: Sequence[str]) -> list[str]:
        """The columns that are constant."""
        return [
            f"column {names[i]} is constant and becomes 0" for i in self.constant if i < len(names)
        ]


def _few(columns: int) -> list[slice]:
    """All columns, a few at a time, so that what is computed of them stays small. Never one alone beside
    others: numpy adds a single column in another order."""
    edges = [*range(0, max(columns - 1, 1), 2), columns]
    return [slice(a, b) for a, b in itertools.pairwise(edges)]


def _statistics(rows: Numbers) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Mean, standard deviation, least and greatest value of each column, without what is missing."""
    seen = ~np.isnan(rows)
    filled = np.where(seen, rows, 0.0)
    count = np.maximum(seen.sum(axis=0), 1)
    low = np.where(seen.any(axis=0), np.where(seen, rows, np.inf).min(axis=0), 0.0)
    high = np.where(seen.any(axis=0), np.where(seen, rows, -np.inf).max(axis=0), 0.0)
    mean = np.where(low == high, low, filled.sum(axis=0) / count)
    spread = np.sqrt(np.where(seen, (filled - mean) ** 2, 0.0).sum(axis=0) / count)
    return mean, spread, low, high


@TRANSFORMS.register("standardise")
class Standardise(Scaling):
    """(x - mean) / standard deviation of the train rows; a constant column becomes 0."""

    def rule(
        self, mean: Numbers, spread: Numbers, low: Numbers, high: Numbers
    ) -> tuple[Numbers, Numbers]:
        """See `Scaling.rule`."""
        return mean, spread


@TRANSFORMS.register("mean_range")
class MeanRange(Scaling):
    """(x - mean) / (max - min) of the train rows; a constant column becomes 0."""

    def rule(
        self, mean: Numbers, spread: Numbers, low: Numbers, high: Numbers
    ) -> tuple[Numbers, Numbers]:
        """See `Scaling.rule`."""
        return mean, high - low


@TRANSFORMS.register("min_max")
class MinMax(Scaling):
    """The range of the train rows becomes `low` to `high`; a constant column becomes 0. Values of
    other rows may lie outside.

    Args:
        low: what the least value becomes.
        high: what the greatest value becomes.
    """

    def __init__(self, *, low: float = 0.0, high: float = 1.0) -> None:
        super().__init__()
        if low >= high:
            raise ConfigError(f"min_max: low {low:g} is not below high {high:g}")
        self.low, self.high = low, high

    def rule(
        self, mean: Numbers, spread: Numbers, low: Numbers, high: Numbers
    ) -> tuple[Numbers, Numbers]:
        """See `Scaling.rule`."""
        divisor = (high - low) / (self.high - self.low)
        return low - self.low * divisor, divisor


@TRANSFORMS.register("scale")
class Scale(Transform):
    """x times `by`, and `plus` added. Arrays of bytes stay bytes in memory: the plan does it.

    Args:
        by: factor.
        plus: added behind.
    """

    takes: ClassVar[tuple[Kind, ...]] = ("numbers", "arrays", "series")

    def __init__(self, *, by: float = 1.0, plus: float = 0.0) -> None:
        self.by, self.plus = by, plus

    def apply(self, values: Values, faults: Faults) -> Values:
        """See `Transform.apply`."""
        if values.kind == "series":
            return Values("series", [row * self.by + self.plus for row in values.rows])
        if values.kind == "arrays" and values.rows.dtype == np.uint8:
            return values
        return Values(values.kind, values.rows * self.by + self.plus)


@TRANSFORMS.register("log")
class Log(Transform):
    """The natural logarithm of x + `plus`.

    Args:
        plus: added before; 1 lets a count of 0 through.
    """

    takes: ClassVar[tuple[Kind, ...]] = ("numbers",)

    def __init__(self, *, plus: float = 0.0) -> None:
        self.plus = plus

    def apply(self, values: Values, faults: Faults) -> Values:
        """See `Transform.apply`."""
        moved = values.rows + self.plus
        for row in np.flatnonzero((moved <= 0).any(axis=1)).tolist():
            least = float(np.nanmin(values.rows[row]))
            faults.add(row, f"{least:g} + {self.plus:g} is not above 0 and has no logarithm")
        return Values(
            "numbers", np.log(np.where(moved > 0, moved, np.where(moved <= 0, 1.0, np.nan)))
        )


@TRANSFORMS.register("clip")
class Clip(Transform):
    """Numbers outside of `low` to `high` become the bound.

    Args:
        low: least value that is left.
        high: greatest value that is left.
    """

    takes: ClassVar[tuple[Kind, ...]] = ("numbers",)

    def __init__(self, *, low: float | None = None, high: float | None = None) -> None:
        if low is not None and high is not None and low > high:
            raise ConfigError(f"clip: low {low:g} is above high {high:g}")
        self.low, self.high = low, high

    def apply(self, values: Values, faults: Faults) -> Values:
        """See `Transform.apply`."""
        low = -np.inf if self.low is None else self.low
        high = np.inf if self.high is None else self.high
        return Values("numbers", np.clip(values.rows, low, high))


@TRANSFORMS.register("fill_missing")
class FillMissing(Transform):
    """Puts something where a value is missing.

    Args:
        rule: `mean` or `median` of the train rows (numbers), their `most_common` value, or `value`.
        value: what `rule: value` puts there.
        indicator: behind each column of numbers adds one that is 1 where a value was missing, else 0.
    """

    takes: ClassVar[tuple[Kind, ...]] = ("numbers", "cells")

    def __init__(
        self,
        *,
        rule: Literal["mean", "median", "most_common", "value"] = "mean",
        value: float | str | None = None,
        indicator: bool = False,
    ) -> None:
        if (rule == "value") != (value is not None):
            raise ConfigError("fill_missing: `value` goes with `rule: value`, and only with it")
        self.rule, self.value, self.indicator = rule, value, indicator
        self.fill: list[Any] = []
        self.filled: list[int] = []

    def wants(self, kind: Kind) -> Kind:
        """Texts stay texts where the rule can be one of texts."""
        textual = self.rule == "most_common" or isinstance(self.value, str)
        return "cells" if kind == "cells" and textual else "numbers"

    def fit(self, values: Values, faults: Faults) -> None:
        """See `Transform.fit`."""
        if values.kind == "cells":
            seen = [c for c in values.rows if c]
            if not seen and self.rule != "value":
                raise _no_value(faults, 0)
            self.fill = [self.value if self.rule == "value" else _most_common(seen)]
            self.filled = [len(values.rows) - len(seen)]
            return
        if isinstance(self.value, str):
            raise ConfigError(f"fill_missing: {self.value!r} cannot stand in a column of numbers")
        self.filled = np.isnan(values.rows).sum(axis=0).tolist()
        if self.rule != "value":
            for empty in np.flatnonzero(np.isnan(values.rows).all(axis=0)).tolist():
                raise _no_value(faults, empty)
        self.fill = [float(self._number(column)) for column in values.rows.T]

    def _number(self, column: Numbers) -> Any:
        seen = column[~np.isnan(column)]
        if self.rule == "value":
            return self.value
        if self.rule == "most_common":
            found, counts = np.unique(seen, return_counts=True)
            return found[counts.argmax()]
        return seen.mean() if self.rule == "mean" else np.median(seen)

    def apply(self, values: Values, faults: Faults) -> Values:
        """See `Transform.apply`."""
        if values.kind == "cells":
            return Values("cells", [c or self.fill[0] for c in values.rows])
        missing = np.isnan(values.rows)
        made = np.where(missing, np.asarray(self.fill, np.float64), values.rows)
        return Values(
            "numbers", np.concatenate([made, missing], axis=1) if self.indicator else made
        )

    def state(self) -> dict[str, Any]:
        """See `Transform.state`."""
        return {"fill": self.fill}

    def restore(self, state: Mapping[str, Any]) -> None:
        """See `Transform.restore`."""
        self.fill = list(state["fill"])

    def notes(self, names: Sequence[str]) -> list[str]:
        """How many were filled."""
        if len(self.filled) == len(names):
            counts = dict(zip(names, self.filled, strict=True))
        else:
            counts = {", ".join(names[:3]) + (", ..." if len(names) > 3 else ""): sum(self.filled)}
        return [f"{name}: {count} missing values filled" for name, count in counts.items() if count]


def _no_value(faults: Faults, number: int) -> DataError:
    name = faults.columns[number] if number < len(faults.columns) else faults.subject
    return DataError(
        f"{faults.frame.files[0]}: {name}: has no value at all that others could be filled with",
        hint=f"list {name!r} under `ignore`",
    )


def _most_common(cells: Sequence[str]) -> str:
    counts = Counter(cells)
    return min(counts, key=lambda c: (-counts[c], natural_key(c)))
