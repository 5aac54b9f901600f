"""What commands share: data on stdout, everything else on stderr; texts turned into values.

Tables are plain text, without markup: what users wrote is shown as they wrote it. Only a terminal
has a width; what goes into a pipe or a file is never cut.
"""

from __future__ import annotations

import codecs
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from typing import Any, TextIO

import typer

from paddlecli.errors import UsageError

_ERRORS = "paddlecli"
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?[smhd])+|\d+(?:\.\d+)?")


@contextmanager
def aside(wanted: bool = True) -> Iterator[TextIO]:
    """Inside, what code of the user's own prints goes to stderr; gives the stdout that data go to."""
    stdout = sys.stdout
    with redirect_stdout(sys.stderr) if wanted else nullcontext():
        yield stdout


def prepare_streams() -> None:
    """Makes stdout and stderr take any text: file names that are no UTF-8 come out as the bytes they
    are, and what the stream's encoding lacks as `\\u6f22`."""
    codecs.register_error(_ERRORS, _as_bytes)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by `>&-`
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))
        reconfigure = getattr(getattr(sys, name), "reconfigure", None)  # tests replace the streams
        if reconfigure is not None:
            reconfigure(errors=_ERRORS)


def _as_bytes(error: UnicodeError) -> tuple[bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    found = bytearray()
    for character in error.object[error.start : error.end]:
        number = ord(character)
        escaped = 0xDC80 <= number <= 0xDCFF  # a byte that Python could not decode
        found += (
            bytes([number - 0xDC00]) if escaped else character.encode("ascii", "backslashreplace")
        )
    return bytes(found), error.end


def end_streams() -> None:
    """Writes what is left. A stream that cannot be written any more is let go, so that Python does
    not try again when it ends.

    Raises:
        OSError: the reader went away, or the disk is full.
    """
    failed: OSError | None = None
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError as error:
            failed = failed or error
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    if failed is not None:
        raise failed


def print_json(found: Mapping[str, Any]) -> None:
    """One object on one line of stdout, keys sorted; NaN and infinity must have been dealt with."""
    from paddlecli.engine.files import json_text

    typer.echo(json_text(found))


def tell(text: str) -> None:
    """A line on stderr."""
    typer.echo(text, err=True)


def table(
    rows: Iterable[Sequence[str]], head: Sequence[str] = (), right: Iterable[int] = ()
) -> list[str]:
    """Lines of a table, columns two blanks apart; `right` are the columns of numbers.

    On a terminal a line that is too long is cut, with `...` at its end.
    """
    from unicodedata import east_asian_width

    def wide(text: str) -> int:
        return len(text) + sum(east_asian_width(c) in "WF" for c in text)

    found = [list(head), *map(list, rows)] if head else list(map(list, rows))
    widths = [max(map(wide, column)) for column in zip(*found, strict=True)]
    numbers = set(right)
    lines = []
    for row in found:
        cells = []
        for column, text in enumerate(row):
            gap = " " * (widths[column] - wide(text))
            cells.append(gap + text if column in numbers else text + gap)
        lines.append(_cut("  ".join(cells).rstrip()))
    return lines


def _cut(line: str) -> str:
    """The line as it fits on the terminal that stdout is."""
    if not sys.stdout.isatty():
        return line
    from shutil import get_terminal_size

    width = get_terminal_size().columns
    return line if len(line) <= width else f"{line[: max(width - 3, 1)]}..."


def duration(text: str | None) -> float | None:
    """`2h`, `1h30m`, `90` (seconds) as seconds.

    Raises:
        UsageError: not a duration.
    """
    if text is None:
        return None
    if not _DURATION.fullmatch(text):
        raise UsageError(f"--max-time {text!r}: expected a duration such as 90s, 30m or 1h30m")
    if text[-1] not in _UNITS:
        return float(text)
    return sum(float(n) * _UNITS[unit] for n, unit in re.findall(r"(\d+(?:\.\d+)?)([smhd])", text))


def pairs(option: str, texts: Sequence[str]) -> dict[str, float]:
    """`NAME=NUMBER` texts as a mapping.

    Raises:
        UsageError: malformed, or a name given twice.
    """
    found: dict[str, float] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        try:
            number = float(value)
        except ValueError:
            number = float("nan")
        if not sign or not name or number != number:
            raise UsageError(f"{option} {text!r}: expected NAME=NUMBER")
        if name in found:
            raise UsageError(f"{option} {name} is given twice")
        found[name] = number
    return found
