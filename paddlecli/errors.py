"""Every error that a user is expected to meet, in one tree.

    PaddleCliError                  exit code  kind
    ├── UsageError                          2  usage
    ├── ConfigError                         3  config        carries a list of `Fault`
    │   └── UserCodeError                   3  user_code     carries the user's own traceback
    ├── DataError                           4  data
    ├── RunError                            5  run
    ├── NumericalError                      6  numerical
    ├── ResourceError                       7  resource
    ├── NetworkError                        8  network
    ├── MetricError                         9  metric
    └── Interrupted         130 (or 143, 129)  interrupted

Anything else that reaches the command line is a bug and ends with exit code 1.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

_WIDEST = 160
"""Characters of a source line that an error shows."""
_FULL = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}


@dataclass(frozen=True, slots=True)
class Where:
    """A place in a text. `line` and `column` count from 1; 0 means unknown.

    For a value given on the command line `file` is "-o", `line` the number of the option and
    `text` the option's argument. `key` is the dotted path of the setting.
    """

    file: str = ""
    line: int = 0
    column: int = 0
    key: str = ""
    text: str = ""

    def __str__(self) -> str:
        if not self.file:
            return ""
        if not self.line:
            return self.file
        return f"{self.file}:{self.line}:{self.column}"

    def as_dict(self) -> dict[str, Any]:
        """The form used by `--json`."""
        return {"file": self.file, "line": self.line, "column": self.column, "key": self.key,
                "text": self.text[:1000]}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong in a recipe: what, where, what was expected, the nearest name.

    `uses`: of a fault inside a block, the places that use it, the innermost first.
    """

    message: str
    where: Where = Where()
    expected: str = ""
    nearest: tuple[str, ...] = ()
    hint: str = ""
    uses: tuple[Where, ...] = ()

    def __str__(self) -> str:
        """Several lines: position and message, the source line with a caret, expectation, cure."""
        place = str(self.where)
        lines = [f"{place}: {self.message}" if place else self.message]
        if self.where.text:
            number = str(self.where.line)
            text, before = _excerpt(self.where.text, max(self.where.column - 1, 0))
            lines.append(f"  {number} | {text}")
            lines.append(f"  {' ' * len(number)} | {_blank(text[:before])}^")
        if self.where.key:
            lines.append(f"  key: {self.where.key}")
        if self.expected:
            lines.append(f"  expected: {self.expected}")
        if self.nearest:
            lines.append(f"  did you mean {' or '.join(f'`{n}`' for n in self.nearest)}?")
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        for use in self.uses:
            lines.append(f"  used at {use}" + (f": {use.text.strip()}" if use.text else ""))
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        """The form used by `--json`."""
        found = {
            "message": self.message,
            "where": self.where.as_dict(),
            "expected": self.expected,
            "nearest": list(self.nearest),
            "hint": self.hint or None,
        }
        return {**found, "uses": [u.as_dict() for u in self.uses]} if self.uses else found


def _excerpt(text: str, before: int) -> tuple[str, int]:
    """A line as it is shown, and how much of it stands before the column; a long one is cut on both
    sides of that."""
    if len(text) <= _WIDEST:
        return text, before
    start = max(min(before - _WIDEST // 2, len(text) - _WIDEST), 0)
    head = "... " if start else ""
    tail = " ..." if start + _WIDEST < len(text) else ""
    return head + text[start : start + _WIDEST] + tail, before - start + len(head)


def _blank(text: str) -> str:
    """Blanks as wide as `text`; tabs stay, so that a caret below stands under its column."""
    if text.isascii():
        return "".join("\t" if c == "\t" else " " for c in text)
    from unicodedata import combining, east_asian_width

    cells = (0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)
    return "".join("\t" if c == "\t" else " " * n for c, n in zip(text, cells, strict=True))


class PaddleCliError(Exception):
    """Root of the tree: a message, an optional cure, the places it is about."""

    exit_code: int = 1
    kind: ClassVar[str] = "error"

    def __init__(self, message: str, hint: str | None = None, where: Sequence[Where] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.where = tuple(where)

    def __str__(self) -> str:
        lines = [f"{w}: {self.message}" for w in self.where[:1] if str(w)] or [self.message]
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        """The object printed on stderr with `--json`."""
        return {
            "error": {
                "code": self.exit_code,
                "kind": self.kind,
                "message": self.message,
                "hint": self.hint,
                "where": [w.as_dict() for w in self.where],
            }
        }


class UsageError(PaddleCliError):
    """The command line itself is wrong."""

    exit_code = 2
    kind = "usage"


class ConfigError(PaddleCliError):
    """A recipe, an override or a data set card is wrong. `faults` holds all of the stage."""

    exit_code = 3
    kind = "config"

    def __init__(
        self,
        message: str,
        hint: str | None = None,
        where: Sequence[Where] = (),
        faults: Sequence[Fault] = (),
    ) -> None:
        self.faults = tuple(faults)
        super().__init__(message, hint, where or tuple(f.where for f in self.faults))

    @classmethod
    def of(cls, faults: Sequence[Fault], subject: str = "") -> ConfigError:
        """The error for one stage's faults, ordered by file, line and column."""
        ordered = sorted(faults, key=lambda f: (f.where.file, f.where.line, f.where.column))
        count = "1 fault" if len(ordered) == 1 else f"{len(ordered)} faults"
        return cls(f"{count} in {subject}" if subject else count, faults=ordered)

    def __str__(self) -> str:
        if not self.faults:
            return super().__str__()
        lines = [*map(str, self.faults)]
        if self.message != self.faults[0].message:
            lines.append(self.message)
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        found = super().as_dict()
        found["error"]["faults"] = [f.as_dict() for f in self.faults]
        return found


class UserCodeError(ConfigError):
    """A user's own code raised while it was loaded; `trace` is the part that is the user's."""

    kind = "user_code"

    def __init__(self, message: str, trace: str, hint: str | None = None) -> None:
        super().__init__(message, hint)
        self.trace = trace

    def __reduce__(self) -> tuple[type[UserCodeError], tuple[str, str, str | None]]:
        return UserCodeError, (self.message, self.trace, self.hint)  # out of a worker process

    def __str__(self) -> str:
        return f"{self.trace.rstrip()}\n{super().__str__()}"

    def as_dict(self) -> dict[str, Any]:
        found = super().as_dict()
        found["error"]["traceback"] = self.trace
        return found


class DataError(PaddleCliError):
    """Data are missing or damaged, or some inputs failed."""

    exit_code = 4
    kind = "data"


class RunError(PaddleCliError):
    """A run directory, a checkpoint or a saved model cannot be used."""

    exit_code = 5
    kind = "run"


class NumericalError(PaddleCliError):
    """A loss or a gradient is not finite."""

    exit_code = 6
    kind = "numerical"


class ResourceError(PaddleCliError):
    """No memory, no disk space, no such device."""

    exit_code = 7
    kind = "resource"


class NetworkError(PaddleCliError):
    """A download failed at every address."""

    exit_code = 8
    kind = "network"


class MetricError(PaddleCliError):
    """A metric is below what was demanded."""

    exit_code = 9
    kind = "metric"


class Interrupted(PaddleCliError):
    """Stopped by SIGINT (130), SIGTERM (143) or SIGHUP (129)."""

    exit_code = 130
    kind = "interrupted"

    def __init__(
        self,
        message: str,
        hint: str | None = None,
        where: Sequence[Where] = (),
        exit_code: int = 130,
    ) -> None:
        super().__init__(message, hint, where)
        self.exit_code = exit_code


def expected(error: BaseException) -> PaddleCliError | None:
    """The error as one of the tree's, also where Python itself raised it: Ctrl-C, no memory, a full disk; None for others."""
    if isinstance(error, PaddleCliError):
        return error
    if isinstance(error, KeyboardInterrupt):
        return Interrupted("interrupted")
    if isinstance(error, MemoryError):
        return ResourceError("out of memory", hint="use a smaller train.batch_size")
    if isinstance(error, OSError) and error.errno in _FULL:
        return ResourceError(f"no space left on the disk: {error.filename or 'writing'}")
    return None
