"""Mikolov's Penn Treebank text (`ptb.train.txt`, `ptb.valid.txt`) as windows of words or as
sentences.

The dictionary is built over train and valid: words that come more than `cutoff` times, one `<s>` and
one `<e>` a line among them, by falling count, then by their bytes; `<unk>` is last. The corpus's own
`<unk>` counts as unknown. What the original calls test is the valid file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from annotated_types import Ge

from paddlecli.config.registry import READERS
from paddlecli.config.types import Natural
from paddlecli.data.cards import Card
from paddlecli.data.readers.archived import ArchivedReader, Columns
from paddlecli.data.spec import FieldSpec
from paddlecli.errors import DataError

if TYPE_CHECKING:
    from paddlecli.data.columns import Dataset
    from paddlecli.data.corpus import Corpus, Ids

_SPLITS = {"train": "ptb.train.txt", "test": "ptb.valid.txt"}
_START, _END, _UNKNOWN = b"<s>", b"<e>", b"<unk>"
_ARCHIVE = "simple-examples.tgz"


@READERS.register("imikolov")
class ImikolovReader(ArchivedReader):
    """One sample a window of `n` words, or one a sentence.

    Args:
        mode: `ngram`: the fields context [n - 1] and next; `sequence`: the fields words (`<s>` and
            the words) and next (the words and `<e>`), on one ragged axis.
        n: words of a window; lines shorter than that have none.
        target: which word of a window is predicted from the others: the last, or the middle one.
        cutoff: words that come at most so often are unknown.
        max_length: sentences longer than that are left out in `sequence`; 0 keeps all.
    """

    def __init__(
        self,
        card: Card,
        *,
        mode: Literal["ngram", "sequence"] = "ngram",
        n: Annotated[int, Ge(2)] = 5,
        target: Literal["last", "middle"] = "last",
        cutoff: Natural = 50,
        max_length: Natural = 0,
    ) -> None:
        super().__init__(card, mode=mode, n=n, target=target, cutoff=cutoff, max_length=max_length)
        self.n, self.target, self.cutoff, self.max_length = n, target, cutoff, max_length
        self._mode = mode

    @property
    def mode(self) -> str | None:
        """See `ArchivedReader.mode`."""
        return "sequence" if self._mode == "sequence" else None

    def fields(self, sizes: Mapping[str, int]) -> list[FieldSpec]:
        """See `ArchivedReader.fields`."""
        found = super().fields(sizes)
        return [replace(f, shape=(self.n - 1,)) if f.name == "context" else f for f in found]

    def open(self, files: Mapping[str, Path]) -> Dataset:
        """See `Reader.open`."""
        from paddlecli.data.corpus import Corpus, Numbers, counted, frequent
        from paddlecli.data.vocab import Vocabulary

        texts, numbers = self.named_members(files, _ARCHIVE), Numbers()
        corpora = {}
        for split, name in _SPLITS.items():
            corpora[split] = corpus = Corpus(numbers)
            for line in _lines(texts[name]):
                corpus.add([_START, *line.split(), _END])
        counts = counted(corpora.values())
        words = frequent(numbers.words(), counts, self.cutoff, frozenset([_UNKNOWN]))
        table = Vocabulary([*words, _UNKNOWN.decode()], _UNKNOWN.decode())
        renumbering = numbers.renumbering(table)
        cut = self._sentences if self.mode else self._windows
        splits = {s: cut(c, renumbering, files[_ARCHIVE]) for s, c in corpora.items()}
        return self.made(splits, {"word": table})

    def _windows(self, corpus: Corpus, renumbering: Ids, file: Path) -> Columns:
        """Every window of n words that lies within a line."""
        import numpy as np

        from paddlecli.data.columns import Column

        packed, offsets, n = corpus.packed(), corpus.offsets, self.n
        if packed.size < n:
            raise DataError(f"{file}: no line has {n} words, so there is no window of that length")
        inside = np.ones(packed.size - n + 1, bool)
        for k in range(1, n):  # a window that starts k words before the end of its line is cut
            ends = offsets[1:] - k
            inside[ends[(ends >= 0) & (ends < inside.size)]] = False
        windows = np.lib.stride_tricks.sliding_window_view(packed, n)[inside]
        ids = renumbering[windows]
        place = n - 1 if self.target == "last" else (n - 1) // 2
        context = np.ascontiguousarray(np.delete(ids, place, axis=1))
        return {"context": Column(context), "next": Column(np.ascontiguousarray(ids[:, place]))}

    def _sentences(self, corpus: Corpus, renumbering: Ids, file: Path) -> Columns:
        import numpy as np

        from paddlecli.data.columns import Column

        whole = corpus.column(renumbering)
        if self.max_length:
            lengths = np.diff(whole.offsets[0]) - 1
            whole = whole.take(np.flatnonzero(lengths <= self.max_length))
        if len(whole) == 0:
            raise DataError(f"{file}: no sentence has at most {self.max_length} words")
        offsets = whole.offsets[0] - np.arange(len(whole) + 1)
        last = np.zeros(whole.values.size, bool)
        last[whole.offsets[0][1:] - 1] = True
        first = np.roll(last, 1)
        words, following = whole.values[~last], whole.values[~first]
        return {"words": Column(words, (offsets,)), "next": Column(following, (offsets,))}


def _lines(text: bytes) -> list[bytes]:
    lines = text.split(b"\n")
    return lines[:-1] if not lines[-1] else lines
