"""What `predict` reads: files, folders, patterns, stdin and fields, as arrays that a model takes.

`read_inputs` needs the plain `preprocessing` that `Dataset.preprocessing()` gave when the model was
trained, and nothing else: no data set, no recipe. One input makes one record, in order; one that
cannot be read makes a record that says why, and the others still come.
"""

from __future__ import annotations

import errno
import glob
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paddlecli.data.columns import Column
from paddlecli.data.formats import images
from paddlecli.data.own.inputs import kind_of
from paddlecli.data.readers.base import decode
from paddlecli.data.records import KINDS, File, Kind, Record, file_of, guarded, inputs_of, label_of
from paddlecli.errors import DataError, UsageError

_STDIN = "-"
_SHOWN = 60  # characters of a name that cannot be one


def read_inputs(
    preprocessing: Mapping[str, Any],
    paths: Sequence[str] = (),
    fields: Sequence[str] = (),
    text: Sequence[str] = (),
    lists: Sequence[str] = (),
    recursive: bool = True,
) -> Iterator[Record]:
    """Records of all inputs: those of `paths` in order, those of `lists`, then the one that `fields`
    make. Pictures in a folder with folders named after classes are labelled by them.

    Args:
        preprocessing: what `Dataset.preprocessing()` gave.
        paths: files, folders, patterns (`digits/*.png`) or `-` for stdin.
        fields: `NAME=VALUE`, together one input.
        text: texts, each one input; only for models that take text.
        lists: files with a path a line, as `paths` has them, or `-` for stdin.
        recursive: look for files in the folders inside a folder too.

    Raises:
        UsageError: nothing to read, a malformed field, or text for a model that takes none.
    """
    own = preprocessing.get("kind") == "fields"
    kind = kind_of(preprocessing) if own else KINDS.get(str(preprocessing.get("kind")))
    if kind is None:
        raise UsageError(
            f"this model's inputs are of the kind {preprocessing.get('kind')!r}, "
            f"which this version cannot read"
        )
    if text and kind.from_text is None:
        raise UsageError(f"--text does not fit: this model takes {kind.takes}", hint=kind.example)
    if not paths and not fields and not text and not lists:
        raise UsageError("no input given", hint=kind.example)
    if [*paths, *lists].count(_STDIN) > 1:
        raise UsageError("stdin can be read only once")
    given = _pairs(fields)
    look = _Look(kind.suffixes, recursive, _classes(preprocessing) if kind.folders else None)
    return _records(preprocessing, kind, _files(paths, lists, look), given, text)


def _records(
    spec: Mapping[str, Any],
    kind: Kind,
    files: Iterator[File | Record],
    given: dict[str, str],
    texts: Sequence[str],
) -> Iterator[Record]:
    known = _classes(spec) if kind.folders else None
    for file in files:
        if isinstance(file, Record):
            yield file
        elif file.folder and known is not None:
            yield from (known.labelled(r, file.folder) for r in kind.records(spec, file))
        else:
            yield from kind.records(spec, file)
    if given:
        yield guarded(label_of(given), lambda: kind.from_fields(spec, given))
    if kind.from_text is not None:
        for text in texts:
            yield guarded(text, partial(kind.from_text, spec, text))


def _pairs(fields: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for item in fields:
        name, sign, value = item.partition("=")
        if not sign or not name:
            raise UsageError(f"--field {item!r}: expected NAME=VALUE")
        if name in found:
            raise UsageError(f"--field {name} is given twice")
        found[name] = value
    return found


@dataclass(frozen=True)
class _Classes:
    """The label that a folder's name may be: its field, the names of its classes, and the field of
    shares of classes where the model has one."""

    field: Mapping[str, Any]
    names: Sequence[str]
    mixed: str | None

    def labelled(self, record: Record, folder: str) -> Record:
        """The record with the class that its folder is named after."""
        if record.error is not None:
            return record
        if folder not in self.names:
            note = f"its folder {folder} is not named after a class"
            return replace(record, notes=(*record.notes, note))
        number = list(self.names).index(folder)
        label = np.full(tuple(self.field["shape"]), number, self.field["dtype"])
        labels = {self.field["name"]: label}
        if self.mixed is not None:
            labels[self.mixed] = np.eye(len(self.names), dtype=np.float32)[number]
        return replace(record, labels={**record.labels, **labels})


def _classes(preprocessing: Mapping[str, Any]) -> _Classes | None:
    """None where it is not clear which label a folder's name would be."""
    tables = preprocessing.get("labels", {})
    labels = [f for f in preprocessing["fields"] if f["role"] == "label"]
    named = [f for f in labels if tables.get(f["name"])]
    if len(named) != 1 or named[0].get("axes"):
        return None
    names = tables[named[0]["name"]]
    mixed = [f["name"] for f in labels if list(f["shape"]) == [len(names)] and f is not named[0]]
    return _Classes(named[0], names, mixed[0] if len(mixed) == 1 else None)


@dataclass(frozen=True)
class _Look:
    """How folders are searched."""

    suffixes: Sequence[str]
    recursive: bool
    classes: _Classes | None

    def inside(self, folder: Path) -> list[File]:
        """The files of a folder in natural order. Those in a folder that is named after a class know
        it, and so do those in folders beside it, whose names then are a mistake."""
        found = [
            p
            for p in (folder.rglob("*") if self.recursive else folder.iterdir())
            if p.suffix.lower() in self.suffixes and p.is_file() and not _hidden(p, folder)
        ]
        below = [p.relative_to(folder).parts for p in found]
        names = set(self.classes.names) if self.classes is not None else set()
        if not names & {parts[0] for parts in below if len(parts) > 1}:
            return [file_of(p) for p in sorted(found, key=_natural)]
        pairs = zip(found, below, strict=True)
        known = {p: parts[0] if len(parts) > 1 else "" for p, parts in pairs}
        return [file_of(p, folder=known[p]) for p in sorted(found, key=_natural)]


def _files(paths: Sequence[str], lists: Sequence[str], look: _Look) -> Iterator[File | Record]:
    for path in paths:
        yield from _expand(path, look)
    for name in lists:
        file = File(_STDIN, sys.stdin.buffer.read) if name == _STDIN else file_of(Path(name))
        try:
            lines = decode(file.read(), file.name).splitlines()
        except DataError as error:
            yield Record(name, error=error.message)
            continue
        for line in filter(None, map(str.strip, lines)):
            yield from _expand(line, look)


def _expand(path: str, look: _Look) -> Iterator[File | Record]:
    if path == _STDIN:
        yield File(_STDIN, sys.stdin.buffer.read)
        return
    place = Path(path).expanduser()
    if not _nameable(place):
        yield Record(path[:_SHOWN], error=f"{path[:_SHOWN]}...: too long for the name of a file")
    elif place.is_dir():
        inside = look.inside(place)
        if not inside:
            ends = ", ".join(filter(None, look.suffixes))
            yield Record(path, error=f"{path}: the folder holds no file that ends in {ends}")
        yield from inside
    elif not place.exists() and any(c in path for c in "*?["):
        found = sorted((Path(p) for p in glob.glob(str(place), recursive=True)), key=_natural)
        if not found:
            yield Record(path, error=f"{path}: no file fits this pattern")
        for match in found:
            if match.is_file():
                yield file_of(match)
    else:
        yield file_of(place, path)


def _nameable(place: Path) -> bool:
    try:
        place.exists()
    except OSError as error:
        return error.errno != errno.ENAMETOOLONG
    return True


def _hidden(path: Path, root: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(root).parts)


def _natural(path: Path) -> list[tuple[int, int, str]]:
    """Sorts 2.png before 10.png."""
    parts = re.split(r"(\d+)", str(path))
    return [(0, int(p), "") if p.isdecimal() else (1, 0, p) for p in parts]


def stack(preprocessing: Mapping[str, Any], records: Sequence[Record]) -> dict[str, Column]:
    """The input columns of a batch of good records."""
    return {
        f["name"]: stacked([r.arrays[f["name"]] for r in records], bool(f.get("axes")))
        for f in inputs_of(preprocessing)
    }


def stacked(rows: Sequence[NDArray[Any]], ragged: bool) -> Column:
    """One column of single rows: side by side, or packed with offsets."""
    if not ragged:
        return Column(np.stack(rows))
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum([len(r) for r in rows], out=offsets[1:])
    return Column(np.concatenate(rows), (offsets,))


def save_preprocessed(record: Record, folder: Path, number: int) -> list[Path]:
    """Writes what the model sees of one input: PNG for pictures, JSON for anything else."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = re.sub(r"[^A-Za-z0-9._-]+", "_", Path(record.input).name)[:80] or "input"
    written = []
    for name, array in record.arrays.items():
        is_picture = array.dtype == np.uint8 and array.ndim == 3 and array.shape[0] in (1, 3)
        path = folder / f"{number:05d}-{stem}-{name}{'.png' if is_picture else '.json'}"
        path.write_bytes(images.png(array) if is_picture else json.dumps(array.tolist()).encode())
        written.append(path)
    return written
