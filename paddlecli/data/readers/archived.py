"""What the readers of whole archives share: members by the card's patterns, columns that are made
once and kept (`prepared.py`), dictionaries that belong to the data."""

from __future__ import annotations

import inspect
import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paddlecli.data.cards import Card
from paddlecli.data.formats.archives import read_members
from paddlecli.data.readers.base import Reader
from paddlecli.data.spec import DatasetSpec, FieldSpec
from paddlecli.errors import DataError

if TYPE_CHECKING:
    from paddlecli.data.columns import Column, Dataset, Split
    from paddlecli.data.entities import Entities
    from paddlecli.data.fetching.cache import Found
    from paddlecli.data.vocab import Vocabulary

Columns = Mapping[str, "Column"]


class ArchivedReader(Reader):
    """Base of readers whose columns are prepared once.

    Args:
        card: the data set.
        arguments: the reader's settings, as a recipe gives them.
    """

    def __init__(self, card: Card, **arguments: Any) -> None:
        super().__init__(card)
        self.arguments = arguments

    @property
    def mode(self) -> str | None:
        """The card's set of fields that applies."""
        return None

    @cached_property
    def _defaults(self) -> dict[str, Any]:
        found = inspect.signature(type(self)).parameters.values()
        return {p.name: p.default for p in found if p.kind is p.KEYWORD_ONLY}

    def standard(self) -> bool:
        """Whether the settings are those that the card's numbers belong to."""
        return self.arguments == self._defaults

    def fields(self, sizes: Mapping[str, int]) -> list[FieldSpec]:
        """The fields with dictionaries of these sizes."""
        return self.card.specs(self.mode, sizes)

    def describe(self) -> DatasetSpec:
        """See `Reader.describe`; with other settings than the card's, sizes and classes are known
        only after opening."""
        known = super().describe()
        if self.standard():
            return replace(known, fields=tuple(self.fields({})))
        fields = (replace(f, classes=None) if f.vocabulary else f for f in self.fields({}))
        return replace(known, fields=tuple(fields), sizes=dict.fromkeys(known.sizes))

    def load(self, found: Mapping[str, Found]) -> Dataset:
        """See `Reader.load`: mapped from the disk where it was prepared before."""
        from paddlecli.data import prepared

        return prepared.dataset(
            self.describe(), self.card.model_dump_json(), self.arguments, found,
            lambda: self.open({name: f.path for name, f in found.items()}), self.split,
        )  # fmt: skip

    def split(self, name: str, columns: Columns) -> Split:
        """A split, from what is stored of it."""
        from paddlecli.data.columns import Split

        return Split(name, columns)

    @abstractmethod
    def open(self, files: Mapping[str, Path]) -> Dataset:
        """See `Reader.open`; reads the archives."""

    def members(self, files: Mapping[str, Path], file: str) -> Iterator[tuple[str, bytes]]:
        """Names and contents of the members of one archive that the card names."""
        entry = self.card.file(file)
        patterns = [m.path for m in entry.members] + ([entry.also] if entry.also else [])
        expression = re.compile("|".join(f"(?:{p})" for p in patterns))
        return read_members(files[file], lambda name: bool(expression.fullmatch(name)))

    def named_members(self, files: Mapping[str, Path], file: str) -> dict[str, bytes]:
        """Contents by the last part of the members' names.

        Raises:
            DataError: one that the card needs is missing.
        """
        found = dict(self.members(files, file))
        for member in self.card.file(file).members:
            have = any(re.fullmatch(member.path, name) for name in found)
            if member.needed and not have:
                raise DataError(f"{files[file]}: holds no {member.label}")
        return {name.rpartition("/")[2]: data for name, data in found.items()}

    def made(
        self,
        splits: Mapping[str, Columns],
        vocabularies: Mapping[str, Vocabulary] | None = None,
        remarks: tuple[str, ...] = (),
        at_least: Mapping[str, int] | None = None,
        entities: Mapping[str, Entities] | None = None,
    ) -> Dataset:
        """The data set of these columns; label fields get the names of their dictionary's entries.

        Args:
            splits: columns by field, by split.
            vocabularies: the dictionaries by name.
            remarks: what a user of these data has to know.
            at_least: classes of fields whose files hold larger numbers than the card knows.
            entities: tables of what the data are about, by name.
        """
        from paddlecli.data.columns import Dataset

        tables = dict(vocabularies or {})
        fields = []
        for f in self.fields({name: len(v) for name, v in tables.items()}):
            if f.role == "label" and f.vocabulary:
                f = replace(f, names=tables[f.vocabulary].words)
            if f.name in (at_least or {}):
                f = replace(f, classes=max(f.classes or 0, (at_least or {})[f.name]))
            fields.append(f)
        parts = {name: self.split(name, columns) for name, columns in splits.items()}
        spec = replace(
            self.describe(),
            fields=tuple(fields),
            sizes={name: len(part) for name, part in parts.items()},
            remarks=remarks,
        )
        return Dataset(spec, parts, None, tables, entities)


def entries(lines: Iterable[str]) -> list[str]:
    """The entries of a dictionary file, whose ids are their lines. Of a word that comes twice the
    later line is the one that is found, as in the original; other lines only keep their place."""
    words = [line.strip() for line in lines]
    last = {word: i for i, word in enumerate(words)}
    return [
        word if word and last[word] == i else f"{word} (line {i + 1})"
        for i, word in enumerate(words)
    ]
