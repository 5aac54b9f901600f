"""What `paddlecli dataset` does, as plain functions that return plain data. No numpy."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from paddlecli import assets, settings
from paddlecli.config.registry import DATASETS
from paddlecli.data.card_files import CardFile
from paddlecli.data.cards import Card, Offer, own_card
from paddlecli.data.fetching import cache, glance
from paddlecli.data.fetching.cache import FileState, Found
from paddlecli.errors import ConfigError, DataError


def card_of(name: str) -> Card:
    """The card of a shipped data set, or the card at a path.

    Raises:
        ConfigError: unknown name, faulty card, or a data set that is code and has no card.
    """
    if assets.is_path(name):
        return own_card(Path(name).expanduser())
    offer = DATASETS.get(name).function
    if not isinstance(offer, Offer):
        raise ConfigError(f"the data set `{name}` is made by code and has no files")
    return offer.card


def is_format(name: str) -> bool:
    """Whether the name is that of a format of a user's own files, which has no card."""
    return not assets.is_path(name) and not isinstance(DATASETS.get(name).function, Offer)


def cards() -> list[Card]:
    """All cards that ship, by name."""
    return [card_of(name) for name in assets.names("datasets")]


def _find(card: Card, file: CardFile) -> Found | None:
    try:
        return cache.find(card, file)
    except DataError:
        return None


def details(card: Card) -> dict[str, Any]:
    """All that the card says, and where its files are."""
    plain = card.model_dump(mode="json", exclude_none=True)
    for entry in plain["files"]:
        found = _find(card, card.file(entry["name"]))
        entry["path"] = str(found.path) if found else None
        for known in ("bytes", "sha256", "md5"):
            entry.setdefault(known, None)
    taken = [
        f"{file} is {'' if entry.official else 'UNOFFICIAL: '}{entry.origin} ({entry.reason})"
        for file, entry in glance.imported(card.name).items()
    ]
    return {**plain, "state": glance.state(plain), "folder": str(place(card)), "imported": taken}


def place(card: Card) -> Path:
    """The folder in which the files of a data set are, or will be."""
    found = [f for file in card.files if (f := _find(card, file)) is not None]
    if found and all(f.place == "package" for f in found):
        return found[0].path.parent
    return cache.folder(card)


def verify(card: Card) -> list[FileState]:
    """Reads every file whole and compares its hash with the card's."""
    return [cache.check(card, file) for file in card.files]


def stats(name: str) -> dict[str, Any]:
    """Rows by split and entries by vocabulary, counted in the data, with the card's own settings.

    Raises:
        DataError: the data are not on this machine, or damaged.
    """
    from paddlecli.data.opening import open_dataset

    data = open_dataset(name)
    return {
        "name": data.spec.name,
        "unofficial": data.spec.unofficial,
        "splits": {split: {"samples": len(part)} for split, part in data.splits.items()},
        "vocabularies": {key: {"size": len(v)} for key, v in data.vocabularies.items()},
    }


def remove(card: Card, *, prepared_only: bool = False) -> tuple[list[Path], int]:
    """Deletes what the cache holds of a data set, or only the columns that were made of it.

    Returns:
        The folders that are gone, and how many bytes they held.

    Raises:
        ResourceError: the cache cannot be written.
    """
    folders = [settings.cache_dir() / "prepared" / card.name]
    if not prepared_only:
        folders.append(cache.folder(card))
    gone, size = [], 0
    for folder in folders:
        if folder.is_dir():
            size += sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())
            with cache.writing(folder):
                shutil.rmtree(folder)
            gone.append(folder)
    return gone, size
