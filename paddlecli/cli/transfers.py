"""How downloads are shown: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paddlecli.data.fetching.transfer import Progress


def size_text(count: int) -> str:
    """A number of bytes for people."""
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else f"{count / 1e3:.0f} kB"


@contextmanager
def shown() -> Iterator[Progress]:
    """A live bar on a terminal, plain lines elsewhere; both on stderr."""
    from paddlecli import settings

    if not settings.interactive(sys.stderr):
        yield Lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TransferSpeedColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
    )
    with Bars(
        *columns, console=Console(stderr=True, no_color=not settings.color(sys.stderr))
    ) as bars:
        yield Live(bars)


class Lines:
    """One line when a file begins, and what else there is to say."""

    def start(self, name: str, total: int | None, source: str) -> None:
        """See `Progress`."""
        size = "a file" if total is None else size_text(total)
        self.say(f"{name}: fetching {size} from {source}")

    def advance(self, count: int) -> None:
        """See `Progress`."""

    def say(self, text: str) -> None:
        """See `Progress`."""
        from paddlecli.cli.output import tell

        tell(text)


class Live:
    """One bar a file."""

    def __init__(self, bars: Any) -> None:
        self.bars = bars
        self.task: Any = None
        self.tasks: dict[str, Any] = {}

    def start(self, name: str, total: int | None, source: str) -> None:
        """See `Progress`."""
        if name in self.tasks:  # another attempt at the same file
            self.bars.reset(self.tasks[name], total=total)
        else:
            self.tasks[name] = self.bars.add_task(name, total=total)
        self.task = self.tasks[name]

    def advance(self, count: int) -> None:
        """See `Progress`."""
        self.bars.update(self.task, advance=count)

    def say(self, text: str) -> None:
        """See `Progress`."""
        self.bars.console.print(text, markup=False, highlight=False)
