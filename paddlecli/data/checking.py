"""`dataset check`: what is in a data set and what is wrong with it, before anybody trains on it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from paddlecli import assets
from paddlecli.config.load import load_recipe
from paddlecli.config.nodes import close_names
from paddlecli.config.registry import DATASETS
from paddlecli.data.columns import Column, Dataset, Split
from paddlecli.data.opening import open_with, reader_of
from paddlecli.data.own.frame import SHOWN, Frame
from paddlecli.data.own.look_facts import brief
from paddlecli.data.own.reader import OwnReader
from paddlecli.data.spec import FieldSpec, Role
from paddlecli.errors import ConfigError, DataError

Plain = dict[str, Any]
Keys = Mapping[str, Sequence[bytes]]
"""One digest a row, by split."""


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
        leaks, again = _repeated({k: _column_keys(data, s) for k, s in data.splits.items()}, {})
        if leaks:
            again.append(f"{len(leaks):,} rows are in two splits: {leaks[0]}")
        return Report(name, _splits(data), (), (*data.spec.remarks, *again, *_balance(data)))
    made, bad, frames = reader.check()
    whole, inputs = _keys(reader, frames, ("input", "label")), _keys(reader, frames, ("input",))
    leaks, again = _repeated(whole, frames)
    problems = [*(text for texts in bad.values() for text in texts), *leaks]
    if made is None:
        return Report(name, {}, problems, again)
    of_classes = any(f.dtype.startswith("int") for f in made.spec.labels())
    remarks = [*again, *(_contradictions(inputs, whole, frames) if of_classes else ())]
    return Report(name, _splits(made), problems, (*made.spec.remarks, *remarks, *_balance(made)))


def _is_card(text: str) -> bool:
    """Whether a path means a card, which says how files are read, and not a recipe."""
    path = Path(text).expanduser()
    if not path.is_file():
        return False
    return any(line.startswith("reader:") for line in path.read_text(errors="replace").splitlines())


def check_named(text: str, overrides: Sequence[str] = ()) -> Report:
    """As `check`, for what a user names: a data set, or a recipe whose data are meant.

    Raises:
        ConfigError: there is neither, or the recipe has no data.
    """
    known = _is_card(text) if assets.is_path(text) else DATASETS.find(text) is not None
    if known and not overrides:
        return check(text)
    _recipe_or_explain(text)
    recipe = load_recipe(text, overrides)
    if recipe.data is None:
        raise ConfigError(f"{text}: the recipe names no data set")
    return check(recipe.data.name, recipe.data.arguments)


def _recipe_or_explain(text: str) -> None:
    """Raises ConfigError where a file is of data itself, or where nothing has the name."""
    if not assets.is_path(text):
        if assets.find("recipes", text) is None:
            names = [*assets.names("datasets"), *assets.recipe_names()]
            near = close_names(text, names)
            raise ConfigError(
                f"there is no data set and no recipe named `{text}`",
                hint=f"did you mean {' or '.join(near)}?"
                if near
                else "`paddlecli dataset list` and `paddlecli recipe list` show the names; a file is "
                "written as a path: ./NAME",
            )
        return
    path = Path(text).expanduser()
    if path.is_dir() or (path.is_file() and path.suffix.lower() not in (".yaml", ".yml")):
        raise ConfigError(
            f"{text}: neither a recipe nor a card",
            hint=f"`paddlecli recipe new --data {text}` writes a recipe that says how it is read; "
            "check that",
        )


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
    if spec.classes is not None and "int" in spec.dtype:
        # a mask may hold numbers above the classes, for pixels that count as none
        counts = np.bincount(column.values.reshape(-1), minlength=spec.classes)[: spec.classes]
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
        shown = ", ".join(f"{brief(n)} {c:,}" for n, c in most[:SHOWN])
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
    """What is odd about the classes: names that only their case tells apart, and their numbers."""
    for spec in data.spec.labels():
        yield from _alike(spec)
        for name, split in data.splits.items():
            if (
                spec.classes is None
                or spec.name not in split.columns
                or spec.axes
                or spec.shape[1:]
            ):
                continue
            counts = np.bincount(
                split.columns[spec.name].values.reshape(-1), minlength=spec.classes
            )
            names = spec.names or tuple(map(str, range(spec.classes)))
            absent = [n for n, c in zip(names, counts, strict=True) if not c]
            if absent:
                shown = ", ".join(map(brief, absent[:SHOWN])) + (
                    ", ..." if len(absent) > SHOWN else ""
                )
                yield f"{name}: no row of {spec.name} {shown}"
            seen = counts[counts > 0]
            if seen.size > 1 and seen.max() >= 10 * seen.min():
                most = brief(names[int(counts.argmax())])
                least = brief(names[int(np.flatnonzero(counts == seen.min())[0])])
                yield f"{name}: {spec.name} {most} has {seen.max():,} rows, {least} {seen.min():,}"


def _alike(spec: FieldSpec) -> Iterator[str]:
    same: dict[str, list[str]] = {}
    for name in spec.names:
        same.setdefault(name.casefold(), []).append(name)
    for names in same.values():
        if len(names) > 1:
            shown = ", ".join(map(brief, names))
            yield f"classes of {spec.name} that only their case tells apart: {shown}"


# -- rows that come again -----------------------------------------------------------------------------
def _repeated(keys: Keys, frames: Mapping[str, Frame]) -> tuple[list[str], list[str]]:
    """Rows that come again: for every row that another split has too a text, and remarks that count
    those within a split."""
    first: dict[bytes, tuple[str, int]] = {}
    leaks, remarks = [], []
    for split, rows in keys.items():
        own: dict[bytes, int] = {}
        twice: list[tuple[int, int]] = []
        for row, key in enumerate(rows):
            if key in own:
                twice.append((own[key], row))
                continue
            own[key] = row
            other, where = first.setdefault(key, (split, row))
            if other != split:
                here, there = _place(frames, split, row), _place(frames, other, where)
                leaks.append(f"{here}: in {split}, but also in {other} ({there})")
        if twice:
            shown = ", ".join(
                f"{_place(frames, split, b)} as {_place(frames, split, a)}" for a, b in twice[:3]
            )
            more = ", ..." if len(twice) > 3 else ""
            remarks.append(
                f"{split}: {len(twice):,} rows are equal to one before them: {shown}{more}"
            )
    return leaks, remarks


def _place(frames: Mapping[str, Frame], split: str, row: int) -> str:
    return str(frames[split].place(row)) if split in frames else f"{split} row {row}"


def _contradictions(inputs: Keys, whole: Keys, frames: Mapping[str, Frame]) -> Iterator[str]:
    """Remarks on rows of a split with equal inputs and other labels."""
    for split, rows in inputs.items():
        seen: dict[bytes, int] = {}
        odd = [
            (seen[key], row)
            for row, key in enumerate(rows)
            if whole[split][seen.setdefault(key, row)] != whole[split][row]
        ]
        if odd:
            a, b = odd[0]
            yield (
                f"{split}: {len(odd):,} rows have the inputs of a row before them and another label: "
                f"{_place(frames, split, b)} as {_place(frames, split, a)}"
                + (", ..." if odd[1:] else "")
            )


def _keys(reader: OwnReader, frames: Mapping[str, Frame], roles: Sequence[Role]) -> Keys:
    return {
        name: list(_row_keys(frame, [c for role in roles for c in reader.columns_of(role, frame)]))
        for name, frame in frames.items()
    }


def _row_keys(frame: Frame, names: Sequence[str]) -> Iterator[bytes]:
    for row in zip(*(frame.columns[c].rows for c in names), strict=True):
        digest = hashlib.sha256()
        for value in row:
            digest.update(_bytes_of(value) + b"\0")
        yield digest.digest()


def _bytes_of(value: Any) -> bytes:
    """What makes two raw values equal: a picture is its file's bytes, anything else its text."""
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
