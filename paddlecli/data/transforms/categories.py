"""Transforms from texts that are one of a few, and from ids, to numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from paddlecli.config.registry import TRANSFORMS
from paddlecli.config.types import Count
from paddlecli.data.own.frame import SHOWN, Faults, Kind, Values
from paddlecli.data.transforms.base import Transform
from paddlecli.data.vocab import Vocabulary, natural_key
from paddlecli.errors import ConfigError

UNKNOWN = "<unk>"
"""Name of the entry that stands for what the train split did not have."""


class Categories(Transform):
    """Texts by number, in natural order (2 before 10), or in the order of a list or file.

    Subclasses say what becomes of the numbers.
    """

    takes: ClassVar[tuple[Kind, ...]] = ("cells",)

    def __init__(
        self, classes: tuple[str, ...] | None, file: Path | None, min_count: int, unknown: bool | None
    ) -> None:  # fmt: skip
        if classes is not None and file is not None:
            raise ConfigError("categories: give `classes` or `file`, not both")
        self.classes, self.file = classes, file
        self.min_count, self.unknown = min_count, unknown
        self.table = Vocabulary(())
        self.unused: list[str] = []

    def fit(self, values: Values, faults: Faults) -> None:
        """See `Transform.fit`."""
        counts = Counter(c for c in values.rows if c)
        if self.classes is not None:
            words = list(self.classes)
        elif self.file is not None:
            words = list(Vocabulary.load(self.file).words)
        else:
            words = sorted((c for c, n in counts.items() if n >= self.min_count), key=natural_key)
        self.unused = [w for w in words if w not in counts and w != UNKNOWN]
        if self.unknown and UNKNOWN not in words:
            words.insert(0, UNKNOWN)
        self.table = Vocabulary(words, UNKNOWN if self.unknown else None)

    def apply(self, values: Values, faults: Faults) -> Values:
        """See `Transform.apply`."""
        raise NotImplementedError

    def numbers(self, cells: Sequence[str], faults: Faults) -> NDArray[np.int64]:
        """The number of each text; -1 for one that has none."""
        ids, other = self.table.ids, -1
        if self.table.unknown is not None:
            other = ids[self.table.unknown]
        found = np.fromiter((ids.get(c, other) for c in cells), np.int64, len(cells))
        for row in np.flatnonzero(np.asarray([not c for c in cells], bool)).tolist():
            faults.add(row, "the value is missing")
        return found

    def state(self) -> dict[str, Any]:
        """See `Transform.state`; the words go to a file of their own."""
        return {"vocabulary": list(self.table.words), "unknown": self.table.unknown}

    def restore(self, state: Mapping[str, Any]) -> None:
        """See `Transform.restore`."""
        self.table = Vocabulary(state["vocabulary"], state["unknown"])
        self.unknown = state["unknown"] is not None

    def notes(self, names: Sequence[str]) -> list[str]:
        """Categories that the train rows lack."""
        if not self.unused:
            return []
        shown = ", ".join(self.unused[:SHOWN]) + (", ..." if len(self.unused) > SHOWN else "")
        return [f"column {', '.join(names)}: no train row has {shown}"]


@TRANSFORMS.register("category_ids")
class CategoryIds(Categories):
    """The number of a category, for an embedding, or for a label that is a class.

    Args:
        classes: the categories in the order of their numbers; found in the train rows if left out.
        file: a file with one category a line, instead of `classes`.
        min_count: categories that come less often in the train rows are unknown.
        unknown: whether number 0 stands for unknown categories; if left out, for inputs it does and
            for labels an unknown one is an error.
    """

    gives: ClassVar[Kind | None] = "ids"

    def __init__(
        self, *, classes: tuple[str, ...] | None = None, file: Path | None = None,
        min_count: Count = 1, unknown: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(classes, file, min_count, unknown)

    def apply(self, values: Values, faults: Faults) -> Values:
        """See `Transform.apply`."""
        found = self.numbers(values.rows, faults)
        for row in np.flatnonzero(found < 0).tolist():
            if values.rows[row]:
                faults.add(
                    row,
                    f"{values.rows[row]!r} is none of the {len(self.table)} classes ({self._shown()})",
                )
        return Values("ids", np.maximum(found, 0))

    def _shown(self) -> str:
        words = self.table.words
        return ", ".join(words[:SHOWN]) + (", ..." if len(words) > SHOWN else "")


@TRANSFORMS.register("one_hot")
class OneHot(Categories):
    """A column for each category: 1 where it is the row's, else 0. An unknown category is 0 in all.

    Args:
        classes: the categories in the order of their columns; found in the train rows if left out.
        file: a file with one category a line, instead of `classes`.
        min_count: categories that come less often in the train rows are unknown.
    """

    gives: ClassVar[Kind | None] = "numbers"

    def __init__(
        self,
        *,
        classes: tuple[str, ...] | None = None,
        file: Path | None = None,
        min_count: Count = 1,
    ) -> None:
        super().__init__(classes, file, min_count, None)

    def apply(self, values: Values, faults: Faults) -> Values:
        """See `Transform.apply`."""
        found = self.numbers(values.rows, faults)
        return Values("numbers", (found[:, None] == np.arange(len(self.table))).astype(np.float64))


@TRANSFORMS.register("class_ids")
class ClassIds(Transform):
    """Whole numbers that are ids already, from 0 up.

    Args:
        classes: how many ids there are; another number is an error that names its line.
    """

    takes: ClassVar[tuple[Kind, ...]] = ("numbers",)
    gives: ClassVar[Kind | None] = "ids"

    def __init__(self, *, classes: Count) -> None:
        self.classes = classes

    def apply(self, values: Values, faults: Faults) -> Values:
        """See `Transform.apply`."""
        if values.rows.shape[1] != 1:
            raise ConfigError("class_ids takes one column")
        numbers = values.rows[:, 0]
        good = (numbers >= 0) & (numbers < self.classes) & (numbers == np.floor(numbers))
        for row in np.flatnonzero(~good).tolist():
            value = numbers[row]
            text = "the value is missing" if np.isnan(value) else (
                f"{value:g} is out of range: it must be a whole number from 0 to {self.classes - 1}"
            )  # fmt: skip
            faults.add(row, text)
        return Values("ids", np.where(good, numbers, 0.0).astype(np.int64))
