"""Files that users bring by hand: what they are, whether they are the published data, and where they
are kept.

A file is known by its content. What is not, byte for byte, a published file is judged by what a
reader would use of it: an archive that was packed anew is as good as the published one if its
members are the published ones. Anything else is taken only as unofficial, and every data set, run
and display that uses it says so.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import tarfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from paddlecli.data.card_files import CardFile, Member
from paddlecli.data.cards import Card
from paddlecli.data.fetching import cache, digests
from paddlecli.data.fetching.cache import Wanted
from paddlecli.data.fetching.digests import Digest, sha256_of
from paddlecli.data.fetching.glance import IMPORTED, Imported
from paddlecli.data.formats.archives import is_archive, read_members
from paddlecli.errors import DataError

_SHOWN = 3


@dataclass(frozen=True)
class Taken:
    """A file that is now in the cache, and what is known about it. `path` None: there was one, but it
    is not the published one, so it was not taken."""

    file: str
    path: Path | None
    official: bool
    reason: str


@dataclass(frozen=True)
class Verdict:
    """What a file of the user's is: which of the card's files, and whether it is the published one.
    `found`: it is one of the card's forms, byte for byte."""

    path: Path
    file: CardFile
    official: bool
    reason: str
    found: Wanted | None = None


def bring_in(card: Card, path: Path, *, unofficial: bool = False) -> list[Taken]:
    """Takes a file, or what a folder holds of a data set. Other files of a folder are passed over.

    Args:
        card: the data set.
        path: a file; a folder with files; or a folder that is an unpacked archive.
        unofficial: take what is not the published data, and mark it.

    Raises:
        DataError: nothing there belongs to the data set, an archive is damaged or dangerous, it is not
            the published data and `unofficial` was not given, or it is not clear which is meant.
        ResourceError: the cache cannot be written.
    """
    if not path.exists():
        raise DataError(f"{path}: no such file or folder")
    candidates = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    verdicts = list(_verdicts(card, path, candidates))
    chosen = [v for file in card.files if (v := _choice(file, verdicts, unofficial)) is not None]
    odd = [
        v for v in verdicts if not v.official and v.file.name not in {c.file.name for c in chosen}
    ]
    if not chosen:
        raise DataError(*_refusal(card, path, candidates, odd))
    left = {v.file.name: Taken(v.file.name, None, False, v.reason) for v in odd}
    return [*(_take(card, verdict) for verdict in chosen), *left.values()]


def _verdicts(card: Card, path: Path, candidates: Sequence[Path]) -> Iterator[Verdict]:
    """What the candidates are; first by their checksums, then by their members or names."""
    known = set()
    for candidate in candidates:
        if (exact := _exact(card, candidate)) is not None:
            known.add(exact.file.name)
            yield exact
    if known == {f.name for f in card.files}:
        return
    archives = [f for f in card.files if f.members and f.name not in known]
    folder = [path] if path.is_dir() and _looks_unpacked(path, archives) else []
    for candidate in folder or candidates:
        if archives and is_archive(candidate):
            yield from (v for f in archives if (v := judge(candidate, f)) is not None)
        elif candidate.is_file():
            yield from _by_name(card, candidate, known)


def _exact(card: Card, path: Path) -> Verdict | None:
    found = cache.identify(path, card)
    if found is not None:
        return Verdict(path, found[0], True, "its checksum is the published one", found[1])
    contents = [(f, w) for f in card.files for w in Wanted.of(f) if w.form == "content"]
    if contents:
        digest = cache.unpacked_digest(path, max(w.size or 0 for _, w in contents))
        for file, wanted in contents:
            if wanted.digest.value == digest:
                return Verdict(path, file, True, "its content is the published one", wanted)
    return None


def _by_name(card: Card, path: Path, known: set[str]) -> Iterator[Verdict]:
    for file in card.files:
        names = {file.name, file.cached_as, file.content.name if file.content else None}
        if path.name in names and not file.members and file.name not in known:
            yield Verdict(path, file, False, "has the name, but not the published checksum")


def _looks_unpacked(path: Path, archives: Iterable[CardFile]) -> bool:
    for file in archives:
        wants = _wants(file)
        for p in path.rglob("*"):
            inside = p.relative_to(path).as_posix()
            if p.is_file() and (wants(inside) or wants(f"{path.resolve().name}/{inside}")):
                return True
    return False


def _wants(file: CardFile) -> Callable[[str], bool]:
    """Whether a member's name is one that the reader of a file uses."""
    patterns = [m.path for m in file.members] + ([file.also] if file.also else [])
    expression = re.compile("|".join(f"(?:{p})" for p in patterns))
    return lambda name: expression.fullmatch(name) is not None


# --- judging an archive ---


def judge(path: Path, file: CardFile) -> Verdict | None:
    """What an archive (or unpacked folder) is as `file`; None if it holds nothing of it.

    Raises:
        DataError: damaged, or one of the archives that are refused.
    """
    counts = [_Count(member) for member in file.members]
    others = re.compile(file.also) if file.also else None
    strange = 0
    for name, content in read_members(path, _wants(file), strict=True):
        fitting = [c for c in counts if c.takes(name, content)]
        strange += bool(not fitting and others is not None and others.fullmatch(name))
    faults = [f for c in counts if (f := c.fault()) is not None]
    if not any(c.found for c in counts):
        if not strange:
            return None
        return Verdict(path, file, False, f"another form of the data: {strange} files")
    if not faults and not any(c.unknown for c in counts):
        return Verdict(path, file, True, "packed anew; its members are the published ones")
    unknown = [c.member.label for c in counts if c.unknown]
    if unknown:
        faults.append(f"no checksum of {_listed(unknown)} is published")
    return Verdict(path, file, False, _listed(faults))


def _listed(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return ", ".join(texts[:_SHOWN]) + more


class _Count:
    """Compares the members under one pattern with what the card says about them."""

    def __init__(self, member: Member) -> None:
        self.member, self.expression = member, re.compile(member.path)
        self.found = 0
        self.fits = False
        self.sums: list[tuple[str, str]] = []

    def takes(self, name: str, content: bytes) -> bool:
        """Counts a member if it is one of these."""
        match = self.expression.fullmatch(name)
        if match is None:
            return False
        self.found += 1
        if self.member.count > 1:
            key = match[1] if match.re.groups else name
            self.sums.append((key, hashlib.sha256(content).hexdigest()))
        elif self.member.digest is not None:
            self.fits = self.member.digest.of(content) == self.member.digest.value
        return True

    @property
    def unknown(self) -> bool:
        """Whether nothing is known that would tell."""
        return bool(self.found) and self.member.needed and self.member.digest is None

    def fault(self) -> str | None:
        """How it differs from the published members, None if it does not."""
        member = self.member
        if not self.found:
            return f"no {member.label}" if member.needed else None
        if self.found != member.count:
            return f"{self.found} of {member.count} {member.label}"
        if member.digest is None:
            return None
        fits = digests.tree(self.sums) == member.digest.value if member.count > 1 else self.fits
        return None if fits else f"{member.label} is another one"


# --- choosing and storing ---


def _choice(file: CardFile, verdicts: Sequence[Verdict], unofficial: bool) -> Verdict | None:
    mine = [v for v in verdicts if v.file.name == file.name]
    good = [v for v in mine if v.official]
    if good or not unofficial:
        return good[0] if good else None
    if len(mine) > 1:
        names = ", ".join(v.path.name for v in mine)
        raise DataError(
            f"{names}: any of them could be {file.name}", hint="import one of them alone"
        )
    return mine[0] if mine else None


def _take(card: Card, verdict: Verdict) -> Taken:
    file, wanted = verdict.file, verdict.found
    if wanted is not None:
        target = cache.folder(card) / wanted.name
        packed = wanted.form == "content" and wanted.size != verdict.path.stat().st_size
        with gzip.open(verdict.path) if packed else verdict.path.open("rb") as stream:
            stored = cache.store(stream, target, wanted, str(verdict.path))
        return Taken(file.name, stored, True, verdict.reason)
    published = next((p for p in _published(card, file) if p.is_file()), None)
    if published is not None:
        raise DataError(
            f"{file.name} is here already as it was published, in {published}",
            hint=f"paddlecli dataset remove {card.name} takes it away",
        )
    path = keep(card, verdict)
    return Taken(file.name, path, verdict.official, verdict.reason)


def _published(card: Card, file: CardFile) -> Iterator[Path]:
    return (cache.folder(card) / wanted.name for wanted in Wanted.of(file))


def keep(card: Card, verdict: Verdict) -> Path:
    """Copies what is not, byte for byte, a published file into the cache, and writes down what it is.

    Raises:
        ResourceError: the cache cannot be written.
    """
    folder, file = cache.folder(card), verdict.file
    with cache.locked(folder / f".{IMPORTED}.lock"):
        source = verdict.path
        packed = folder / f".{file.name}.{os.getpid()}.tar" if source.is_dir() else None
        try:
            if packed is not None:
                with cache.writing(packed):
                    _pack(source, file, packed)
                source = packed
            size, value = source.stat().st_size, sha256_of(source)
            wanted = Wanted("imported", file.name, size, Digest("sha256", value))
            with source.open("rb") as stream:
                path = cache.store(stream, folder / IMPORTED / file.name, wanted, str(verdict.path))
        finally:
            if packed is not None:
                packed.unlink(missing_ok=True)
        entry = Imported(verdict.path.name, size, value, verdict.official, verdict.reason)
        cache.remember(card, file.name, entry)
    return path


def _pack(folder: Path, file: CardFile, target: Path) -> None:
    """What the reader uses of an unpacked archive, as one plain tar file."""
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in read_members(folder, _wants(file)):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


def _refusal(
    card: Card, path: Path, candidates: Sequence[Path], odd: Sequence[Verdict]
) -> tuple[str, str | None]:
    if odd:
        lines = [f"{path}: not the published data of {card.name}"]
        for verdict in odd[:10]:
            lines.append(f"  {verdict.path.name}: as {verdict.file.name}: {verdict.reason}")
            lines += _sums(verdict.path, verdict.file)
        return "\n".join(lines), (
            "--unofficial takes it all the same; every run on it then says that it is unofficial"
        )
    lines = [f"{path}: holds no file of the data set {card.name}"]
    for candidate in candidates[:10]:
        size, digest = candidate.stat().st_size, sha256_of(candidate)
        lines.append(f"  {candidate.name}: {size} bytes, sha256 {digest}")
    lines += [f"  wanted: {f.name}: {_size(f)} bytes, {f.digest}" for f in card.files]
    return "\n".join(lines), None


def _size(file: CardFile) -> str:
    return "an unknown number of" if file.bytes is None else str(file.bytes)


def _sums(path: Path, file: CardFile) -> list[str]:
    if path.is_dir():
        return []
    digest = file.digest
    return [
        f"    it is {path.stat().st_size} bytes, {digest.algorithm} {digest.of_file(path)}",
        f"    not   {_size(file)} bytes, {digest}",
    ]
