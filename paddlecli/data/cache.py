"""Where data files lie, and what is known to be right about them. Never touches the network.

<cache>/datasets/<data set>/<file>            complete, checked when it got this name
                           /<file>.part       an unfinished download; it is resumed
                           /<file>.bad        arrived whole, but with the wrong content
<cache>/packages/<wheel>                      while its members are taken
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import os
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from paddlecli import assets, settings
from paddlecli.data.cards import Card, CardFile
from paddlecli.errors import DataError, PaddleCliError, ResourceError

_CHUNK = 1 << 20
_ORIGINAL = "~/.cache/paddle/dataset"
_FULL_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}

Form = Literal["file", "content"]


class Readable(Protocol):
    """What bytes are copied from."""

    def read(self, count: int, /) -> bytes:
        """At most `count` bytes; none at the end."""


@dataclass(frozen=True)
class Wanted:
    """What a stored file must be: the file as published (`file`) or its uncompressed `content`."""

    form: Form
    name: str
    size: int
    sha256: str
    magic: bytes = b""

    @classmethod
    def of(cls, file: CardFile) -> list[Wanted]:
        """The forms that are accepted for a card's file, the published one first."""
        forms = [cls("file", file.name, file.bytes, file.sha256, bytes.fromhex(file.magic))]
        if file.content:
            forms.append(cls("content", file.content.name, file.content.bytes, file.content.sha256))
        return forms


@dataclass(frozen=True)
class Found:
    """A file on this machine and where it was found."""

    path: Path
    wanted: Wanted
    place: Literal["cache", "package", "original cache"]


@dataclass(frozen=True)
class FileState:
    """The result of checking one file of a data set."""

    file: str
    path: Path | None
    state: Literal["ok", "missing", "wrong"]
    expected: str
    found: str | None = None


def folder(card: Card) -> Path:
    """The folder of a data set; it need not exist."""
    return settings.cache_dir() / "datasets" / card.name


def sha256_of(path: Path) -> str:
    """sha256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def find(card: Card, file: CardFile) -> Found | None:
    """The file if it is on this machine: embedded, in the cache, or in the original's cache with
    the right hash."""
    for source in card.sources_of(file):
        if source.kind == "embedded":
            return Found(assets.directory("datasets") / source.path, Wanted.of(file)[0], "package")
    for wanted in Wanted.of(file):
        path = folder(card) / wanted.name
        if path.is_file():
            _check_size(card, path, wanted)
            return Found(path, wanted, "cache")
    return find_original(card, file)


def _check_size(card: Card, path: Path, wanted: Wanted) -> None:
    """Files were checked when they were stored; a wrong length shows that one was changed since."""
    size = path.stat().st_size
    if size != wanted.size:
        raise DataError(
            f"{path}: has {size} bytes, not {wanted.size}: it was cut off or changed",
            hint=f"paddlecli dataset download {card.name} --force",
        )


def find_original(card: Card, file: CardFile) -> Found | None:
    """The file in the original's own cache, if its hash is right."""
    if card.original_cache is None:
        return None
    path = Path(_ORIGINAL).expanduser() / card.original_cache / file.name
    wanted = Wanted.of(file)[0]
    try:
        fits = (
            path.is_file()
            and path.stat().st_size == wanted.size
            and sha256_of(path) == wanted.sha256
        )
    except OSError:
        return None
    return Found(path, wanted, "original cache") if fits else None


def locate(card: Card) -> dict[str, Path]:
    """Path by file name for all files of a data set.

    Raises:
        DataError: some are not on this machine; says which command fetches them.
    """
    found = {file.name: find(card, file) for file in card.files}
    missing = [name for name, f in found.items() if f is None]
    if missing:
        raise DataError(
            f"data set {card.name} is not on this machine: {', '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} missing in {folder(card)}",
            hint=f"paddlecli dataset download {card.name}",
        )
    return {name: f.path for name, f in found.items() if f is not None}


def check(card: Card, file: CardFile) -> FileState:
    """Reads the whole file and compares its hash."""
    expected = Wanted.of(file)[0].sha256
    try:
        found = find(card, file)
    except DataError:
        found = None
        for wanted in Wanted.of(file):
            path = folder(card) / wanted.name
            if path.is_file():
                return FileState(file.name, path, "wrong", wanted.sha256, sha256_of(path))
    if found is None:
        return FileState(file.name, None, "missing", expected)
    digest = sha256_of(found.path)
    state: Literal["ok", "wrong"] = "ok" if digest == found.wanted.sha256 else "wrong"
    return FileState(file.name, found.path, state, found.wanted.sha256, digest)


def identify(path: Path, card: Card) -> tuple[CardFile, Wanted] | None:
    """Which file of the card the bytes at `path` are, whatever its name."""
    size = path.stat().st_size
    candidates = [(f, w) for f in card.files for w in Wanted.of(f) if w.size == size]
    if not candidates:
        return None
    digest = sha256_of(path)
    return next(((f, w) for f, w in candidates if w.sha256 == digest), None)


def unpacked_digest(path: Path, limit: int) -> str | None:
    """sha256 of what a gzip file holds, None if it is no whole gzip file or holds more than `limit`
    bytes."""
    digest, size = hashlib.sha256(), 0
    try:
        with gzip.open(path, "rb") as stream:
            while chunk := stream.read(_CHUNK):
                size += len(chunk)
                if size > limit:
                    return None
                digest.update(chunk)
    except (OSError, EOFError, zlib.error):
        return None
    return digest.hexdigest()


def store(source: Readable, target: Path, wanted: Wanted, origin: str) -> Path:
    """Copies a stream to `target`, which appears only when length and hash are right.

    Raises:
        DataError: the content is not what is wanted; `origin` names where it came from.
        ResourceError: no room, or the folder cannot be written.
    """
    digest, size = hashlib.sha256(), 0
    with writing(target.parent):
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        try:
            with temporary.open("wb") as out:
                while chunk := source.read(_CHUNK):
                    size += len(chunk)
                    if size > wanted.size:
                        break
                    digest.update(chunk)
                    out.write(chunk)
                out.flush()
                os.fsync(out.fileno())
            _check_stored(size, digest.hexdigest(), wanted, origin)
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    return target


def _check_stored(size: int, digest: str, wanted: Wanted, origin: str) -> None:
    if size != wanted.size:
        raise DataError(
            f"{origin}: has {'more than ' if size > wanted.size else ''}"
            f"{min(size, wanted.size)} bytes, not {wanted.size}"
        )
    if digest != wanted.sha256:
        raise DataError(f"{origin}: sha256 is {digest}, not {wanted.sha256}")


@contextmanager
def writing(place: Path) -> Iterator[None]:
    """Turns the operating system's refusals into errors that say what to do."""
    try:
        yield
    except OSError as error:
        raise disk_error(error, place) from None


def disk_error(error: OSError, place: Path) -> PaddleCliError:
    """The user's error for a refusal of the file system."""
    if error.errno in _FULL_DISK:
        free = shutil.disk_usage(_existing(place)).free
        return ResourceError(
            f"{place}: no room left ({free / 1e6:.0f} MB free)",
            hint="make room, or set PADDLECLI_CACHE_DIR to a larger disk",
        )
    return ResourceError(
        f"{place}: cannot be written: {error.strerror or error}",
        hint="set PADDLECLI_CACHE_DIR to a folder that you may write to",
    )


def _existing(path: Path) -> Path:
    while not path.exists() and path != path.parent:
        path = path.parent
    return path
