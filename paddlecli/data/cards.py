"""Data set cards: one YAML file a data set, validated here. Cards are data; nothing in them is
code.

A card says what the files are (bytes, checksums, where to get them), which reader turns them into
columns, which fields and splits result, and how `predict` reads one input. Unknown keys are errors.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import re
import typing
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from paddlecli import assets
from paddlecli.config.nodes import Node
from paddlecli.config.registry import DATASETS, READERS
from paddlecli.config.yaml_text import parse_file
from paddlecli.data.card_files import (
    AnySource,
    CardFile,
    CardModel,
    EmbeddedSource,
    PackageSource,
    UrlSource,
)
from paddlecli.data.spec import FieldSpec, Preprocess
from paddlecli.errors import ConfigError, DataError, Fault

if TYPE_CHECKING:
    from paddlecli.data.readers.base import Reader

_NAME = re.compile(r"[a-z0-9][a-z0-9_]*(/[a-z0-9][a-z0-9_]*)?")


class CardVocabulary(CardModel):
    """A table of ids that the reader builds or reads."""

    size: Annotated[int, Field(ge=1)]
    """Entries with the card's own settings."""
    unknown: str | None = None
    """The entry for every word that is not in the table."""
    rule: str
    """How the ids follow from the data."""


class CardPreprocess(CardModel):
    """What the plan does to the stored values: cast, then value * scale + shift."""

    dtype: str
    """Type that the network sees."""
    scale: float = 1.0
    """Factor of each value."""
    shift: float = 0.0
    """What is added to the product."""
    channels: tuple[tuple[float, float], ...] = ()
    """Factor and summand of each channel of a picture, in place of `scale` and `shift`."""

    def made(self) -> Preprocess:
        """The same as the other rooms see it."""
        return Preprocess(self.dtype, self.scale, self.shift, self.channels)


class CardField(CardModel):
    """One column of the opened data set."""

    name: str
    role: Literal["input", "label"]
    shape: list[Annotated[int, Field(ge=1)]] = Field(default_factory=list)
    dtype: Literal["uint8", "int32", "int64", "float32", "float64"]
    axes: list[str] = Field(default_factory=list)
    classes: Annotated[int, Field(ge=1)] | None = None
    names: list[str] = Field(default_factory=list)
    vocabulary: str | None = None
    """The table that the values are ids of; it gives the number of classes."""
    preprocess: CardPreprocess | None = None
    columns: list[str] = Field(default_factory=list)
    """Names of the columns of a table that make this field, in order."""
    scaling: Literal["none", "mean_range"] = "none"
    """`mean_range`: (x - mean) / (max - min) over all rows of the table."""
    description: str = ""

    @model_validator(mode="after")
    def _names_fit(self) -> CardField:
        if self.names and self.classes != len(self.names):
            raise ValueError(
                f"field {self.name}: {len(self.names)} names for {self.classes} classes"
            )
        return self

    def spec(self) -> FieldSpec:
        """The field as the other rooms see it."""
        p = self.preprocess
        return FieldSpec(
            self.name,
            self.role,
            tuple(self.shape),
            self.dtype,
            tuple(self.axes),
            self.classes,
            tuple(self.names),
            p.made() if p else None,
            tuple(self.columns),
            vocabulary=self.vocabulary,
        )


class CardSplit(CardModel):
    """Where a split's rows come from."""

    samples: Annotated[int, Field(ge=1)]
    files: dict[str, str]
    """Card file by field name, or under `table` or `archive` the one file that holds all fields."""
    rows: tuple[int, int] | None = None
    """First row and the row behind the last one; all rows, if left out."""


class Normalise(CardModel):
    """MNIST's normalisation of a digit: the ink fits a square of `box` pixels, its centre of mass
    is in the middle."""

    box: Annotated[int, Field(ge=1)]
    centre: Literal["mass"] = "mass"


class PredictField(CardModel):
    """How a field comes from a column of the user's own input."""

    column: str
    """Name of the column."""
    transforms: list[str | dict[str, Any]]
    """From its text to the field's values; `vocabulary` means the field's own."""


class Unit(CardModel):
    """A number that users know better than the one that is predicted: prediction * scale + shift."""

    name: str
    scale: float = 1.0
    """Factor of the prediction."""
    shift: float = 0.0
    """What is added to the product."""


class Predict(CardModel):
    """How `predict` reads one input (see `data/inputs.py`)."""

    kind: Literal["image", "table", "values", "fields"] = "values"
    columns: list[str] | None = None
    """`fields`: the parts of a line, which tabs separate; `label` may be left out of a line."""
    fields: dict[str, PredictField] | None = None
    """`fields`: what is made of the columns."""
    unit: Unit | None = None
    """What the prediction is in the user's own unit."""
    ink: Literal["light", "dark"] | None = None
    """Which of the two the pictures have; pictures of the other kind are inverted."""
    normalise: Normalise | None = None


class Card(CardModel):
    """A whole data set."""

    name: str
    title: str
    description: str
    licence: str
    citation: str
    homepage: str | None = None
    reader: str | None
    """None: the files can be fetched and checked, nothing here reads them."""
    original_cache: str | None = None
    """Folder under ~/.cache/paddle/dataset in which the original kept the same files."""
    sources: list[AnySource] = Field(default_factory=list)
    files: list[CardFile] = Field(default_factory=list)
    fields: list[CardField] = Field(default_factory=list)
    other_fields: dict[str, list[CardField]] = Field(default_factory=dict)
    """Fields under another `mode` of the reader."""
    vocabularies: dict[str, CardVocabulary] = Field(default_factory=dict)
    splits: dict[str, CardSplit] = Field(default_factory=dict)
    notes: dict[str, str] = Field(default_factory=dict)
    """What a user should know, by subject."""
    predict: Predict = Predict()
    """How `predict` reads one input."""
    generated: bool = False

    @model_validator(mode="after")
    def _references(self) -> Card:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"name {self.name!r}: small letters, digits and underscores only")
        known = {f.name for f in self.files}
        named = {
            (f"split {split}", file)
            for split, s in self.splits.items()
            for file in s.files.values()
        }
        named |= {
            (f"source {n}", file) for n, s in enumerate(self.sources, 1) for file in s.files or ()
        }
        for where, file in sorted(named):
            if file not in known:
                raise ValueError(f"{where} names the file {file}, which the card does not list")
        every = [*self.fields, *(f for fields in self.other_fields.values() for f in fields)]
        for field in every:
            if field.vocabulary is not None and field.vocabulary not in self.vocabularies:
                raise ValueError(
                    f"field {field.name}: no vocabulary {field.vocabulary} in the card"
                )
        return self

    def file(self, name: str) -> CardFile:
        """The file of that name.

        Raises:
            DataError: the card has no such file.
        """
        for file in self.files:
            if file.name == name:
                return file
        raise DataError(
            f"data set {self.name} has no file {name}; "
            f"it has {', '.join(f.name for f in self.files)}"
        )

    def sources_of(self, file: CardFile) -> list[UrlSource | EmbeddedSource | PackageSource]:
        """Sources that have the file, in order."""
        return [s for s in self.sources if s.files is None or file.name in s.files]

    def sizes(self) -> dict[str, int | None]:
        """Rows per split."""
        return {name: split.samples for name, split in self.splits.items()}

    def specs(
        self, mode: str | None = None, sizes: Mapping[str, int] | None = None
    ) -> list[FieldSpec]:
        """The fields as the other rooms see them.

        Args:
            mode: the reader's mode; None for the usual fields.
            sizes: entries of the vocabularies where they are not the card's.
        """
        known = {name: v.size for name, v in self.vocabularies.items()} | dict(sizes or {})
        fields = self.fields if mode is None else self.other_fields.get(mode, self.fields)
        return [
            replace(f.spec(), classes=known[f.vocabulary]) if f.vocabulary else f.spec()
            for f in fields
        ]


def read_card(path: Path) -> Card:
    """The card in a YAML file.

    Raises:
        ConfigError: lists every fault with file, line and column.
    """
    try:
        tree, faults = parse_file(path, "card")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    if tree is None:
        raise ConfigError.of(faults, str(path))
    try:
        return Card.model_validate_json(json.dumps(tree.plain()))
    except ValidationError as error:
        raise ConfigError.of(
            [_fault(e, tree) for e in error.errors(include_url=False)], str(path)
        ) from None


def own_card(path: Path) -> Card:
    """A user's card: files that are embedded lie beside it. Raises as `read_card`."""
    card, folder = read_card(path), path.parent.resolve()
    sources = [
        s.model_copy(update={"path": str(folder / s.path)}) if isinstance(s, EmbeddedSource) else s
        for s in card.sources
    ]
    return card.model_copy(update={"sources": sources})


def _fault(error: Any, tree: Node) -> Fault:
    """Where in the card a validation error is; names of union branches in its path are passed
    over."""
    node, path = tree, []
    for part in error["loc"]:
        below = node.child(part)
        if below is not None:
            node = below
            path.append(part)
    unknown = error["type"] == "extra_forbidden"
    origin = node.key if unknown and node.key is not None else node.origin
    message = (
        f"unknown key `{error['loc'][-1]}`"
        if unknown
        else error["msg"].removeprefix("Value error, ")
    )
    missing = f": `{error['loc'][-1]}`" if error["type"] == "missing" else ""
    return Fault(message + missing, origin.where(tuple(path)))


@cache
def shipped(name: str) -> Card:
    """The card that ships under this name.

    Raises:
        ConfigError: no such card, or a faulty one.
    """
    path = assets.find("datasets", name)
    if path is None:
        raise ConfigError(f"unknown data set `{name}`")
    card = read_card(path)
    if card.name != name:
        raise ConfigError(f"{path}: the card calls itself {card.name}")
    return card


def reader_function(card: Card) -> Callable[..., Reader]:
    """What makes the reader of a card.

    Raises:
        ConfigError: nothing here reads the data set, or the reader's name is unknown.
    """
    if card.reader is None:
        raise ConfigError(
            f"nothing in paddlecli reads the data set {card.name}; its files can be fetched, "
            f"imported and verified",
            hint=f"paddlecli dataset info {card.name} says what is in them",
        )
    module = f"paddlecli.data.readers.{card.reader}"
    if card.reader.isidentifier() and importlib.util.find_spec(module) is not None:
        importlib.import_module(module)  # the registry would import all of them
    return READERS.get(card.reader).function


class Offer:
    """A card in the registry of data sets. It is read when it is used, not when it is listed.

    Calling it with the recipe's arguments gives the reader; signature and type hints are those of
    the reader, so the registry checks a recipe's arguments against them.
    """

    def __init__(self, card: Callable[[], Card]) -> None:
        self._card = card

    @cached_property
    def card(self) -> Card:
        """The card."""
        return self._card()

    @cached_property
    def _reader(self) -> Callable[..., Reader]:
        return reader_function(self.card)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self._reader)

    @property
    def __annotations__(self) -> dict[str, Any]:  # type: ignore[override]
        function: Any = self._reader
        return typing.get_type_hints(
            function.__init__ if inspect.isclass(function) else function, include_extras=True
        )

    def __call__(self, **arguments: Any) -> Reader:
        return self._reader(self.card, **arguments)


@DATASETS.provider(lambda: assets.names("datasets"))
def _offer(name: str) -> Offer | None:
    """A shipped card, or one in a file."""
    if assets.is_path(name):
        return Offer(partial(own_card, Path(name)))
    return Offer(partial(shipped, name)) if name in assets.names("datasets") else None
