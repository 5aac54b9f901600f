"""Arrays of numbers in MATLAB's files of level 5 (`.mat` of the versions 5 to 7).

A file is a header of 128 bytes and elements; an element is a type, a length and data, padded to eight
bytes. An array is an element of elements: flags, dimensions, name, values (by columns). Only plain
arrays of numbers are read; other kinds are passed over.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paddlecli.errors import DataError

_TYPES = {
    1: "i1",
    2: "u1",
    3: "i2",
    4: "u2",
    5: "i4",
    6: "u4",
    7: "f4",
    9: "f8",
    12: "i8",
    13: "u8",
}
_MATRIX, _COMPRESSED = 14, 15
_NUMERIC = range(6, 16)  # classes of arrays: double to uint64
_MOST_BYTES = 1 << 28


def read_mat(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of numbers of a file by name.

    Raises:
        DataError: no such file, damaged, or cut off.
    """
    try:
        data = path.read_bytes()
        order = {b"IM": "<", b"MI": ">"}.get(data[126:128])
        if order is None or data[:6] != b"MATLAB":
            raise DataError(f"{path}: no MATLAB file of level 5")
        found = {}
        for kind, content in _elements(data[128:], order):
            if kind == _COMPRESSED:
                content = _inflated(content)
                inner = next(_elements(content, order), (0, b""))
                kind, content = inner
            if kind == _MATRIX and (array := _array(content, order)) is not None:
                found[array[0]] = array[1]
        return found
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    except (struct.error, zlib.error, ValueError, KeyError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: damaged MATLAB file: {error}") from None


def _inflated(content: bytes) -> bytes:
    decoder = zlib.decompressobj()
    made = decoder.decompress(content, _MOST_BYTES)
    if not decoder.eof:
        raise ValueError("a compressed array is cut off or too large")
    return made


def _elements(data: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    """Type and content of the elements that stand one behind the other."""
    at = 0
    while at + 8 <= len(data):
        first, size = struct.unpack_from(f"{order}II", data, at)
        if first >> 16:  # a small element: type, length and up to four bytes in eight
            kind, size = first & 0xFFFF, first >> 16
            start, end = at + 4, at + 8
        else:
            kind, start = first, at + 8
            end = start + size + (-size % 8 if kind != _COMPRESSED else 0)
        if start + size > len(data):
            raise ValueError("an element is cut off")
        yield kind, data[start : start + size]
        at = end


def _array(content: bytes, order: str) -> tuple[str, NDArray[Any]] | None:
    parts = list(_elements(content, order))
    flags = struct.unpack_from(f"{order}I", parts[0][1])[0]
    if flags & 0xFF not in _NUMERIC or flags & 0x800:  # text, cells, structures; complex numbers
        return None
    shape = np.frombuffer(parts[1][1], f"{order}i4").tolist()
    values = np.frombuffer(parts[3][1], order + _TYPES[parts[3][0]])
    return parts[2][1].decode("ascii"), values.reshape(shape, order="F")
