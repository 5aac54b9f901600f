"""TensorBoard's view of the events: `tb/` in the run directory, where the package tensorboardX is installed.

It is fed with the events of metrics.jsonl and keeps nothing of its own. After a resume it goes on in the same folder, and
TensorBoard hides what lies behind the checkpoint.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from paddlecli.engine.files import saving

_FLUSH = 10  # seconds
_PLACES = ("epoch", "batches", "rows")  # where an event happened, no measurement of it


class Board:
    """Writes scalars: `step/loss`, and by split `train/loss`, `test/accuracy`.

    Args:
        folder: made when needed.
        purge: the first step that is to be seen anew; None in a fresh run.

    Raises:
        ImportError: the package is not installed.
    """

    def __init__(self, folder: Path, purge: int | None) -> None:
        from tensorboardX import SummaryWriter

        self._folder = folder
        with saving(folder):
            # a queue without limit: one that is full would block the training behind a disk that is full
            self._writer = SummaryWriter(
                str(folder), purge_step=purge, max_queue=0, flush_secs=_FLUSH,
                filename_suffix=f".{secrets.token_hex(4)}",
            )  # fmt: skip

    def add(self, event: str, step: int, values: Mapping[str, Any]) -> None:
        """One event; what it holds beside numbers is passed over."""
        for tag, value in scalars(event, values):
            self._writer.add_scalar(tag, value, step)

    def close(self) -> None:
        """Writes what is left."""
        with saving(self._folder):
            self._writer.close()


def scalars(event: str, values: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Tags and numbers of an event."""
    group = values.get("split", event)
    for key, value in values.items():
        if isinstance(value, int | float) and key not in _PLACES:
            yield f"{group}/{key}", float(value)
