"""What every reader is, and the checks that readers share. Loads no numpy until data are opened."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paddlecli.data.cards import Card
from paddlecli.data.spec import DatasetSpec
from paddlecli.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from paddlecli.data.columns import Dataset


class Reader(ABC):
    """Reads one format. Subclasses enter themselves in `READERS` under the name that cards give.

    The keyword-only parameters of a subclass's `__init__` are what a recipe may set beside
    `data.name`.
    """

    def __init__(self, card: Card) -> None:
        self.card = card

    def describe(self) -> DatasetSpec:
        """Fields and sizes, without opening a file."""
        card = self.card
        predict = card.predict.model_dump(exclude_none=True)
        fields = tuple(f.spec() for f in card.fields)
        return DatasetSpec(card.name, card.title, fields, card.sizes(), card.generated, predict)

    @abstractmethod
    def open(self, files: Mapping[str, Path]) -> Dataset:
        """Reads the files (path by the card's file name).

        Raises:
            DataError: a file is damaged, foreign, or holds a value out of range.
        """


def check_classes(values: NDArray[Any], classes: int | None, file: Path, field: str) -> None:
    """Every id lies in [0, classes).

    Raises:
        DataError: names file, row (from 0), value and range.
    """
    if classes is None or values.size == 0:
        return
    bad = (values < 0) | (values >= classes)
    if bad.any():
        flat = bad.reshape(len(values), -1).any(axis=1)
        row = int(flat.argmax())
        value = values.reshape(len(values), -1)[row].max() if values.ndim > 1 else values[row]
        raise DataError(
            f"{file}: row {row}: {field} {value} is out of range: it must be 0 to {classes - 1} "
            f"({int(flat.sum())} such rows)"
        )


def parse_number(text: str, file: Path | str, line: int, column: str) -> float:
    """A finite number.

    Raises:
        DataError: names file, line and column.
    """
    try:
        if "_" in text:  # Python's own notation, in no table
            raise ValueError
        number = float(text)
    except ValueError:
        raise DataError(f"{file}: line {line}: {column}: {text!r} is not a number") from None
    if not math.isfinite(number):
        raise DataError(f"{file}: line {line}: {column}: {text!r} is not a finite number")
    return number


def text_lines(file: Path) -> Iterator[tuple[int, str]]:
    """Numbered lines of a UTF-8 text file without line ends; a byte order mark is dropped.

    Raises:
        DataError: unreadable or not UTF-8.
    """
    try:
        with file.open(encoding="utf-8-sig", newline=None) as stream:
            for number, line in enumerate(stream, 1):
                yield number, line.rstrip("\n")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{file}: not UTF-8 text: byte {error.start} is {error.object[error.start]:#04x}"
        ) from None
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error.strerror}") from None


def table_array(rows: list[list[float]]) -> NDArray[np.float64]:
    """Rows of equal length as float64."""
    import numpy as np

    return np.asarray(rows, np.float64)
