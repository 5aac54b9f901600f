"""Columns that were made of a data set's files once, kept on the disk and mapped into memory.

<cache>/prepared/<data set>/<key>/meta.json        fields, splits, vocabularies, fingerprint
                                 /000.npy ...      values and offsets in their stored type
                                 /word.vocab       one entry a line, in id order
                                 /movie.jsonl      what is known of users, films: one object a line

The key is made of the files (checksum, length, time), the reader's settings, the card, and the
source text of everything that has a part in reading. A folder appears only when it is complete;
folders of other files or other code are removed when a new one is made.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache as remembered
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

import paddlecli.data
from paddlecli import settings
from paddlecli.data.columns import Column, Dataset, Split
from paddlecli.data.entities import Entities
from paddlecli.data.fetching.cache import Found
from paddlecli.data.spec import DatasetSpec
from paddlecli.data.vocab import Vocabulary
from paddlecli.errors import DataError

_FORMAT = 1
_META = "meta.json"
_CODE = (
    "readers/*.py", "formats/*.py", "columns.py", "entities.py", "prepared.py", "spec.py", "vocab.py"
)  # fmt: skip
"""What decides what columns hold."""

Make = Callable[[], Dataset]
MakeSplit = Callable[[str, Mapping[str, Column]], Split]
"""From a split's name and what is stored of it."""


def root(name: str) -> Path:
    """The folder of all that was prepared of a data set; it need not exist."""
    return settings.cache_dir() / "prepared" / name


def key_of(
    spec: DatasetSpec, card: str, arguments: Mapping[str, Any], files: Mapping[str, Found]
) -> tuple[str, str]:
    """What the columns of these files with these settings are known by; and the part of it that
    belongs to files and code, not to settings."""
    base = {
        "format": _FORMAT,
        "code": code_version(),
        "numpy": np.lib.NumpyVersion(np.__version__).major,
        "order": sys.byteorder,
        "card": card,
        "files": {name: _identity(found) for name, found in sorted(files.items())},
    }
    source = _short(base)
    return _short({"source": source, "name": spec.name, "arguments": dict(arguments)}), source


def _identity(found: Found) -> list[Any]:
    state = found.path.stat()
    return [str(found.wanted.digest), state.st_size, state.st_mtime_ns]


def _short(plain: Mapping[str, Any]) -> str:
    text = json.dumps(plain, sort_keys=True, default=str)
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:24]


@remembered
def code_version() -> str:
    """Checksum of the source text of the readers and of what they use."""
    folder = Path(paddlecli.data.__file__).parent
    digest = hashlib.sha256()
    for path in (path for pattern in _CODE for path in sorted(folder.glob(pattern))):
        digest.update(os.fsencode(path.name) + b"\0" + path.read_bytes())
    return digest.hexdigest()


def dataset(
    spec: DatasetSpec,
    card: str,
    arguments: Mapping[str, Any],
    files: Mapping[str, Found],
    make: Make,
    split: MakeSplit = Split,
) -> Dataset:
    """The data set, mapped from the disk if it was prepared before, else made and kept. Where it
    cannot be kept, a remark of its spec says so.

    Args:
        spec: what is known of it before it is opened.
        card: the card's text.
        arguments: the reader's settings as plain data.
        files: what is read.
        make: reads them.
        split: makes a split of what is stored of it.
    """
    from filelock import FileLock

    key, source = key_of(spec, card, arguments, files)
    folder = root(spec.name) / key
    found = load(folder, spec, split)
    if found is not None:
        return found
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder.with_name(f".{key}.lock"))
        lock.acquire()
    except OSError as error:
        return _not_kept(make(), folder.parent, error)
    try:
        found = load(folder, spec, split)  # another process may have made it meanwhile
        return found if found is not None else _kept(make(), folder, source, split)
    finally:
        lock.release()


def _not_kept(made: Dataset, folder: Path, error: OSError) -> Dataset:
    remark = f"{folder}: cannot be written ({error.strerror}): the files are read anew each time"
    made.spec = replace(made.spec, remarks=(*made.spec.remarks, remark))
    return made


def _kept(made: Dataset, folder: Path, source: str, split: MakeSplit) -> Dataset:
    try:
        save(made, folder, source)
    except OSError as error:
        return _not_kept(made, folder, error)
    _clear(folder, source)
    found = load(folder, made.spec, split)
    return made if found is None else found


def _clear(folder: Path, source: str) -> None:
    """Removes what was made of other files or by other code."""
    for other in folder.parent.iterdir():
        if other == folder or not other.is_dir():
            continue
        try:
            keep = json.loads((other / _META).read_text("utf-8"))["source"] == source
        except (OSError, ValueError, KeyError):
            keep = other.name.startswith(".")  # another process is writing it
        if not keep:
            shutil.rmtree(other, ignore_errors=True)


def save(made: Dataset, folder: Path, source: str = "") -> None:
    """Writes all columns; the folder appears when everything is there.

    Raises:
        OSError: no room, or not writable.
    """
    temporary = folder.with_name(f".{folder.name}.{uuid4().hex[:8]}")
    temporary.mkdir(parents=True)
    try:
        arrays = _Arrays(temporary)
        splits = {
            name: {field: arrays.column(column) for field, column in split.stored.items()}
            for name, split in made.splits.items()
        }
        for name, vocabulary in made.vocabularies.items():
            vocabulary.save(temporary / f"{name}.vocab")
        for name, entities in made.entities.items():
            (temporary / f"{name}.jsonl").write_text(entities.text(), encoding="utf-8")
        meta = {
            "source": source,
            "splits": splits,
            "sizes": arrays.sizes,
            "vocabularies": {name: v.unknown for name, v in made.vocabularies.items()},
            "entities": list(made.entities),
            "fields": {f.name: [f.classes, list(f.names)] for f in made.spec.fields},
            "remarks": list(made.spec.remarks),
            "fingerprint": made.fingerprint,
        }
        (temporary / _META).write_text(json.dumps(meta), encoding="utf-8")
        if folder.exists():
            shutil.rmtree(folder)
        temporary.replace(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


class _Arrays:
    """Numbers the arrays of a folder; one that several columns share is written once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.numbers: dict[int, int] = {}
        self.sizes: list[int] = []

    def column(self, column: Column) -> list[int]:
        """Numbers of the values and of the offsets, written if they are new."""
        return [self._array(a) for a in (column.values, *column.offsets)]

    def _array(self, array: NDArray[Any]) -> int:
        number = self.numbers.setdefault(id(array), len(self.sizes))
        if number == len(self.sizes):
            path = self.folder / f"{number:03d}.npy"
            with path.open("wb") as stream:
                np.lib.format.write_array(stream, np.ascontiguousarray(array), allow_pickle=False)
                stream.flush()
                os.fsync(stream.fileno())
            self.sizes.append(path.stat().st_size)
        return number


def load(folder: Path, spec: DatasetSpec, split: MakeSplit = Split) -> Dataset | None:
    """What `save` wrote; None if it is not there or damaged."""
    try:
        meta = json.loads((folder / _META).read_text("utf-8"))
        arrays = [_mapped(folder / f"{i:03d}.npy", size) for i, size in enumerate(meta["sizes"])]
        splits = {
            name: split(name, {f: _column(arrays, numbers) for f, numbers in columns.items()})
            for name, columns in meta["splits"].items()
        }
        vocabularies = {
            name: Vocabulary.load(folder / f"{name}.vocab", unknown)
            for name, unknown in meta["vocabularies"].items()
        }
        entities = {name: Entities.load(folder / f"{name}.jsonl") for name in meta["entities"]}
        made = Dataset(_completed(spec, meta, splits), splits, None, vocabularies, entities)
        made.fingerprint = str(meta["fingerprint"])
        return made
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, IndexError, TypeError, EOFError, DataError):
        return None


def _mapped(path: Path, size: int) -> NDArray[Any]:
    if path.stat().st_size != size:
        raise ValueError(f"{path}: cut off")
    found: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    return found.view(np.ndarray)


def _column(arrays: list[NDArray[Any]], numbers: list[int]) -> Column:
    values, *offsets = (arrays[i] for i in numbers)
    return Column(values, tuple(offsets))


def _completed(
    spec: DatasetSpec, meta: Mapping[str, Any], splits: Mapping[str, Split]
) -> DatasetSpec:
    known = meta["fields"]
    fields = tuple(
        replace(f, classes=known[f.name][0], names=tuple(known[f.name][1])) for f in spec.fields
    )
    sizes = {name: len(split) for name, split in splits.items()}
    return replace(spec, fields=fields, sizes=sizes, remarks=tuple(meta["remarks"]))
