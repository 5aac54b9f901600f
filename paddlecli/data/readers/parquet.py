"""A user's own Parquet files (`parquet`): rows of named values, read a block at a time."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from paddlecli.config.registry import DATASETS
from paddlecli.config.types import Name, Natural
from paddlecli.data.own.columnar import Shorthand, Task
from paddlecli.data.own.fields import FieldRecipe
from paddlecli.data.own.frame import Bad, Frame, frame_of, raising
from paddlecli.data.own.packed import BLOCK
from paddlecli.data.own.reader import Common, Files, Missing
from paddlecli.data.own.splits import SplitRule
from paddlecli.data.readers.jsonl import RowsReader, Scale, making, values_of
from paddlecli.errors import DataError, ResourceError


def parquet_rows(path: Path, bad: Bad = raising) -> Frame:
    """The rows of a Parquet file; the place of a row is its number, from 1.

    Raises:
        ResourceError: the extra that reads them is not installed.
        DataError: damaged or foreign.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ResourceError(
            f"{path}: reading Parquet files needs pyarrow", hint="pip install 'paddlecli[parquet]'"
        ) from None
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            kinds = {f.name: _arrow_kind(pyarrow.types, f.type) for f in file.schema_arrow}
            made = {name: making(kind) for name, kind in kinds.items()}
            for batch in file.iter_batches(BLOCK):
                for name, column in made.items():
                    for value in _plain(batch.column(name)):
                        column.append(value)
            rows = file.metadata.num_rows
    except (OSError, pyarrow.ArrowException) as error:
        raise DataError(
            f"{path}: not a Parquet file, or damaged: {str(error).splitlines()[0]}"
        ) from None
    if not rows:
        raise DataError(f"{path}: holds no rows")
    numbers = range(1, rows + 1)
    columns = {name: values_of(name, column, numbers, str(path)) for name, column in made.items()}
    return frame_of(columns, str(path), numbers)


def _arrow_kind(types: Any, kind: Any) -> str:
    """The rough kind of an Arrow type's values."""
    if types.is_dictionary(kind):
        kind = kind.value_type
    numeric = (types.is_null, types.is_boolean, types.is_integer, types.is_floating)
    if any(holds(kind) for holds in numeric):
        return "number"
    return "list" if types.is_nested(kind) else "text"


def _plain(column: Any) -> list[Any]:
    values: Iterable[Any] = column.to_pylist()
    return [
        v if v is None or isinstance(v, bool | int | float | str | list) else str(v) for v in values
    ]


@DATASETS.register("parquet")
def parquet_files(
    *,
    train: Files,
    valid: Files | None = None,
    test: Files | None = None,
    split: SplitRule | None = None,
    label: Name | tuple[Name, ...] | None = None,
    task: Task | None = None,
    inputs: tuple[Name, ...] | None = None,
    categories: tuple[Name, ...] | None = None,
    text: tuple[Name, ...] | None = None,
    ignore: tuple[Name, ...] | None = None,
    scale: Scale | None = None,
    fields: dict[Name, FieldRecipe] | None = None,
    missing: Missing = "error",
    memory_mb: Natural = 1024,
    workers: Natural = 0,
    seed: Natural = 0,
) -> RowsReader:
    """Your own Parquet files. It needs `pip install 'paddlecli[parquet]'`.

    All numbers of a row become the field `x`, the label the field `y`; `fields` says it freely.

    Args:
        train: the file to train on, or several; `*` stands for any part of a name.
        valid: the file to validate on, or several.
        test: the file to test on, or several.
        split: shares of `train` that validate and test, instead of files.
        label: the column to predict, or several for a regression of several numbers.
        task: `regression` for numbers, `classification` for classes.
        inputs: the columns that are inputs; if left out, all but the label and what `split` goes by.
        categories: inputs that are categories: each becomes a column of 0 and 1 for every category.
        text: inputs that are texts: each becomes a field of word ids of its own name.
        ignore: columns that are not used.
        scale: how numbers are scaled, by the train rows; `standardise` if left out.
        fields: the fields of the network by name, each made from columns by transforms.
        missing: a row that lacks a value is an `error`, or left out (`drop`), or filled (`fill`: the mean
            of numbers, the most common category).
        memory_mb: pictures named in values are held in memory up to this.
        workers: processes that read pictures that are not held.
        seed: start of the random numbers of transforms.
    """
    common = Common(train, valid, test, split, missing == "drop", memory_mb << 20, workers, seed)
    shorthand = Shorthand(label, task, inputs, categories, text, ignore, scale, missing)
    return RowsReader("parquet", common, shorthand, fields, parquet_rows)
