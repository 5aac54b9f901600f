"""What `paddlecli dataset` does, as plain functions that return plain data. No numpy."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from paddlecli import assets
from paddlecli.config.registry import DATASETS
from paddlecli.data import cache
from paddlecli.data.cache import FileState, Found, Wanted
from paddlecli.data.cards import Card, CardFile, Offer, read_card
from paddlecli.errors import ConfigError, DataError


def card_of(name: str) -> Card:
    """The card of a shipped data set, or the card at a path.

    Raises:
        ConfigError: unknown name, faulty card, or a data set that is code and has no card.
    """
    if assets.is_path(name):
        return read_card(Path(name).expanduser())
    offer = DATASETS.get(name).function
    if not isinstance(offer, Offer):
        raise ConfigError(f"the data set `{name}` is made by code and has no files")
    return offer.card


def cards() -> list[Card]:
    """All cards that ship, by name."""
    return [card_of(name) for name in assets.names("datasets")]


def state(card: Card) -> str:
    """`generated`, `embedded`, `ready`, `partly` or `missing`; looks at names and lengths only."""
    if card.generated:
        return "generated"
    found = [_find(card, file) for file in card.files]
    places = {f.place for f in found if f is not None}
    if None not in found:
        return "embedded" if places == {"package"} else "ready"
    return "partly" if places else "missing"


def _find(card: Card, file: CardFile) -> Found | None:
    try:
        return cache.find(card, file)
    except DataError:
        return None


def summary(card: Card) -> dict[str, Any]:
    """The line of `dataset list`."""
    return {
        "name": card.name,
        "title": card.title,
        "state": state(card),
        "bytes": sum(f.bytes for f in card.files),
        "splits": card.sizes(),
    }


def details(card: Card) -> dict[str, Any]:
    """All that the card says, and where its files are."""
    plain = card.model_dump(mode="json", exclude_none=True)
    for entry in plain["files"]:
        found = _find(card, card.file(entry["name"]))
        entry["path"] = str(found.path) if found else None
    return {**plain, "state": state(card), "folder": str(place(card))}


def place(card: Card) -> Path:
    """The folder in which the files of a data set are, or will be."""
    found = [f for file in card.files if (f := _find(card, file)) is not None]
    if found and all(f.place == "package" for f in found):
        return found[0].path.parent
    return cache.folder(card)


def verify(card: Card) -> list[FileState]:
    """Reads every file whole and compares its hash with the card's."""
    return [cache.check(card, file) for file in card.files]


def bring_in(card: Card, path: Path) -> dict[str, Path]:
    """Takes files that were obtained by hand: a file, or a folder that is searched.

    Files are known by their content, not by their name; a file that was compressed anew is as good
    as the published one. Other files of a folder are passed over.

    Returns:
        The stored path by the card's file name.

    Raises:
        DataError: nothing there belongs to the data set; shows the hashes.
        ResourceError: the cache cannot be written.
    """
    if not path.exists():
        raise DataError(f"{path}: no such file or folder")
    candidates = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    stored: dict[str, Path] = {}
    for candidate in candidates:
        found = cache.identify(candidate, card)
        if found is not None:
            with candidate.open("rb") as stream:
                file, wanted = found
                stored[file.name] = cache.store(
                    stream, cache.folder(card) / wanted.name, wanted, str(candidate)
                )
        elif (repacked := _repacked(candidate, card.files)) is not None:
            with gzip.open(candidate, "rb") as unpacked:
                file, wanted = repacked
                stored[file.name] = cache.store(
                    unpacked, cache.folder(card) / wanted.name, wanted, str(candidate)
                )
    if not stored:
        raise DataError(_foreign(card, path, candidates))
    return stored


def _repacked(path: Path, files: Iterable[CardFile]) -> tuple[CardFile, Wanted] | None:
    contents = [(f, w) for f in files for w in Wanted.of(f) if w.form == "content"]
    if not contents:
        return None
    digest = cache.unpacked_digest(path, max(w.size for _, w in contents))
    return next(((f, w) for f, w in contents if w.sha256 == digest), None)


def _foreign(card: Card, path: Path, candidates: list[Path]) -> str:
    lines = [f"{path}: holds no file of the data set {card.name}"]
    for candidate in candidates[:10]:
        size, digest = candidate.stat().st_size, cache.sha256_of(candidate)
        lines.append(f"  {candidate.name}: {size} bytes, sha256 {digest}")
    lines += [f"  wanted: {f.name}: {f.bytes} bytes, sha256 {f.sha256}" for f in card.files]
    return "\n".join(lines)
