"""Pairs of sentences for translation, in the layouts of the original's wmt14.tgz and wmt16.tar.gz.

A source becomes `<s>` words `<e>`; a target becomes `<s>` words (what the decoder reads) and words
`<e>` (what it is to say). Lines that do not hold exactly one tab are skipped, as the original did.
A user's own text is cut as the corpora were, each language in its way, and written as the dictionary
is: in small letters and with Moses' escapes where all its entries are.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from paddlecli.config.registry import READERS
from paddlecli.config.types import Count, Natural
from paddlecli.data.cards import Card
from paddlecli.data.readers.archived import ArchivedReader, Columns, entries
from paddlecli.errors import DataError

if TYPE_CHECKING:
    from paddlecli.data.columns import Column, Dataset
    from paddlecli.data.fetching.cache import Found
    from paddlecli.data.readers.corpus import Corpus, Ids, Numbers
    from paddlecli.data.vocab import Vocabulary

MARKS = ("<s>", "<e>", "<unk>")
_START, _END, _UNKNOWN = (mark.encode() for mark in MARKS)

Texts = Mapping[str, bytes]
_APOSTROPHES = {"en": "next", "fr": "previous", "de": "apart"}
"""By language, which word an apostrophe between letters goes with."""


class _WmtReader(ArchivedReader):
    """What both layouts share."""

    parts: ClassVar[Mapping[str, str]]
    """Last part of a member's name by split."""
    swapped = False
    """Whether the second language of a line is the source."""
    max_tokens = 0
    languages: tuple[str, str]
    """Of the source and of the target."""

    def load(self, found: Mapping[str, Found]) -> Dataset:
        """See `Reader.load`."""
        return self._readable(super().load(found))

    def open(self, files: Mapping[str, Path]) -> Dataset:
        """See `Reader.open`."""
        from paddlecli.data.readers.corpus import Numbers

        (file,) = files
        texts = self.named_members(files, file)
        numbers = Numbers()
        pairs = {
            split: _Pairs(texts[name], numbers, self.swapped)
            for split, name in self.parts.items()
            if name in texts
        }
        tables = self.tables(texts, pairs, str(files[file]))
        splits = {}
        for split, found in pairs.items():
            splits[split] = found.columns(tables, self.max_tokens)
            if not len(splits[split]["source"]):
                raise DataError(f"{files[file]}: {split} holds no pair of sentences that is used")
        return self._readable(self.made(splits, tables))

    def _readable(self, made: Dataset) -> Dataset:
        """The data set, told how a text of the user's own is read."""
        source, target = (
            _cutting(made.vocabularies[name], language)
            for name, language in zip(("source", "target"), self.languages, strict=True)
        )
        first, last = {"first": MARKS[0]}, {"last": MARKS[1]}
        fields = {
            "source": _field("source", source, {**first, **last, "empty": "error"}),
            "target": _field("target", target, first),
            "next": _field("target", target, last),
        }
        predict = {"kind": "fields", "columns": ["source", "target"], "fields": fields}
        made.spec = replace(made.spec, predict=predict)
        return made

    @abstractmethod
    def tables(
        self, texts: Texts, pairs: Mapping[str, _Pairs], source: str
    ) -> dict[str, Vocabulary]:
        """The two dictionaries."""


def _cutting(table: Vocabulary, language: str) -> list[Any]:
    """How a text becomes words as they stand in the dictionary."""
    words = table.words[len(MARKS) :]
    escape = any("&apos;" in word or "&quot;" in word for word in words)
    cut = {"moses_words": {"apostrophe": _APOSTROPHES[language], "escape": escape}}
    return [cut] if any(word != word.lower() for word in words) else ["lower", cut]


def _field(column: str, cutting: list[Any], marks: Mapping[str, str]) -> dict[str, Any]:
    return {"column": column, "transforms": [*cutting, {"marks": dict(marks)}, "vocabulary"]}


class _Pairs:
    """The pairs of one split."""

    def __init__(self, text: bytes, numbers: Numbers, swapped: bool) -> None:
        from paddlecli.data.readers.corpus import Corpus

        self.source, self.target = Corpus(numbers), Corpus(numbers)
        for first, second in _pairs(text):
            self.source.add((second if swapped else first).split())
            self.target.add((first if swapped else second).split())

    def columns(self, tables: Mapping[str, Vocabulary], most: int) -> Columns:
        """The three columns; with `most`, pairs are left out whose source with its marks, or whose
        target without, is longer."""
        import numpy as np

        source, target = _lengths(self.source), _lengths(self.target)
        keep = np.ones(source.size, bool)
        if most:
            keep = (source + 2 <= most) & (target <= most)
        src = _ids(self.source, tables["source"], keep)
        trg = _ids(self.target, tables["target"], keep)
        start, end = (tables["target"].ids[mark] for mark in MARKS[:2])
        first, last = (tables["source"].ids[mark] for mark in MARKS[:2])
        return {
            "source": _marked(_marked(src, first, True), last, False),
            "target": _marked(trg, start, True),
            "next": _marked(trg, end, False),
        }


def _pairs(text: bytes) -> Iterator[Sequence[bytes]]:
    for line in text.split(b"\n"):
        cells = line.strip().split(b"\t")
        if len(cells) == 2:
            yield cells


def _lengths(corpus: Corpus) -> Ids:
    import numpy as np

    return np.diff(corpus.offsets)


def _ids(corpus: Corpus, table: Vocabulary, keep: Ids) -> Column:
    import numpy as np

    return corpus.column(corpus.numbers.renumbering(table)).take(np.flatnonzero(keep))


def _marked(column: Column, mark: int, front: bool) -> Column:
    """Every row with one more id at its front or end."""
    import numpy as np

    from paddlecli.data.columns import Column

    offsets = column.offsets[0]
    places = offsets[:-1] if front else offsets[1:]
    return Column(np.insert(column.values, places, mark), (offsets + np.arange(offsets.size),))


@READERS.register("wmt14")
class Wmt14Reader(_WmtReader):
    """Dictionaries come with the archive, one word a line.

    Args:
        dict_size: entries of each dictionary that are used; the others are unknown words.
        max_tokens: pairs are left out whose source with its two marks, or whose target, has more.
    """

    parts: ClassVar[Mapping[str, str]] = {"train": "train", "test": "test", "gen": "gen"}
    languages = ("fr", "en")

    def __init__(self, card: Card, *, dict_size: Count = 30000, max_tokens: Natural = 80) -> None:
        super().__init__(card, dict_size=dict_size, max_tokens=max_tokens)
        self.dict_size, self.max_tokens = dict_size, max_tokens

    def tables(
        self, texts: Texts, pairs: Mapping[str, _Pairs], source: str
    ) -> dict[str, Vocabulary]:
        """See `_WmtReader.tables`."""
        return {
            name: self._table(texts[file], f"{source}: {file}")
            for name, file in (("source", "src.dict"), ("target", "trg.dict"))
        }

    def _table(self, text: bytes, source: str) -> Vocabulary:
        from paddlecli.data.readers.corpus import text as entry
        from paddlecli.data.vocab import Vocabulary

        lines = text.strip(b"\n").split(b"\n")[: self.dict_size]
        words = entries(entry(line) for line in lines)
        missing = [mark for mark in MARKS if mark not in words]
        if missing:
            raise DataError(f"{source}: has no entry {missing[0]}")
        return Vocabulary(words, MARKS[2])


@READERS.register("wmt16")
class Wmt16Reader(_WmtReader):
    """Dictionaries are built from the train split: `<s>`, `<e>`, `<unk>`, then words by falling
    count, equal counts in the order of their first appearance.

    Args:
        source: language of the source; the other one is the target.
        source_size, target_size: entries of the dictionaries with their marks, at most as many as
            there are different words; so the three rarest words are always unknown.
    """

    parts: ClassVar[Mapping[str, str]] = {"train": "train", "valid": "val", "test": "test"}

    def __init__(
        self,
        card: Card,
        *,
        source: Literal["en", "de"] = "en",
        source_size: Count = 30000,
        target_size: Count = 30000,
    ) -> None:
        super().__init__(card, source=source, source_size=source_size, target_size=target_size)
        self.swapped = source == "de"
        self.languages = ("de", "en") if self.swapped else ("en", "de")
        self.sizes = {"source": source_size, "target": target_size}

    def tables(
        self, texts: Texts, pairs: Mapping[str, _Pairs], source: str
    ) -> dict[str, Vocabulary]:
        """See `_WmtReader.tables`."""
        train = pairs["train"]
        return {
            name: _frequent(corpus, self.sizes[name])
            for name, corpus in (("source", train.source), ("target", train.target))
        }


def _frequent(corpus: Corpus, size: int) -> Vocabulary:
    import numpy as np

    from paddlecli.data.readers.corpus import text as entry
    from paddlecli.data.vocab import Vocabulary

    words, counts = corpus.numbers.words(), corpus.counts()
    used, first = np.unique(corpus.packed(), return_index=True)
    order = sorted(
        zip(used.tolist(), first.tolist(), strict=True), key=lambda u: (-counts[u[0]], u[1])
    )
    size = min(size, len(order))
    kept = [entry(words[number]) for number, _ in order]
    kept = [word for word in kept if word not in MARKS]
    return Vocabulary([*MARKS, *kept[: max(size - len(MARKS), 0)]], MARKS[2])
