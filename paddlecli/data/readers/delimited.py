"""A user's own tables with a delimiter: the data sets `csv` and `tsv`."""

from __future__ import annotations

import csv
import io
from array import array
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal, TextIO

from annotated_types import Len

from paddlecli.config.registry import DATASETS
from paddlecli.config.types import Name, Natural
from paddlecli.data.own.columnar import Shorthand, TableReader, Task
from paddlecli.data.own.fields import FieldRecipe
from paddlecli.data.own.frame import Bad, Frame, Values, frame_of, raising
from paddlecli.data.own.packed import Packed
from paddlecli.data.own.reader import Common, Files, Missing
from paddlecli.data.own.splits import SplitRule
from paddlecli.data.readers.base import text_stream
from paddlecli.errors import DataError

Mark = Annotated[str, Len(1, 1)]


class DelimitedReader(TableReader):
    """Tables whose lines are cut at a delimiter.

    Args:
        name: of the format.
        common: what all readers of own files are given.
        shorthand: what the columns are, unless `fields` says it.
        fields: the fields of the network.
        delimiter: between cells.
        quote: around cells that hold a delimiter or a line end; None: such cells do not exist.
        header: whether the first line names the columns.
        columns: the names, where no line does.
        encoding: of the files.
        comment: lines that begin with it are passed over.
    """

    def __init__(
        self, name: str, common: Common, shorthand: Shorthand,
        fields: Mapping[str, FieldRecipe] | None, *, delimiter: str, quote: str | None, header: bool,
        columns: tuple[str, ...] | None, encoding: str, comment: str | None,
    ) -> None:  # fmt: skip
        super().__init__(name, common, shorthand, fields)
        self.delimiter, self.quote, self.header = delimiter, quote, header
        self.columns, self.encoding, self.comment = columns, encoding, comment
        self.predicts = {
            "format": "delimited", "delimiter": delimiter, "quote": quote, "header": header,
            "columns": list(columns) if columns is not None else None, "encoding": encoding, "comment": comment,
        }  # fmt: skip

    def read(self, path: Path) -> Frame:
        """See `OwnReader.read`."""
        with text_stream(path, self.encoding) as text:
            return table(text, str(path), self.predicts, self.bad)


def table(
    text: str | TextIO, source: str, options: Mapping[str, object], bad: Bad = raising
) -> Frame:
    """The columns of a table; every cell is text without blanks around it.

    Args:
        text: the file's, or a stream of it with line ends as they are.
        source: its name.
        options: `delimiter`, `quote`, `header`, `columns` and `comment` as the reader was given them.
        bad: is told of a line with too many or too few cells.

    Raises:
        DataError: broken quoting, no rows, a column twice.
    """
    lines = cells_in(text, source, options)
    columns, header = options["columns"], options["header"]
    names: list[str] | None = list(columns) if isinstance(columns, list | tuple) else None
    cells_of: list[Packed] = []
    numbers = array("q")
    for line, cells in lines:
        if header:
            names, header = names or cells, False
            if len(names) != len(cells):
                raise DataError(
                    f"{source}: line {line}: the header has {len(cells)} cells, `columns` {len(names)}"
                )
            continue
        if names is None:
            names = [f"c{i}" for i in range(1, len(cells) + 1)]
        if len(cells) != len(names):
            bad(_uneven(source, line, cells, names, options))
            continue
        if not cells_of:
            cells_of = [Packed("cells") for _ in names]
        for column, cell in zip(cells_of, cells, strict=True):
            column.append(cell)
        numbers.append(line)
    if not numbers or names is None:
        raise DataError(f"{source}: holds no rows" + (" below its header" if names else ""))
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        raise DataError(f"{source}: the header has the column {twice!r} twice")
    held = {n: Values("cells", c) for n, c in zip(names, cells_of, strict=True)}
    return frame_of(held, source, numbers)


def _uneven(
    source: str, line: int, cells: list[str], names: list[str], options: Mapping[str, object]
) -> str:
    text = f"{source}: line {line} has {len(cells)} cells, not {len(names)}"
    other = next(
        (d for d in (",", ";", "\t", "|") if d != options["delimiter"] and d in "".join(names)),
        None,
    )
    if len(names) == 1 and other is not None:
        text += f" (is the delimiter {other!r} instead of {options['delimiter']!r}?)"
    return text


csv.field_size_limit(2**31 - 1)  # a cell may hold a long text; Python's own limit is 131,072


def cells_in(
    text: str | TextIO, source: str, options: Mapping[str, object]
) -> Iterator[tuple[int, list[str]]]:
    """Line number and stripped cells of every row that is not empty."""
    quote, comment = options["quote"], options["comment"]
    delimiter = str(options["delimiter"])
    reader = csv.reader(
        io.StringIO(text, newline="") if isinstance(text, str) else text, delimiter=delimiter, strict=True,
        quotechar=str(quote) if quote else None, quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE,
        skipinitialspace=delimiter != " ",
    )  # fmt: skip
    before = 0
    try:
        for cells in reader:
            line, before = before + 1, reader.line_num
            if not cells or (len(cells) == 1 and not cells[0].strip()):
                continue
            if comment and cells[0].startswith(str(comment)):
                continue
            yield line, [c.strip() for c in cells]
    except csv.Error as error:
        raise DataError(f"{source}: line {before + 1}: {error}") from None


@DATASETS.register("csv")
def csv_files(
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
    scale: Literal["standardise", "mean_range", "min_max", "none"] | None = None,
    fields: dict[Name, FieldRecipe] | None = None,
    missing: Missing = "error",
    header: bool = True,
    columns: tuple[Name, ...] | None = None,
    delimiter: Mark = ",",
    quote: Mark | None = '"',
    comment: Mark | None = None,
    encoding: Name = "utf-8",
    memory_mb: Natural = 1024,
    workers: Natural = 0,
    seed: Natural = 0,
) -> DelimitedReader:
    """Your own comma-separated tables.

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
        header: whether the first line names the columns; without one they are c1, c2 and so on.
        columns: names of the columns, instead of those of the header.
        delimiter: the mark between cells. It is not guessed.
        quote: the mark around cells that hold a delimiter; null if there is none.
        comment: lines that begin with this mark are passed over.
        encoding: how the files are written, for example `latin-1`.
        memory_mb: pictures named in cells are held in memory up to this.
        workers: processes that read pictures that are not held.
        seed: start of the random numbers of transforms.
    """
    common = Common(train, valid, test, split, missing == "drop", memory_mb << 20, workers, seed)
    shorthand = Shorthand(label, task, inputs, categories, text, ignore, scale, missing)
    return DelimitedReader(
        "csv", common, shorthand, fields, delimiter=delimiter, quote=quote, header=header, columns=columns,
        encoding=encoding, comment=comment,
    )  # fmt: skip


@DATASETS.register("tsv")
def tsv_files(
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
    scale: Literal["standardise", "mean_range", "min_max", "none"] | None = None,
    fields: dict[Name, FieldRecipe] | None = None,
    missing: Missing = "error",
    header: bool = True,
    columns: tuple[Name, ...] | None = None,
    comment: Mark | None = None,
    encoding: Name = "utf-8",
    memory_mb: Natural = 1024,
    workers: Natural = 0,
    seed: Natural = 0,
) -> DelimitedReader:
    """Your own tables whose cells are separated by tabs; there are no quotes.

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
        header: whether the first line names the columns; without one they are c1, c2 and so on.
        columns: names of the columns, instead of those of the header.
        comment: lines that begin with this mark are passed over.
        encoding: how the files are written, for example `latin-1`.
        memory_mb: pictures named in cells are held in memory up to this.
        workers: processes that read pictures that are not held.
        seed: start of the random numbers of transforms.
    """
    common = Common(train, valid, test, split, missing == "drop", memory_mb << 20, workers, seed)
    shorthand = Shorthand(label, task, inputs, categories, text, ignore, scale, missing)
    return DelimitedReader(
        "tsv", common, shorthand, fields, delimiter="\t", quote=None, header=header, columns=columns,
        encoding=encoding, comment=comment,
    )  # fmt: skip
