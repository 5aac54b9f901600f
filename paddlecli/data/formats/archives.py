"""Members of tar (gz, bz2, xz) and zip archives, and of folders, read in place and one after the
other.

Nothing is ever unpacked to the disk, and nothing of an archive is believed: names that leave the
archive, links, devices and sparse files are refused, and so are archives that grow out of
proportion while they are unpacked. `strict` refuses such members anywhere in the archive (what
users bring by hand); otherwise only among the wanted ones (published archives whose checksum is
right).
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import IO, Any, cast

from paddlecli.errors import DataError

MOST_RATIO = 250
"""Unpacked bytes for each packed one; text reaches 10."""
MOST_FREE = 64 << 20
"""Unpacked bytes that are always allowed."""
MOST_BYTES = 1 << 36
MOST_MEMBERS = 2_000_000
_XZ_MEMORY = 1 << 30
_DAMAGED = (
    tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError,
    gzip.BadGzipFile, NotImplementedError, RuntimeError, UnicodeDecodeError,
)  # fmt: skip

Wants = Callable[[str], bool]


def is_archive(path: Path) -> bool:
    """True for a folder and for files that begin like a zip or a packed or plain tar archive."""
    if path.is_dir():
        return True
    with path.open("rb") as stream:
        head = stream.read(512)
    return _packing(head) is not None or head[:4] == b"PK\x03\x04" or head[257:262] == b"ustar"


def read_members(path: Path, wants: Wants, *, strict: bool = False) -> Iterator[tuple[str, bytes]]:
    """Names and contents of the wanted regular members, in the archive's order (a folder's: sorted).

    Names come without `./` at their front, with `/` between their parts.

    Raises:
        DataError: no archive, damaged, cut off, or one of the kinds that are refused.
    """
    found = _folder(path, wants) if path.is_dir() else _archive(path, wants, strict)
    seen = set()
    try:
        for name, content in found:
            if name in seen:
                raise DataError(f"{path}: holds {name} twice")
            seen.add(name)
            yield name, content
    except _DAMAGED as error:
        raise DataError(f"{path}: damaged or cut off: {error or type(error).__name__}") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None


def gunzip(data: bytes, source: str) -> bytes:
    """The content of a gzip file that is a member of an archive.

    Raises:
        DataError: damaged, or it grows out of proportion.
    """
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            return _Bounded(cast(IO[bytes], stream), len(data), source).read()
    except _DAMAGED as error:
        raise DataError(f"{source}: damaged or cut off: {error or type(error).__name__}") from None


def _packing(head: bytes) -> str | None:
    magics = {b"\x1f\x8b": "gz", b"BZh": "bz2", b"\xfd7zXZ\0": "xz"}
    return next((name for magic, name in magics.items() if head.startswith(magic)), None)


def _archive(path: Path, wants: Wants, strict: bool) -> Iterator[tuple[str, bytes]]:
    size = path.stat().st_size
    with path.open("rb") as raw:
        head = raw.read(512)
        raw.seek(0)
        if head.startswith(b"PK\x03\x04"):
            yield from _zip(path, raw, size, wants, strict)
            return
        with closing(_unpacked(raw, _packing(head))) as stream:
            yield from _tar(path, _Bounded(stream, size, str(path)), wants, strict)


def _unpacked(raw: IO[bytes], packing: str | None) -> IO[bytes]:
    if packing == "gz":
        return cast(IO[bytes], gzip.GzipFile(fileobj=raw))
    if packing == "bz2":
        return cast(IO[bytes], bz2.BZ2File(raw))
    if packing == "xz":
        return cast(IO[bytes], _XzFile(raw))
    return raw


class _XzFile(io.RawIOBase):
    """An .xz stream whose decoder may not ask for more than `_XZ_MEMORY` bytes."""

    def __init__(self, raw: IO[bytes]) -> None:
        self.raw = raw
        self.decoder = lzma.LZMADecompressor(memlimit=_XZ_MEMORY)

    def readable(self) -> bool:
        """True."""
        return True

    def read(self, count: int = -1, /) -> bytes:
        """At most `count` bytes, none at the end."""
        while True:
            if self.decoder.eof:
                chunk = self._next_stream()
                if not chunk:
                    return b""
                self.decoder = lzma.LZMADecompressor(memlimit=_XZ_MEMORY)
            else:
                chunk = self.raw.read(1 << 16) if self.decoder.needs_input else b""
                if not chunk and self.decoder.needs_input:
                    raise EOFError("the compressed data end before their end mark")
            found = self.decoder.decompress(chunk, max_length=count)
            if found:
                return found

    def _next_stream(self) -> bytes:
        """The beginning of the next stream behind the padding, empty where there is none."""
        chunk = self.decoder.unused_data
        while True:
            chunk = chunk.lstrip(b"\0")
            if chunk or not (chunk := self.raw.read(1 << 16)):
                return chunk


class _Bounded:
    """A stream that may not grow out of proportion to what it was unpacked from."""

    def __init__(self, stream: IO[bytes], packed: int, source: str) -> None:
        self.stream, self.source = stream, source
        self.left = min(MOST_BYTES, MOST_FREE + MOST_RATIO * packed)
        self.most = self.left

    def read(self, count: int = -1, /) -> bytes:
        """As a file's, up to the bound."""
        wanted = self.left + 1 if count < 0 else min(count, self.left + 1)
        parts, have = [], 0
        while have < wanted and (chunk := self.stream.read(min(wanted - have, 1 << 20))):
            parts.append(chunk)
            have += len(chunk)
        self.left -= have
        if self.left < 0:
            raise DataError(
                f"{self.source}: unpacks to more than {self.most} bytes; it is refused as a bomb"
            )
        return parts[0] if len(parts) == 1 else b"".join(parts)


def _tar(path: Path, stream: _Bounded, wants: Wants, strict: bool) -> Iterator[tuple[str, bytes]]:
    count = 0
    with tarfile.open(fileobj=cast(IO[bytes], stream), mode="r|") as archive:
        for info in archive:
            count += 1
            cast(Any, archive).members.clear()  # a stream keeps every header it has passed
            if count > MOST_MEMBERS:
                raise DataError(f"{path}: more than {MOST_MEMBERS} members")
            name = _plain(info.name)
            wanted = wants(name)
            if strict or wanted:
                _check_name(path, info.name)
                _check_kind(path, info)
            if wanted and info.isreg():
                yield name, _content(path, archive, info, stream)
    if count == 0:
        raise DataError(f"{path}: holds no members")


def _check_kind(path: Path, info: tarfile.TarInfo) -> None:
    if info.issym() or info.islnk():
        raise DataError(f"{path}: {info.name!r} is a link to {info.linkname!r}; links are refused")
    if not (info.isreg() or info.isdir()) or info.issparse():
        raise DataError(f"{path}: {info.name!r} is no plain file or folder; it is refused")


def _content(
    path: Path, archive: tarfile.TarFile, info: tarfile.TarInfo, stream: _Bounded
) -> bytes:
    if info.size > stream.left:
        raise DataError(f"{path}: {info.name!r} claims {info.size} bytes; it is refused as a bomb")
    taken = archive.extractfile(info)
    content = b"" if taken is None else taken.read()
    if len(content) != info.size:
        raise DataError(f"{path}: cut off inside {info.name!r}")
    return content


def _zip(
    path: Path, raw: IO[bytes], size: int, wants: Wants, strict: bool
) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(raw) as archive:
        infos = archive.infolist()
        if len(infos) > MOST_MEMBERS:
            raise DataError(f"{path}: more than {MOST_MEMBERS} members")
        left = min(MOST_BYTES, MOST_FREE + MOST_RATIO * size)
        for info in infos:
            name = _plain(info.filename)
            wanted = wants(name) and not info.is_dir()
            if strict or wanted:
                _check_name(path, info.orig_filename)
                kind = stat.S_IFMT(info.external_attr >> 16)
                if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                    raise DataError(f"{path}: {info.filename!r} is no plain file; it is refused")
            if not wanted:
                continue
            if info.file_size > left:
                raise DataError(
                    f"{path}: {info.filename!r} claims {info.file_size} bytes; "
                    f"it is refused as a bomb"
                )
            with archive.open(info) as stream:  # reads no more than file_size, then checks the CRC
                content = stream.read()
            left -= len(content)
            yield name, content


def _plain(name: str) -> str:
    while name.startswith("./"):
        name = name[2:]
    return name


def _check_name(path: Path, name: str) -> None:
    """No absolute names, no way up, nothing that another system would take for one."""
    parts = name.replace("\\", "/").split("/")
    if name.startswith(("/", "\\")) or ".." in parts or "\0" in name or parts[0].endswith(":"):
        raise DataError(f"{path}: the name {name!r} leads out of the archive; it is refused")


def _folder(path: Path, wants: Wants) -> Iterator[tuple[str, bytes]]:
    """Files below a folder; their names may or may not include the folder's own."""
    for file in sorted(p for p in path.rglob("*") if p.is_file()):
        inside = file.relative_to(path).as_posix()
        name = next((n for n in (inside, f"{path.resolve().name}/{inside}") if wants(n)), None)
        if name is not None:
            yield name, file.read_bytes()
