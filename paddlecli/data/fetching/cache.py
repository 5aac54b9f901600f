"""Where data files lie, and what is known to be right about them. Never touches the network.

<cache>/datasets/<data set>/<file>            complete, checked when it got this name
                           /<file>.part       an unfinished download; it is resumed
                           /<file>.bad        arrived whole, but with the wrong content
                           /imported/<file>   taken by hand: other content, or packed otherwise
                           /imported.json     what those are and where they came from
<cache>/prepared/<data set>/<key>/            columns made of the files (see `prepared.py`)
<cache>/packages/<wheel>                      while its members are taken
"""

from __future__ import annotations

import errno
import gzip
import json
import os
import shutil
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from paddlecli import assets
from paddlecli.data.card_files import CardFile
from paddlecli.data.cards import Card
from paddlecli.data.fetching import glance
from paddlecli.data.fetching.digests import Digest
from paddlecli.data.fetching.glance import IMPORTED, Imported
from paddlecli.errors import DataError, PaddleCliError, ResourceError

_CHUNK = 1 << 20
_FULL_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}

Form = Literal["file", "content", "stand-in", "imported"]


class Readable(Protocol):
    """What bytes are copied from."""

    def read(self, count: int, /) -> bytes:
        """At most `count` bytes; none at the end."""


@dataclass(frozen=True)
class Wanted:
    """What a stored file must be: the file as published (`file`), its uncompressed `content`, a
    `stand-in` that the card names, or what was taken by hand (`imported`). `size` None: unknown."""

    form: Form
    name: str
    size: int | None
    digest: Digest
    magic: bytes = b""
    official: bool = True

    @classmethod
    def of(cls, file: CardFile) -> list[Wanted]:
        """The forms that are accepted for a card's file, the published one first."""
        forms = [cls("file", file.name, file.bytes, file.digest, bytes.fromhex(file.magic))]
        if c := file.content:
            forms.append(cls("content", c.name, c.bytes, Digest("sha256", c.sha256)))
        for other in file.stand_ins:
            digest = Digest("sha256", other.sha256)
            forms.append(cls("stand-in", other.name, other.bytes, digest))
        return forms

    def fault(self, size: int, digest: str) -> str | None:
        """What is wrong with a file of this length and checksum, None if nothing is."""
        if self.size is not None and size != self.size:
            return f"has {size} bytes, not {self.size}"
        if digest != self.digest.value:
            return f"{self.digest.algorithm} is {digest}, not {self.digest.value}"
        return None


@dataclass(frozen=True)
class Found:
    """A file on this machine and where it was found."""

    path: Path
    wanted: Wanted
    place: Literal["cache", "package", "original cache", "imported"]


@dataclass(frozen=True)
class FileState:
    """The result of checking one file of a data set."""

    file: str
    path: Path | None
    state: Literal["ok", "missing", "wrong", "unofficial", "absent"]
    """`absent`: missing, but the data set can do without."""
    expected: str
    found: str | None = None
    algorithm: str = "sha256"


def folder(card: Card) -> Path:
    """The folder of a data set; it need not exist."""
    return glance.folder_of(card.name)


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
    return _find_imported(card, file) or find_original(card, file)


def _find_imported(card: Card, file: CardFile) -> Found | None:
    known = glance.imported(card.name).get(file.name)
    path = folder(card) / IMPORTED / file.name
    if known is None or not path.is_file():
        return None
    name, digest = f"{IMPORTED}/{file.name}", Digest("sha256", known.sha256)
    wanted = Wanted("imported", name, known.bytes, digest, official=known.official)
    _check_size(card, path, wanted)
    return Found(path, wanted, "imported")


def _check_size(card: Card, path: Path, wanted: Wanted) -> None:
    """Files were checked when they were stored; a wrong length shows that one was changed since."""
    size = path.stat().st_size
    if wanted.size is not None and size != wanted.size:
        again = "import" if wanted.form == "imported" else "download"
        raise DataError(
            f"{path}: has {size} bytes, not {wanted.size}: it was cut off or changed",
            hint=f"paddlecli dataset {again} {card.name} "
            f"{'FILE' if again == 'import' else '--force'}",
        )


def reasons(card: Card, files: Iterable[str]) -> str:
    """Where the files that were taken by hand come from, in one line."""
    known, groups = glance.imported(card.name), dict[str, list[str]]()
    for name in files:
        origin = known[name].origin
        text = name if origin == name else f"{name} from {origin}"
        groups.setdefault(known[name].reason, []).append(text)
    return "; ".join(f"{', '.join(names)}: {reason}" for reason, names in groups.items())


def remember(card: Card, file: str, entry: Imported) -> None:
    """Writes down what was taken by hand. The caller holds the lock of the file."""
    known = {**glance.imported(card.name), file: entry}
    path = folder(card) / f"{IMPORTED}.json"
    plain: dict[str, Any] = {"schema": 1, "files": {k: vars(v) for k, v in known.items()}}
    with writing(path):
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        temporary.write_text(json.dumps(plain, indent=1) + "\n", encoding="utf-8")
        temporary.replace(path)


def find_original(card: Card, file: CardFile) -> Found | None:
    """The file in the original's own cache, if its hash is right."""
    path = glance.original_path(card.original_cache, file.cached_as or file.name)
    if path is None:
        return None
    wanted = Wanted.of(file)[0]
    try:
        fits = (
            path.is_file()
            and wanted.size in (None, path.stat().st_size)
            and wanted.digest.of_file(path) == wanted.digest.value
        )
    except OSError:
        return None
    return Found(path, wanted, "original cache") if fits else None


def present(card: Card) -> dict[str, Found]:
    """The files of a data set that can be read, by name; those that it can do without may be left
    out.

    Raises:
        DataError: some are not on this machine; says which command fetches them.
    """
    found = {file.name: find(card, file) for file in card.files}
    missing = [file.name for file in card.files if file.needed and found[file.name] is None]
    if missing:
        raise DataError(
            f"data set {card.name} is not on this machine: {', '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} missing in {folder(card)}",
            hint=f"paddlecli dataset download {card.name}",
        )
    return {name: f for name, f in found.items() if f is not None}


def locate(card: Card) -> dict[str, Path]:
    """Path by file name for the files of a data set (see `present`)."""
    return {name: found.path for name, found in present(card).items()}


def check(card: Card, file: CardFile) -> FileState:
    """Reads the whole file and compares its hash."""
    published = file.digest
    try:
        found = find(card, file)
    except DataError:
        found = None
        for wanted in Wanted.of(file):
            path = folder(card) / wanted.name
            if path.is_file():
                digest = wanted.digest
                return FileState(
                    file.name, path, "wrong", digest.value, digest.of_file(path), digest.algorithm
                )
    if found is None:
        state: Literal["missing", "absent"] = "missing" if file.needed else "absent"
        return FileState(file.name, None, state, published.value, None, published.algorithm)
    wanted, value = found.wanted, found.wanted.digest.of_file(found.path)
    if value != wanted.digest.value:
        how: Literal["ok", "wrong", "unofficial"] = "wrong"
    else:
        how = "ok" if wanted.official else "unofficial"
    return FileState(
        file.name, found.path, how, wanted.digest.value, value, wanted.digest.algorithm
    )


def identify(path: Path, card: Card) -> tuple[CardFile, Wanted] | None:
    """Which file of the card the bytes at `path` are, whatever its name."""
    size = path.stat().st_size
    known: dict[str, str] = {}
    for file in card.files:
        for wanted in Wanted.of(file):
            if wanted.size not in (None, size):
                continue
            algorithm = wanted.digest.algorithm
            if algorithm not in known:
                known[algorithm] = wanted.digest.of_file(path)
            if known[algorithm] == wanted.digest.value:
                return file, wanted
    return None


def unpacked_digest(path: Path, limit: int) -> str | None:
    """sha256 of what a gzip file holds, None if it is no whole gzip file or holds more than `limit`
    bytes."""
    digest, size = Digest("sha256", "").hasher(), 0
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
    digest, size = wanted.digest.hasher(), 0
    with writing(target.parent):
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        try:
            with temporary.open("wb") as out:
                while chunk := source.read(_CHUNK):
                    size += len(chunk)
                    if wanted.size is not None and size > wanted.size:
                        break
                    digest.update(chunk)
                    out.write(chunk)
                out.flush()
                os.fsync(out.fileno())
            fault = wanted.fault(size, digest.hexdigest())
            if fault is not None:
                raise DataError(f"{origin}: {fault}")
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    return target


@contextmanager
def writing(place: Path) -> Iterator[None]:
    """Turns the operating system's refusals into errors that say what to do."""
    try:
        yield
    except OSError as error:
        raise disk_error(error, place) from None


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """A lock between processes, at a path whose folder is made.

    Raises:
        ResourceError: the folder cannot be written.
    """
    from filelock import FileLock

    lock = FileLock(path)
    with writing(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


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
