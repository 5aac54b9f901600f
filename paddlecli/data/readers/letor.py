"""LETOR text: documents of queries with their relevance and 46 features (MQ2007).

A line is `2 qid:10032 1:0.056 2:0.0 ... 46:0.076 #docid = ...`; the lines of a query stand together.
Queries without a relevant document are left out, as the original did. The published archive is a
RAR file, which nothing here unpacks: unpack it, and import the folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from paddlecli.config.registry import READERS
from paddlecli.data.cards import Card
from paddlecli.data.readers.archived import ArchivedReader, Columns
from paddlecli.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from paddlecli.data.columns import Dataset

_PARTS = {"train": "train.txt", "valid": "vali.txt", "test": "test.txt"}
_FEATURES = 46

Query = tuple["NDArray[np.float32]", "NDArray[np.int64]"]


@READERS.register("letor")
class LetorReader(ArchivedReader):
    """Queries as lists of documents, or pairs of documents of one query.

    Args:
        mode: `listwise`: one sample a query, documents by falling relevance; `pairwise`: one sample
            for every two documents of a query that differ in relevance, the better one in `left`.
        fold: which of the five folds.
    """

    def __init__(
        self,
        card: Card,
        *,
        mode: Literal["listwise", "pairwise"] = "listwise",
        fold: Literal[1, 2, 3, 4, 5] = 1,
    ) -> None:
        super().__init__(card, mode=mode, fold=fold)
        self._mode, self.fold = mode, fold

    @property
    def mode(self) -> str | None:
        """See `ArchivedReader.mode`."""
        return "pairwise" if self._mode == "pairwise" else None

    def open(self, files: Mapping[str, Path]) -> Dataset:
        """See `Reader.open`."""
        (file,) = files
        with files[file].open("rb") as stream:
            if stream.read(4) == b"Rar!":
                raise DataError(
                    f"{files[file]}: a RAR archive, which nothing here unpacks",
                    hint=f"unpack it, then paddlecli dataset import {self.card.name} FOLDER --unofficial",
                )
        splits = {}
        for name, text in self.members(files, file):
            part = next(
                (s for s, end in _PARTS.items() if name.endswith(f"Fold{self.fold}/{end}")), ""
            )
            if part:
                queries = [q for q in _queries(text, f"{files[file]}: {name}") if q[1].any()]
                splits[part] = _pairs(queries) if self.mode else _lists(queries)
        if "train" not in splits:
            raise DataError(f"{files[file]}: holds no Fold{self.fold}/train.txt")
        return self.made({part: splits[part] for part in _PARTS if part in splits})


def _queries(text: bytes, source: str) -> Iterator[Query]:
    import numpy as np

    known = b""
    rows: list[list[float]] = []
    scores: list[int] = []
    for line, raw in enumerate(text.split(b"\n"), 1):
        cells = raw.partition(b"#")[0].split()
        if not cells:
            continue
        if len(cells) != _FEATURES + 2 or not cells[1].startswith(b"qid:"):
            raise DataError(f"{source}: line {line} has {len(cells)} columns, not {_FEATURES + 2}")
        if rows and cells[1] != known:
            yield np.asarray(rows, np.float32), np.asarray(scores, np.int64)
            rows, scores = [], []
        known = cells[1]
        try:
            scores.append(int(cells[0]))
            rows.append([float(cell.partition(b":")[2]) for cell in cells[2:]])
        except ValueError:
            raise DataError(f"{source}: line {line}: a cell holds no number") from None
    if rows:
        yield np.asarray(rows, np.float32), np.asarray(scores, np.int64)


def _ordered(query: Query) -> Query:
    import numpy as np

    features, scores = query
    order = np.argsort(-scores, kind="stable")
    return features[order], scores[order]


def _lists(queries: list[Query]) -> Columns:
    from paddlecli.data.columns import Column, pack

    ordered = [_ordered(query) for query in queries]
    features = pack((q[0] for q in ordered), "float32", (_FEATURES,))
    relevance = pack((q[1] for q in ordered), "int64")
    return {"features": features, "relevance": Column(relevance.values, features.offsets)}


def _pairs(queries: list[Query]) -> Columns:
    import numpy as np

    from paddlecli.data.columns import Column

    lefts, rights = [], []
    for features, scores in map(_ordered, queries):
        better, worse = np.nonzero(scores[:, None] > scores[None, :])
        lefts.append(features[better])
        rights.append(features[worse])
    left, right = np.concatenate(lefts), np.concatenate(rights)
    return {
        "left": Column(left),
        "right": Column(right),
        "label": Column(np.ones((len(left), 1), np.float32)),
    }
