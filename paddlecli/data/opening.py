"""The two questions that the engine asks of a data set: what is it, and give it to me."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paddlecli import assets
from paddlecli.config.registry import DATASETS, READERS
from paddlecli.data import cache
from paddlecli.data.cards import read_card
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
        card = read_card(Path(name).expanduser())
        reader: Reader = READERS.get(card.reader).function(
            card, **READERS.bind(card.reader, args or {})
        )
        return reader
    found: Reader = DATASETS.get(name).function(**DATASETS.bind(name, args or {}))
    return found


def describe(name: str, args: Mapping[str, Any] | None = None) -> DatasetSpec:
    """Fields, types, classes and sizes of a data set. Opens no file and downloads nothing."""
    return reader_of(name, args).describe()


def open_dataset(name: str, args: Mapping[str, Any] | None = None) -> Dataset:
    """The data set in memory.

    Raises:
        ConfigError: see `reader_of`.
        DataError: files are missing (says which command fetches them), damaged, foreign, or hold
            values out of
            range.
    """
    reader = reader_of(name, args)
    files = cache.locate(reader.card)
    try:
        return reader.open(files)
    except DataError as error:
        if error.hint is None and reader.card.files:
            error.hint = f"paddlecli dataset verify {reader.card.name}"
        raise
