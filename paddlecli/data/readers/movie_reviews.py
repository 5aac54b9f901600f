"""NLTK's movie_reviews: one text file a review, in the folders neg and pos.

Words are runs of letters, digits and underscores, or runs of other marks that are not white space;
the original took them from NLTK. The dictionary has every word of all 2,000 reviews, by falling
count; the original left equal counts in the order of a dictionary, here it is that of their
characters. Negative and positive reviews alternate; the last fifth tests.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from paddlecli.config.registry import READERS
from paddlecli.data.readers.archived import ArchivedReader
from paddlecli.errors import DataError

if TYPE_CHECKING:
    from paddlecli.data.columns import Dataset

_REVIEW = re.compile(r"(?:.*/)?(neg|pos)/([^/]+\.txt)")
_WORD = re.compile(r"\w+|[^\w\s]+")
_TRAIN_SHARE = 0.8


@READERS.register("movie_reviews")
class MovieReviewsReader(ArchivedReader):
    """Reviews as ids, and whether they are negative (0) or positive (1)."""

    def open(self, files: Mapping[str, Path]) -> Dataset:
        """See `Reader.open`."""
        import numpy as np

        from paddlecli.data.columns import Column, pack
        from paddlecli.data.vocab import Vocabulary

        (file,) = files
        found: dict[str, dict[str, list[str]]] = {"neg": {}, "pos": {}}
        for name, text in self.members(files, file):
            if review := _REVIEW.fullmatch(name):
                words = _WORD.findall(text.decode("utf-8", "replace").lower())
                found[review[1]][review[2]] = words
        pairs = list(zip(sorted(found["neg"]), sorted(found["pos"]), strict=False))
        counts = Counter(w for kind in found.values() for words in kind.values() for w in words)
        table = Vocabulary(sorted(counts, key=lambda w: (-counts[w], w)))
        texts = [found[k][n] for pair in pairs for k, n in zip(("neg", "pos"), pair, strict=True)]
        edge = int(len(pairs) * _TRAIN_SHARE) * 2
        if not 0 < edge < len(texts):
            raise DataError(f"{files[file]}: holds only {len(texts)} reviews in neg and pos")
        splits = {}
        for split, rows in (("train", range(edge)), ("test", range(edge, len(texts)))):
            ids = pack((np.asarray(table.encode(texts[i]), np.int64) for i in rows), "int64")
            splits[split] = {"words": ids, "label": Column(np.asarray(rows, np.int64) % 2)}
        return self.made(splits, {"word": table})
