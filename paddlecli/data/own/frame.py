"""What a user's files hold before any field is made of it: named columns of raw values, and where
each row stands.

A column has one of these kinds, which also name what transforms take and give:

    cells     one text a row                     strings; an empty one is missing
    numbers   one or more numbers a row          float64 [rows, width]; NaN is missing
    ids       one whole number a row             int64 [rows]
    words     a sequence of words a row          lists of strings
    tokens    a sequence of ids a row            int64 [length]
    series    a sequence of rows of numbers      list of float64 [length, width]
    arrays    an array a row, in its stored type [rows, ...]
    pictures  a picture a row                    list of `Picture`s or of uint8 [height, width, channels]

Many rows of texts, words and ids are `Packed`; a transform is given them a block at a time, as lists.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from paddlecli.data.columns import Rows
from paddlecli.data.own.packed import Packed
from paddlecli.data.readers.base import is_missing, parse_number
from paddlecli.errors import DataError

Kind = Literal["cells", "numbers", "ids", "words", "tokens", "series", "arrays", "pictures"]
SHOWN = 10
"""Problems that a message lists; the rest is counted."""
_LONG = 300


@dataclass(frozen=True)
class Values:
    """One value a row, all of one kind."""

    kind: Kind
    rows: Any

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, rows: Rows) -> Values:
        """The given rows."""
        if isinstance(self.rows, np.ndarray):
            return Values(self.kind, self.rows[rows])
        if isinstance(self.rows, Packed):
            return Values(self.kind, self.rows.take(rows))
        return Values(self.kind, [self.rows[i] for i in rows])


@dataclass(frozen=True)
class Place:
    """Where a row stands: a file and a line (from 1), or 0 for files without lines."""

    file: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}: line {self.line}" if self.line else self.file


@dataclass(frozen=True)
class Frame:
    """Named columns of one length.

    Attributes:
        columns: values by name, in the file's order.
        files: names of the files.
        file_of: index in `files` of every row.
        line_of: line of every row, 0 where there are none.
        notes: what a user should know of how the file was read.
    """

    columns: Mapping[str, Values]
    files: tuple[str, ...]
    file_of: NDArray[np.int32]
    line_of: NDArray[np.int64]
    notes: tuple[str, ...] = field(default=())

    def __len__(self) -> int:
        return self.line_of.size

    def place(self, row: int) -> Place:
        """Where row `row` stands."""
        return Place(self.files[self.file_of[row]], int(self.line_of[row]))

    def take(self, rows: Rows) -> Frame:
        """The given rows of every column."""
        columns = {name: values.take(rows) for name, values in self.columns.items()}
        return Frame(columns, self.files, self.file_of[rows], self.line_of[rows], self.notes)

    def column(self, name: str) -> Values:
        """The column of that name.

        Raises:
            DataError: there is none; names the near ones.
        """
        if name in self.columns:
            return self.columns[name]
        from paddlecli.config.nodes import close_names

        near, names = close_names(name, list(self.columns)), list(self.columns)
        hint = f"did you mean {' or '.join(near)}?" if near else None
        if len(names) == 1 and (signs := [s for s in ";,\t|" if s in names[0]]):
            hint = f"its cells seem to be separated by {signs[0]!r}: set `delimiter` to that"
        raise DataError(
            f"{', '.join(self.files[:2])}: no column {name!r}; there are {', '.join(names)}",
            hint=hint,
        )


def frame_of(
    columns: Mapping[str, Values], file: str, lines: Sequence[int] | None = None, notes: tuple[str, ...] = ()
) -> Frame:  # fmt: skip
    """The columns of one file; without `lines` places name the file alone.

    Raises:
        DataError: no rows, or columns of different lengths.
    """
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(f"{file}: the columns have different numbers of rows: {lengths}")
    rows = next(iter(lengths.values()), 0)
    if not rows:
        raise DataError(f"{file}: holds no rows")
    where = np.zeros(rows, np.int64) if lines is None else np.asarray(lines, np.int64)
    return Frame(columns, (file,), np.zeros(rows, np.int32), where, notes)


def joined(frames: Sequence[Frame]) -> Frame:
    """The rows of several files, one behind the other.

    Raises:
        DataError: they do not have the same columns.
    """
    first = frames[0]
    if len(frames) == 1:
        return first
    for other in frames[1:]:
        if set(other.columns) != set(first.columns):
            odd = sorted(set(other.columns) ^ set(first.columns))
            raise DataError(
                f"{other.files[0]}: its columns are not those of {first.files[0]}: {', '.join(odd)}"
            )
    files = tuple(name for f in frames for name in f.files)
    starts = np.cumsum([0, *(len(f.files) for f in frames[:-1])])
    return Frame(
        {name: _appended(name, [f.columns[name] for f in frames], frames) for name in first.columns},
        files,
        np.concatenate([f.file_of + s for f, s in zip(frames, starts, strict=True)]).astype(np.int32),
        np.concatenate([f.line_of for f in frames]),
        tuple(dict.fromkeys(note for f in frames for note in f.notes)),
    )  # fmt: skip


def _appended(name: str, parts: Sequence[Values], frames: Sequence[Frame]) -> Values:
    for part, frame in zip(parts[1:], frames[1:], strict=True):
        if part.kind != parts[0].kind:
            raise DataError(
                f"{frame.files[0]}: column {name} holds {part.kind}, "
                f"in {frames[0].files[0]} it holds {parts[0].kind}"
            )
    if isinstance(parts[0].rows, np.ndarray):
        return Values(parts[0].kind, np.concatenate([p.rows for p in parts]))
    if isinstance(parts[0].rows, Packed):
        return Values(parts[0].kind, Packed(parts[0].kind, (row for p in parts for row in p.rows)))
    return Values(parts[0].kind, [row for p in parts for row in p.rows])


class Faults:
    """What is wrong with single rows: the first one is raised, or all are gathered.

    Args:
        frame: tells where a row stands.
        gather: keep the faults (for `dataset check`) instead of raising the first.
    """

    def __init__(self, frame: Frame, gather: bool = False) -> None:
        self.frame, self.gather = frame, gather
        self.found: dict[int, str] = {}
        self.first = 0
        """Row of the frame that row 0 is, while rows are looked at a block at a time."""
        self.subject = ""
        self.columns: Sequence[str] = ()

    def about(self, subject: str, columns: Sequence[str] = ()) -> Faults:
        """The same faults, for messages about a column or field, or about several columns."""
        self.subject, self.columns = subject, columns
        return self

    def add(self, row: int, message: str) -> None:
        """Row `row` cannot be used.

        Raises:
            DataError: names file and line, unless faults are gathered.
        """
        if len(message) > _LONG:  # a cell that holds a whole text
            message = f"{message[:100]} ... {message[-100:]}"
        text = f"{self.place(row)}: {self.subject}: {message}"
        if not self.gather:
            raise DataError(text, hint="`paddlecli dataset check` lists all such rows")
        self.found.setdefault(self.first + int(row), text)

    def place(self, row: int) -> Place:
        """Where row `row` stands."""
        return self.frame.place(self.first + row)

    def behind(self, first: int) -> Faults:
        """The same faults, for rows from number `first` of the frame on."""
        self.first = first
        return self


Bad = Callable[[str], None]
"""Is told of a line that makes no row."""


def raising(text: str) -> None:
    """Raises DataError: the usual answer to a line that makes no row."""
    raise DataError(text, hint="`paddlecli dataset check` lists all such lines")


def numbers_of(
    columns: Sequence[Values], names: Sequence[str], faults: Faults
) -> NDArray[np.float64]:
    """Columns side by side as numbers, NaN where one is missing."""
    if len(columns) == 1 or any(values.kind != "cells" for values in columns):
        made = [_numbers(values, name, faults) for values, name in zip(columns, names, strict=True)]
        return np.concatenate(made, axis=1) if len(made) != 1 else made[0]
    found = np.empty((len(columns[0]), len(columns)))
    for place, (values, name) in enumerate(zip(columns, names, strict=True)):
        found[:, place] = _parsed(values.rows, name, faults)
    return found


def _numbers(values: Values, name: str, faults: Faults) -> NDArray[np.float64]:
    if values.kind == "cells":
        return _parsed(values.rows, name, faults)[:, None]
    rows = np.asarray(values.rows, np.float64) if values.kind in _NUMERIC else None
    if rows is None or rows.ndim > 2:
        raise DataError(f"{faults.frame.files[0]}: column {name} holds {values.kind}, not numbers")
    return rows.reshape(len(rows), -1)


_NUMERIC = ("numbers", "ids", "arrays")


_ODD = re.compile("[_nN]")  # nan, inf, NA, and Python's own 1_000


def _parsed(cells: Sequence[str], name: str, faults: Faults) -> NDArray[np.float64]:
    if isinstance(cells, Packed):
        found = np.empty(len(cells))
        for first, block in cells.blocks():
            found[first : first + len(block)] = _parsed(block, name, faults.behind(first))
        faults.behind(0)
        return found
    try:
        if not _ODD.search("\n".join(cells)):
            return np.asarray(cells, np.float64)
    except ValueError:
        pass
    found = np.full(len(cells), np.nan)
    for row, cell in enumerate(cells):
        if is_missing(cell):
            continue
        try:
            found[row] = parse_number(cell, "", 0, "")
        except DataError:
            faults.about(name).add(row, f"{cell!r} is not a number")
    return found


def cells_of(values: Values, name: str, faults: Faults) -> Sequence[str]:
    """A column as texts: whole numbers without a decimal point, missing ones empty."""
    if values.kind == "cells":
        found: Sequence[str] = values.rows
        return found
    if values.kind in _NUMERIC and np.asarray(values.rows).reshape(len(values), -1).shape[1] == 1:
        return [_text(v) for v in np.asarray(values.rows).reshape(-1).tolist()]
    raise DataError(f"{faults.frame.files[0]}: column {name} holds {values.kind}, not texts")


def _text(value: Any) -> str:
    if isinstance(value, float):
        if value != value:
            return ""
        return str(int(value)) if value.is_integer() else repr(value)
    return str(value)
