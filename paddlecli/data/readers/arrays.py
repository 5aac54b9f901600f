"""A user's own arrays: `npz` (named arrays in one file), `npy` and `idx` (one array a file)."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paddlecli.config.registry import DATASETS
from paddlecli.config.types import Count, Name
from paddlecli.data.own.fields import Field, FieldRecipe
from paddlecli.data.own.frame import Frame, Kind, Values, frame_of, joined
from paddlecli.data.own.reader import Common, Files, OwnReader, expand, fields_of, only
from paddlecli.data.own.splits import SPLITS, SplitRule
from paddlecli.data.readers.idx import read_idx
from paddlecli.data.spec import Role
from paddlecli.data.transforms.base import Chain
from paddlecli.errors import ConfigError, DataError

Array = NDArray[Any]


class ArraysReader(OwnReader):
    """Arrays whose first axis is the row.

    Args:
        name: of the format.
        common: what all readers of own files are given.
        inputs: arrays that are inputs; None: all but the labels.
        labels: arrays that are labels.
        classes: number of classes of the labels; None: they are numbers to predict.
        fields: the fields of the network, instead of the three before.
    """

    def __init__(
        self, name: str, common: Common, inputs: tuple[str, ...] | None, labels: tuple[str, ...],
        classes: int | None, fields: Mapping[str, FieldRecipe] | None,
    ) -> None:  # fmt: skip
        super().__init__(name, common)
        self.inputs, self.labels, self.classes, self.recipes = inputs, labels, classes, fields
        self.predicts = {"format": "arrays"}
        given = {"inputs": inputs, "labels": labels or None, "classes": classes}
        only(fields, "fields", lambda: [k for k, v in given.items() if v is not None])

    def read(self, path: Path) -> Frame:
        """See `OwnReader.read`."""
        return frame_of(
            {n: values_of(a, n, str(path)) for n, a in npz_arrays(path).items()}, str(path)
        )

    def fields(self, train: Frame) -> list[Field]:
        """See `OwnReader.fields`."""
        if self.recipes is not None:
            return fields_of(self.recipes)
        inputs = self.inputs or tuple(c for c in train.columns if c not in self.labels)
        found = [_field(train, name, "input", None) for name in inputs]
        return found + [_field(train, name, "label", self.classes) for name in self.labels]


def _field(train: Frame, name: str, role: Role, classes: int | None) -> Field:
    texts = train.column(name).kind == "cells"
    if texts:
        return Field(name, role, [Chain([name], ["category_ids"])])
    return Field(
        name, role, [Chain([name], [{"class_ids": {"classes": classes}}] if classes else [])]
    )


def values_of(array: Array, name: str, source: str) -> Values:
    """An array as a column: texts become cells, anything else stays as it is stored.

    Raises:
        DataError: a type that cannot be used, or no rows axis.
    """
    if array.ndim == 0:
        raise DataError(f"{source}: {name} is a single value, not an array of rows")
    if array.dtype.kind in "US":
        if array.ndim != 1:
            raise DataError(f"{source}: {name}: texts must have one axis, not {array.ndim}")
        return Values("cells", [t.decode() if isinstance(t, bytes) else t for t in array.tolist()])
    if array.dtype.kind not in "biuf":
        raise DataError(f"{source}: {name}: arrays of {array.dtype} cannot be used")
    kind: Kind = "arrays"
    return Values(
        kind, array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
    )


def npz_arrays(path: Path) -> dict[str, Array]:
    """The arrays of an npz file.

    Raises:
        DataError: damaged or foreign, or an array of Python objects, which would run code.
    """
    try:
        with path.open("rb") as file:
            stored = np.load(file, allow_pickle=False)
            if isinstance(stored, np.ndarray):
                raise DataError(f"{path}: holds one array (npy), not several with names (npz)")
            with stored:
                return {name: stored[name] for name in stored.files}
    except (OSError, ValueError, zipfile.BadZipFile, EOFError) as error:
        raise DataError(f"{path}: {_reason(error)}") from None


def npy_array(path: Path) -> Array:
    """The array of an npy file, mapped into memory.

    Raises:
        DataError: damaged or foreign, or an array of Python objects, which would run code.
    """
    try:
        found: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{path}: {_reason(error)}") from None
    if not isinstance(found, np.ndarray):
        raise DataError(f"{path}: holds several arrays (npz), not one (npy)")
    return found


def _reason(error: Exception) -> str:
    if "pickle" in str(error).lower() or "object" in str(error).lower():
        return "not an array file of numbers or texts: Python objects are not read"
    return f"not an array file, or damaged: {error}"


class SeparateReader(ArraysReader):
    """As `ArraysReader`, with one file an array.

    Args:
        name: of the format.
        paths: by split the files by array.
        split: how the rows of train are shared out.
        rest: see `ArraysReader`.
        read_file: from a file to its array.
    """

    def __init__(
        self, name: str, paths: Mapping[str, Mapping[str, Path] | None], split: SplitRule | None,
        rest: tuple[Any, ...], read_file: Callable[[Path], Array],
    ) -> None:  # fmt: skip
        flat = {k: tuple(v.values()) if v else None for k, v in paths.items()}
        super().__init__(
            name, Common(flat["train"] or (), flat["valid"], flat["test"], split), *rest
        )
        self.paths, self.read_file = paths, read_file
        names = [set(v) for v in paths.values() if v]
        if any(n != names[0] for n in names):
            raise ConfigError("data: every split must have the same arrays")

    def _frame(self, files: Files) -> Frame:
        named = next(p for k, p in self.paths.items() if p and getattr(self.common, k) == files)
        columns = {}
        for name, path in named.items():
            columns[name] = values_of(self.read_file(expand(path)[0]), name, str(path))
        return joined([frame_of(columns, ", ".join(str(p) for p in named.values()))])


@DATASETS.register("npz")
def npz_files(
    *,
    train: Files,
    valid: Files | None = None,
    test: Files | None = None,
    split: SplitRule | None = None,
    inputs: tuple[Name, ...] | None = None,
    labels: tuple[Name, ...] = (),
    classes: Count | None = None,
    fields: dict[Name, FieldRecipe] | None = None,
) -> ArraysReader:
    """Your own numpy files with named arrays of equal first axis; each array is a field of its name.

    Args:
        train: the file to train on, or several; `*` stands for any part of a name.
        valid: the file to validate on, or several.
        test: the file to test on, or several.
        split: shares of `train` that validate and test, instead of files.
        inputs: the arrays that are inputs; all but the labels if left out.
        labels: the arrays that are labels.
        classes: number of classes, where the labels are ids from 0 up; numbers to predict if left out.
        fields: the fields of the network by name, each made from arrays by transforms.
    """
    return ArraysReader("npz", Common(train, valid, test, split), inputs, labels, classes, fields)


@DATASETS.register("npy")
def npy_files(
    *,
    train: dict[Name, Path],
    valid: dict[Name, Path] | None = None,
    test: dict[Name, Path] | None = None,
    split: SplitRule | None = None,
    inputs: tuple[Name, ...] | None = None,
    labels: tuple[Name, ...] = (),
    classes: Count | None = None,
    fields: dict[Name, FieldRecipe] | None = None,
) -> SeparateReader:
    """Your own numpy files with one array each, of equal first axis: `train: {x: x.npy, y: y.npy}`.

    Args:
        train: the files to train on, by the names that their arrays get.
        valid: the files to validate on.
        test: the files to test on.
        split: shares of `train` that validate and test, instead of files.
        inputs: the arrays that are inputs; all but the labels if left out.
        labels: the arrays that are labels.
        classes: number of classes, where the labels are ids from 0 up; numbers to predict if left out.
        fields: the fields of the network by name, each made from arrays by transforms.
    """
    paths = dict(zip(SPLITS, (train, valid, test), strict=True))
    return SeparateReader("npy", paths, split, (inputs, labels, classes, fields), npy_array)


@DATASETS.register("idx")
def idx_files(
    *,
    train: dict[Name, Path],
    valid: dict[Name, Path] | None = None,
    test: dict[Name, Path] | None = None,
    split: SplitRule | None = None,
    inputs: tuple[Name, ...] | None = None,
    labels: tuple[Name, ...] = (),
    classes: Count | None = None,
    fields: dict[Name, FieldRecipe] | None = None,
) -> SeparateReader:
    """Your own IDX files (the format of MNIST), plain or compressed with gzip, one array each:
    `train: {image: images-idx3-ubyte.gz, label: labels-idx1-ubyte.gz}`.

    Args:
        train: the files to train on, by the names that their arrays get.
        valid: the files to validate on.
        test: the files to test on.
        split: shares of `train` that validate and test, instead of files.
        inputs: the arrays that are inputs; all but the labels if left out.
        labels: the arrays that are labels.
        classes: number of classes, where the labels are ids from 0 up; numbers to predict if left out.
        fields: the fields of the network by name, each made from arrays by transforms.
    """
    paths = dict(zip(SPLITS, (train, valid, test), strict=True))
    return SeparateReader("idx", paths, split, (inputs, labels, classes, fields), read_idx)
