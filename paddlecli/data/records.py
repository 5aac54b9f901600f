"""The kinds of inputs that `predict` reads, and how each becomes records.

`image`: one file, one record. `table`: one row, one record; comma, semicolon, tab or blanks.
`values`: one JSON object a line, one record; for data sets without files of their own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paddlecli.data.columns import Statistics
from paddlecli.data.formats import images
from paddlecli.data.readers.base import check_classes, decode, parse_number
from paddlecli.data.readers.csv import Row, read_rows
from paddlecli.errors import DataError, UsageError

Spec = Mapping[str, Any]
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Record:
    """One input. `arrays` has one item a field, without a batch axis; `labels` those of the label
    fields that the input happened to hold. `error` says why there are none. `notes` is what was
    done that a user should know. `words` are those of the sequence, where it is made of words."""

    input: str
    arrays: Arrays = field(default_factory=dict)
    labels: Arrays = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    error: str | None = None
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class File:
    """One file of the command line: its name for records, how to get its bytes, and the folder named
    after a class that it lies in, if it does."""

    name: str
    read: Callable[[], bytes]
    folder: str = ""


def guarded(name: str, make: Callable[[], Record]) -> Record:
    try:
        return make()
    except DataError as error:
        return Record(name, error=error.message)


def label_of(given: Mapping[str, str]) -> str:
    return " ".join(f"{k}={v}" for k, v in given.items())


def file_of(path: Path, name: str | None = None, folder: str = "") -> File:
    def read() -> bytes:
        try:
            return path.read_bytes()
        except FileNotFoundError:
            raise DataError(f"{path}: no such file") from None
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror}") from None

    return File(name or str(path), read, folder)


def _image_records(spec: Spec, file: File) -> Iterator[Record]:
    yield guarded(file.name, lambda: _image(spec, file.read(), file.name))


def _image(spec: Spec, data: bytes, name: str) -> Record:
    target = inputs_of(spec)[0]
    normalise = spec.get("normalise") or {}
    made = images.picture(
        data, name, _triple(target["shape"]), spec.get("ink"), normalise.get("box")
    )
    return Record(
        name, {target["name"]: made.array.astype(target["dtype"], copy=False)}, {}, made.notes
    )


def _image_from_fields(spec: Spec, given: Mapping[str, str]) -> Record:
    name = inputs_of(spec)[0]["name"]
    if set(given) != {name}:
        raise UsageError(f"--field {label_of(given)}: this model has one field, {name}=FILE")
    return _image(spec, file_of(Path(given[name]).expanduser()).read(), given[name])


def _triple(shape: Sequence[int]) -> tuple[int, int, int]:
    channels, height, width = shape
    return channels, height, width


def _table_records(spec: Spec, file: File) -> Iterator[Record]:
    rows = 0
    try:
        for row in read_rows(decode(file.read(), file.name), file.name):
            rows += 1
            name = f"{file.name}:{row.line}"
            yield guarded(name, partial(_table_row, spec, row, file.name, name))
    except DataError as error:
        yield Record(file.name, error=error.message)
    else:
        if not rows:
            yield Record(file.name, error=f"{file.name}: holds no rows")


def _table_row(spec: Spec, row: Row, file: str, name: str) -> Record:
    wanted = [c for f in inputs_of(spec) for c in f["columns"]]
    everything = [c for f in spec["fields"] for c in f["columns"]]
    complete = (
        len(row.cells) == len(everything) if row.header is None else _has(row.header, everything)
    )
    columns = everything if complete else wanted
    cells = dict(zip(columns, row.pick(columns, file), strict=True))
    numbers = {c: parse_number(text, file, row.line, c) for c, text in cells.items()}
    arrays = {
        f["name"]: _table_field(spec, f, numbers)
        for f in spec["fields"]
        if set(f["columns"]) <= set(numbers)
    }
    return _divided(spec, name, arrays)


def _has(header: Sequence[str], names: Iterable[str]) -> bool:
    known = {h.casefold() for h in header}
    return all(n.casefold() in known for n in names)


def _table_field(
    spec: Spec, target: Mapping[str, Any], numbers: Mapping[str, float]
) -> NDArray[Any]:
    raw = np.array([numbers[c] for c in target["columns"]])
    found = spec.get("statistics", {}).get(target["name"])
    if found is not None:
        raw = statistics_of(found).apply(raw)
    return raw.astype(target["dtype"]).reshape(target["shape"])


def statistics_of(stored: Mapping[str, Any]) -> Statistics:
    """Scaling statistics from their plain form."""
    return Statistics(
        stored["rule"],
        tuple(stored["columns"]),
        tuple(stored["offset"]),
        tuple(stored["divisor"]),
        tuple(stored["constant"]),
    )


def _table_from_fields(spec: Spec, given: Mapping[str, str]) -> Record:
    known = {c.casefold(): c for f in spec["fields"] for c in f["columns"]}
    unknown = [n for n in given if n.casefold() not in known]
    if unknown:
        raise UsageError(
            f"--field {unknown[0]}: no such column; there are {', '.join(known.values())}"
        )
    missing = [
        c
        for f in inputs_of(spec)
        for c in f["columns"]
        if c.casefold() not in {n.casefold() for n in given}
    ]
    if missing:
        raise DataError(
            f"--field: {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
        )
    return _table_row(spec, Row(1, list(given.values()), list(given)), "--field", label_of(given))


def _value_records(spec: Spec, file: File) -> Iterator[Record]:
    try:
        lines = decode(file.read(), file.name).splitlines()
    except DataError as error:
        yield Record(file.name, error=error.message)
        return
    for number, line in enumerate(lines, 1):
        if line.strip():
            name = f"{file.name}:{number}"
            yield guarded(name, partial(_value_line, spec, line, name))


def _value_line(spec: Spec, line: str, name: str) -> Record:
    return _values(spec, _object(line, name), name)


def _object(line: str, name: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError as error:
        raise DataError(f"{name}: not JSON: {error}") from None
    if not isinstance(found, dict):
        raise DataError(
            f'{name}: expected an object with one value a field, such as {{"x": [1.0, 2.0]}}'
        )
    return found


def _values(spec: Spec, given: Mapping[str, Any], name: str) -> Record:
    missing = [f["name"] for f in inputs_of(spec) if f["name"] not in given]
    if missing:
        raise DataError(f"{name}: the field {', '.join(missing)} is missing")
    arrays = {
        f["name"]: _value(f, given[f["name"]], name) for f in spec["fields"] if f["name"] in given
    }
    return _divided(spec, name, arrays)


def _value(target: Mapping[str, Any], value: Any, name: str) -> NDArray[Any]:
    shape, levels = tuple(target["shape"]), len(target.get("axes", ()))
    if levels > 1:
        raise DataError(f"{name}: {target['name']}: nested sequences cannot be given as values")
    try:
        array = np.asarray(value, np.float64)
        whole = not str(target["dtype"]).startswith("float")
        if whole and not bool((array == np.rint(array)).all()):
            raise DataError(f"{name}: {target['name']}: expected whole numbers")
        check_classes(np.atleast_1d(array), target.get("classes"), Path(name), target["name"])
        return array.astype(target["dtype"]).reshape((-1, *shape) if levels else shape)
    except (TypeError, ValueError):
        wanted = (
            f"a list of items of shape {list(shape)}"
            if levels
            else f"numbers of shape {list(shape)}"
        )
        raise DataError(f"{name}: {target['name']}: expected {wanted}") from None


def _values_from_fields(spec: Spec, given: Mapping[str, str]) -> Record:
    parsed = {}
    for name, value in given.items():
        try:
            parsed[name] = json.loads(value)
        except ValueError:
            raise UsageError(
                f"--field {name}={value}: expected a JSON value such as 1.5 or [1, 2, 3]"
            ) from None
    return _values(spec, parsed, label_of(given))


def inputs_of(spec: Spec) -> list[dict[str, Any]]:
    """The fields that a prediction reads: all inputs, or those that the model says it needs."""
    needed = spec.get("needed")
    return [
        f
        for f in spec["fields"]
        if f["role"] == "input" and (needed is None or f["name"] in needed)
    ]


def _divided(spec: Spec, name: str, arrays: Arrays) -> Record:
    labels = {f["name"] for f in spec["fields"] if f["role"] == "label"}
    return Record(
        name,
        {n: a for n, a in arrays.items() if n not in labels},
        {n: a for n, a in arrays.items() if n in labels},
    )


@dataclass(frozen=True)
class Kind:
    """One kind: its reader of files, its reader of fields, the files that a folder is searched for,
    what it takes in words, an example for hints, its reader of texts where it takes them, and whether
    folders inside a folder may be named after classes."""

    records: Callable[[Spec, File], Iterator[Record]]
    from_fields: Callable[[Spec, Mapping[str, str]], Record]
    suffixes: tuple[str, ...]
    takes: str
    example: str
    from_text: Callable[[Spec, str], Record] | None = None
    folders: bool = False


KINDS = {
    "image": Kind(
        _image_records,
        _image_from_fields,
        images.SUFFIXES,
        "pictures",
        "paddlecli predict RUN picture.png",
        folders=True,
    ),
    "table": Kind(
        _table_records,
        _table_from_fields,
        (".csv", ".tsv", ".txt", ".data"),
        "rows of a table",
        "paddlecli predict RUN rows.csv, or --field NAME=VALUE",
    ),
    "values": Kind(
        _value_records,
        _values_from_fields,
        (".jsonl", ".json"),
        "values by field",
        "paddlecli predict RUN inputs.jsonl, or --field NAME=VALUE",
    ),
}
