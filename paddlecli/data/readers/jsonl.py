"""A user's own JSON lines (`jsonl`): rows of named values."""

from __future__ import annotations

import json
import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from paddlecli.config.registry import DATASETS
from paddlecli.config.types import Name, Natural
from paddlecli.data.own.columnar import Shorthand, TableReader, Task
from paddlecli.data.own.fields import FieldRecipe
from paddlecli.data.own.frame import Bad, Frame, Values, frame_of, raising
from paddlecli.data.own.packed import Packed
from paddlecli.data.own.reader import Common, Files, Missing
from paddlecli.data.own.splits import SplitRule
from paddlecli.data.readers.base import split_lines, text_stream
from paddlecli.errors import DataError

Scale = Literal["standardise", "mean_range", "min_max", "none"]


class RowsReader(TableReader):
    """Files of rows whose values have types.

    Args:
        name: of the format.
        common: what all readers of own files are given.
        shorthand: what the columns are, unless `fields` says it.
        fields: the fields of the network.
        read_file: from a file to its columns.
    """

    predicts: Mapping[str, Any] = {"format": "jsonl"}

    def __init__(
        self, name: str, common: Common, shorthand: Shorthand,
        fields: Mapping[str, FieldRecipe] | None, read_file: Callable[[Path, Bad], Frame],
    ) -> None:  # fmt: skip
        super().__init__(name, common, shorthand, fields)
        self._read_file = read_file

    def read(self, path: Path) -> Frame:
        """See `OwnReader.read`."""
        return self._read_file(path, self.bad)


def json_lines(path: Path, bad: Bad = raising) -> Frame:
    """The rows of a file with one JSON object a line; `bad` is told of a line that is none, that has
    keys which the first one lacks, or a value of another kind than most lines.

    Raises:
        DataError: no line at all.
    """
    usual = _usual_kinds(path, bad)
    made = {name: making(kind) for name, kind in usual.items()}
    numbers = array("q")
    for number, row in _objects(path, lambda text: None):
        odd = _odd(row, usual)
        if odd:
            bad(f"{path}: line {number}: {odd}")
            continue
        numbers.append(number)
        for name, column in made.items():
            column.append(row.get(name))
    columns = {name: values_of(name, c, numbers, str(path)) for name, c in made.items()}
    return frame_of(columns, str(path), numbers)


def _objects(path: Path, bad: Bad) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line number and object of every line that holds one."""
    with text_stream(path) as text:
        for number, line in split_lines(text):
            if not line.strip():
                continue
            try:
                yield number, json_object(line, f"{path}: line {number}")
            except DataError as error:
                bad(error.message)


def _usual_kinds(path: Path, bad: Bad) -> dict[str, str | None]:
    """For each key of the first row the rough kind that most of its values have."""
    counts: dict[str, Counter[str]] = {}
    for _, row in _objects(path, bad):
        counts = counts or {name: Counter() for name in row}
        for name, value in row.items():
            kind = _rough(value)
            if kind is not None and name in counts:
                counts[name][kind] += 1
    if not counts:
        raise DataError(f"{path}: holds no rows")
    return {name: c.most_common(1)[0][0] if c else None for name, c in counts.items()}


def _odd(row: Mapping[str, Any], usual: Mapping[str, str | None]) -> str:
    """What is odd about a row beside the others, or nothing."""
    new = next((k for k in row if k not in usual), None)
    if new is not None:
        return f"the key {new!r} is not in the first row"
    odd = next(
        (k for k, v in row.items() if usual[k] is not None and _rough(v) not in (None, usual[k])),
        None,
    )
    return (
        "" if odd is None else f"{odd}: {_shown(row[odd])} is not a {usual[odd]} as in other lines"
    )


class _Numbers:
    """A column of numbers in the making."""

    def __init__(self) -> None:
        self.found = array("d")

    def append(self, value: float | None) -> None:
        self.found.append(math.nan if value is None else float(value))


class _Cells:
    """A column of texts in the making."""

    def __init__(self) -> None:
        self.found = Packed("cells")

    def append(self, value: str | None) -> None:
        self.found.append("" if value is None else value.strip())


def making(kind: str | None) -> Any:
    """What takes the values of a column of a rough kind, one after the other."""
    return {"number": _Numbers, None: _Numbers, "text": _Cells}.get(kind, list)()


def values_of(name: str, made: Any, numbers: Sequence[int], source: str) -> Values:
    """The column that was made; see `columns_of`."""
    if isinstance(made, _Numbers):
        return Values("numbers", np.asarray(made.found)[:, None])
    if isinstance(made, _Cells):
        return Values("cells", made.found)
    return _column(name, made, numbers, source)


def _rough(value: Any) -> str | None:
    """The kind of a value as far as rows of one column have to agree; None where nothing says it."""
    kind = None if value is None else _kind(value)
    return {"bool": "number", "empty": None, "numbers": "list of numbers", "rows": "list of numbers",
            "words": "list of texts"}.get(kind, kind) if kind else None  # fmt: skip


def json_object(line: str, where: str) -> dict[str, Any]:
    """The object of one line.

    Raises:
        DataError: it is none, or has a key twice.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ValueError("a key comes twice")
        return found

    def number(text: str) -> float:
        value = float(text)
        if not math.isfinite(value):
            shown = text if len(text) <= 40 else text[:37] + "..."
            raise ValueError(f"{shown} is not a finite number")
        return value

    def whole(text: str) -> int:
        number(text)
        return int(text)

    try:
        found = json.loads(
            line, object_pairs_hook=unique, parse_float=number, parse_int=whole,
            parse_constant=number,
        )  # fmt: skip
    except ValueError as error:
        raise DataError(f"{where}: not JSON: {error}") from None
    except RecursionError:
        raise DataError(f"{where}: nested too deeply") from None
    if not isinstance(found, dict):
        raise DataError(f'{where}: expected an object such as {{"text": "..."}}')
    return found


def columns_of(
    rows: Sequence[Mapping[str, Any]], numbers: Sequence[int], source: str
) -> dict[str, Values]:
    """The columns of rows of plain values; the keys of the first row are the columns, a key that a
    later row lacks is a missing value.

    Raises:
        DataError: a key that the first row lacks, or values of different kinds in a column.
    """
    names = list(rows[0])
    for row, number in zip(rows, numbers, strict=True):
        odd = next((k for k in row if k not in rows[0]), None)
        if odd is not None:
            raise DataError(f"{source}: line {number}: the key {odd!r} is not in the first row")
    return {name: _column(name, [r.get(name) for r in rows], numbers, source) for name in names}


def _column(name: str, values: list[Any], numbers: Sequence[int], source: str) -> Values:
    kinds = {_kind(v) for v in values if v is not None}
    if kinds <= {"number", "bool"}:
        return Values("numbers", np.asarray([[np.nan if v is None else float(v)] for v in values]))
    if kinds == {"text"}:
        return Values("cells", ["" if v is None else v.strip() for v in values])
    if kinds <= {"words", "empty"}:
        return Values("words", [list(v or ()) for v in values])
    if kinds <= {"numbers", "rows", "empty"} and not {"numbers", "rows"} <= kinds:
        return _numeric(name, values, numbers, source)
    row = next(i for i, v in enumerate(values) if v is None or _kind(v) != _kind(values[0]))
    raise DataError(
        f"{source}: line {numbers[row]}: {name}: {_shown(values[row])} is not of the kind of "
        f"{_shown(values[0])} in line {numbers[0]}"
    )


def _numeric(name: str, values: list[Any], numbers: Sequence[int], source: str) -> Values:
    made = []
    for value, number in zip(values, numbers, strict=True):
        try:
            array = np.asarray(value if value is not None else [], np.float64)
        except (TypeError, ValueError):
            raise DataError(
                f"{source}: line {number}: {name}: the rows have different lengths"
            ) from None
        made.append(array)
    if len({a.shape for a in made}) == 1 and made[0].ndim == 1:
        return Values("numbers", np.stack(made))
    return Values("series", [a[:, None] if a.ndim == 1 else a for a in made])


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "text"
    if isinstance(value, list):
        inside = {_kind(v) for v in value}
        if not inside:
            return "empty"
        if inside == {"text"}:
            return "words"
        if inside <= {"number", "bool"}:
            return "numbers"
        return "rows" if inside == {"numbers"} else "other"
    return "other"


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else text[:37] + "..."


@DATASETS.register("jsonl")
def jsonl_files(
    *,
    train: Files,
    valid: Files | None = None,
    test: Files | None = None,
    split: SplitRule | None = None,
    label: Name | tuple[Name, ...] | None = None,
    task: Task | None = None,
    inputs: tuple[Name, ...] | None = None,
    categories: tuple[Name, ...] | None = None,
    text: tuple[Name, ...] | None = None,
    ignore: tuple[Name, ...] | None = None,
    scale: Scale | None = None,
    fields: dict[Name, FieldRecipe] | None = None,
    missing: Missing = "error",
    memory_mb: Natural = 1024,
    workers: Natural = 0,
    seed: Natural = 0,
) -> RowsReader:
    """Your own files with one JSON object a line. Keys are columns; a value is a number, a text, a list
    of words, a list of numbers, or a list of such lists.

    All numbers of a row become the field `x`, the label the field `y`; `fields` says it freely.

    Args:
        train: the file to train on, or several; `*` stands for any part of a name.
        valid: the file to validate on, or several.
        test: the file to test on, or several.
        split: shares of `train` that validate and test, instead of files.
        label: the column to predict, or several for a regression of several numbers.
        task: `regression` for numbers, `classification` for classes.
        inputs: the columns that are inputs; if left out, all but the label and what `split` goes by.
        categories: inputs that are categories: each becomes a column of 0 and 1 for every category.
        text: inputs that are texts: each becomes a field of word ids of its own name.
        ignore: columns that are not used.
        scale: how numbers are scaled, by the train rows; `standardise` if left out.
        fields: the fields of the network by name, each made from columns by transforms.
        missing: a row that lacks a value is an `error`, or left out (`drop`), or filled (`fill`: the mean
            of numbers, the most common category).
        memory_mb: pictures named in values are held in memory up to this.
        workers: processes that read pictures that are not held.
        seed: start of the random numbers of transforms.
    """
    common = Common(train, valid, test, split, missing == "drop", memory_mb << 20, workers, seed)
    shorthand = Shorthand(label, task, inputs, categories, text, ignore, scale, missing)
    return RowsReader("jsonl", common, shorthand, fields, json_lines)
