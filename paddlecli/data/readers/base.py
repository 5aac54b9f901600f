"""What every reader is, and the checks that readers share. Loads no numpy until data are opened."""

from __future__ import annotations

import io
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from paddlecli.data.cards import Card
from paddlecli.data.spec import DatasetSpec
from paddlecli.errors import ConfigError, DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from paddlecli.data.columns import Dataset
    from paddlecli.data.fetching.cache import Found


class Reader(ABC):
    """Reads one format. Subclasses enter themselves in `READERS` under the name that cards give.

    The keyword-only parameters of a subclass's `__init__` are what a recipe may set beside
    `data.name`.
    """

    def __init__(self, card: Card) -> None:
        self.card = card
        self.exact = True
        """Whether the files are the published ones, so that the card's counts must hold."""

    def describe(self) -> DatasetSpec:
        """Fields and sizes, without opening a file."""
        card = self.card
        predict = card.predict.model_dump(exclude_none=True)
        fields = tuple(card.specs())
        return DatasetSpec(card.name, card.title, fields, card.sizes(), card.generated, predict)

    def standard(self) -> bool:
        """Whether the settings are those that the card's numbers of rows and classes belong to."""
        return True

    def load(self, found: Mapping[str, Found]) -> Dataset:
        """The data set of these files, from a place where it was prepared before if there is one."""
        self.exact = all(f.wanted.official for f in found.values())
        return self.open({name: f.path for name, f in found.items()})

    def freeze(self, preprocessing: Mapping[str, Any]) -> None:  # noqa: B027 - most learn nothing
        """Takes what is learned from data out of a model's `preprocessing` instead."""

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


def text_lines(file: Path, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    """Numbered lines of a text file without line ends; a byte order mark is dropped.

    Raises:
        DataError: unreadable, or not in this encoding.
    """
    yield from split_lines(read_text(file, encoding))


def split_lines(text: str | TextIO) -> Iterator[tuple[int, str]]:
    """Numbered lines without their ends, which are CR, LF or both; the other marks that Unicode calls
    line ends stay inside their line."""
    stream = io.StringIO(text, newline=None) if isinstance(text, str) else _universal(text)
    for number, line in enumerate(stream, 1):
        yield number, line.rstrip("\n")


def _universal(stream: TextIO) -> TextIO:
    """The stream with every line end as LF."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(newline=None)
    return stream


def read_text(file: Path, encoding: str = "utf-8") -> str:
    """The text of a file, line ends as they are.

    Raises:
        DataError: unreadable, or not in this encoding.
    """
    try:
        raw = file.read_bytes()
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error.strerror}") from None
    return decode(raw, str(file), encoding)


@contextmanager
def text_stream(file: Path, encoding: str = "utf-8") -> Iterator[TextIO]:
    """A file's text a piece at a time, line ends as they are; what `read_text` refuses is refused when it
    comes.

    Raises:
        DataError, ConfigError: see `read_text`.
    """
    plain = _plain(encoding)
    try:
        with file.open(encoding=plain or encoding, newline="") as stream:
            if plain and _has_zeros(file):
                read_text(file, encoding)
            yield stream
    except (UnicodeDecodeError, LookupError, OSError):
        read_text(file, encoding)  # says what and where
        raise


def _has_zeros(file: Path) -> bool:
    with file.open("rb") as stream:
        return any(b"\0" in piece for piece in iter(lambda: stream.read(1 << 20), b""))


def _plain(encoding: str) -> str | None:
    """UTF-8 whose byte order mark is dropped, where the encoding is UTF-8."""
    return "utf-8-sig" if encoding.lower().replace("_", "-") in ("utf-8", "utf8") else None


def decode(data: bytes, source: str, encoding: str = "utf-8") -> str:
    """Text, with or without a byte order mark.

    Raises:
        DataError: the bytes are no text, or in another encoding; names the line.
        ConfigError: an encoding that does not exist.
    """
    if plain := _plain(encoding):
        encoding = plain
        if b"\0" in data:
            raise DataError(
                f"{source}: holds zero bytes: this is no UTF-8 text",
                hint="`encoding: utf-16` if a program of Windows wrote it" if data[:1] in (b"\xff", b"\xfe") else None,
            )  # fmt: skip
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{source}: line {line}: not {encoding.removesuffix('-sig').upper()} text: "
            f"byte {error.start} is {data[error.start]:#04x}",
            hint="say how it is written, for example `encoding: latin-1`",
        ) from None
    except LookupError:
        raise ConfigError(
            f"{source}: there is no encoding {encoding!r}", hint="for example utf-8 or latin-1"
        ) from None


def is_missing(cell: str) -> bool:
    """Whether a cell of a column of numbers stands for no value."""
    return cell.strip().lower() in ("", "na", "n/a", "nan", "null", "none")


def table_array(rows: list[list[float]]) -> NDArray[np.float64]:
    """Rows of equal length as float64."""
    import numpy as np

    return np.asarray(rows, np.float64)
