"""`dataset check`: what is in a data set and what is wrong with it, before anybody trains on it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from paddlecli.data.columns import Column, Dataset, Split
from paddlecli.data.frame import SHOWN, Frame, Values
from paddlecli.data.opening import open_with, reader_of
from paddlecli.data.own import OwnReader
from paddlecli.data.spec import FieldSpec
from paddlecli.errors import DataError

Plain = dict[str, Any]


@dataclass(frozen=True)
class Report:
    """What a check found.

    Attributes:
        name: of the data set.
        splits: by name: `rows`, and by field what its values are (`fields`).
        problems: one text each, with file and line; rows that cannot be used, and rows of one split
            that another split has too.
        remarks: what a user should know and need not mend.
    """

    name: str
    splits: Mapping[str, Plain]
    problems: Sequence[str]
    remarks: Sequence[str] = field(default=())

    def as_dict(self) -> Plain:
        """The object that `dataset check --json` prints."""
        return {
            "schema": 1,
            "name": self.name,
            "splits": dict(self.splits),
            "problems": list(self.problems[:SHOWN]),
            "problem_count": len(self.problems),
            "remarks": list(self.remarks),
        }

    def lines(self) -> list[str]:
        """The same for people."""
        found = []
        for name, split in self.splits.items():
            found.append(f"{name}: {split['rows']:,} rows")
            for field_name, about in split["fields"].items():
                found.append(f"  {field_name}: {_told(about)}")
        found += [f"note: {remark}" for remark in self.remarks]
        found += [f"problem: {problem}" for problem in self.problems[:SHOWN]]
        if len(self.problems) > SHOWN:
            found.append(f"and {len(self.problems) - SHOWN:,} more problems")
        return found

    def demand(self) -> None:
        """Raises DataError where there is a problem."""
        if self.problems:
            count = len(self.problems)
            raise DataError(f"{self.name}: {count} problem{'' if count == 1 else 's'}")


def check(name: str, arguments: Mapping[str, Any] | None = None) -> Report:
    """Reads a whole data set and says what is in it.

    Args:
        name: of the data set, as in `data.name`.
        arguments: the recipe's keys beside it.

    Raises:
        ConfigError: unknown name or wrong arguments.
        DataError: a file is missing, or cannot be read at all.
    """
    reader = reader_of(name, arguments)
    if not isinstance(reader, OwnReader):
        data = open_with(reader)
        repeats = [*_repeated({k: _column_keys(data, s) for k, s in data.splits.items()}, {})]
        return Report(name, _splits(data), (), (*data.spec.remarks, *repeats, *_balance(data)))
    made, bad, frames = reader.check()
    problems = [text for texts in bad.values() for text in texts]
    keys = {k: list(_frame_keys(reader, f)) for k, f in frames.items()}
    labels = {k: list(_label_keys(reader, f)) for k, f in frames.items()}
    remarks = list(made.spec.remarks) if made is not None else []
    for text in _repeated(keys, frames):
        (remarks if text.startswith(_ONCE) else problems).append(text)
    problems += _contradictions(keys, labels, frames)
    remarks += _balance(made) if made is not None else []
    return Report(name, _splits(made) if made is not None else {}, problems, remarks)


# -- what is in it ----------------------------------------------------------------------------------
def _splits(data: Dataset) -> dict[str, Plain]:
    return {
        name: {
            "rows": len(split),
            "fields": {f.name: _about(data, f, split) for f in data.spec.fields},
        }
        for name, split in data.splits.items()
    }


def _about(data: Dataset, spec: FieldSpec, split: Split) -> Plain:
    """Kind, sizes and counts of a field's values."""
    found: Plain = {"role": spec.role, "dtype": spec.dtype, "shape": list(spec.shape)}
    column = split.columns.get(spec.name)
    if column is None:
        return found
    if column.offsets:
        found["lengths"] = _lengths(column)
    if spec.classes is not None and spec.dtype.startswith("int"):
        counts = np.bincount(column.values.reshape(-1), minlength=spec.classes)
        found["classes"] = spec.classes
        if spec.role == "label" or spec.classes <= 2 * SHOWN:
            names = spec.names or tuple(map(str, range(spec.classes)))
            found["counts"] = {n: int(c) for n, c in zip(names, counts, strict=True)}
        found |= _unknown(data, spec, counts)
    elif column.values.size and not spec.shape[1:]:
        found |= {"least": float(column.values.min()), "greatest": float(column.values.max())}
        found["mean"] = float(column.values.mean(dtype=np.float64))
    return found


def _lengths(column: Column) -> Plain:
    lengths = np.diff(column.offsets[0])
    return {
        "least": int(lengths.min()),
        "median": float(np.median(lengths)),
        "mean": float(lengths.mean()),
        "greatest": int(lengths.max()),
    }


def _unknown(data: Dataset, spec: FieldSpec, counts: np.ndarray[Any, Any]) -> Plain:
    table = data.vocabularies.get(spec.vocabulary or spec.name)
    if table is None or table.unknown is None or not counts.sum():
        return {}
    return {"unknown": float(counts[table.ids[table.unknown]] / counts.sum())}


def _told(about: Plain) -> str:
    shape = f" {about['shape']}" if about["shape"] else ""
    parts = [f"{about['dtype']}{shape}"]
    if "classes" in about:
        parts.append(
            f"{about['classes']} classes" if about["role"] == "label" else f"{about['classes']} ids"
        )
    if "counts" in about:
        most = sorted(about["counts"].items(), key=lambda kv: -kv[1])
        shown = ", ".join(f"{n} {c:,}" for n, c in most[:SHOWN])
        parts.append(shown + (", ..." if len(most) > SHOWN else ""))
    if "lengths" in about:
        n = about["lengths"]
        parts.append(
            f"{n['least']} to {n['greatest']} long, mean {n['mean']:.1f}, median {n['median']:g}"
        )
    if "unknown" in about:
        parts.append(f"{100 * about['unknown']:.2f} % unknown")
    if "mean" in about:
        parts.append(f"{about['least']:.6g} to {about['greatest']:.6g}, mean {about['mean']:.6g}")
    return "; ".join(parts)


def _balance(data: Dataset) -> Iterator[str]:
    """What is odd about the numbers of the classes."""
    for spec in data.spec.labels():
        for name, split in data.splits.items():
            if spec.classes is None or spec.name not in split.columns or spec.axes:
                continue
            counts = np.bincount(
                split.columns[spec.name].values.reshape(-1), minlength=spec.classes
            )
            names = spec.names or tuple(map(str, range(spec.classes)))
            absent = [n for n, c in zip(names, counts, strict=True) if not c]
            if absent:
                shown = ", ".join(absent[:SHOWN]) + (", ..." if len(absent) > SHOWN else "")
                yield f"{name}: no row of {spec.name} {shown}"
            seen = counts[counts > 0]
            if seen.size > 1 and seen.max() >= 10 * seen.min():
                yield (
                    f"{name}: {spec.name} {names[int(counts.argmax())]} has {int(seen.max()):,} rows, "
                    f"{names[int(np.flatnonzero(counts == seen.min())[0])]} {int(seen.min()):,}"
                )


# -- rows that come again -----------------------------------------------------------------------------
_ONCE = "twice: "


def _repeated(keys: Mapping[str, Sequence[bytes]], frames: Mapping[str, Frame]) -> Iterator[str]:
    """Rows whose inputs are equal: within a split one text that counts them, between splits one text
    each."""
    first: dict[bytes, tuple[str, int]] = {}
    for split, rows in keys.items():
        own: dict[bytes, int] = {}
        twice: list[tuple[int, int]] = []
        leaks = 0
        for row, key in enumerate(rows):
            if key in own:
                twice.append((own[key], row))
                continue
            own[key] = row
            if key in first:
                other, where = first[key]
                leaks += 1
                if frames:
                    yield f"{frames[split].place(row)}: in {split}, but also in {other} ({frames[other].place(where)})"
            else:
                first[key] = (split, row)
        if leaks and not frames:
            yield f"{split}: {leaks:,} rows have the inputs of a row of another split"
        if twice:
            yield _ONCE + _twice(split, twice, frames.get(split))


def _twice(split: str, twice: Sequence[tuple[int, int]], frame: Frame | None) -> str:
    text = f"{split}: {len(twice):,} rows have the inputs of a row before them"
    if frame is None:
        return text
    shown = ", ".join(f"{frame.place(b)} as {frame.place(a)}" for a, b in twice[:3])
    return f"{text}: {shown}" + (", ..." if len(twice) > 3 else "")


def _contradictions(
    keys: Mapping[str, Sequence[bytes]],
    labels: Mapping[str, Sequence[bytes]],
    frames: Mapping[str, Frame],
) -> Iterator[str]:
    """Rows of a split with equal inputs and other labels."""
    for split, rows in keys.items():
        seen: dict[bytes, int] = {}
        for row, key in enumerate(rows):
            other = seen.setdefault(key, row)
            if labels[split][row] != labels[split][other]:
                frame = frames[split]
                yield f"{frame.place(row)}: the inputs of {frame.place(other)} with another label"


def _frame_keys(reader: OwnReader, frame: Frame) -> Iterator[bytes]:
    columns = [frame.columns[c] for c in reader.columns_of("input", frame)]
    for row in range(len(frame)):
        digest = hashlib.sha256()
        for values in columns:
            digest.update(_bytes_of(values, row) + b"\0")
        yield digest.digest()


def _label_keys(reader: OwnReader, frame: Frame) -> Iterator[bytes]:
    columns = [frame.columns[c] for c in reader.columns_of("label", frame)]
    for row in range(len(frame)):
        yield b"\0".join(_bytes_of(values, row) for values in columns)


def _bytes_of(values: Values, row: int) -> bytes:
    """What makes two raw values equal: a picture is its file's bytes, anything else its text."""
    value = values.rows[row]
    if isinstance(value, np.ndarray):
        return np.ascontiguousarray(value).tobytes()
    if isinstance(value, str) and Path(value).is_absolute():
        path = Path(value)
        return path.read_bytes() if path.is_file() else value.encode()
    return str(value).encode(errors="surrogatepass")


def _column_keys(data: Dataset, split: Split) -> list[bytes]:
    """One digest a row over the inputs in memory."""
    columns = [split.columns[f.name] for f in data.spec.inputs() if f.name in split.columns]
    found = []
    for row in range(len(split)):
        digest = hashlib.sha256()
        for column in columns:
            value = column.row(row)
            for part in value if isinstance(value, list) else [value]:
                digest.update(np.ascontiguousarray(part).tobytes() + b"\0")
        found.append(digest.digest())
    return found
