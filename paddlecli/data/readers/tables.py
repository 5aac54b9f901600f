"""From the numbers of a table to fields and splits: what the table readers share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paddlecli.data.cards import Card, CardField
from paddlecli.data.columns import Column, Dataset, Split, Statistics
from paddlecli.data.readers.base import check_classes
from paddlecli.data.spec import DatasetSpec
from paddlecli.errors import DataError

Table = NDArray[np.float64]


def dataset_from_tables(
    card: Card, spec: DatasetSpec, tables: Mapping[str, Table], files: Mapping[str, Path]
) -> Dataset:
    """Cuts tables (by card file) into the card's fields and splits, scaled as the card says.

    Scaling statistics are taken over all rows of a table, as the original did, not over the train
    rows alone.
    """
    order = [c for f in card.fields for c in f.columns]
    places = {c: i for i, c in enumerate(order)}
    statistics: dict[str, Statistics] = {}
    splits = {}
    for name, split in card.splits.items():
        file = split.files["table"]
        table = tables[file]
        first, stop = split.rows or (0, len(table))
        if stop > len(table) or stop - first != split.samples:
            raise DataError(
                f"{files[file]}: split {name} is rows {first} to {stop} ({split.samples} samples), "
                f"but the file has {len(table)} rows"
            )
        columns = {}
        for field in card.fields:
            raw = table[:, [places[c] for c in field.columns]]
            if field.scaling == "mean_range":
                statistics.setdefault(field.name, mean_range(raw, field.columns))
                raw = statistics[field.name].apply(raw)
            columns[field.name] = _column(raw[first:stop], field, files[file])
        splits[name] = Split(name, columns)
    return Dataset(spec, splits, statistics)


def mean_range(raw: Table, names: list[str]) -> Statistics:
    """Mean and max - min of every column; a constant column is divided by 1 and so becomes 0."""
    span = raw.max(axis=0) - raw.min(axis=0)
    constant = tuple(n for n, s in zip(names, span, strict=True) if s == 0)
    divisor = np.where(span == 0, 1.0, span)
    return Statistics(
        "mean_range",
        tuple(names),
        tuple(map(float, raw.mean(axis=0))),
        tuple(map(float, divisor)),
        constant,
    )


def _column(raw: Table, field: CardField, file: Path) -> Column:
    values: NDArray[Any] = np.ascontiguousarray(raw.reshape(len(raw), *field.shape))
    if np.issubdtype(np.dtype(field.dtype), np.integer):
        whole = values == np.rint(values)
        if not whole.all():
            raise DataError(f"{file}: {field.name} holds numbers that are not whole")
        check_classes(values, field.classes, file, field.name)
    return Column(values.astype(field.dtype))
