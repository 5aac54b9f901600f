"""CoNLL-2005 semantic roles: the public test part, as the original trained on it.

One sample is a predicate of a sentence: nine columns of the sentence's length. The words around the
predicate, its lemma and its own words stand in every row of their columns. Brackets such as `(A0*`,
`*`, `*)` become B-, I- and O. Tags are numbered in sorted order, B before I, O last; the original
numbered them in the order of a Python set.

Without the original's dictionaries (wordDict.txt, verbDict.txt, targetDict.txt) new ones are built
from the sentences that are read, and the data set says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from paddlecli.config.registry import READERS
from paddlecli.config.types import Natural
from paddlecli.data.cards import Card
from paddlecli.data.formats.archives import gunzip
from paddlecli.data.readers.archived import ArchivedReader, Columns, entries
from paddlecli.data.readers.base import text_lines
from paddlecli.errors import DataError

if TYPE_CHECKING:
    from paddlecli.data.columns import Dataset
    from paddlecli.data.vocab import Vocabulary

_ARCHIVE = "conll05st-tests.tar.gz"
_WORDS, _VERBS, _TAGS = "wordDict.txt", "verbDict.txt", "targetDict.txt"
_VECTORS = "emb"
"""The original's table of word vectors, which it did not train."""
_START, _END, _UNKNOWN = "bos", "eos", "<unk>"
_NEAR = {"ctx_n2": -2, "ctx_n1": -1, "ctx_0": 0, "ctx_p1": 1, "ctx_p2": 2}


@dataclass(frozen=True)
class Role:
    """One predicate of a sentence: its lemma and a label a word."""

    lemma: str
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Sentence:
    """Words and predicates."""

    words: tuple[str, ...]
    roles: tuple[Role, ...]


@READERS.register("conll05")
class Conll05Reader(ArchivedReader):
    """Sentences with one of their predicates each.

    Args:
        hold_out: every so-manieth sentence tests instead of training; 0: all train, as the original
            had it.
        brown: read the test part from the Brown corpus too, as the split `brown`.
    """

    def __init__(self, card: Card, *, hold_out: Natural = 0, brown: bool = False) -> None:
        super().__init__(card, hold_out=hold_out, brown=brown)
        self.hold_out, self.brown = hold_out, brown

    def open(self, files: Mapping[str, Path]) -> Dataset:
        """See `Reader.open`."""
        parts = self._sentences(files)
        every = [s for sentences in parts.values() for s in sentences]
        tables, built = _tables(files, every)
        splits = {name: _columns(s, tables, str(files[_ARCHIVE])) for name, s in parts.items()}
        vectors = f"is here, {files[_VECTORS]}" if _VECTORS in files else "absent"
        remarks = [
            f"{' and '.join(built)} absent: built from the sentences that are read"
            if built
            else "",
            f"{_VECTORS} {vectors}: the word vectors are trained, unless model.parameters.{_VECTORS} "
            "says otherwise",
        ]
        return self.made(splits, tables, tuple(filter(None, remarks)))

    def _sentences(self, files: Mapping[str, Path]) -> dict[str, list[Sentence]]:
        found = self.named_members(files, _ARCHIVE)
        source = str(files[_ARCHIVE])
        whole = _read(found, "test.wsj", source)
        if not self.hold_out:
            parts = {"train": whole}
        else:
            k = self.hold_out
            parts = {
                "train": [s for i, s in enumerate(whole) if (i + 1) % k],
                "test": [s for i, s in enumerate(whole) if (i + 1) % k == 0],
            }
        if self.brown:
            parts["brown"] = _read(found, "test.brown", source)
        return parts


def _read(found: Mapping[str, bytes], part: str, source: str) -> list[Sentence]:
    words, props = (_column_of(found, f"{part}.{kind}.gz", source) for kind in ("words", "props"))
    return list(_parsed(words, props, f"{source}: {part}"))


def _column_of(found: Mapping[str, bytes], name: str, source: str) -> list[str]:
    if name not in found:
        raise DataError(f"{source}: holds no {name}")
    return gunzip(found[name], f"{source}: {name}").decode("utf-8", "replace").split("\n")


def _parsed(words: Sequence[str], props: Sequence[str], source: str) -> Iterator[Sentence]:
    if len(words) != len(props):
        raise DataError(
            f"{source}: {len(words)} lines of words, but {len(props)} lines of predicates"
        )
    forms: list[str] = []
    rows: list[list[str]] = []
    for line, (form, prop) in enumerate(zip([*words, ""], [*props, ""], strict=True), 1):
        form, cells = form.strip(), prop.split()
        if bool(form) != bool(cells):
            raise DataError(
                f"{source}: line {line}: a word without a predicate row, or the reverse"
            )
        if cells:
            if rows and len(cells) != len(rows[0]):
                raise DataError(
                    f"{source}: line {line} has {len(cells)} columns, those before {len(rows[0])}"
                )
            forms.append(form)
            rows.append(cells)
        elif rows:
            yield _sentence(forms, rows, f"{source}: line {line - len(rows)}")
            forms, rows = [], []


def _sentence(forms: list[str], rows: list[list[str]], place: str) -> Sentence:
    lemmas = [row[0] for row in rows if row[0] != "-"]
    width = len(rows[0]) - 1
    if len(lemmas) != width:
        raise DataError(f"{place}: {len(lemmas)} predicates, but {width} columns of roles")
    roles = [
        Role(lemma, tuple(_labels([row[i + 1] for row in rows], place)))
        for i, lemma in enumerate(lemmas)
    ]
    for role in roles:
        if "B-V" not in role.labels:
            raise DataError(f"{place}: the predicate {role.lemma!r} is nowhere marked (V*)")
    return Sentence(tuple(forms), tuple(roles))


def _labels(cells: Sequence[str], place: str) -> Iterator[str]:
    """B-, I- and O of one column in bracket notation."""
    tag = ""
    for row, cell in enumerate(cells):
        opened, mark, closed = cell.partition("*")
        if not mark or closed not in ("", ")") or (opened and not opened.startswith("(")):
            raise DataError(f"{place}: row {row + 1}: {cell!r} is no role in brackets")
        if opened:
            tag = opened[1:]
            yield f"B-{tag}"
        else:
            yield f"I-{tag}" if tag else "O"
        if closed:
            tag = ""


# --- dictionaries ---


def _tables(
    files: Mapping[str, Path], sentences: Sequence[Sentence]
) -> tuple[dict[str, Vocabulary], list[str]]:
    """The dictionaries by name, and which of them had to be built."""
    from paddlecli.data.vocab import Vocabulary

    built = [name for name in (_WORDS, _VERBS, _TAGS) if name not in files]
    if _WORDS in files:
        words = entries(_lines(files[_WORDS]))
        word = Vocabulary(words, words[0])  # the original gave unknown words the id 0
    else:
        counts = Counter(w for s in sentences for w in s.words)
        marks = (_UNKNOWN, _START, _END)
        word = Vocabulary([*marks, *_ordered(counts, marks)], _UNKNOWN)
    if _VERBS in files:
        verb = Vocabulary(entries(_lines(files[_VERBS])))
    else:
        verb = Vocabulary(_ordered(Counter(r.lemma for s in sentences for r in s.roles)))
    if _TAGS in files:
        labels = _lines(files[_TAGS])
    else:
        labels = [label for s in sentences for r in s.roles for label in r.labels]
    tags = sorted({label[2:] for label in labels if label not in ("", "O")})
    label = Vocabulary([*(f"{p}-{t}" for t in tags for p in "BI"), "O"])
    form = Vocabulary(f"{f}\t{lemma}" for f, lemma in _forms(sentences).items())
    return {"word": word, "verb": verb, "label": label, "form": form}, built


def _forms(sentences: Sequence[Sentence]) -> dict[str, str]:
    """The lemma that each form of a predicate most often has."""
    counts: dict[str, Counter[str]] = {}
    for sentence in sentences:
        for role in sentence.roles:
            form = sentence.words[role.labels.index("B-V")]
            counts.setdefault(form, Counter())[role.lemma] += 1
    return {f: min(c, key=lambda v: (-c[v], v)) for f, c in sorted(counts.items())}


def _lines(file: Path) -> list[str]:
    return [line.strip() for _, line in text_lines(file)]


def _ordered(counts: Counter[str], without: Sequence[str] = ()) -> list[str]:
    return sorted((w for w in counts if w not in without), key=lambda w: (-counts[w], w))


# --- columns ---


def _columns(
    sentences: Sequence[Sentence], tables: Mapping[str, Vocabulary], source: str
) -> Columns:
    """The nine columns on one ragged axis."""
    import numpy as np

    from paddlecli.data.columns import Column

    word, lengths = tables["word"], []
    parts: dict[str, list[int]] = {name: [] for name in _FIELDS}
    for sentence in sentences:
        ids = word.encode(sentence.words)
        for role in sentence.roles:
            size, place = len(ids), role.labels.index("B-V")
            lengths.append(size)
            parts["word"] += ids
            for name, step in _NEAR.items():
                parts[name] += [_near(ids, place + step, word)] * size
            parts["verb"] += tables["verb"].encode([role.lemma]) * size
            parts["mark"] += [int(abs(i - place) <= 2) for i in range(size)]
            parts["label"] += _label_ids(role.labels, tables["label"], source)
    if not lengths:
        raise DataError(f"{source}: no sentence has a predicate")
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return {name: Column(np.asarray(v, np.int64), (offsets,)) for name, v in parts.items()}


_FIELDS = ("word", *_NEAR, "verb", "mark", "label")


def _near(ids: Sequence[int], place: int, word: Vocabulary) -> int:
    if 0 <= place < len(ids):
        return ids[place]
    return word.encode([_START if place < 0 else _END])[0]


def _label_ids(labels: Sequence[str], table: Vocabulary, source: str) -> list[int]:
    odd = next((label for label in labels if label not in table.ids), None)
    if odd is not None:
        raise DataError(f"{source}: the role {odd} is not in {_TAGS}")
    return table.encode(labels)
