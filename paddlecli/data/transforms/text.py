"""Transforms for texts and words."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from paddlecli.config.registry import TRANSFORMS
from paddlecli.config.types import Count, Name
from paddlecli.data.own.frame import Faults, Kind, Values
from paddlecli.data.transforms.base import Transform
from paddlecli.data.vocab import Vocabulary
from paddlecli.errors import ConfigError

NO_WORD = "there is no word in this row"
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_WORD = re.compile(r"\w+(?:['\u2019]\w+)*|[^\w\s]")


class _Textual(Transform):
    """Works on each text, or on each word where there are words already."""

    takes: ClassVar[tuple[Kind, ...]] = ("cells", "words")

    def one(self, text: str) -> str:
        """One text or word."""
        raise NotImplementedError

    def apply(self, values: Values, faults: Faults) -> Values:
        """See `Transform.apply`."""
        if values.kind == "cells":
            return Values("cells", [self.one(text) for text in values.rows])
        return Values("words", [[w for w in map(self.one, words) if w] for words in values.rows])


@TRANSFORMS.register("lower")
class Lower(_Textual):
    """Small letters."""

    def one(self, text: str) -> str:
        """See `_Textual.one`."""
        return text.lower()


@TRANSFORMS.register("strip")
class Strip(_Textual):
    """Takes off blanks at both ends, and more on demand. A word of which nothing is left is dropped.

    Args:
        punctuation: take out the ASCII punctuation marks, wherever they stand.
        accents: turn letters with accents into the plain ones.
    """

    def __init__(self, *, punctuation: bool = False, accents: bool = False) -> None:
        self.punctuation, self.accents = punctuation, accents

    def one(self, text: str) -> str:
        """See `_Textual.one`."""
        if self.accents:
            apart = unicodedata.normalize("NFD", text)
            text = unicodedata.normalize(
                "NFC", "".join(c for c in apart if not unicodedata.combining(c))
            )
        if self.punctuation:
            text = text.translate(_PUNCTUATION)
        return text.strip()


@TRANSFORMS.register("tokenise")
class Tokenise(Transform):
    """Cuts a text into words.

    Args:
        by: `space` cuts at white space; `words` makes each run of letters and digits a word and each
            other mark one too; `characters` makes every character one, blanks left out.
        pattern: a regular expression whose matches are the words, instead of `by`.
    """

    takes: ClassVar[tuple[Kind, ...]] = ("cells",)
    gives: ClassVar[Kind | None] = "words"

    def __init__(
        self, *, by: Literal["space", "words", "characters"] = "space", pattern: Name | None = None
    ) -> None:
        self.by = by
        try:
            self.pattern = re.compile(pattern) if pattern is not None else None
        except re.error as error:
            raise ConfigError(f"tokenise: pattern: {error}") from None

    def apply(self, values: Values, faults: Faults) -> Values:
        """See `Transform.apply`."""
        return Values("words", [self._cut(text) for text in values.rows])

    def _cut(self, text: str) -> list[str]:
        if self.pattern is not None:
            return [m.group() for m in self.pattern.finditer(text) if m.group()]
        if self.by == "space":
            return text.split()
        if self.by == "words":
            return _WORD.findall(text)
        return [c for c in text if not c.isspace()]


@TRANSFORMS.register("truncate")
class Truncate(Transform):
    """At most `length` words; the rest is left out.

    Args:
        length: the most words.
        keep: the `first` words or the `last`.
    """

    takes: ClassVar[tuple[Kind, ...]] = ("words", "tokens", "series")

    def __init__(self, *, length: Count, keep: Literal["first", "last"] = "first") -> None:
        self.length, self.keep = length, keep

    def apply(self, values: Values, faults: Faults) -> Values:
        """See `Transform.apply`."""
        n = self.length
        cut = slice(0, n) if self.keep == "first" else slice(-n, None)
        return Values(values.kind, [row[cut] for row in values.rows])


@TRANSFORMS.register("marks")
class Marks(Transform):
    """Words that stand before the first and behind the last one of every row.

    Args:
        first: put before.
        last: put behind.
        empty: what a row without words is: an `error`, or the `marks` alone.
    """

    takes: ClassVar[tuple[Kind, ...]] = ("words",)

    def __init__(
        self, *, first: Name | None = None, last: Name | None = None,
        empty: Literal["error", "marks"] = "marks",
    ) -> None:  # fmt: skip
        self.first = [first] if first is not None else []
        self.last = [last] if last is not None else []
        self.empty = empty

    def apply(self, values: Values, faults: Faults) -> Values:
        """See `Transform.apply`."""
        if self.empty == "error":
            for number, row in enumerate(values.rows):
                if not row:
                    faults.add(number, NO_WORD)
        return Values("words", [[*self.first, *row, *self.last] for row in values.rows])


@TRANSFORMS.register("vocabulary")
class VocabularyIds(Transform):
    """The ids of words, from a vocabulary of the train rows or of a file.

    Words are numbered by falling count, words of equal count in the order of their characters.

    Args:
        min_count: words that come less often in the train rows are unknown.
        max_size: the most entries, marks included; the rarest words are unknown.
        first: marks that get the first ids, whether they occur or not, for example `<s>` and `<e>`.
        last: marks that get the last ids.
        unknown: the mark that stands for unknown words; null makes one an error.
        file: a file with one word a line, in the order of their ids, instead of the train rows.
        empty: what a row without words is: an `error`, or one unknown word.
        drop: leave unknown words out.
    """

    takes: ClassVar[tuple[Kind, ...]] = ("words",)
    gives: ClassVar[Kind | None] = "tokens"

    def __init__(
        self,
        *,
        min_count: Count = 1,
        max_size: Count | None = None,
        first: tuple[Name, ...] = (),
        last: tuple[Name, ...] = (),
        unknown: Name | None = "<unk>",
        file: Path | None = None,
        empty: Literal["error", "unknown"] = "error",
        drop: bool = False,
    ) -> None:
        self.min_count, self.max_size, self.empty, self.drop = min_count, max_size, empty, drop
        marks = (*first, *last)
        self.first = first if unknown is None or unknown in marks else (unknown, *first)
        self.last, self.unknown = last, unknown
        if empty == "unknown" and unknown is None:
            raise ConfigError("vocabulary: `empty: unknown` needs an `unknown` mark")
        self.file = file
        self.table = Vocabulary(())

    def fit(self, values: Values, faults: Faults) -> None:
        """See `Transform.fit`."""
        if self.file is not None:
            words = Vocabulary.load(self.file).words
            missing = [m for m in (*self.first, *self.last) if m not in words]
            self.table = Vocabulary((*missing, *words), self.unknown)
            return
        self.table = Vocabulary.build(
            values.rows,
            min_count=self.min_count,
            max_size=self.max_size,
            first=self.first,
            last=self.last,
            unknown=self.unknown,
        )

    def apply(self, values: Values, faults: Faults) -> Values:
        """See `Transform.apply`."""
        ids = self.table.ids
        other = ids[self.table.unknown] if self.table.unknown is not None else -1
        made = []
        for row, words in enumerate(values.rows):
            found = [ids.get(w, other) for w in words if w in ids or not self.drop]
            if not found:
                if self.empty == "error":
                    faults.add(row, NO_WORD)
                found = [max(other, 0)]
            if other < 0 and min(found) < 0:
                faults.add(row, f"{words[found.index(-1)]!r} is not in the vocabulary")
                found = [max(i, 0) for i in found]
            made.append(np.asarray(found, np.int64))
        return Values("tokens", made)

    def state(self) -> dict[str, Any]:
        """See `Transform.state`; the words go to a file of their own."""
        return {"vocabulary": list(self.table.words), "unknown": self.table.unknown}

    def restore(self, state: Mapping[str, Any]) -> None:
        """See `Transform.restore`."""
        self.table = Vocabulary(state["vocabulary"], state["unknown"])

    def notes(self, names: Sequence[str]) -> list[str]:
        """The size."""
        return [f"{', '.join(names)}: {len(self.table)} words in the vocabulary"]
