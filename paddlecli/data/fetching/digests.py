"""Checksums: what a file or a member of an archive is known by. sha256 where it is published, else
md5, else git's id of a blob."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, Protocol

Algorithm = Literal["sha256", "md5", "blob"]
_CHUNK = 1 << 20


class Hasher(Protocol):
    """What takes bytes and gives their checksum."""

    def update(self, data: bytes, /) -> None:
        """More bytes."""

    def hexdigest(self) -> str:
        """The checksum in hexadecimal."""


@dataclass(frozen=True)
class Digest:
    """A checksum and how it is made; `blob` is the sha1 of git's header and the bytes."""

    algorithm: Algorithm
    value: str

    @classmethod
    def best(
        cls, sha256: str | None = None, md5: str | None = None, blob: str | None = None
    ) -> Digest | None:
        """The strongest of those that are known."""
        if sha256 is not None:
            return cls("sha256", sha256)
        if md5 is not None:
            return cls("md5", md5)
        return None if blob is None else cls("blob", blob)

    def hasher(self) -> Hasher:
        """An empty checksum of the same kind; git's is not made piece by piece."""
        return hashlib.new(self.algorithm, usedforsecurity=False)

    def of(self, data: bytes) -> str:
        """The checksum of the same kind of these bytes."""
        if self.algorithm == "blob":
            head = f"blob {len(data)}\0".encode()
            return hashlib.sha1(head + data, usedforsecurity=False).hexdigest()
        return hashlib.new(self.algorithm, data, usedforsecurity=False).hexdigest()

    def of_stream(self, stream: IO[bytes]) -> str:
        """The checksum of the same kind of all that a stream holds."""
        digest = self.hasher()
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
        return digest.hexdigest()

    def of_file(self, path: Path) -> str:
        """The checksum of the same kind of a file."""
        with path.open("rb") as stream:
            return self.of_stream(stream)

    def __str__(self) -> str:
        return f"{self.algorithm} {self.value}"


def sha256_of(path: Path) -> str:
    """sha256 of a file's bytes, in hexadecimal."""
    return Digest("sha256", "").of_file(path)


def tree(members: Iterable[tuple[str, Any]]) -> str:
    """One sha256 for many members, by name and sha256 of the content, whatever their order."""
    digest = hashlib.sha256()
    for name, value in sorted(members):
        digest.update(f"{value}  {name}\n".encode())
    return digest.hexdigest()
