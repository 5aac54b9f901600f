"""Data in memory: columns in their stored type, dense or ragged, and the data set made of them.

A dense column is one array whose first axis is the row. A ragged column is the packed items of all
rows and offsets: `offsets[0]` has rows + 1 entries and counts elements of the next level,
`offsets[1]` those of the level below, and so on; the last level counts items of `values`. Nothing
is ever padded.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paddlecli.data.entities import Entities
from paddlecli.data.spec import DatasetSpec, FieldSpec
from paddlecli.data.vocab import Vocabulary
from paddlecli.errors import DataError

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Column:
    """Values and, for ragged data, one offsets array (int64) for each nesting level, outermost
    first."""

    values: NDArray[Any]
    offsets: tuple[Rows, ...] = ()

    def __post_init__(self) -> None:
        for level, offsets in enumerate(self.offsets):
            below = (
                self.offsets[level + 1].size - 1
                if level + 1 < len(self.offsets)
                else len(self.values)
            )
            _check_offsets(offsets, below, level)

    def __len__(self) -> int:
        return int(self.offsets[0].size - 1) if self.offsets else len(self.values)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The stored type."""
        return self.values.dtype

    @property
    def item_shape(self) -> tuple[int, ...]:
        """Shape of a row (dense) or of a packed item (ragged)."""
        return self.values.shape[1:]

    @property
    def nbytes(self) -> int:
        """Bytes of values and offsets."""
        return self.values.nbytes + sum(o.nbytes for o in self.offsets)

    def take(self, rows: Rows) -> Column:
        """The given rows in the given order, re-packed."""
        offsets: list[Rows] = []
        for level in self.offsets:
            rows, packed = _expand(level, rows)
            offsets.append(packed)
        return Column(self.values[rows], tuple(offsets))

    def row(self, index: int) -> NDArray[Any] | list[Any]:
        """Row `index`: an array, or nested lists of arrays for more than one ragged level."""
        return _nested(self.values, self.offsets, index)


def _check_offsets(offsets: Rows, below: int, level: int) -> None:
    if offsets.dtype != np.int64 or offsets.ndim != 1 or offsets.size == 0:
        raise ValueError(f"offsets of level {level} must be a non-empty int64 vector")
    if offsets[0] != 0 or offsets[-1] != below or bool((np.diff(offsets) < 0).any()):
        raise ValueError(f"offsets of level {level} must rise from 0 to {below}")


def _expand(offsets: Rows, rows: Rows) -> tuple[Rows, Rows]:
    """Numbers of the elements below `rows`, and the offsets that pack them."""
    lengths = offsets[rows + 1] - offsets[rows]
    packed = np.zeros(rows.size + 1, np.int64)
    np.cumsum(lengths, out=packed[1:])
    # element k of the packed result is as far behind its row's packed start as in the source
    shift = np.repeat(offsets[rows] - packed[:-1], lengths)
    return np.arange(packed[-1], dtype=np.int64) + shift, packed


def _nested(
    values: NDArray[Any], offsets: tuple[Rows, ...], index: int
) -> NDArray[Any] | list[Any]:
    if not offsets:
        return np.asarray(values[index])
    start, stop = int(offsets[0][index]), int(offsets[0][index + 1])
    if len(offsets) == 1:
        return values[start:stop]
    return [_nested(values, offsets[1:], i) for i in range(start, stop)]


def pack(rows: Iterable[NDArray[Any]], dtype: str, item_shape: tuple[int, ...] = ()) -> Column:
    """A ragged column of one level from arrays of shape (length, *item_shape)."""
    parts = [np.asarray(row, dtype=dtype).reshape(-1, *item_shape) for row in rows]
    offsets = np.zeros(len(parts) + 1, np.int64)
    np.cumsum([len(part) for part in parts], out=offsets[1:])
    values = np.concatenate(parts) if parts else np.zeros((0, *item_shape), dtype)
    return Column(values, (offsets,))


@dataclass(frozen=True)
class Statistics:
    """How raw numbers become a field: `(raw - offset) / divisor`, one entry a feature, in float64.

    `rule` names how they were found (`mean_range`: mean and max - min). A constant feature has
    divisor 1 and is listed in `constant`; it becomes 0.
    """

    rule: str
    columns: tuple[str, ...]
    offset: tuple[float, ...]
    divisor: tuple[float, ...]
    constant: tuple[str, ...] = ()

    def apply(self, raw: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scales raw numbers whose last axis is the feature."""
        return np.asarray((raw - np.asarray(self.offset)) / np.asarray(self.divisor))

    def as_dict(self) -> dict[str, Any]:
        """Plain data for YAML and JSON."""
        return {
            "rule": self.rule,
            "columns": list(self.columns),
            "offset": list(self.offset),
            "divisor": list(self.divisor),
            "constant": list(self.constant),
        }


class Split:
    """One split: named columns of equal length.

    Raises:
        DataError: no rows, or columns of unequal length.
    """

    def __init__(self, name: str, columns: Mapping[str, Column]) -> None:
        self.name = name
        self.columns = dict(columns)
        lengths = {field: len(column) for field, column in self.columns.items()}
        if len(set(lengths.values())) != 1:
            raise DataError(f"split {name}: the fields have different numbers of rows: {lengths}")
        self.rows = next(iter(lengths.values()))
        if self.rows == 0:
            raise DataError(f"split {name} has no rows")

    def __len__(self) -> int:
        return self.rows

    @property
    def nbytes(self) -> int:
        """Bytes of all columns."""
        return sum(column.nbytes for column in self.columns.values())

    @property
    def streamed(self) -> bool:
        """Whether rows are made when they are taken, so that the core cannot gather them itself."""
        return False

    @property
    def made(self) -> Mapping[str, tuple[tuple[int, ...], str]]:
        """Item shape and type of the fields that are made when they are taken, by name."""
        return {}

    @property
    def stored(self) -> Mapping[str, Column]:
        """All that is kept of the split, from which it can be made again; the fields themselves unless
        some are made when they are taken."""
        return self.columns

    @property
    def row_bytes(self) -> int:
        """Bytes of a row that is made, without what is in columns."""
        return sum(
            math.prod(shape) * np.dtype(dtype).itemsize for shape, dtype in self.made.values()
        )

    def row(self, field: str, index: int) -> NDArray[Any] | list[Any]:
        """One row of a field, as evaluation sees it."""
        if field in self.columns:
            return self.columns[field].row(index)
        return self.take(np.asarray([index], np.int64))[field].row(0)

    def take(self, rows: Rows, epoch: int | None = None) -> dict[str, Column]:
        """The given rows of every column. With `epoch` as training sees them in that epoch (from 0),
        without as evaluation does; they differ where something is random."""
        return {name: column.take(rows) for name, column in self.columns.items()}

    def digest(self) -> bytes:
        """sha256 over what is not in columns; empty where all is."""
        return b""


class Dataset:
    """Splits of named columns, and what training must keep of the data to predict later."""

    def __init__(
        self,
        spec: DatasetSpec,
        splits: Mapping[str, Split],
        statistics: Mapping[str, Statistics] | None = None,
        vocabularies: Mapping[str, Vocabulary] | None = None,
        entities: Mapping[str, Entities] | None = None,
    ) -> None:
        self.spec = spec
        self.splits = dict(splits)
        self.statistics = dict(statistics or {})
        self.vocabularies = dict(vocabularies or {})
        self.entities = dict(entities or {})
        for split in self.splits.values():
            _check_split(spec, split)

    def __getitem__(self, split: str) -> Split:
        if split not in self.splits:
            raise DataError(
                f"data set {self.spec.name} has no split {split}; it has {', '.join(self.splits)}"
            )
        return self.splits[split]

    def label_names(self) -> dict[str, tuple[str, ...]]:
        """Names of the classes by field, for the fields that have names."""
        return {f.name: f.names for f in self.spec.fields if f.names}

    def preprocessing(self) -> dict[str, Any]:
        """Plain data that suffice to read inputs for a prediction later (see `data/inputs.py`)."""
        spec: dict[str, Any] = dict(self.spec.predict)
        if spec.get("kind") == "fields" and "pipelines" not in spec:
            from paddlecli.data.frozen import pipelines

            unit = {k: v for k, v in spec.items() if k == "unit"}
            spec = {**pipelines(spec, self.spec.fields), **unit}
        spec["fields"] = [f.as_dict() for f in self.spec.fields]
        spec["statistics"] = {name: s.as_dict() for name, s in self.statistics.items()}
        spec["labels"] = {name: list(names) for name, names in self.label_names().items()}
        if self.vocabularies:
            spec["vocabularies"] = {
                name: {"words": list(v.words), "unknown": v.unknown}
                for name, v in self.vocabularies.items()
            }
        if self.entities:
            spec["entities"] = {name: e.plain() for name, e in self.entities.items()}
        if self.spec.unofficial:
            spec["unofficial"] = self.spec.remarks[0]
        return spec

    @cached_property
    def fingerprint(self) -> str:
        """sha256 over names, types, shapes and bytes of every column of every split."""
        digest = hashlib.sha256()
        for split in sorted(self.splits):
            for name, column in sorted(self.splits[split].columns.items()):
                for part in (column.values, *column.offsets):
                    digest.update(f"{split}/{name}/{part.dtype.str}/{part.shape};".encode())
                    digest.update(np.ascontiguousarray(part).data)
            digest.update(self.splits[split].digest())
        return digest.hexdigest()


def _check_split(spec: DatasetSpec, split: Split) -> None:
    held = {*split.columns, *split.made}
    if held != {f.name for f in spec.fields}:
        raise DataError(
            f"data set {spec.name}, split {split.name}: it holds the fields "
            f"{sorted(held)}, the card declares {[f.name for f in spec.fields]}"
        )
    axes: dict[str, tuple[str, Rows]] = {}
    for f in spec.fields:
        if f.name in split.made:
            _check_made(spec, split, f)
            continue
        column = split.columns[f.name]
        if (
            column.item_shape != f.shape
            or column.dtype != np.dtype(f.dtype)
            or len(column.offsets) != len(f.axes)
        ):
            raise DataError(
                f"data set {spec.name}, split {split.name}, field {f.name}: holds {column.dtype} "
                f"items of shape {list(column.item_shape)} on {len(column.offsets)} ragged axes; "
                f"the card declares {f.dtype} {list(f.shape)} on {len(f.axes)}"
            )
        for axis, offsets in zip(f.axes, column.offsets, strict=True):
            other, seen = axes.setdefault(axis, (f.name, offsets))
            if seen is not offsets and not np.array_equal(seen, offsets):
                raise DataError(
                    f"data set {spec.name}, split {split.name}: fields {other} and {f.name} "
                    f"are on one axis {axis} but have different lengths"
                )


def _check_made(spec: DatasetSpec, split: Split, field: FieldSpec) -> None:
    shape, dtype = split.made[field.name]
    if shape != field.shape or dtype != field.dtype or field.axes:
        raise DataError(
            f"data set {spec.name}, split {split.name}, field {field.name}: {dtype} items of shape "
            f"{list(shape)} are made; {field.dtype} {list(field.shape)} is declared"
        )
