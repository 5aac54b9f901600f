"""Tables of ids: words, or the names of classes, in id order. One UTF-8 line an entry in a file."""

from __future__ import annotations

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
