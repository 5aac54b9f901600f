"""What `predict` reads: files, folders, patterns, stdin and fields, as arrays that a model takes.

`read_inputs` needs the plain `preprocessing` that `Dataset.preprocessing()` gave when the model was
trained, and nothing else: no data set, no recipe. One input makes one record, in order; one that
cannot be read makes a record that says why, and the others still come.
"""

from __future__ import annotations

import glob
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paddlecli.data.columns import Column
from paddlecli.data.formats import images
from paddlecli.data.own.inputs import kind_of
from paddlecli.data.records import KINDS, File, Kind, Record, file_of, guarded, inputs_of, label_of
from paddlecli.errors import UsageError

_STDIN = "-"


def read_inputs(
    preprocessing: Mapping[str, Any],
    paths: Sequence[str] = (),
    fields: Sequence[str] = (),
    text: Sequence[str] = (),
) -> Iterator[Record]:
    """Records of all inputs: those of `paths` in order, then the one that `fields` make.

    Args:
        preprocessing: what `Dataset.preprocessing()` gave.
        paths: files, folders, patterns (`digits/*.png`) or `-` for stdin.
        fields: `NAME=VALUE`, together one input.
        text: texts, each one input; only for models that take text.

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
    if not paths and not fields and not text:
        raise UsageError("no input given", hint=kind.example)
    given = _pairs(fields)
    return _records(preprocessing, kind, paths, given, text)


def _records(
    spec: Mapping[str, Any],
    kind: Kind,
    paths: Sequence[str],
    given: dict[str, str],
    texts: Sequence[str],
) -> Iterator[Record]:
    for path in paths:
        for file in _expand(path, kind.suffixes):
            if isinstance(file, Record):
                yield file
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


def _expand(path: str, suffixes: Iterable[str]) -> Iterator[File | Record]:
    if path == _STDIN:
        yield File(_STDIN, sys.stdin.buffer.read)
        return
    place = Path(path).expanduser()
    if place.is_dir():
        inside = [
            p
            for p in place.rglob("*")
            if p.suffix.lower() in suffixes and p.is_file() and not _hidden(p, place)
        ]
        if not inside:
            ends = ", ".join(filter(None, suffixes))
            yield Record(path, error=f"{path}: the folder holds no file that ends in {ends}")
        yield from (file_of(p) for p in sorted(inside, key=_natural))
    elif not place.exists() and any(c in path for c in "*?["):
        found = sorted((Path(p) for p in glob.glob(str(place), recursive=True)), key=_natural)
        if not found:
            yield Record(path, error=f"{path}: no file fits this pattern")
        for match in found:
            if match.is_file():
                yield file_of(match)
    else:
        yield file_of(place, path)


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
