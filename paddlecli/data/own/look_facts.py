"""What a first look at a user's data finds, and the words for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from paddlecli.data.readers.base import is_missing, parse_number
from paddlecli.errors import DataError

Task = Literal["regression", "classification"]
Kind = Literal["number", "category", "text", "id", "constant", "empty", "other"]
LEAST_ROWS = 2
_A_FIFTH = 5  # so many of a class make sure that one of them tests
_SHOWN = 5
_WIDTH = 40
"""Characters of a class's name that are shown."""


@dataclass(frozen=True)
class ColumnLook:
    """One column: what it seems to be, what is missing, and how it looks in a few words."""

    name: str
    kind: Kind
    missing: int
    distinct: int
    about: str


@dataclass(frozen=True)
class Look:
    """What was found.

    Attributes:
        what: in one line, for a comment.
        data: the recipe's section `data`; paths are absolute.
        task: what is to be learned.
        target: the column or field that is predicted.
        rows: how many there are, a part for testing included.
        classes: names and counts, the most frequent first; of a classification.
        spread: mean and standard deviation of the target; of a regression.
        columns: of a table.
        notes: sentences that a user should read.
    """

    what: str
    data: dict[str, Any]
    task: Task
    target: str
    rows: int
    classes: tuple[tuple[str, int], ...] = ()
    spread: tuple[float, float] = (0.0, 1.0)
    columns: tuple[ColumnLook, ...] = ()
    notes: tuple[str, ...] = field(default=())


def split(rows: int, column: str | None, classes: Sequence[tuple[str, int]]) -> dict[str, Any]:
    """The recipe's `split`: a fifth of the rows tests, every class alike where each has enough."""
    found: dict[str, Any] = {"test": 0.2 if rows > LEAST_ROWS else 0.5}
    if column is not None and classes and min(count for _, count in classes) >= _A_FIFTH:
        found["stratify"] = column
    return found


def counted(cells: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """The values that occur and how often, the most frequent first; missing ones are passed over."""
    counts = Counter(c for c in cells if not is_missing(c))
    return tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def is_number(cell: str) -> bool:
    """Whether a cell is a finite number."""
    try:
        parse_number(cell, "", 0, "")
    except DataError:
        return False
    return True


def listed(counts: Mapping[str, int]) -> str:
    """The most frequent values with their counts."""
    order = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    more = f" and {len(order) - _SHOWN:,} more" if len(order) > _SHOWN else ""
    return ", ".join(f"{brief(name)} {count:,}" for name, count in order[:_SHOWN]) + more


def brief(name: str) -> str:
    """A class's name in one line: a column that is taken for one of classes may hold whole texts."""
    line = " ".join(name.split())
    if len(line) <= _WIDTH:
        return line
    return f"{line[: _WIDTH - 3]}... ({len(name):,} characters)"


def some(names: Sequence[str]) -> str:
    """The first of many names."""
    return ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")


def many(count: int, noun: str) -> str:
    """`1 row`, `2 rows`, `3 classes`."""
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{count:,} {noun if count == 1 else plural}"
