"""Tables of numbers separated by blanks, one row a line, no header (the UCI housing file)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from paddlecli.config.registry import READERS
from paddlecli.data.readers.base import Reader, parse_number, table_array, text_lines
from paddlecli.errors import DataError

if TYPE_CHECKING:
    from paddlecli.data.columns import Dataset


@READERS.register("whitespace")
class WhitespaceReader(Reader):
    """All fields come from the columns that the card names, in the file's order."""

    def open(self, files: Mapping[str, Path]) -> Dataset:
        """See `Reader.open`."""
        from paddlecli.data.readers.tables import dataset_from_tables

        names = [c for f in self.card.fields for c in f.columns]
        tables = {name: table_array(read_rows(path, names)) for name, path in files.items()}
        return dataset_from_tables(self.card, self.describe(), tables, files)


def read_rows(file: Path, names: list[str]) -> list[list[float]]:
    """The rows of the file; empty lines are skipped.

    Raises:
        DataError: names file, line and column of what is no number, or the line that is too short
            or too long.
    """
    rows = []
    for line, text in text_lines(file):
        parts = text.split()
        if not parts:
            continue
        if len(parts) != len(names):
            raise DataError(f"{file}: line {line} has {len(parts)} numbers, not {len(names)}")
        rows.append(
            [parse_number(p, file, line, name) for p, name in zip(parts, names, strict=True)]
        )
    if not rows:
        raise DataError(f"{file}: holds no rows")
    return rows
