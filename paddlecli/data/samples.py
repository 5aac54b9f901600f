"""A few rows of a data set as files that `predict` takes, or as plain data to look at."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paddlecli.data.columns import Dataset, Split, Statistics
from paddlecli.data.formats import images
from paddlecli.data.spec import FieldSpec
from paddlecli.errors import DataError

_SHADES = " .:-=+*#%@"


def rows(dataset: Dataset, split: str, count: int) -> list[dict[str, Any]]:
    """The first rows as plain data, in the files' own units; classes that have names show the
    name."""
    part = dataset[split]
    return [_plain_row(dataset, part, i) for i in range(min(count, len(part)))]


def lines(dataset: Dataset, split: str, count: int) -> list[str]:
    """The first rows as text: one JSON object a row; below it pictures drawn by their brightness,
    and the words of ids."""
    found = []
    for index, row in enumerate(rows(dataset, split, count)):
        drawn: list[str] = []
        for field in dataset.spec.fields:
            if field.dtype == "uint8" and len(field.shape) == 3 and field.shape[0] in (1, 3):
                value = np.asarray(dataset[split].row(field.name, index))
                row[field.name] = f"{field.shape[2]}x{field.shape[1]} pixels"
                drawn += _drawn(value.mean(axis=0))
            elif field.classes and len(field.shape) == 2:
                row[field.name] = _classes(field, np.asarray(dataset[split].row(field.name, index)))
            elif field.vocabulary in dataset.vocabularies:
                drawn += _worded(dataset, split, field, index)
        found += [json.dumps(row), *drawn]
    return found


def _worded(dataset: Dataset, split: str, field: FieldSpec, index: int) -> list[str]:
    """The words of ids; labels show their names already."""
    value = dataset[split].row(field.name, index)
    if isinstance(value, list) or value.ndim != 1:
        return []
    words = dataset.vocabularies[str(field.vocabulary)].decode(value.tolist())
    return [f"  {field.name}: {' '.join(words)}"]


def _classes(field: FieldSpec, mask: NDArray[Any]) -> str:
    """The classes of a mask's pixels, the most common first."""
    ids, counts = np.unique(mask, return_counts=True)
    order = ids[np.argsort(-counts, kind="stable")].tolist()
    known = dict(enumerate(field.names))
    return f"{mask.shape[1]}x{mask.shape[0]} of {', '.join(known.get(i, str(i)) for i in order)}"


def _drawn(plane: NDArray[Any]) -> list[str]:
    """One character a pixel across, two pixels down."""
    pairs = plane[: len(plane) // 2 * 2].reshape(-1, 2, plane.shape[1]).mean(axis=1)
    shades = (pairs / 256 * len(_SHADES)).astype(int)
    return ["".join(_SHADES[i] for i in row).rstrip() for row in shades]


def _plain_row(dataset: Dataset, part: Split, index: int) -> dict[str, Any]:
    return {f.name: _plain(dataset, f, part, index) for f in dataset.spec.fields}


def _plain(dataset: Dataset, field: FieldSpec, part: Split, index: int) -> Any:
    value = part.row(field.name, index)
    if isinstance(value, list):
        return [np.asarray(v).tolist() for v in value]
    if field.columns:
        return dict(zip(field.columns, _raw(dataset, field, value), strict=True))
    if field.names and value.ndim == 0:
        return field.names[int(value)]
    return value.tolist()


def _raw(dataset: Dataset, field: FieldSpec, value: NDArray[Any]) -> list[float]:
    """The numbers of a table field as they stand in the file.

    Stored float32 values carry an error of divisor * 2^-25 at most, so rounding below that gives
    the original decimals.
    """
    flat = value.reshape(-1).astype(np.float64)
    found: Statistics | None = dataset.statistics.get(field.name)
    divisor = np.asarray(found.divisor) if found else np.maximum(np.abs(flat), 1.0)
    offset = np.asarray(found.offset) if found else np.zeros(flat.size)
    raw = flat * np.asarray(found.divisor) + offset if found else flat
    places = np.floor(-np.log10(divisor * 2.0**-24)).astype(int)
    return [round(float(r), int(p)) + 0.0 for r, p in zip(raw, places, strict=True)]


def write(dataset: Dataset, split: str, count: int, folder: Path) -> list[Path]:
    """Writes the first rows of a split: PNG files for pictures, one CSV or JSON lines file for
    anything else.

    Raises:
        DataError: the folder cannot be written.
    """
    kind = str(dataset.spec.predict.get("kind"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return _WRITERS[kind](dataset, split, count, folder)
    except OSError as error:
        raise DataError(f"{folder}: cannot be written: {error.strerror}") from None


def _write_pictures(dataset: Dataset, split: str, count: int, folder: Path) -> list[Path]:
    part, picture = dataset[split], dataset.spec.inputs()[0]
    written = []
    for index in range(min(count, len(part))):
        labels = "".join(
            f"-{f.name}{_plain(dataset, f, part, index)}"
            for f in dataset.spec.labels()
            if not f.shape
        )
        path = folder / f"{dataset.spec.name}-{split}-{index:05d}{labels}.png"
        path.write_bytes(images.png(np.asarray(part.row(picture.name, index))))
        written.append(path)
    return written


def _write_table(dataset: Dataset, split: str, count: int, folder: Path) -> list[Path]:
    path = folder / f"{dataset.spec.name}-{split}.csv"
    cells = [_joined(row) for row in rows(dataset, split, count)]
    with path.open("w", encoding="utf-8", newline="") as stream:
        out = csv.DictWriter(stream, list(cells[0]))
        out.writeheader()
        out.writerows(cells)
    return [path]


def _joined(row: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in row.items():
        found.update(value if isinstance(value, dict) else {name: value})
    return found


def _write_values(dataset: Dataset, split: str, count: int, folder: Path) -> list[Path]:
    path = folder / f"{dataset.spec.name}-{split}.jsonl"
    lines = [json.dumps(row) for row in rows(dataset, split, count)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [path]


_WRITERS = {"image": _write_pictures, "table": _write_table, "values": _write_values}
