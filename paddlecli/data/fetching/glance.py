"""What is here of a data set, by names and records alone: no file of data is opened, and the schema
of cards is not loaded. `dataset list` needs no more.

<cache>/datasets/<data set>/imported.json says what was taken by hand:

    {"schema": 1, "files": {<file>: {origin, bytes, sha256, official, reason}}}
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from paddlecli import assets, settings
from paddlecli.errors import DataError

IMPORTED = "imported"
_ORIGINAL = "~/.cache/paddle/dataset"
Place = Literal[
    "package", "cache", "stand-in", "imported", "unofficial", "original cache", "missing"
]


@dataclass(frozen=True)
class Imported:
    """A file that was taken by hand and is not, byte for byte, the published one.

    `official`: the members that the reader uses are the published ones. `reason` says how that was
    found out, or what is different.
    """

    origin: str
    bytes: int
    sha256: str
    official: bool
    reason: str


def folder_of(name: str) -> Path:
    """The folder of a data set in the cache; it need not exist."""
    return settings.cache_dir() / "datasets" / name


def imported(name: str) -> dict[str, Imported]:
    """What was taken by hand of a data set, by the card's file name.

    Raises:
        DataError: the record of it is damaged.
    """
    path = folder_of(name) / f"{IMPORTED}.json"
    try:
        plain = json.loads(path.read_text("utf-8"))
        return {file: Imported(**entry) for file, entry in plain["files"].items()}
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise DataError(
            f"{path}: damaged", hint=f"remove it, then paddlecli dataset import {name} FILE"
        ) from None


def original_path(folder: str | None, name: str) -> Path | None:
    """Where the original's own cache has a file; None for sets that it never had."""
    return None if folder is None else Path(_ORIGINAL).expanduser() / folder / name


@dataclass(frozen=True)
class Names:
    """The names under which a card's file may lie here."""

    file: str
    needed: bool
    stored: tuple[str, ...]
    stand_ins: tuple[str, ...]
    embedded: bool
    original: Path | None

    @classmethod
    def of(cls, card: Mapping[str, Any]) -> list[Names]:
        """Those of every file of a card, which is given as plain data."""
        embedded: set[str] = set()
        every = [str(f["name"]) for f in card.get("files") or ()]
        for source in card.get("sources") or ():
            if source["kind"] == "embedded":
                embedded |= set(source.get("files") or every)
        return [cls._one(card, f, embedded) for f in card.get("files") or ()]

    @classmethod
    def _one(cls, card: Mapping[str, Any], file: Mapping[str, Any], embedded: set[str]) -> Names:
        name, content = str(file["name"]), file.get("content")
        return cls(
            name,
            bool(file.get("needed", True)),
            (name, str(content["name"])) if content else (name,),
            tuple(str(other["name"]) for other in file.get("stand_ins") or ()),
            name in embedded,
            original_path(card.get("original_cache"), file.get("cached_as") or name),
        )

    def place(self, folder: Path, known: Mapping[str, Imported]) -> Place:
        """Where the file is; `known` is what `imported` gave."""
        if self.embedded:
            return "package"
        if any((folder / name).is_file() for name in self.stored):
            return "cache"
        if any((folder / name).is_file() for name in self.stand_ins):
            return "stand-in"
        if self.file in known and (folder / IMPORTED / self.file).is_file():
            return "imported" if known[self.file].official else "unofficial"
        return "original cache" if self.original and self.original.is_file() else "missing"


def places(card: Mapping[str, Any]) -> dict[Names, Place]:
    """Where every file of a card is."""
    name = str(card["name"])
    known, folder = imported(name), folder_of(name)
    return {names: names.place(folder, known) for names in Names.of(card)}


def state(card: Mapping[str, Any]) -> str:
    """`generated`, `embedded`, `ready`, `unofficial`, `partly` or `missing`. Files that a data set
    can do without do not count."""
    if card.get("generated"):
        return "generated"
    found = {place for names, place in places(card).items() if names.needed}
    if "missing" in found:
        return "partly" if len(found) > 1 else "missing"
    if "unofficial" in found:
        return "unofficial"
    return "embedded" if found == {"package"} else "ready"


def altered(card: Mapping[str, Any]) -> bool:
    """True if what is on this machine can be read but may have other numbers than the card: a file
    was taken by hand and is another one, something stands in for one, or one that can be done
    without is missing."""
    found = places(card)
    if any(place == "missing" for names, place in found.items() if names.needed):
        return False
    return any(place in ("missing", "stand-in", "unofficial") for place in found.values())


def summary(card: Mapping[str, Any]) -> dict[str, Any]:
    """The line of `dataset list`."""
    sizes: Sequence[int | None] = [f.get("bytes") for f in card.get("files") or ()]
    return {
        "name": card["name"],
        "title": card["title"],
        "state": state(card),
        "bytes": sum(size or 0 for size in sizes),
        "bytes_known": None not in sizes,
        "splits": {name: s["samples"] for name, s in (card.get("splits") or {}).items()},
    }


FORMATS = (
    "conll", "csv", "idx", "image_folder", "jsonl", "npy", "npz", "parquet", "text_folder",
    "text_lines", "text_pairs", "tsv",
)  # fmt: skip
"""Formats of users' own files: a recipe names one where it would name a data set."""


def summaries() -> list[dict[str, Any]]:
    """The lines of all cards that ship, by name."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    found = []
    for name in assets.names("datasets"):
        path = assets.find("datasets", name)
        if path is not None:
            found.append(summary(yaml.load(path.read_text("utf-8"), loader)))
    return found
