"""Transforms by which a text of the user's own becomes what the book's data sets hold."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from paddlecli.config.registry import TRANSFORMS
from paddlecli.config.types import Count, Name
from paddlecli.data.entities import Entities
from paddlecli.data.own.frame import Faults, Kind, Values
from paddlecli.data.readers.corpus import text as text_of
from paddlecli.data.readers.words import ascii_words, plain_treebank, treebank
from paddlecli.data.transforms.base import Transform
from paddlecli.errors import ConfigError, DataError


@TRANSFORMS.register("ascii_words")
class AsciiWords(Transform):
    """Cuts a text at ASCII white space and makes ASCII letters small, byte by byte; all else stays.

    Args:
        punctuation: keep the ASCII punctuation marks.
    """

    takes: ClassVar[tuple[Kind, ...]] = ("cells",)
    gives: ClassVar[Kind | None] = "words"

    def __init__(self, *, punctuation: bool = True) -> None:
        self.punctuation = punctuation

    def apply(self, values: Values, faults: Faults) -> Values:
        """See `Transform.apply`."""
        return Values("words", [self._cut(text) for text in values.rows])

    def _cut(self, text: str) -> list[str]:
        data = text.encode("utf-8", "surrogateescape")
        return [text_of(word) for word in ascii_words(data, self.punctuation)]


@TRANSFORMS.register("treebank_words")
class TreebankWords(Transform):
    """Cuts a text as the Penn Treebank is cut: marks and endings such as `'s` and `n't` are words.

    Args:
        plain: small letters, numbers as N, punctuation marks left out.
    """

    takes: ClassVar[tuple[Kind, ...]] = ("cells",)
    gives: ClassVar[Kind | None] = "words"

    def __init__(self, *, plain: bool = False) -> None:
        self.plain = plain

    def apply(self, values: Values, faults: Faults) -> Values:
        """See `Transform.apply`."""
        cut = plain_treebank if self.plain else treebank
        return Values("words", [cut(text) for text in values.rows])


_ESCAPES = {"&": "&amp;", "|": "&#124;", "<": "&lt;", ">": "&gt;", "'": "&apos;", '"': "&quot;",
            "[": "&#91;", "]": "&#93;"}  # fmt: skip
_PLAIN = {"\u2019": "'", **{escaped: plain for plain, escaped in reversed(_ESCAPES.items())}}
_JOINED = {
    "next": r"(?<=\w)'\w+|(?<!\S)'(?:s|t|re|ve|ll|d|m)\b|\w+(?:-\w+)*",
    "previous": r"\w+(?:-\w+)*'(?=\s*\w)|\w+(?:-\w+)*",
    "apart": r"\w+(?:-\w+)*",
}


@TRANSFORMS.register("moses_words")
class MosesWords(Transform):
    """Cuts a text much as the tokeniser of Moses cut the corpora of translation: marks stand apart,
    words with hyphens and numbers such as 1,000.5 stay whole.

    Args:
        apostrophe: which word one between letters goes with: the `next` as in English (it 's), the
            `previous` as in French (l' eau), or `apart` as in German.
        escape: write & | < > ' " [ ] as Moses does, &apos; and so on, for dictionaries that have them so.
    """

    takes: ClassVar[tuple[Kind, ...]] = ("cells",)
    gives: ClassVar[Kind | None] = "words"

    def __init__(
        self, *, apostrophe: Literal["next", "previous", "apart"] = "next", escape: bool = False
    ) -> None:
        self.apostrophe = apostrophe
        self.pattern = re.compile(rf"\d+(?:[.,]\d+)+|{_JOINED[apostrophe]}|\.{{2,}}|[^\w\s]")
        self.escapes = str.maketrans(_ESCAPES if escape else {})

    def apply(self, values: Values, faults: Faults) -> Values:
        """See `Transform.apply`."""
        return Values("words", [self._cut(text) for text in values.rows])

    def _cut(self, text: str) -> list[str]:
        text = unicodedata.normalize("NFC", text)  # an accent of its own is a part of its letter
        for escaped, plain in _PLAIN.items():
            text = text.replace(escaped, plain)
        return [word.translate(self.escapes) for word in self.pattern.findall(text)]


@TRANSFORMS.register("exactly")
class Exactly(Transform):
    """Rows of a fixed number of ids, side by side; another number is an error.

    Args:
        length: how many.
    """

    takes: ClassVar[tuple[Kind, ...]] = ("tokens",)
    gives: ClassVar[Kind | None] = "arrays"

    def __init__(self, *, length: Count) -> None:
        self.length = length

    def apply(self, values: Values, faults: Faults) -> Values:
        """See `Transform.apply`."""
        made = np.zeros((len(values), self.length), np.int64)
        for row, ids in enumerate(values.rows):
            if len(ids) == self.length:
                made[row] = ids
            else:
                text = f"there are {len(ids)} words and marks; the network reads {self.length}"
                faults.add(row, text)
        return Values("arrays", made)


_PREDICATE = re.compile(r"\[([^\[\]|]*)(?:\|([^\[\]|]*))?\]")
_NEAR = 2
"""How far from the predicate words are marked."""


@dataclass(frozen=True)
class Clause:
    """A sentence with its predicate: the words, where the predicate stands, and its lemma if it was
    given."""

    words: tuple[str, ...]
    place: int
    lemma: str | None


def clause_of(text: str) -> Clause:
    """`The cat [sat] on the mat`, or `[sat|sit]` with the lemma.

    Raises:
        DataError: no predicate, several, or one of several words.
    """
    found = list(_PREDICATE.finditer(text))
    if len(found) != 1:
        count = "no" if not found else f"{len(found)}"
        raise DataError(
            f"{count} words stand in brackets: mark one predicate, as in The cat [sat] on the mat"
        )
    (mark,) = found
    word = mark[1].strip()
    if not word or len(word.split()) != 1:
        raise DataError(f"the predicate [{mark[1]}] is not one word")
    before, after = treebank(text[: mark.start()]), treebank(text[mark.end() :])
    return Clause((*before, word, *after), len(before), (mark[2] or "").strip() or None)


@TRANSFORMS.register("predicate")
class Predicate(Transform):
    """From a sentence whose predicate stands in brackets, `The cat [sat] on the mat`: one value a word.

    Args:
        give: `words`; `near`: the word at `offset` from the predicate, in every row; `lemma`: the
            predicate's lemma in every row; `mark`: 1 within two words of the predicate, else 0.
        offset: for `near`.
        first: the word before the sentence's first.
        last: the word behind its last.
        forms: the table with lemmas of verb forms, `said<TAB>say` an entry.
    """

    takes: ClassVar[tuple[Kind, ...]] = ("cells",)
    gives: ClassVar[Kind | None] = "words"

    def __init__(
        self, *, give: Literal["words", "near", "lemma", "mark"] = "words", offset: int = 0,
        first: Name = "bos", last: Name = "eos", forms: Name | None = None,
    ) -> None:  # fmt: skip
        self.give, self.offset, self.first, self.last = give, offset, first, last
        self.lemmas: dict[str, str] = {}

    def apply(self, values: Values, faults: Faults) -> Values:
        """See `Transform.apply`."""
        made: list[Any] = []
        for row, text in enumerate(values.rows):
            try:
                made.append(self._values(clause_of(text)))
            except DataError as error:
                faults.add(row, error.message)
                made.append(self._values(Clause((self.first,), 0, self.first)))
        return Values("tokens" if self.give == "mark" else "words", made)

    def _values(self, clause: Clause) -> Any:
        words, place = clause.words, clause.place
        if self.give == "words":
            return list(words)
        if self.give == "mark":
            return (np.abs(np.arange(len(words)) - place) <= _NEAR).astype(np.int64)
        if self.give == "lemma":
            return [self._lemma(clause)] * len(words)
        at = place + self.offset
        near = self.first if at < 0 else self.last if at >= len(words) else words[at]
        return [near] * len(words)

    def _lemma(self, clause: Clause) -> str:
        if clause.lemma is not None:
            return clause.lemma
        word = clause.words[clause.place]
        found = self.lemmas.get(word) or self.lemmas.get(word.lower())
        if found is None:
            raise DataError(f"the verb form {word!r} is not known: say its lemma, [{word}|LEMMA]")
        return found

    def state(self) -> dict[str, Any]:
        """See `Transform.state`."""
        if not self.lemmas:
            return {}
        return {"vocabulary": [f"{f}\t{v}" for f, v in self.lemmas.items()], "unknown": None}

    def restore(self, state: Mapping[str, Any]) -> None:
        """See `Transform.restore`."""
        pairs = (entry.partition("\t") for entry in state.get("vocabulary", ()))
        self.lemmas = {form: lemma for form, _, lemma in pairs}


@TRANSFORMS.register("lookup")
class Lookup(Transform):
    """What a table of the data set knows of a thing, which is given by number or by name.

    Args:
        table: the table's name.
        give: which of its columns; `id` for the number.
    """

    takes: ClassVar[tuple[Kind, ...]] = ("cells",)
    gives: ClassVar[Kind | None] = None

    def __init__(self, *, table: Name, give: Name = "id") -> None:
        self.table, self.give = table, give
        self.entities = Entities(table, ())

    def fit(self, values: Values, faults: Faults) -> None:
        """See `Transform.fit`."""
        raise ConfigError(f"lookup: there is no table {self.table!r} among your own files")

    def apply(self, values: Values, faults: Faults) -> Values:
        """See `Transform.apply`."""
        found: list[Any] = []
        for row, text in enumerate(values.rows):
            try:
                found.append(self.entities.find(text)[self.give])
            except DataError as error:
                faults.add(row, error.message)
        if found and isinstance(found[0], list):
            return Values("tokens", [np.asarray(ids, np.int64) for ids in found])
        return Values("ids", np.asarray(found, np.int64))

    def state(self) -> dict[str, Any]:
        """See `Transform.state`."""
        return {"entities": self.entities.plain()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """See `Transform.restore`."""
        self.entities = Entities.of(state["entities"])

    def notes(self, names: Sequence[str]) -> list[str]:
        """How many."""
        return [f"{', '.join(names)}: {len(self.entities)} in the table {self.table}"]
