"""The two questions that the engine asks of a data set: what is it, and give it to me."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paddlecli import assets
from paddlecli.config.registry import DATASETS, READERS
from paddlecli.data.cards import own_card, reader_function
from paddlecli.data.fetching import cache, glance
from paddlecli.data.readers.base import Reader
from paddlecli.data.spec import DatasetSpec
from paddlecli.errors import DataError

if TYPE_CHECKING:
    from paddlecli.data.columns import Dataset


def reader_of(name: str, args: Mapping[str, Any] | None = None) -> Reader:
    """The reader of a data set with its arguments checked.

    Args:
        name: a shipped or registered name, or the path of a card (`./my.yaml`).
        args: the recipe's keys beside `data.name`.

    Raises:
        ConfigError: unknown name, faulty card, unknown or wrong argument.
    """
    if assets.is_path(name):
        card = own_card(Path(name).expanduser())
        make = reader_function(card)
        reader: Reader = make(card, **READERS.bind(card.reader or "", args or {}))
        return reader
    found: Reader = DATASETS.get(name).function(**DATASETS.bind(name, args or {}))
    return found


def describe(name: str, args: Mapping[str, Any] | None = None) -> DatasetSpec:
    """Fields, types, classes and sizes of a data set. Downloads nothing.

    No file is opened unless the answer depends on it: with other settings than the card's numbers
    belong to, or where the files on this machine are not the published ones.
    """
    reader = reader_of(name, args)
    if reader.standard() and not glance.altered(reader.card.model_dump()):
        return reader.describe()
    return open_with(reader).spec


def open_dataset(
    name: str, args: Mapping[str, Any] | None = None, frozen: Mapping[str, Any] | None = None
) -> Dataset:
    """The data set in memory.

    Args:
        name, args: see `reader_of`.
        frozen: the `preprocessing` of a trained model: a user's own files are read with its scales,
            categories and vocabularies instead of those of the train rows.

    Raises:
        ConfigError: see `reader_of`.
        DataError: files are missing (says which command fetches them), damaged, foreign, or hold
            values out of
            range.
    """
    reader = reader_of(name, args)
    if frozen is not None:
        reader.freeze(frozen)
    return open_with(reader)


def open_with(reader: Reader) -> Dataset:
    """The data set of a reader, in memory (see `open_dataset`)."""
    card, found = reader.card, cache.present(reader.card)
    try:
        made = reader.load(found)
    except DataError as error:
        if error.hint is None and card.files:
            error.hint = f"paddlecli dataset verify {card.name}"
        raise
    odd = [name for name, f in found.items() if not f.wanted.official]
    if odd:
        remark = f"{card.name} is an unofficial copy: {cache.reasons(card, odd)}"
        made.spec = replace(made.spec, unofficial=True, remarks=(remark, *made.spec.remarks))
    return made
