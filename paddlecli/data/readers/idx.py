"""IDX files (the MNIST family): a magic number, big-endian sizes, then the values. Plain or
gzip-compressed.

Layout: two zero bytes, one byte for the type, one for the number of dimensions, one uint32 a
dimension, the data. Plain files are memory-mapped; compressed ones are unpacked straight into the
array.
"""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from paddlecli.config.registry import READERS
from paddlecli.data.readers.base import Reader, check_classes
from paddlecli.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from paddlecli.data.cards import CardField
    from paddlecli.data.columns import Column, Dataset

_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_MOST_BYTES = 1 << 34
_MOST_DIMENSIONS = 8


@READERS.register("idx")
class IdxReader(Reader):
    """One file a field and split."""

    def open(self, files: Mapping[str, Path]) -> Dataset:
        """See `Reader.open`."""
        from paddlecli.data.columns import Dataset, Split

        splits = {}
        for name, split in self.card.splits.items():
            columns = {}
            for field in self.card.fields:
                path = files[split.files[field.name]]
                samples = split.samples if self.exact else None
                columns[field.name] = _column(path, field, samples)
            splits[name] = Split(name, columns)
        sizes = {name: len(split) for name, split in splits.items()}
        return Dataset(replace(self.describe(), sizes=sizes), splits)


def _column(path: Path, field: CardField, samples: int | None) -> Column:
    import numpy as np

    from paddlecli.data.columns import Column

    values = read_idx(path)
    if samples is not None and len(values) != samples:
        raise DataError(f"{path}: holds {len(values)} items, the data set's card says {samples}")
    if math.prod(values.shape[1:]) != math.prod(field.shape):
        raise DataError(
            f"{path}: its items have shape {list(values.shape[1:])}, "
            f"field {field.name} has shape {field.shape}"
        )
    if not np.can_cast(values.dtype, field.dtype):
        raise DataError(
            f"{path}: holds {values.dtype}, which does not fit field {field.name} of {field.dtype}"
        )
    check_classes(values, field.classes, path, field.name)
    return Column(values.reshape(len(values), *field.shape).astype(field.dtype, copy=False))


def read_idx(path: Path) -> NDArray[Any]:
    """The array of an IDX file, in native byte order.

    Raises:
        DataError: not IDX, cut off, too long, or damaged; names the file and says which.
    """
    try:
        with path.open("rb") as stream:
            packed = stream.read(2) == b"\x1f\x8b"
        if not packed:
            return _read_plain(path)
        with gzip.open(path, "rb") as unpacked:
            return _read_stream(path, unpacked)
    except EOFError:
        raise DataError(f"{path}: the compressed file is cut off") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: damaged gzip file: {error}") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None


def _read_plain(path: Path) -> NDArray[Any]:
    import numpy as np

    with path.open("rb") as stream:
        dtype, shape, start = _header(path, stream)
    expected, found = start + _bytes(dtype, shape), path.stat().st_size
    if found != expected:
        raise DataError(
            f"{path}: has {found} bytes, its header says {expected}: "
            f"the file is {'cut off' if found < expected else 'followed by foreign bytes'}"
        )
    if math.prod(shape) == 0:
        raise DataError(f"{path}: holds no items (shape {list(shape)})")
    mapped = np.memmap(path, dtype, "r", start, shape)
    return (
        mapped.view(np.ndarray)
        if mapped.dtype.isnative
        else mapped.astype(mapped.dtype.newbyteorder("="))
    )


def _read_stream(path: Path, stream: gzip.GzipFile) -> NDArray[Any]:
    import numpy as np

    dtype, shape, _ = _header(path, cast(BinaryIO, stream))
    if math.prod(shape) == 0:
        raise DataError(f"{path}: holds no items (shape {list(shape)})")
    total = _bytes(dtype, shape)
    # deflate packs 1032:1 at most: a header that claims more than the file can hold is not believed
    if total > 1100 * path.stat().st_size:
        raise DataError(f"{path}: its header says {total} bytes, more than the file can hold")
    array = np.empty(shape, dtype)
    view = array.reshape(-1).view(np.uint8).data
    filled = 0
    while filled < total and (count := stream.readinto(view[filled:])):
        filled += count
    if filled < total:
        raise DataError(
            f"{path}: has {filled} bytes of data, its header says {total}: the file is cut off"
        )
    if stream.read(1):
        raise DataError(f"{path}: more data than its header says ({total} bytes)")
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _header(path: Path, stream: BinaryIO) -> tuple[str, tuple[int, ...], int]:
    """Type, shape and the place of the first value."""
    head = stream.read(4)
    if (
        len(head) < 4
        or head[:2] != b"\0\0"
        or head[2] not in _TYPES
        or not 1 <= head[3] <= _MOST_DIMENSIONS
    ):
        raise DataError(
            f"{path}: not an IDX file (it begins with {head[:4].hex(' ') or 'nothing'}; "
            f"expected 00 00, a type and a number of dimensions)"
        )
    raw = stream.read(4 * head[3])
    if len(raw) < 4 * head[3]:
        raise DataError(f"{path}: cut off inside its header")
    shape = struct.unpack(f">{head[3]}I", raw)
    dtype = _TYPES[head[2]]
    if _bytes(dtype, shape) > _MOST_BYTES:
        raise DataError(
            f"{path}: its header says {_bytes(dtype, shape)} bytes (shape {list(shape)}); "
            f"at most {_MOST_BYTES} are read"
        )
    return dtype, shape, 4 + 4 * head[3]


def _bytes(dtype: str, shape: tuple[int, ...]) -> int:
    return int(dtype[-1]) * math.prod(shape)
