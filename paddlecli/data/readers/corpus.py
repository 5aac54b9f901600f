"""Text to ids, one pass: words get provisional numbers as they come, are counted, and are renumbered
when the dictionary is known.

Words are bytes, as the original's were; a dictionary's entries are their UTF-8 text, with bytes that
are none written as `\\xNN`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import count

import numpy as np
from numpy.typing import NDArray

from paddlecli.data.columns import Column, Rows
from paddlecli.data.vocab import Vocabulary

Ids = NDArray[np.int64]


class Numbers:
    """Provisional numbers of words, shared by several corpora."""

    def __init__(self) -> None:
        counter = count()
        self.of: defaultdict[bytes, int] = defaultdict(counter.__next__)

    def words(self) -> list[bytes]:
        """All words, by number."""
        return list(self.of)

    def renumbering(self, vocabulary: Vocabulary) -> Ids:
        """The id in `vocabulary` of every word, by number; unknown words get the entry for those."""
        return np.asarray(vocabulary.encode([text(w) for w in self.of]), np.int64)


class Corpus:
    """Rows of words."""

    def __init__(self, numbers: Numbers) -> None:
        self.numbers = numbers
        self.rows: list[NDArray[np.int32]] = []

    def add(self, words: Sequence[bytes]) -> None:
        """One more row."""
        found = map(self.numbers.of.__getitem__, words)
        self.rows.append(np.fromiter(found, np.int32, len(words)))

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def offsets(self) -> Rows:
        """Where each row starts, and the end of the last."""
        made = np.zeros(len(self.rows) + 1, np.int64)
        np.cumsum([row.size for row in self.rows], out=made[1:])
        return made

    def packed(self) -> NDArray[np.int32]:
        """The numbers of all rows, one behind the other."""
        return np.concatenate(self.rows) if self.rows else np.zeros(0, np.int32)

    def counts(self) -> Ids:
        """How often each word comes, by number."""
        return np.bincount(self.packed(), minlength=len(self.numbers.of)).astype(np.int64)

    def column(self, renumbering: Ids) -> Column:
        """The rows as ids of a dictionary."""
        return Column(renumbering[self.packed()], (self.offsets,))


def text(word: bytes) -> str:
    """A word as an entry of a dictionary."""
    return word.decode("utf-8", "backslashreplace")


def frequent(
    words: Sequence[bytes], counts: Ids, more_than: int, drop: frozenset[bytes] = frozenset()
) -> list[str]:
    """Words that come more than `more_than` times, by falling count, equal counts by their bytes."""
    kept = [
        (-int(n), word)
        for word, n in zip(words, counts.tolist(), strict=True)
        if n > more_than and word not in drop
    ]
    return [text(word) for _, word in sorted(kept)]


def counted(corpora: Iterable[Corpus]) -> Ids:
    """How often each word comes in all of them together, by number."""
    return np.asarray(np.sum([corpus.counts() for corpus in corpora], axis=0), np.int64)
