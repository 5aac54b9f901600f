"""Texts, words and ids of many rows in little memory.

A Python string takes some 55 bytes beside its letters, a list or an array twice that. Here the rows of
a block are one piece of bytes (or one array), taken apart when the block is looked at: a text costs its
letters and one byte, a sequence four bytes more, an id eight.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paddlecli.data.columns import Rows

BLOCK = 4096
"""Rows of a block."""
_MARK = "\0"


class _Texts:
    """One text a row."""

    def __init__(self, rows: Sequence[str]) -> None:
        self.size = len(rows)
        joined = _MARK.join(rows)
        odd = joined.count(_MARK) != max(self.size - 1, 0)
        self._texts = list(rows) if odd else joined.encode("utf-8", "surrogatepass")

    def rows(self) -> list[Any]:
        if isinstance(self._texts, list) or not self.size:
            return list(self._texts)
        return self._texts.decode("utf-8", "surrogatepass").split(_MARK)


class _Words:
    """A list of words a row."""

    def __init__(self, rows: Sequence[Sequence[str]]) -> None:
        self.size = len(rows)
        self._lengths = np.fromiter(map(len, rows), np.int32, self.size)
        self._words = _Texts([word for row in rows for word in row])

    def rows(self) -> list[Any]:
        return _cut(self._words.rows(), self._lengths)


class _Tokens:
    """An array of ids a row."""

    def __init__(self, rows: Sequence[NDArray[np.int64]]) -> None:
        self.size = len(rows)
        self.lengths = np.fromiter(map(len, rows), np.int32, self.size)
        self.values = np.concatenate(rows) if rows else np.zeros(0, np.int64)

    def rows(self) -> list[Any]:
        return _cut(self.values, self.lengths)


def _cut(values: Any, lengths: NDArray[np.int32]) -> list[Any]:
    edges = list(accumulate(lengths.tolist(), initial=0))
    return [values[a:b] for a, b in pairwise(edges)]


_KINDS: dict[str, Any] = {"cells": _Texts, "words": _Words, "tokens": _Tokens}


class Packed(Sequence[Any]):
    """Rows of the kind `cells`, `words` or `tokens`, as a sequence that cannot be changed but grows.

    Args:
        kind: of the rows.
        rows: the first ones.
    """

    def __init__(self, kind: str, rows: Iterable[Any] = ()) -> None:
        self.kind, self._blocks = kind, list[Any]()
        self._starts = [0]
        self._open: list[Any] = []
        self._seen: tuple[int, list[Any]] = -1, []
        self.extend(rows)

    @classmethod
    def takes(cls, kind: str) -> bool:
        """Whether rows of this kind can be packed."""
        return kind in _KINDS

    def append(self, row: Any) -> None:
        """One row more."""
        self._open.append(row)
        if len(self._open) == BLOCK:
            self._close()

    def extend(self, rows: Iterable[Any]) -> None:
        """Rows more."""
        for row in rows:
            self.append(row)

    def _close(self) -> None:
        if self._open:
            self._blocks.append(_KINDS[self.kind](self._open))
            self._starts.append(self._starts[-1] + len(self._open))
            self._open = []

    def blocks(self) -> Iterator[tuple[int, list[Any]]]:
        """The rows by blocks, each with the number of its first row."""
        self._close()
        for number, start in enumerate(self._starts[:-1]):
            yield start, self._rows(number)

    def _rows(self, number: int) -> list[Any]:
        found: list[Any] = self._blocks[number].rows()
        return found

    def _newest(self, number: int) -> list[Any]:
        if self._seen[0] != number:
            self._seen = number, self._rows(number)
        return self._seen[1]

    def __len__(self) -> int:
        return self._starts[-1] + len(self._open)

    def __iter__(self) -> Iterator[Any]:
        for _, rows in self.blocks():
            yield from rows

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        place = index + len(self) if index < 0 else index
        if not 0 <= place < len(self):
            raise IndexError(index)
        self._close()
        number = int(np.searchsorted(self._starts, place, "right")) - 1
        return self._newest(number)[place - self._starts[number]]

    def take(self, rows: Rows) -> Packed:
        """The given rows; quick where they rise."""
        self._close()
        numbers = np.searchsorted(self._starts, rows, "right") - 1
        firsts = np.asarray(self._starts)
        found = Packed(self.kind)
        for part in np.split(np.arange(rows.size), np.flatnonzero(np.diff(numbers)) + 1):
            if part.size:
                number = int(numbers[part[0]])
                block = self._newest(number)
                found.extend(block[i] for i in (rows[part] - firsts[number]).tolist())
        return found

    def ids(self) -> tuple[NDArray[np.int64], Rows]:
        """All ids of `tokens` one behind the other, and where each row begins and ends."""
        self._close()
        lengths = [block.lengths for block in self._blocks]
        edges = np.zeros(len(self) + 1, np.int64)
        np.cumsum(np.concatenate(lengths) if lengths else [], out=edges[1:])
        values = [block.values for block in self._blocks]
        return np.concatenate(values) if values else np.zeros(0, np.int64), edges
