"""Things that data are about and that have numbers: users, films. What is known of each stands in a
table, so that a prediction can be asked for by number or by name.

A table is kept as one JSON object a line: {"id": 1, "name": "Toy Story (1995)", "rows": 2077,
"category_id": [0, 2]}; `rows` counts the train rows that are about it, the rest are values by field.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from paddlecli.data.readers.base import text_lines
from paddlecli.errors import DataError

_SHOWN = 5
_YEAR = re.compile(r"\s*\(\d+\)$")
Row = Mapping[str, Any]


class Entities:
    """One table.

    Args:
        name: of one thing, for messages: `film`.
        rows: what is known of each, in the order of their numbers.

    Raises:
        DataError: a row without a number, or two with the same.
    """

    def __init__(self, name: str, rows: Sequence[Row]) -> None:
        self.name, self.rows = name, tuple(rows)
        try:
            self.by_id: dict[int, Row] = {int(row["id"]): row for row in self.rows}
        except (KeyError, TypeError, ValueError):
            raise DataError(f"the table of {name}s has a row without a number `id`") from None
        if len(self.by_id) != len(self.rows):
            raise DataError(f"the table of {name}s has a number twice")

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def _by_name(self) -> dict[str, list[Row]]:
        """Rows by their name, with and without a year in brackets, letter case aside."""
        found: dict[str, list[Row]] = {}
        for row in self.rows:
            name = str(row.get("name", "")).casefold()
            for key in {name, _YEAR.sub("", name)} - {""}:
                found.setdefault(key, []).append(row)
        return found

    def find(self, text: str) -> Row:
        """The row that a user means: a number, a name, or a part of one that only one has.

        Raises:
            DataError: none, or several; names those that are near.
        """
        wanted = text.strip()
        if wanted.isdecimal() and int(wanted) in self.by_id:
            return self.by_id[int(wanted)]
        key = wanted.casefold()
        exact = self._by_name.get(key, [])
        loose = bool(key) and not wanted.isdecimal()
        part = exact or [r for n, rs in self._by_name.items() if loose and key in n for r in rs]
        rows = list({int(r["id"]): r for r in part}.values())
        if len(rows) == 1:
            return rows[0]
        if rows:
            shown = ", ".join(f"{r['id']} {r['name']}" for r in rows[:_SHOWN])
            more = f" and {len(rows) - _SHOWN} more" if len(rows) > _SHOWN else ""
            raise DataError(f"{self.name} {wanted!r} may be {shown}{more}: give the number")
        raise DataError(f"there is no {self.name} {wanted!r}: {self._known(key)}")

    def _known(self, key: str) -> str:
        from paddlecli.config.nodes import close_names

        names = self._by_name
        near = close_names(key, list(names)) if names and not key.isdecimal() else []
        if near:
            shown = ", ".join(
                dict.fromkeys(f"{r['id']} {r['name']}" for n in near for r in names[n])
            )
            return f"did you mean {shown}?"
        ids = sorted(self.by_id)
        return (
            f"the model knows {len(ids)} of them, numbers {ids[0]} to {ids[-1]}"
            if ids
            else "none is known"
        )

    def label(self, number: int) -> str:
        """What a user is shown: the name, or the number where there is none."""
        row = self.by_id.get(number, {})
        return str(row.get("name") or f"{self.name} {number}")

    def plain(self) -> dict[str, Any]:
        """Plain data."""
        return {"name": self.name, "rows": [dict(row) for row in self.rows]}

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Entities:
        """What `plain` gave."""
        return cls(plain["name"], plain["rows"])

    def text(self) -> str:
        """The table as JSON lines; the first says what the things are called."""
        lines = [{"table": self.name}, *self.rows]
        return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)

    @classmethod
    def load(cls, path: Path) -> Entities:
        """Reads what `text` gave.

        Raises:
            DataError: unreadable or damaged.
        """
        try:
            first, *rows = (json.loads(line) for _, line in text_lines(path))
            return cls(str(first["table"]), rows)
        except (ValueError, KeyError, TypeError):
            raise DataError(f"{path}: damaged: no table of things with numbers") from None
