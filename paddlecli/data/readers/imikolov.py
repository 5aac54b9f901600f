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
from typing import TYPE_CHECKING, Annotated, Any, Literal

from annotated_types import Ge

from paddlecli.config.registry import READERS
from paddlecli.config.types import Natural, NonNegative
from paddlecli.data.cards import Card
from paddlecli.data.readers.archived import ArchivedReader, Columns
from paddlecli.data.spec import DatasetSpec, FieldSpec
from paddlecli.errors import ConfigError, DataError

if TYPE_CHECKING:
    from paddlecli.data.columns import Dataset, Rows
    from paddlecli.data.readers.corpus import Corpus, Ids

_SPLITS = {"train": "ptb.train.txt", "test": "ptb.valid.txt"}
_START, _END, _UNKNOWN = b"<s>", b"<e>", b"<unk>"
_ARCHIVE = "simple-examples.tgz"


@READERS.register("imikolov")
class ImikolovReader(ArchivedReader):
    """One sample a window of `n` words, or one a sentence.

    Args:
        mode: `ngram`: the fields context [n - 1] and next; `around`: the fields centre [1], the
            middle word of a window, and neighbours [n - 1], the label; `sequence`: the fields words
            (`<s>` and the words) and next (the words and `<e>`), on one ragged axis.
        n: words of a window; lines shorter than that have none.
        target: which word of a window is predicted from the others: the last, or the middle one.
        subsample: frequent words are left out of the train text: a word of frequency f stays with
            the probability sqrt(subsample / f); 0 keeps all.
        seed: start of the random numbers that leave words out.
        cutoff: words that come at most so often are unknown.
        max_length: sentences longer than that are left out in `sequence`; 0 keeps all.
    """

    def __init__(
        self,
        card: Card,
        *,
        mode: Literal["ngram", "around", "sequence"] = "ngram",
        n: Annotated[int, Ge(2)] = 5,
        target: Literal["last", "middle"] = "last",
        cutoff: Natural = 50,
        max_length: Natural = 0,
        subsample: NonNegative = 0.0,
        seed: Natural = 0,
    ) -> None:
        super().__init__(
            card, mode=mode, n=n, target=target, cutoff=cutoff, max_length=max_length,
            subsample=subsample, seed=seed,
        )  # fmt: skip
        self.n, self.target, self.cutoff, self.max_length = n, target, cutoff, max_length
        self.subsample, self.seed, self._mode = subsample, seed, mode
        if mode != "ngram" and target != "last":
            raise ConfigError(f"data: `target` has a meaning with `mode: ngram`, not with {mode}")
        if mode == "sequence" and subsample:
            raise ConfigError("data: `subsample` is for windows, not for `mode: sequence`")

    @property
    def mode(self) -> str | None:
        """See `ArchivedReader.mode`."""
        return None if self._mode == "ngram" else self._mode

    def fields(self, sizes: Mapping[str, int]) -> list[FieldSpec]:
        """See `ArchivedReader.fields`."""
        found = super().fields(sizes)
        wide = ("context", "neighbours")
        return [replace(f, shape=(self.n - 1,)) if f.name in wide else f for f in found]

    def describe(self) -> DatasetSpec:
        """See `Reader.describe`; how a text of the user's own is read depends on the mode."""
        known = super().describe()
        name, steps = self._reading()
        field = {"column": "text", "transforms": [{"treebank_words": {"plain": True}}, *steps]}
        predict = {"kind": "fields", "columns": ["text"], "fields": {name: field}}
        return replace(known, predict=predict)

    def _reading(self) -> tuple[str, list[Any]]:
        """The input field, and how words become its values: the last words of a text are followed by
        the next; with the middle one as target the text is the words around it."""
        start: dict[str, Any] = {"marks": {"first": _START.decode()}}
        if self._mode == "sequence":
            return "words", [start, "vocabulary"]
        if self._mode == "around":
            return "centre", ["vocabulary", {"exactly": {"length": 1}}]
        size = {"length": self.n - 1}
        last: list[Any] = [start, {"truncate": {**size, "keep": "last"}}]
        before = last if self.target == "last" else []
        return "context", [*before, "vocabulary", {"exactly": size}]

    def open(self, files: Mapping[str, Path]) -> Dataset:
        """See `Reader.open`."""
        from paddlecli.data.readers.corpus import Corpus, Numbers, counted, frequent
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
        if self._mode == "sequence":
            splits = {
                s: self._sentences(c, renumbering, files[_ARCHIVE]) for s, c in corpora.items()
            }
        else:
            rows = {s: (renumbering[c.packed()], c.offsets) for s, c in corpora.items()}
            if self.subsample:
                rows["train"] = self._thinned(*rows["train"])
            splits = {s: self._windows(*r, files[_ARCHIVE]) for s, r in rows.items()}
        return self.made(splits, {"word": table})

    def _thinned(self, packed: Ids, offsets: Rows) -> tuple[Ids, Rows]:
        """The words that stay, and their offsets."""
        import numpy as np

        share = np.bincount(packed) / packed.size
        keep = np.sqrt(self.subsample / np.maximum(share, self.subsample))
        draws = np.random.RandomState(self.seed).random_sample(packed.size)
        stays = draws < keep[packed]
        before = np.concatenate([[0], np.cumsum(stays)])
        return packed[stays], before[offsets]

    def _windows(self, packed: Ids, offsets: Rows, file: Path) -> Columns:
        """Every window of n words that lies within a line."""
        import numpy as np

        from paddlecli.data.columns import Column

        n = self.n
        short = DataError(f"{file}: no line has {n} words, so there is no window of that length")
        if packed.size < n:
            raise short
        inside = np.ones(packed.size - n + 1, bool)
        for k in range(1, n):  # a window that starts k words before the end of its line is cut
            ends = offsets[1:] - k
            inside[ends[(ends >= 0) & (ends < inside.size)]] = False
        if not inside.any():
            raise short
        ids = np.lib.stride_tricks.sliding_window_view(packed, n)[inside]
        around = self._mode == "around"
        place = n - 1 if self.target == "last" and not around else (n - 1) // 2
        others = Column(np.ascontiguousarray(np.delete(ids, place, axis=1)))
        one = np.ascontiguousarray(ids[:, place])
        if around:
            return {"centre": Column(one[:, None]), "neighbours": others}
        return {"context": others, "next": Column(one)}

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
