"""Small archives and pictures that tests make."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from PIL import Image

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


def mat(arrays: Mapping[str, np.ndarray], packed: bool, order: str = "<") -> bytes:
    """A MATLAB file of level 5, written from the format's description."""

    def element(kind: int, data: bytes, small: bool = False) -> bytes:
        if small and 0 < len(data) <= 4:
            return struct.pack(f"{order}I", len(data) << 16 | kind) + data.ljust(4, b"\0")
        return struct.pack(f"{order}II", kind, len(data)) + data + bytes(-len(data) % 8)

    types = {"u1": (2, 9), "u2": (4, 11), "f8": (9, 6)}  # type of the values, class of the array
    out = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack(f"{order}H", 0x0100)
    out += b"IM" if order == "<" else b"MI"
    for name, array in arrays.items():
        kind, number = types[array.dtype.str[1:]]
        body = element(6, struct.pack(f"{order}II", number, 0))
        body += element(5, struct.pack(f"{order}{array.ndim}i", *array.shape))
        body += element(1, name.encode(), small=True)
        values = array.astype(array.dtype.newbyteorder(order)).tobytes(order="F")
        whole = element(14, body + element(kind, values, small=True))
        if packed:
            deflated = zlib.compress(whole)
            whole = struct.pack(f"{order}II", 15, len(deflated)) + deflated
        out += whole
    return out


def photograph(width: int, height: int, red: int) -> bytes:
    """A JPEG file: so red, and the right half blue."""
    out = io.BytesIO()
    pixels = np.zeros((height, width, 3), np.uint8)
    pixels[..., 0] = red
    pixels[:, width // 2 :, 2] = 200  # the right half is blue
    Image.fromarray(pixels).save(out, "JPEG", quality=95)
    return out.getvalue()


def masked(width: int, height: int, classes: np.ndarray | None = None, mode: str = "P") -> bytes:
    """A mask: the left half of class 15, the right one background, a void line between."""
    pixels = np.zeros((height, width), np.uint8)
    pixels[:, : width // 2], pixels[:, width // 2 : width // 2 + 4] = 15, 255
    out = io.BytesIO()
    image = Image.fromarray(pixels if classes is None else classes)
    image.putpalette(
        [i for n in range(256) for i in (n, 255 - n, n // 2)]
    )  # the colours say nothing
    (image if mode == "P" else image.convert(mode)).save(out, "PNG")
    return out.getvalue()


def voc(folder: Path, **other: bytes) -> dict[str, Path]:
    """Four photographs, of which two train and one validates; with these members exchanged or left out."""
    root = "VOCdevkit/VOC2012"
    members = {
        f"{root}/ImageSets/Segmentation/train.txt": b"2007_1\n2007_3\n",
        f"{root}/ImageSets/Segmentation/val.txt": b"2008_2\r\n",
        f"{root}/ImageSets/Segmentation/trainval.txt": b"2007_1\n2007_3\n2008_2\n",
        f"{root}/ImageSets/Main/train.txt": b"2009_9\n",
        **{f"{root}/JPEGImages/{n}.jpg": photograph(64, 48, 80) for n in ("2007_1", "2009_9")},
        **{f"{root}/JPEGImages/{n}.jpg": photograph(30, 60, 160) for n in ("2007_3", "2008_2")},
        f"{root}/SegmentationClass/2007_1.png": masked(64, 48),
        f"{root}/SegmentationClass/2007_3.png": masked(30, 60),
        f"{root}/SegmentationClass/2008_2.png": masked(30, 60),
        f"{root}/SegmentationObject/2007_1.png": masked(64, 48, np.full((48, 64), 3, np.uint8)),
    }
    members |= {f"{root}/{name}": data for name, data in other.items()}
    return {
        "VOCtrainval_11-May-2012.tar": put(folder, tar({k: v for k, v in members.items() if v}))
    }
