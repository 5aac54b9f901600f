"""What a running training shows: a live line on a terminal, plain lines elsewhere, nothing when asked. Always on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from paddlecli import settings
from paddlecli.engine.files import now, saving

_LINE_EVERY = 5.0
_RESULT_EVERY = 1.0
_ROOM_FOR_A_BAR = 110


@dataclass(frozen=True)
class Moment:
    """Where a training is."""

    epoch: int
    epochs: int
    step: int
    steps: int
    loss: float
    rate: float | None
    samples_per_second: float
    seconds_left: float

    def text(self) -> str:
        """One plain line."""
        rate = "" if self.rate is None else f"  lr {self.rate:.4g}"
        return (
            f"epoch {self.epoch}/{self.epochs}  step {self.step}/{self.steps}  loss {self.loss:.4g}{rate}"
            f"  {self.samples_per_second:,.0f} samples/s  {clock(self.seconds_left)} left"
        )


class Display(Protocol):
    """What the loop tells."""

    def progress(self, moment: Moment) -> None:
        """A request has ended."""

    def result(self, text: str) -> None:
        """An epoch or an evaluation has ended; many may come in a second."""

    def say(self, text: str) -> None:
        """A line that must be seen."""

    def warn(self, text: str) -> None:
        """A line that is shown even when nothing else is."""

    def close(self) -> None:
        """Ends the display; may be called twice."""


class Quiet:
    """Shows warnings alone."""

    def progress(self, moment: Moment) -> None:
        """See `Display`."""

    def result(self, text: str) -> None:
        """See `Display`."""

    def say(self, text: str) -> None:
        """See `Display`."""

    def warn(self, text: str) -> None:
        """See `Display`."""
        _write(text)

    def close(self) -> None:
        """See `Display`."""


class Lines:
    """Plain lines without carriage returns, few enough for a log file."""

    def __init__(self, progress: bool = True) -> None:
        self._progress = progress
        self._last = time.monotonic()
        self._result = 0.0

    def progress(self, moment: Moment) -> None:
        """See `Display`: a line every five seconds."""
        if self._progress and time.monotonic() - self._last >= _LINE_EVERY:
            self.say(moment.text())

    def result(self, text: str) -> None:
        """See `Display`: a line a second."""
        if self._progress and time.monotonic() - self._result >= _RESULT_EVERY:
            self._result = time.monotonic()
            self.say(text)

    def say(self, text: str) -> None:
        """See `Display`."""
        self._last = time.monotonic()
        _write(text)

    def warn(self, text: str) -> None:
        """See `Display`."""
        self.say(text)

    def close(self) -> None:
        """See `Display`."""


class Live:
    """One line that is drawn again, on a terminal."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        console = Console(stderr=True, no_color=not settings.color(sys.stderr), highlight=False)
        line = TextColumn("{task.fields[text]}", markup=False)
        # on a narrow terminal the numbers matter more than the bar
        columns = (BarColumn(bar_width=20), line) if console.width >= _ROOM_FOR_A_BAR else (line,)
        self._bars = Progress(
            *columns, console=console, refresh_per_second=8, redirect_stdout=False
        )
        self._task: Any = None
        self._result = 0.0

    def progress(self, moment: Moment) -> None:
        """See `Display`."""
        text = moment.text()
        if self._task is None:
            self._bars.start()
            self._task = self._bars.add_task("", total=moment.steps, text=text)
        self._bars.update(self._task, completed=moment.step, text=text)

    def result(self, text: str) -> None:
        """See `Display`: a line a second."""
        if time.monotonic() - self._result >= _RESULT_EVERY:
            self._result = time.monotonic()
            self.say(text)

    def say(self, text: str) -> None:
        """See `Display`."""
        self._bars.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def warn(self, text: str) -> None:
        """See `Display`."""
        self.say(text)

    def close(self) -> None:
        """See `Display`."""
        if self._task is not None:
            self._bars.stop()


class Steady:
    """Another display until its stream cannot be written any more (the terminal was closed, the reader of a pipe went away):
    then nothing. A training is worth more than its display, and log.txt has it all."""

    def __init__(self, shown: Display) -> None:
        self._shown: Display | None = shown

    def progress(self, moment: Moment) -> None:
        """See `Display`."""
        self._tell(lambda shown: shown.progress(moment))

    def result(self, text: str) -> None:
        """See `Display`."""
        self._tell(lambda shown: shown.result(text))

    def say(self, text: str) -> None:
        """See `Display`."""
        self._tell(lambda shown: shown.say(text))

    def warn(self, text: str) -> None:
        """See `Display`."""
        self._tell(lambda shown: shown.warn(text))

    def close(self) -> None:
        """See `Display`."""
        self._tell(lambda shown: shown.close())

    def _tell(self, what: Callable[[Display], None]) -> None:
        if self._shown is None:
            return
        try:
            what(self._shown)
        except (OSError, ValueError):  # ValueError: the stream is closed
            self._shown = None


class Copied:
    """Another display, and all that is said in it at the end of a file too, with the time; progress is not."""

    def __init__(self, shown: Display, path: Path) -> None:
        self._shown, self._path = shown, path
        self.write("")

    def write(self, text: str) -> None:
        """Only into the file.

        Raises:
            RunError, ResourceError: it cannot be written.
        """
        lines = "".join(f"{now()} {line}\n" for line in text.splitlines())
        with (
            saving(self._path, "make room, or give another --log-file"),
            self._path.open("a", encoding="utf-8", errors="surrogateescape") as file,
        ):
            file.write(lines)

    def progress(self, moment: Moment) -> None:
        """See `Display`."""
        self._shown.progress(moment)

    def result(self, text: str) -> None:
        """See `Display`: the file has every one."""
        self.write(text)
        self._shown.result(text)

    def say(self, text: str) -> None:
        """See `Display`."""
        self.write(text)
        self._shown.say(text)

    def warn(self, text: str) -> None:
        """See `Display`."""
        self.write(text)
        self._shown.warn(text)

    def close(self) -> None:
        """See `Display`."""
        self._shown.close()


def _write(text: str) -> None:
    if sys.stderr is not None:  # None where Python has no console
        sys.stderr.write(text + "\n")
        sys.stderr.flush()


def choose(quiet: bool, progress: bool) -> Display:
    """The display for this stderr. PADDLECLI_LOG_LEVEL above `info` is quiet too."""
    if quiet or settings.log_level() in ("warning", "error"):
        return Steady(Quiet())
    if progress and sys.stderr is not None and settings.interactive(sys.stderr):
        return Steady(Live())
    return Steady(Lines(progress))


def clock(seconds: float) -> str:
    """`0:07`, `12:30`, `3:05:00`."""
    whole = round(min(max(seconds, 0.0), 359_999.0))
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
