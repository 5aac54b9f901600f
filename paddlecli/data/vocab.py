"""Tables of ids: words, or the names of classes, in id order. One UTF-8 line an entry in a file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from paddlecli.data.readers.base import text_lines
from paddlecli.errors import DataError


class Vocabulary:
    """Words by id and ids by word.

    Args:
        words: in id order.
        unknown: the entry that stands for every word that is not in the table; None makes such a
            word an error.

    Raises:
        DataError: a word comes twice, is empty or holds a line end, or `unknown` is not among the
            words.
    """

    def __init__(self, words: Iterable[str], unknown: str | None = None) -> None:
        self.words = tuple(words)
        self.ids = {word: i for i, word in enumerate(self.words)}
        self.unknown = unknown
        if len(self.ids) != len(self.words):
            twice = next(w for i, w in enumerate(self.words) if self.ids[w] != i)
            raise DataError(f"vocabulary: {twice!r} comes twice")
        bad = next((w for w in self.words if not w or "\n" in w or "\r" in w), None)
        if bad is not None:
            raise DataError(f"vocabulary: {bad!r} cannot be an entry")
        if unknown is not None and unknown not in self.ids:
            raise DataError(f"vocabulary: the entry for unknown words, {unknown!r}, is not in it")

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, words: Sequence[str]) -> list[int]:
        """Ids of the words.

        Raises:
            DataError: a word is not in the table and no entry stands for unknown words.
        """
        if self.unknown is not None:
            other = self.ids[self.unknown]
            return [self.ids.get(w, other) for w in words]
        try:
            return [self.ids[w] for w in words]
        except KeyError as error:
            raise DataError(
                f"vocabulary: {error.args[0]!r} is not among its {len(self)} entries"
            ) from None

    def decode(self, ids: Sequence[int]) -> list[str]:
        """Words of the ids."""
        return [self.words[i] for i in ids]

    @classmethod
    def build(
        cls,
        rows: Iterable[Iterable[str]],
        *,
        min_count: int = 1,
        max_size: int | None = None,
        first: Sequence[str] = (),
        last: Sequence[str] = (),
        unknown: str | None = None,
    ) -> Vocabulary:
        """The words of some rows, the most frequent first and words of equal count in the order of
        their characters' code points.

        Args:
            rows: the words of each row.
            min_count: words that come less often are left out.
            max_size: the most entries, `first` and `last` included; the rarest are left out.
            first, last: marks that stand before and behind the words whatever their count.
            unknown: which of the marks stands for words that are not in the table.

        Raises:
            DataError: no room for the marks; see also `Vocabulary`.
        """
        counts: Counter[str] = Counter()
        for row in rows:
            counts.update(row)
        for mark in (*first, *last, ""):
            counts.pop(mark, None)
        kept = sorted(
            (w for w, n in counts.items() if n >= min_count), key=lambda w: (-counts[w], w)
        )
        if max_size is not None:
            room = max_size - len(first) - len(last)
            if room < 0:
                raise DataError(f"vocabulary: {max_size} entries have no room for the marks")
            kept = kept[:room]
        return cls((*first, *kept, *last), unknown)

    def save(self, path: Path) -> None:
        """One entry a line, in id order."""
        path.write_text("".join(f"{w}\n" for w in self.words), encoding="utf-8", newline="\n")

    @classmethod
    def load(cls, path: Path, unknown: str | None = None) -> Vocabulary:
        """Reads what `save` wrote.

        Raises:
            DataError: unreadable, not UTF-8, or an entry that cannot be one.
        """
        return cls((line for _, line in text_lines(path)), unknown)


def natural_key(text: str) -> list[tuple[int, float, str]]:
    """Sorts `2` before `10`, `class 2` before `class 10` and `-1` before `0`."""
    try:
        number = float(text)
        if number == number:
            return [(0, number, text)]
    except ValueError:
        pass
    parts = re.split(r"(\d+)", text)
    return [(1, 0.0, p) if i % 2 == 0 else (0, float(p), p) for i, p in enumerate(parts) if p]
