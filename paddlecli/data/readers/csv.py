"""Comma-separated tables with or without a header line (RFC 4180; also `;` and tab, found from the
first line)."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from paddlecli.config.registry import READERS
from paddlecli.data.readers.base import Reader, decode, parse_number, table_array
from paddlecli.errors import DataError

if TYPE_CHECKING:
    from paddlecli.data.columns import Dataset


@READERS.register("csv")
class CsvReader(Reader):
    """All fields come from the columns that the card names: by name with a header, else by
    position."""

    def open(self, files: Mapping[str, Path]) -> Dataset:
        """See `Reader.open`."""
        from paddlecli.data.readers.tables import dataset_from_tables

        names = [c for f in self.card.fields for c in f.columns]
        tables = {name: table_array(list(_numbers(path, names))) for name, path in files.items()}
        return dataset_from_tables(self.card, self.describe(), tables, files)


@dataclass(frozen=True)
class Row:
    """One row of a table: its line (from 1) and text by column name; without a header, names are
    None."""

    line: int
    cells: list[str]
    header: list[str] | None

    def pick(self, names: Iterable[str], source: str) -> list[str]:
        """The cells of these columns.

        Raises:
            DataError: a column is missing, or the row has another number of cells than the header.
        """
        names = list(names)
        if self.header is None:
            if len(self.cells) != len(names):
                raise DataError(
                    f"{source}: line {self.line} has {len(self.cells)} cells, not {len(names)} "
                    f"({', '.join(names)}), and the file has no header line to find them by"
                )
            return self.cells
        if len(self.cells) != len(self.header):
            raise DataError(
                f"{source}: line {self.line} has {len(self.cells)} cells, "
                f"the header has {len(self.header)}"
            )
        places = {name.casefold(): i for i, name in enumerate(self.header)}
        missing = [n for n in names if n.casefold() not in places]
        if missing:
            raise DataError(
                f"{source}: line {self.line}: no column {', '.join(missing)} in the header "
                f"({', '.join(self.header)})"
            )
        return [self.cells[places[n.casefold()]] for n in names]


def _numbers(file: Path, names: list[str]) -> Iterator[list[float]]:
    empty = True
    for row in read_rows(decode(file.read_bytes(), str(file)), str(file)):
        empty = False
        cells = row.pick(names, str(file))
        yield [parse_number(c, file, row.line, n) for c, n in zip(cells, names, strict=True)]
    if empty:
        raise DataError(f"{file}: holds no rows")


def read_rows(text: str, source: str) -> Iterator[Row]:
    """Rows of a table. The first row is a header if none of its cells is a number.

    Raises:
        DataError: broken quoting.
    """
    first = next((line for line in text.splitlines() if line.strip()), "")
    stream = io.StringIO(text, newline="")
    delimiter = _delimiter(first)
    header: list[str] | None = None
    started = False
    for line, cells in _raw_rows(stream, delimiter, source):
        if not started and not any(_is_number(c) for c in cells):
            header = cells
        else:
            yield Row(line, cells, header)
        started = True


def _raw_rows(stream: io.StringIO, delimiter: str, source: str) -> Iterator[tuple[int, list[str]]]:
    """Numbered rows of stripped cells, without empty lines. Blanks separate if no delimiter was
    found."""
    if delimiter == " ":
        for line, text in enumerate(stream, 1):
            if text.strip():
                yield line, text.split()
        return
    reader = csv.reader(stream, delimiter=delimiter, strict=True, skipinitialspace=True)
    try:
        for cells in reader:
            if any(c.strip() for c in cells):
                yield reader.line_num, [c.strip() for c in cells]
    except csv.Error as error:
        raise DataError(f"{source}: line {reader.line_num}: {error}") from None


def _delimiter(line: str) -> str:
    for delimiter in (",", ";", "\t"):
        if delimiter in line:
            return delimiter
    return " "


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
