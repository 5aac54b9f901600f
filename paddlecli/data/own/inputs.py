"""What `predict` reads for a model that was trained on a user's own files: the same formats, through
the fields that were frozen when it was trained."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from paddlecli.data.columns import Column
from paddlecli.data.formats import images
from paddlecli.data.frozen import thaw
from paddlecli.data.own.fields import Field
from paddlecli.data.own.frame import Faults, Frame, Values, frame_of
from paddlecli.data.own.pictures import is_pictures
from paddlecli.data.readers.base import decode, is_missing, split_lines
from paddlecli.data.readers.delimited import cells_in
from paddlecli.data.readers.jsonl import columns_of, json_object
from paddlecli.data.readers.parquet import parquet_rows
from paddlecli.data.readers.text_files import sentences
from paddlecli.data.records import Arrays, File, Kind, Record, guarded, inputs_of, label_of
from paddlecli.data.transforms.text import Marks, VocabularyIds
from paddlecli.errors import DataError, UsageError

Spec = Mapping[str, Any]


class _Known:
    """The fields of the model in use; they are made once, not once a row."""

    def __init__(self) -> None:
        self._spec: Spec | None = None
        self._fields: list[Field] = []

    def fields(self, spec: Spec) -> list[Field]:
        if self._spec is not spec:
            self._spec, self._fields = spec, thaw(spec)
        return self._fields


_KNOWN = _Known()
_SHOWN = 5
"""Unknown words that a note lists."""


def _records(spec: Spec, file: File) -> Iterator[Record]:
    """One record a row, a line, a sentence or a picture."""
    suffix = Path(file.name).suffix.lower()
    form = {".jsonl": "jsonl", ".json": "jsonl", ".parquet": "parquet"}.get(suffix)
    form = form or str(spec["source"]["format"])
    if suffix == ".csv" and form == "lines":
        form = "delimited"
    if suffix in images.SUFFIXES or form == "pictures":
        yield guarded(file.name, lambda: _picture(spec, file))
        return
    rows = 0
    try:
        for record in _FORMS[form](spec, file):
            rows += 1
            yield record
    except DataError as error:
        yield Record(file.name, error=error.message)
        return
    if not rows:
        held = "text" if form == "files" else "rows"
        yield Record(file.name, error=f"{file.name}: holds no {held}")


def _delimited(spec: Spec, file: File) -> Iterator[Record]:
    options = spec["source"] if spec["source"]["format"] == "delimited" else _CSV
    names: list[str] | None = list(options["columns"]) if options["columns"] else None
    header = bool(options["header"])
    for line, cells in cells_in(
        decode(file.read(), file.name, options["encoding"]), file.name, options
    ):
        if header:
            names, header = names or cells, False
            continue
        wanted = _columns(spec) if names is None else names
        name = f"{file.name}:{line}"
        yield guarded(name, partial(_row_of_cells, spec, file.name, line, wanted, cells, name))


_CSV: dict[str, Any] = {
    "delimiter": ",", "quote": '"', "header": True, "columns": None, "encoding": "utf-8", "comment": None
}  # fmt: skip


def _columns(spec: Spec) -> list[str]:
    """Names of a table without a header: c1, c2 and so on, as they were in training."""
    known = {c for field in _KNOWN.fields(spec) for c in field.columns}
    return sorted(known, key=lambda c: int(c[1:]) if c[1:].isdigit() else 0)


def _row_of_cells(
    spec: Spec, file: str, line: int, names: Sequence[str], cells: Sequence[str], name: str
) -> Record:
    if len(names) != len(cells):
        inputs = [c for c in names if c in _needed(spec)]
        if len(inputs) != len(cells):
            raise DataError(f"{file}: line {line} has {len(cells)} cells, not {len(names)}")
        names = inputs
    held = {n: Values("cells", [c]) for n, c in zip(names, cells, strict=True)}
    return record_of(spec, frame_of(held, file, [line]), name)


def _inputs(spec: Spec) -> list[Field]:
    """The fields that the model needs to predict."""
    names = {f["name"] for f in inputs_of(spec)}
    return [f for f in _KNOWN.fields(spec) if f.name in names]


def _needed(spec: Spec) -> set[str]:
    return {c for f in _inputs(spec) for c in f.columns}


def _json(spec: Spec, file: File) -> Iterator[Record]:
    for number, line in split_lines(decode(file.read(), file.name)):
        if line.strip():
            name = f"{file.name}:{number}"
            yield guarded(name, partial(_row_of_json, spec, file.name, number, line, name))


def _row_of_json(spec: Spec, file: str, number: int, line: str, name: str) -> Record:
    row = json_object(line, f"{file}: line {number}")
    return record_of(spec, frame_of(columns_of([row], [number], file), file, [number]), name)


def _parquet(spec: Spec, file: File) -> Iterator[Record]:
    frame = parquet_rows(Path(file.name))
    for row in range(len(frame)):
        name = f"{file.name}:{row + 1}"
        yield guarded(name, partial(record_of, spec, frame.take(np.asarray([row])), name))


def _text(spec: Spec, file: File) -> str:
    """The text of a file. Where training took bytes as they come, those that are no text stay."""
    data, source = file.read(), spec["source"]
    if source.get("undecodable") == "escape" and b"\0" not in data:
        return data.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    return decode(data, file.name, source["encoding"])


def _lines(spec: Spec, file: File) -> Iterator[Record]:
    """Lines with a label before the text, or without; the target of a pair may be left out."""
    source = spec["source"]
    columns = list(source["columns"])
    for number, line in split_lines(_text(spec, file)):
        if not line.strip():
            continue
        parts = line.split("\t", len(columns) - 1)
        used = columns[: len(parts)] if columns[0] != "label" else columns[-len(parts) :]
        held = {c: Values("cells", [p.strip()]) for c, p in zip(used, parts, strict=True)}
        name = f"{file.name}:{number}"
        yield guarded(name, partial(record_of, spec, frame_of(held, file.name, [number]), name))


def _whole(spec: Spec, file: File) -> Iterator[Record]:
    """One text a file, as in the folders of the training."""
    text = " ".join(_text(spec, file).split())
    if text:
        held = {spec["source"]["columns"][0]: Values("cells", [text])}
        yield guarded(file.name, partial(record_of, spec, frame_of(held, file.name), file.name))


def _conll(spec: Spec, file: File) -> Iterator[Record]:
    """Sentences with all columns of the training, or with the input columns alone."""
    source = dict(spec["source"])
    text = decode(file.read(), file.name, source["encoding"])
    first = next((row for _, row in split_lines(text) if row.strip()), "")
    inputs = [c for c in source["columns"] if c in _needed(spec)]
    if len(first.split()) == len(inputs):
        source["columns"] = inputs
    frame = sentences(text, file.name, source)
    for row in range(len(frame)):
        name = f"{file.name}:{frame.line_of[row]}"
        yield guarded(name, partial(record_of, spec, frame.take(np.asarray([row])), name))


_FORMS = {
    "delimited": _delimited,
    "jsonl": _json,
    "parquet": _parquet,
    "lines": _lines,
    "files": _whole,
    "conll": _conll,
    "arrays": _json,
}


def _picture(spec: Spec, file: File) -> Record:
    fields = _inputs(spec)
    if len(fields) != 1 or not is_pictures(fields[0]):
        raise DataError(
            f"{file.name}: this model takes {', '.join(sorted(_needed(spec)))}, not a picture alone"
        )
    held = {fields[0].columns[0]: Values("cells", [file.read()])}
    return record_of(spec, frame_of(held, file.name), file.name)


def record_of(spec: Spec, frame: Frame, name: str) -> Record:
    """The record of a frame of one row.

    Raises:
        DataError: a column that the model needs is missing, or a value cannot be used.
    """
    inputs: Arrays = {}
    labels: Arrays = {}
    notes: list[str] = []
    missing = sorted(_needed(spec) - set(frame.columns))
    if missing:
        raise DataError(f"{name}: {_lacking(missing, frame, spec)}")
    wanted = {f.name for f in _inputs(spec)}
    for field in _KNOWN.fields(spec):
        if field.name in wanted:
            inputs[field.name] = _value(field, frame)
            odd = field.unknown(frame, Faults(frame))
            notes += [
                f"{column}: the training data have no {value!r}" for column, value in odd.items()
            ]
        elif set(field.columns) <= set(frame.columns) and not _blank(field, frame):
            try:
                labels[field.name] = _value(field, frame)
            except DataError as error:
                notes.append(f"its label cannot be used: {error.message.partition(': ')[2]}")
    words, told = _words(spec, frame)
    return Record(name, inputs, labels, (*notes, *told), words=words)


def _blank(field: Field, frame: Frame) -> bool:
    """Whether the row has the label's columns, but nothing in them: then it has no label."""
    cells = [frame.column(c).rows[0] for c in field.columns]
    return all(isinstance(c, str) and is_missing(c) for c in cells)


def _plain(word: str) -> str:
    """The word, with bytes that are no text as `\\xff`."""
    return word.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _words(spec: Spec, frame: Frame) -> tuple[tuple[str, ...], list[str]]:
    """The words of the first field that is made of words, and what to say of those that are unknown."""
    for field in _inputs(spec):
        found = field.words(frame, Faults(frame))
        if found is None:
            continue
        steps = field.chains[0].steps
        known = next(s.table.ids for s in steps if isinstance(s, VocabularyIds))
        marks = {m for s in steps if isinstance(s, Marks) for m in (*s.first, *s.last)}
        odd = list(dict.fromkeys(w for w in found if w not in known))
        notes = []
        if odd:
            count = sum(w not in known for w in found)
            shown = ", ".join(map(_plain, odd[:_SHOWN])) + (", ..." if len(odd) > _SHOWN else "")
            total = sum(w not in marks for w in found)
            notes.append(f"{count} of {total} words not in the vocabulary: {shown}")
        return tuple(found), notes
    return (), []


def _lacking(missing: Sequence[str], frame: Frame, spec: Spec) -> str:
    """What to say of columns that are not there."""
    which = "column {} is" if len(missing) == 1 else "columns {} are"
    text = f"the {which.format(', '.join(missing))} missing; there are {', '.join(frame.columns)}"
    if len(frame.columns) > 1 or spec["source"]["format"] != "delimited":
        return text
    mark = spec["source"]["delimiter"]
    return f"{text} (cells are separated by {mark!r}, as in the training data)"


def _value(field: Field, frame: Frame) -> Any:
    column: Column = field.apply(frame, Faults(frame))
    return column.row(0)


def _from_fields(spec: Spec, given: Mapping[str, str]) -> Record:
    known = {c for f in _KNOWN.fields(spec) for c in f.columns}
    unknown = [n for n in given if n not in known]
    if unknown:
        raise UsageError(
            f"--field {unknown[0]}: no such column; there are {', '.join(sorted(known))}"
        )
    missing = sorted(_needed(spec) - set(given))
    if missing:
        raise DataError(
            f"--field: {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
        )
    held = {name: _given(value, spec) for name, value in given.items()}
    here = str(Path.cwd() / "--field")
    try:
        return record_of(spec, frame_of(held, here), label_of(given))
    except DataError as error:  # the folder is there for files that fields name
        raise DataError(error.message.replace(here, "--field"), error.hint) from None


def _given(value: str, spec: Spec) -> Values:
    """A value of the command line: JSON for models of JSON lines, words where columns are words."""
    form = spec["source"]["format"]
    if form == "conll":
        return Values("words", [value.split()])
    if form in ("jsonl", "arrays"):
        try:
            return columns_of([{"value": json.loads(value)}], [1], "--field")["value"]
        except OverflowError:
            raise DataError("--field: a number is too large") from None
        except ValueError:
            pass
    return Values("cells", [value])


def _from_text(spec: Spec, text: str) -> Record:
    """The record of one text, for a model whose only input is made of one column of texts."""
    inputs = _inputs(spec)
    columns = {c for f in inputs for c in f.columns}
    first = inputs[0].columns[0]
    if len(columns) != 1 or not any(
        "cells" in s.takes and s.gives == "words" for f in inputs for s in f.chains[0].steps
    ):
        if spec["source"]["format"] != "conll" or len(columns) != 1:
            raise UsageError(
                f"--text does not fit: this model takes {', '.join(sorted(columns))}",
                hint="--field NAME=VALUE for each of them",
            )
        return record_of(spec, frame_of({first: Values("words", [text.split()])}, "--text"), text)
    return record_of(spec, frame_of({first: Values("cells", [text])}, "--text"), text)


_FILES: dict[str, tuple[tuple[str, ...], str]] = {
    "delimited": ((".csv", ".tsv", ".txt", ".data", ".jsonl", ".parquet"), "rows of a table"),
    "jsonl": ((".jsonl", ".json", ".parquet"), "rows of JSON lines"),
    "arrays": ((".jsonl", ".json"), "rows of JSON lines"),
    "lines": ((".txt", ".tsv", ".csv", ".jsonl"), "texts, one a line"),
    "files": ((".txt", ""), "texts, one a file"),
    "conll": ((".conll", ".txt", ".tsv"), "tagged sentences"),
    "pictures": (images.SUFFIXES, "pictures"),
}


def kind_of(spec: Spec) -> Kind:
    """How inputs of a model are read that was trained on a user's own files."""
    suffixes, takes = _FILES[str(spec["source"]["format"])]
    example = f"paddlecli predict RUN FILE{suffixes[0]}, or --field NAME=VALUE"
    folders = spec["source"]["format"] == "pictures"
    return Kind(_records, _from_fields, suffixes, takes, example, _from_text, folders)
