"""The Large Movie Review Dataset: one text file a review, sorted into train and test, pos and neg.

A review's line ends are stripped at its end, ASCII punctuation is removed (`<br />` becomes `br`),
ASCII letters become small, and white space separates the words. The dictionary counts all labelled
reviews of train and test. The original took reviews in the archive's order, which is that of a file
system; here each split has the positive ones first, each kind by its number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from paddlecli.config.registry import READERS
from paddlecli.config.types import Natural
from paddlecli.data.cards import Card
from paddlecli.data.readers.archived import ArchivedReader
from paddlecli.data.readers.words import ascii_words
from paddlecli.errors import DataError

if TYPE_CHECKING:
    from paddlecli.data.columns import Column, Dataset
    from paddlecli.data.readers.corpus import Corpus, Numbers

_ARCHIVE = "aclImdb_v1.tar.gz"
_REVIEW = re.compile(r"(?:.*/)?(train|test)/(pos|neg)/(\d+)_\d+\.txt")
_LABELS = {"pos": 0, "neg": 1}
_UNKNOWN = "<unk>"


@READERS.register("imdb")
class ImdbReader(ArchivedReader):
    """Reviews as ids, and whether they are positive (0) or negative (1).

    Args:
        cutoff: words that come at most so often are unknown.
    """

    def __init__(self, card: Card, *, cutoff: Natural = 150) -> None:
        super().__init__(card, cutoff=cutoff)
        self.cutoff = cutoff

    def open(self, files: Mapping[str, Path]) -> Dataset:
        """See `Reader.open`."""
        from paddlecli.data.readers.corpus import Numbers, counted, frequent
        from paddlecli.data.vocab import Vocabulary

        numbers = Numbers()
        corpora, labels = self._read(files, numbers)
        if not corpora:
            raise DataError(f"{files[_ARCHIVE]}: holds no reviews (train/pos/0_9.txt and so on)")
        counts = counted(corpora.values())
        words = frequent(numbers.words(), counts, self.cutoff)
        table = Vocabulary([*words, _UNKNOWN], _UNKNOWN)
        renumbering = numbers.renumbering(table)
        splits = {
            split: {"words": corpus.column(renumbering), "label": labels[split]}
            for split, corpus in corpora.items()
        }
        return self.made(splits, {"word": table})

    def _read(
        self, files: Mapping[str, Path], numbers: Numbers
    ) -> tuple[dict[str, Corpus], dict[str, Column]]:
        """Reviews and labels by split, in the reader's order."""
        import numpy as np

        from paddlecli.data.columns import Column
        from paddlecli.data.readers.corpus import Corpus

        raw: dict[str, tuple[Corpus, list[tuple[int, int]]]] = {}
        for name, text in self.members(files, _ARCHIVE):
            found = _REVIEW.fullmatch(name)
            if found is None:
                continue
            corpus, keys = raw.setdefault(found[1], (Corpus(numbers), []))
            corpus.add(ascii_words(text, punctuation=False))
            keys.append((_LABELS[found[2]], int(found[3])))
        corpora, labels = {}, {}
        for split in sorted(raw, key=("train", "test").index):
            corpus, keys = raw[split]
            order = sorted(range(len(keys)), key=keys.__getitem__)
            corpus.rows = [corpus.rows[i] for i in order]
            corpora[split] = corpus
            labels[split] = Column(np.asarray([keys[i][0] for i in order], np.int64))
        return corpora, labels
