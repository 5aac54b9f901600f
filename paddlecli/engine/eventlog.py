"""The run's events: metrics.jsonl (no clock values, the same bytes in every repetition) and timing.jsonl.

An event is written once. A resumed run first drops what lies behind its checkpoint, so no step is there twice or missing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from paddlecli.engine.board import Board
from paddlecli.engine.files import json_line, now, replace, saving
from paddlecli.engine.rundir import RunDir


class EventLog:
    """Appends to both files of a run, and shows the events on a board where there is one."""

    def __init__(self, run: RunDir, board: Board | None = None) -> None:
        self._run, self._board = run, board
        self._metrics: IO[str] = self._open(run.metrics)
        self._timing: IO[str] = self._open(run.timing)

    @staticmethod
    def _open(path: Path) -> IO[str]:
        with saving(path):
            return path.open("a", encoding="utf-8", newline="\n")

    def add(self, event: str, step: int, values: Mapping[str, Any]) -> None:
        """Writes one event that happened after `step` steps."""
        with saving(self._run.metrics):
            self._metrics.write(json_line({"event": event, "step": step, **values}) + "\n")
        if self._board is not None:
            self._board.add(event, step, values)

    def time(self, event: str, step: int, values: Mapping[str, Any]) -> None:
        """Writes the clock's side of an event."""
        with saving(self._run.timing):
            self._timing.write(
                json_line({"event": event, "step": step, "time": now(), **values}) + "\n"
            )

    def flush(self) -> None:
        """Hands everything to the system."""
        with saving(self._run.metrics):
            self._metrics.flush()
            self._timing.flush()

    def sync(self) -> None:
        """Waits until the disk has every event: done before a checkpoint gets its name."""
        self.flush()
        with saving(self._run.metrics):
            os.fsync(self._metrics.fileno())

    def close(self) -> None:
        """Closes the files."""
        with saving(self._run.metrics):
            self._metrics.close()
            self._timing.close()
        if self._board is not None:
            self._board.close()


def read(path: Path) -> Iterator[dict[str, Any]]:
    """The whole events of a file; a line that was cut off by a kill ends it."""
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return
    for line in lines[:-1]:
        try:
            event = json.loads(line)
        except ValueError:
            return
        if not isinstance(event, dict) or not isinstance(event.get("step"), int):
            return
        yield event


def truncate(path: Path, step: int) -> None:
    """Drops every event behind `step`, and whatever a kill left half written."""
    if path.exists():
        kept = [event for event in read(path) if event["step"] <= step]
        replace(path, "".join(json_line(event) + "\n" for event in kept).encode())
