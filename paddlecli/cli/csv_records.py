"""Predictions as CSV: a line a record, and columns that the first answer decides."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from typing import Any

_LAST = ("error", "notes")
_RANKED = {"probabilities": "probability", "scores": "score"}


class CsvRecords:
    """Lines of CSV. Records with errors before the first answer wait for it.

    Args:
        put: takes one line, without its end.
    """

    def __init__(self, put: Callable[[str], None]) -> None:
        self._put = put
        self._columns: list[str] = []
        self._waiting: list[dict[str, str]] = []

    def write(self, record: Mapping[str, Any]) -> None:
        """One record."""
        cells = cells_of(record)
        if self._columns:
            self._line([cells.get(name, "") for name in self._columns])
            return
        self._waiting.append(cells)
        if "error" not in cells:
            self._begin([name for name in cells if name not in _LAST])

    def finish(self) -> None:
        """Writes what waits: nothing could be predicted."""
        if self._waiting:
            self._begin(["input"])

    def _begin(self, columns: list[str]) -> None:
        self._columns = [*columns, *_LAST]
        self._line(self._columns)
        for cells in self._waiting:
            self._line([cells.get(name, "") for name in self._columns])
        self._waiting = []

    def _line(self, cells: list[str]) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="").writerow(cells)
        self._put(text.getvalue())


def cells_of(record: Mapping[str, Any]) -> dict[str, str]:
    """The cells of a record by column: ranked classes are `label`, `probability`, `label_2`, `probability_2` and so on, texts
    and numbers are themselves, anything else is JSON."""
    from paddlecli.engine.files import json_text

    cells: dict[str, str] = {}
    for name, value in record.items():
        if name in _RANKED:
            for place, ranked in enumerate(value[1:], 2):
                cells |= {f"{key}_{place}": str(v) for key, v in ranked.items()}
        elif name == "notes":
            cells[name] = "; ".join(value)
        else:
            cells[name] = str(value) if isinstance(value, str | int | float) else json_text(value)
    return cells
