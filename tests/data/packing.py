"""Small archives that tests make."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

PACKERS = {
    "": lambda b: b,
    "gz": lambda b: gzip.compress(b, mtime=0),
    "bz2": bz2.compress,
    "xz": lzma.compress,
}


def tar(members: Mapping[str, bytes], packing: str = "gz") -> bytes:
    """A tar archive."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return PACKERS[packing](out.getvalue())


def tar_of(*infos: tarfile.TarInfo, content: bytes = b"") -> bytes:
    """A plain tar archive of these headers; regular ones hold `content`."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for info in infos:
            if info.isreg():
                info.size = len(content)
            archive.addfile(info, io.BytesIO(content) if info.isreg() else None)
    return out.getvalue()


def header(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    """A tar header of some kind."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def zipped(members: Mapping[str, bytes]) -> bytes:
    """A zip archive."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def put(path: Path, data: bytes) -> Path:
    """Writes a file and its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path
