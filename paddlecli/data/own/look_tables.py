"""A first look at a table: delimiter, header, what each column is, and which one is to be predicted."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from paddlecli.data.own.frame import Frame, Values
from paddlecli.data.own.look_facts import (
    LEAST_ROWS,
    ColumnLook,
    Kind,
    Look,
    Task,
    counted,
    is_number,
    listed,
    many,
    some,
    split,
)
from paddlecli.data.readers.base import is_missing
from paddlecli.errors import DataError, UsageError

TARGETS = ("target", "label", "y", "class", "outcome")
"""Names by which a column is taken for the one to predict, in any case of letters."""
DELIMITERS = (",", ";", "\t", "|")
MOST_CATEGORIES = 50
MOST_CLASSES = 20
"""Whole numbers of at most so many different values are taken for classes."""
TEXT_WORDS = 3
"""A text has so many words in the mean, a name fewer."""


def options_of(text: str, path: Path) -> dict[str, Any]:
    """Delimiter, quotes and header of a table, from its first lines.

    Raises:
        DataError: the file is empty, or no delimiter is in its lines.
    """
    head = [line for line in text.splitlines() if line.strip()][:50]
    if not head:
        raise DataError(f"{path}: is empty")
    widths = {d: _widths(head, d) for d in DELIMITERS}
    best = max(
        DELIMITERS, key=lambda d: (min(widths[d]) > 1, len(set(widths[d])) == 1, max(widths[d]))
    )
    if max(widths[best]) < 2:
        raise DataError(
            f"{path}: line 1 has no comma, semicolon, tab or bar: this is no table",
            hint="texts are read as lines of `label TAB text`, or as one folder a class",
        )
    quote = None if best == "\t" else '"'
    rows = [r for r in _rows(head, best, quote) if len(r) == widths[best][0]]
    return {"delimiter": best, "quote": quote, "header": _has_header(rows)}


def _rows(head: Sequence[str], delimiter: str, quote: str | None = '"') -> list[list[str]]:
    reader = csv.reader(
        io.StringIO("\n".join(head)), delimiter=delimiter, quotechar=quote,
        quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE, skipinitialspace=True,
    )  # fmt: skip
    return [[cell.strip() for cell in row] for row in reader]


def _widths(head: Sequence[str], delimiter: str) -> list[int]:
    return [len(row) for row in _rows(head, delimiter)] or [0]


def _has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row names the columns: it has no number, and below it are numbers, or at
    least nothing that stands in it too."""
    first, below = rows[0], rows[1:]
    if any(is_number(cell) for cell in first):
        return False
    if any(below and all(is_number(row[i]) for row in below) for i in range(len(first))):
        return True
    unique = len(set(first)) == len(first) and "" not in first
    return unique and not any(cell == row[i] for row in below for i, cell in enumerate(first))


def section_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """The recipe's settings for a table of this form."""
    found: dict[str, Any] = {"name": "tsv" if options["delimiter"] == "\t" else "csv"}
    if options["delimiter"] not in (",", "\t"):
        found["delimiter"] = options["delimiter"]
    if not options["header"]:
        found["header"] = False
    return found


def look_at_table(
    frame: Frame, path: Path, section: Mapping[str, Any], target: str | None, task: Task | None
) -> Look:
    """What the columns of a table are, and the settings that say so.

    section: the settings that read the file. target, task: guessed where None.
    Raises UsageError, DataError: see `look`.
    """
    columns = [_column(name, values) for name, values in frame.columns.items()]
    names = [c.name for c in columns]
    chosen = _target(names, target, path, headerless=section.get("header") is False)
    own = next(c for c in columns if c.name == chosen)
    cells = _cells(frame.columns[chosen])
    _enough(cells, own, path)
    task = task or _task(own, cells)
    inputs = [c for c in columns if c.name != chosen]
    used = [c for c in inputs if c.kind in ("number", "category", "text")]
    used = used or [c for c in inputs if c.kind == "id"]  # better than nothing
    if not used:
        raise DataError(f"{path}: beside {chosen!r} there is no column to learn from")
    data: dict[str, Any] = {**section, "train": str(path.absolute()), "label": chosen, "task": task}
    for key, kind in (("categories", "category"), ("text", "text")):
        if listed_here := [c.name for c in used if c.kind == kind]:
            data[key] = listed_here
    if ignored := [c.name for c in inputs if c not in used]:
        data["ignore"] = ignored
    if missing := _missing(own, used):
        data["missing"] = missing
    found, spread = counted(cells), (0.0, 1.0)
    if task == "regression":
        found, spread = (), _spread(cells, own, path, frame)
    data["split"] = split(len(frame), chosen if found else None, found)
    form = "without a header" if section.get("header") is False else "with a header"
    form = "of JSON objects" if section["name"] == "jsonl" else form
    what = f"a table {form}, {many(len(frame), 'row')}, {many(len(columns), 'column')}"
    return Look(
        what,
        data,
        task,
        chosen,
        len(frame),
        found,
        spread,
        tuple(columns),
        _notes(columns, used, own, task, target),
    )


def _column(name: str, values: Values) -> ColumnLook:
    if values.kind not in ("cells", "numbers") or (
        values.kind == "numbers" and np.asarray(values.rows).shape[1:] != (1,)
    ):
        kind: Kind = "number" if values.kind == "numbers" else "other"
        return ColumnLook(name, kind, 0, len(values), f"a row of {values.kind} each")
    cells = _cells(values)
    held = [c for c in cells if not is_missing(c)]
    missing, counts = len(cells) - len(held), Counter(held)
    if not held:
        return ColumnLook(name, "empty", missing, 0, "no value")
    if len(counts) == 1:
        return ColumnLook(name, "constant", missing, 1, f"always {held[0]}")
    if all(map(is_number, held)):
        return _number_column(name, held, missing, len(counts))
    words = sum(len(c.split()) for c in held) / len(held)
    if len(counts) <= MOST_CATEGORIES and len(counts) <= max(len(held) // 2, 2):
        return ColumnLook(name, "category", missing, len(counts), listed(counts))
    if words >= TEXT_WORDS:
        return ColumnLook(name, "text", missing, len(counts), f"{words:.0f} words in the mean")
    return ColumnLook(
        name,
        "other",
        missing,
        len(counts),
        f"{many(len(counts), 'different value')} such as {held[0]}",
    )


def _number_column(name: str, held: Sequence[str], missing: int, distinct: int) -> ColumnLook:
    numbers = [float(c) for c in held]
    counting = distinct == len(held) > 9 and all(b - a == 1 for a, b in pairwise(numbers))
    about = f"{min(numbers):g} to {max(numbers):g}"
    return ColumnLook(name, "id" if counting else "number", missing, distinct, about)


def _cells(values: Values) -> list[str]:
    """A column as texts."""
    if values.kind == "cells":
        return list(values.rows)
    flat = np.asarray(values.rows).reshape(-1).tolist()
    return ["" if v != v else str(int(v)) if float(v).is_integer() else repr(v) for v in flat]


def _target(names: Sequence[str], target: str | None, path: Path, headerless: bool) -> str:
    if target is not None:
        if target in names:
            return target
        from paddlecli.config.nodes import close_names

        near = close_names(target, list(names))
        meant = f"did you mean {' or '.join(near)}?" if near else f"columns: {some(names)}"
        raise UsageError(f"{path}: there is no column {target!r}", hint=meant)
    fitting = [n for n in names if n.casefold() in TARGETS]
    if len(fitting) == 1:
        return fitting[0]
    why = "several columns could be" if fitting else "nothing says which column is"
    note = " (the file has no header line)" if headerless else ""
    raise UsageError(
        f"{path}: {why} the one to predict{note}: {some(fitting or names)}",
        hint=f"say it with --target, for example --target {(fitting or names)[-1]}",
    )


def _enough(cells: Sequence[str], own: ColumnLook, path: Path) -> None:
    if len(cells) < LEAST_ROWS:
        raise DataError(f"{path}: {many(len(cells), 'row')}: there is nothing to train and test on")
    if own.distinct < 2:
        raise DataError(f"{path}: column {own.name!r} has {own.about}: there is nothing to learn")


def _task(own: ColumnLook, cells: Sequence[str]) -> Task:
    """Classes are texts, or whole numbers of few different values, each several times."""
    held = [c for c in cells if not is_missing(c)]
    if not all(map(is_number, held)):
        return "classification"
    whole = all(float(c).is_integer() for c in held)
    few = own.distinct <= MOST_CLASSES and own.distinct * 3 <= len(held)
    return "classification" if whole and few else "regression"


def _missing(own: ColumnLook, used: Sequence[ColumnLook]) -> str | None:
    """A target cannot be made up, nor can a text: such rows are left out. Other inputs are filled."""
    if own.missing or any(c.missing for c in used if c.kind == "text"):
        return "drop"
    return "fill" if any(c.missing for c in used) else None


def _spread(cells: Sequence[str], own: ColumnLook, path: Path, frame: Frame) -> tuple[float, float]:
    for row, cell in enumerate(cells):
        if not is_missing(cell) and not is_number(cell):
            raise DataError(
                f"{frame.place(row)}: {own.name}: {cell!r} is not a number",
                hint="for classes: --task classification",
            )
    numbers = np.array([float(c) for c in cells if not is_missing(c)])
    return float(numbers.mean()), float(numbers.std()) or 1.0


def _notes(
    columns: Sequence[ColumnLook],
    used: Sequence[ColumnLook],
    own: ColumnLook,
    task: Task,
    target: str | None,
) -> tuple[str, ...]:
    found = []
    if target is None:
        found.append(f"{own.name} is predicted because of its name: --target says another column")
    if own.kind == "number" or task == "regression":
        other = "regression" if task == "classification" else "classification"
        found.append(f"taken for a {task}: --task {other} says otherwise")
    if own.missing:
        found.append(f"{many(own.missing, 'row')} without {own.name} left out (missing: drop)")
    for c in columns:
        if c.name == own.name:
            continue
        if c.missing and c.kind in ("number", "category"):
            found.append(f"{c.name}: {many(c.missing, 'missing value')}")
        if c not in used and c.kind in ("id", "constant", "empty", "other"):
            why = {"id": "counts the rows", "constant": "never changes", "empty": "has no value"}
            found.append(
                f"{c.name} is not used: it {why.get(c.kind, 'has a value of its own in too many rows')}"
            )
    return tuple(found)
