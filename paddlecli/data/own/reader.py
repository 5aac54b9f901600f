"""A user's own files as a data set: read, shared out into splits, made into fields.

    files -> Frame (one reader a format) -> splits -> fields learned from train -> Dataset

What was learned (scales, categories, vocabularies) is part of `Dataset.preprocessing()`, so a model
directory needs no data to predict, and `freeze` makes the same fields of other files later. Files are
read a piece at a time. While columns are made, every cell takes its letters and one byte, a number 20
bytes more (`tests/data/test_packed.py`), a word of a text some 40 in all; what stays is 4 bytes a
number, 8 an id, and of pictures what `memory_mb` allows.
"""

from __future__ import annotations

import glob
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np

from paddlecli.config.words import MIXED
from paddlecli.data.cards import Card
from paddlecli.data.columns import Column, Dataset, Split
from paddlecli.data.frozen import freeze, thaw
from paddlecli.data.own.fields import Field, FieldRecipe
from paddlecli.data.own.frame import Bad, Faults, Frame, cells_of, joined, raising
from paddlecli.data.own.pictures import stream_of
from paddlecli.data.own.splits import SPLITS, SplitRule, cut
from paddlecli.data.own.streams import PictureStream, StreamedSplit
from paddlecli.data.readers.base import Reader
from paddlecli.data.spec import DatasetSpec, FieldSpec, Role
from paddlecli.data.transforms.categories import CategoryIds
from paddlecli.errors import ConfigError, DataError

T = TypeVar("T")
Files = Path | tuple[Path, ...]
"""One file or several; `*` and `?` stand for parts of names."""
Missing = Literal["error", "fill", "drop"]
_HELD = 1 << 30
"""Bytes of pictures that are held unless a recipe says more."""


@dataclass(frozen=True)
class Common:
    """What every reader of own files is given.

    Attributes:
        train, valid, test: the files of each split.
        split: how the rows of `train` are shared out.
        drop: leave rows out that lack a value.
        memory: the most bytes of pictures that are held.
        workers: processes that make pictures that are not held.
        seed: start of the random numbers of transforms.
    """

    train: Files
    valid: Files | None = None
    test: Files | None = None
    split: SplitRule | None = None
    drop: bool = False
    memory: int = _HELD
    workers: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        rule = self.split
        if rule is None:
            return
        for name, given, share in (
            ("valid", self.valid, rule.valid),
            ("test", self.test, rule.test),
        ):
            if given is not None and (share or rule.column is not None):
                raise ConfigError(
                    f"data: {name} has files of its own and a part of `split`: choose one"
                )


class OwnReader(Reader):
    """Base of the readers of users' own files.

    Args:
        name: the format, as recipes write it.
        common: what all of them are given.
    """

    predicts: Mapping[str, Any] = {}
    """What reading files for a prediction needs beside the fields."""

    def __init__(self, name: str, common: Common) -> None:
        super().__init__(_card(name))
        self.common = common
        self.frozen: Mapping[str, Any] | None = None
        self.bad: Bad = raising

    @abstractmethod
    def read(self, path: Path) -> Frame:
        """The columns of one file."""

    @abstractmethod
    def fields(self, train: Frame) -> list[Field]:
        """The fields that the recipe describes, not learned yet; `train` tells which columns there
        are."""

    def freeze(self, preprocessing: Mapping[str, Any]) -> None:
        """See `Reader.freeze`."""
        if preprocessing.get("kind") == "fields":
            self.frozen = preprocessing

    def describe(self) -> DatasetSpec:
        """See `Reader.describe`. What own files hold is known only once they are read: this reads
        them, once a process."""
        return self.open({}).spec

    def open(self, files: Mapping[str, Path]) -> Dataset:
        """See `Reader.open`; files that were read before and did not change are not read again."""
        key = (
            type(self).__name__,
            repr(sorted(vars(self).items(), key=lambda kv: kv[0])),
            self._state(),
        )
        if not _LAST or _LAST[0][0] != key:
            _LAST[:] = [(key, self._open())]
        return _LAST[0][1]

    def check(self) -> tuple[Dataset | None, dict[str, list[str]], dict[str, Frame]]:
        """The data set as far as it can be made, what is wrong with single rows by split, and the
        columns of the splits. Lines that make no row are under the name `lines`.

        Raises:
            DataError: a file cannot be read at all.
        """
        lines: list[str] = []
        self.bad = lines.append
        try:
            frames = self.frames()
        finally:
            self.bad = raising
        found: dict[str, list[str]] = {"lines": lines}
        fields = self._made(frames["train"])
        good: dict[str, Frame] = {}
        for name, frame in frames.items():
            faults = Faults(frame, gather=True)
            for field in fields:
                _column(field, frame, faults, name == "train" and self.frozen is None, self.common)
            found[name] = [faults.found[row] for row in sorted(faults.found)]
            kept = np.setdiff1d(
                np.arange(len(frame)), np.fromiter(faults.found, np.int64, len(faults.found))
            )
            if kept.size:
                good[name] = frame.take(kept)
        if any(found.values()) and "train" not in good:
            return None, found, frames
        return self._dataset(good), found, frames

    def columns_of(self, role: Role, train: Frame) -> list[str]:
        """The files' columns that fields of this role are made of."""
        return list(
            dict.fromkeys(c for f in self._made(train) if f.role == role for c in f.columns)
        )

    def frames(self) -> dict[str, Frame]:
        """The columns of every split.

        Raises:
            DataError: a file is missing, damaged or empty, or a split has no rows.
        """
        given = {name: getattr(self.common, name) for name in SPLITS}
        found = {name: self._frame(paths) for name, paths in given.items() if paths is not None}
        if self.common.split is not None:
            found = {**found, **cut(found.pop("train"), self.common.split)}
        return {name: found[name] for name in SPLITS if name in found}

    # -- inside -----------------------------------------------------------------------------------
    def _frame(self, files: Files) -> Frame:
        return joined([self.read(path) for path in expand(files)])

    def _state(self) -> tuple[Any, ...]:
        paths = [p for name in SPLITS if (f := getattr(self.common, name)) for p in expand(f)]
        return tuple((str(p), *_stamp(p)) for p in paths)

    def _made(self, train: Frame) -> list[Field]:
        if self.frozen is not None:
            return thaw(self.frozen)
        fields = self.fields(train)
        if not any(f.role == "input" for f in fields):
            raise ConfigError(f"data set {self.card.name}: there is no input field")
        return fields

    def _open(self) -> Dataset:
        return self._dataset(self.frames())

    def _dataset(self, frames: Mapping[str, Frame]) -> Dataset:
        fields = self._made(frames["train"])
        notes = [note for frame in frames.values() for note in frame.notes]
        splits: dict[str, Split] = {}
        for name, frame in frames.items():
            if self.common.drop:
                frame, dropped = _without_missing(frame, fields)
                notes += [f"{name}: {dropped} rows without a value left out"] if dropped else []
            splits[name] = self._split(name, frame, fields)
        notes += [note for field in fields for note in field.notes()] if self.frozen is None else []
        return self._assembled(fields, splits, notes)

    def _split(self, name: str, frame: Frame, fields: Sequence[Field]) -> Split:
        learn = name == "train" and self.frozen is None
        faults = Faults(frame)
        made = {f.name: _column(f, frame, faults, learn, self.common) for f in fields}
        columns = {n: c for n, c in made.items() if isinstance(c, Column)}
        streams = {n: c for n, c in made.items() if isinstance(c, PictureStream)}
        if not streams:
            return Split(name, columns)
        return StreamedSplit(name, columns, streams, _mixing(streams, fields))

    def _assembled(
        self, fields: Sequence[Field], splits: Mapping[str, Split], notes: Sequence[str]
    ) -> Dataset:
        predict, vocabularies = freeze(fields)
        specs = [f.spec() for f in fields]
        train = splits["train"]
        if isinstance(train, StreamedSplit) and train.mixed is not None:
            specs.append(FieldSpec(MIXED, "label", (train.mixed[2],), "float32"))
        sizes = {name: len(split) for name, split in splits.items()}
        spec = DatasetSpec(
            self.card.name, self.card.title, tuple(specs), sizes, False,
            {"kind": "fields", **predict, "source": dict(self.predicts)}, False, tuple(dict.fromkeys(notes)),
        )  # fmt: skip
        return Dataset(spec, splits, None, vocabularies)


_LAST: list[tuple[Any, Dataset]] = []
"""The data set that was opened last, and what it was made of."""


def _card(name: str) -> Card:
    text = "files of your own"
    return Card(
        name=name, title=text, description=text, licence="yours", citation="none", reader=name
    )


def _stamp(path: Path) -> tuple[int, int]:
    """Length and time of a file, or of all files of a folder."""
    if path.is_dir():
        inside = [p.stat() for p in path.rglob("*") if p.is_file()]
        return sum(s.st_size for s in inside), max((s.st_mtime_ns for s in inside), default=0)
    try:
        stat = path.stat()
    except OSError:
        return -1, 0
    return stat.st_size, stat.st_mtime_ns


def expand(files: Files) -> list[Path]:
    """The files that paths and patterns mean, those of a pattern in natural order.

    Raises:
        DataError: a pattern fits no file, or a file is missing.
    """
    from paddlecli.data.vocab import natural_key

    found: list[Path] = []
    for path in (files,) if isinstance(files, Path) else files:
        if not path.exists() and any(c in str(path) for c in "*?["):
            fitting = sorted(glob.glob(str(path), recursive=True), key=natural_key)
            if not fitting:
                raise DataError(f"{path}: no file fits this pattern")
            found += map(Path, fitting)
        elif not path.exists():
            raise DataError(f"{path}: no such file or folder", hint=_beside(path))
        else:
            found.append(path)
    return found


def _beside(path: Path) -> str:
    from paddlecli.config.nodes import close_names

    if not path.parent.is_dir():
        return f"there is no folder {path.parent}"
    near = close_names(path.name, [p.name for p in path.parent.iterdir()])
    if near:
        return f"did you mean {' or '.join(near)}?"
    return "say where yours is, for example with -o data.train=FILE"


def _column(
    field: Field, frame: Frame, faults: Faults, learn: bool, common: Common
) -> Column | PictureStream:
    """The column of a field, or what makes it when it is needed."""
    stream = stream_of(field, frame, faults, learn, common)
    if stream is not None:
        return stream.column() if stream.fixed else stream
    return field.fit(frame, faults) if learn else field.apply(frame, faults)


def _mixing(
    streams: Mapping[str, PictureStream], fields: Sequence[Field]
) -> tuple[str, str, int] | None:
    if not any(s.mixup for s in streams.values()):
        return None
    labels = [f for f in fields if f.role == "label" and f.chains[0].find(CategoryIds) is not None]
    if len(streams) != 1 or len(labels) != 1:
        raise ConfigError("mixup needs one field of pictures and one label of classes")
    return MIXED, labels[0].name, labels[0].spec().classes or 0


def _without_missing(frame: Frame, fields: Sequence[Field]) -> tuple[Frame, int]:
    """The rows that have a value in every column that a field reads, and how many had not."""
    from paddlecli.data.readers.base import is_missing

    keep = np.ones(len(frame), bool)
    faults = Faults(frame)
    for name in dict.fromkeys(c for f in fields for c in f.columns):
        values = frame.column(name)
        if values.kind in ("cells", "numbers", "ids"):
            keep &= ~np.asarray([is_missing(c) for c in cells_of(values, name, faults)], bool)
    if keep.all():
        return frame, 0
    if not keep.any():
        raise DataError(f"{frame.files[0]}: no row has a value in every column")
    return frame.take(np.flatnonzero(keep)), int((~keep).sum())


def fields_of(recipes: Mapping[str, FieldRecipe]) -> list[Field]:
    """The fields of the recipe's `fields`."""
    return [Field.of(name, recipe) for name, recipe in recipes.items()]


def only(value: Any, name: str, others: Callable[[], Sequence[str]]) -> None:
    """Refuses what goes with `fields` and not beside it.

    Raises:
        ConfigError: both were given.
    """
    if value is not None and others():
        raise ConfigError(
            f"data: `fields` says all of it; leave {', '.join(f'`{o}`' for o in others())} out"
        )
