"""What the readers of photographs in archives share: opening them, room for many, and cutting them
when a batch needs them."""

from __future__ import annotations

import hashlib
import io
import tempfile
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from paddlecli import settings
from paddlecli.data.columns import Column, Rows, Split
from paddlecli.data.transforms.pictures import Draw
from paddlecli.data.transforms.shapes import Flip, RandomCrop
from paddlecli.errors import DataError

if TYPE_CHECKING:
    from PIL import Image

_MOST_PIXELS = 1 << 26
_STREAM = crc32(b"photographs")
PIXELS, WIDTH = "image.pixels", "image.width"
"""What is kept of photographs of several sizes: their pixels row by row, and how wide they are."""


def opened(data: bytes, source: str) -> Image.Image:
    """A photograph that is decoded when it is first looked at; its size is known at once.

    Raises:
        DataError: foreign, damaged, or absurdly large.
    """
    from PIL import Image

    try:
        image = Image.open(io.BytesIO(data), formats=("JPEG", "PNG"))
    except (OSError, SyntaxError, ValueError) as error:
        raise DataError(f"{source}: no picture that can be read: {error}") from None
    if image.width * image.height > _MOST_PIXELS:
        raise DataError(f"{source}: {image.width}x{image.height} pixels are too many")
    return image


def scaled(image: Image.Image, width: int, height: int, source: str) -> NDArray[np.uint8]:
    """Its colours in that size, [height, width, 3].

    Raises:
        DataError: damaged.
    """
    from PIL import Image

    try:
        made = image.convert("RGB").resize((width, height), Image.Resampling.BICUBIC)
    except (OSError, SyntaxError, ValueError) as error:
        raise DataError(f"{source}: no picture that can be read: {error}") from None
    return np.asarray(made)


def room(*shape: int) -> NDArray[np.uint8]:
    """Room for pictures, in a file without a name: they may be more than the memory holds."""
    folder = settings.cache_dir()
    with tempfile.TemporaryFile(dir=folder if folder.is_dir() else None) as stream:
        return np.memmap(stream, np.uint8, "w+", shape=shape)


class CroppedSplit(Split):
    """Photographs of several sizes, of which squares are cut: in training at a random place, half of
    them mirrored, else from the middle. What a row becomes depends on (seed, epoch, row) alone.

    Args:
        name: of the split.
        columns: the fields in memory, and `PIXELS` and `WIDTH`.
        size: sides of the squares.
        seed: start of the random numbers.
    """

    def __init__(self, name: str, columns: Mapping[str, Column], size: int, seed: int) -> None:
        super().__init__(name, columns)
        self.pixels, self.widths = self.columns.pop(PIXELS), self.columns.pop(WIDTH).values
        self.size, self.seed = size, seed
        self._crop, self._flip = RandomCrop(size=(size,)), Flip()

    @property
    def streamed(self) -> bool:
        """See `Split.streamed`."""
        return True

    @property
    def stored(self) -> dict[str, Column]:
        """See `Split.stored`."""
        return {**self.columns, PIXELS: self.pixels, WIDTH: Column(self.widths)}

    @property
    def made(self) -> Mapping[str, tuple[tuple[int, ...], str]]:
        """See `Split.made`."""
        return {"image": ((3, self.size, self.size), "uint8")}

    @property
    def nbytes(self) -> int:
        """See `Split.nbytes`."""
        return sum(column.nbytes for column in self.stored.values())

    def digest(self) -> bytes:
        """See `Split.digest`."""
        digest = hashlib.sha256(f"{self.size};".encode())
        for part in (self.pixels.values, *self.pixels.offsets, self.widths):
            digest.update(np.ascontiguousarray(part).data)
        return digest.digest()

    def take(self, rows: Rows, epoch: int | None = None) -> dict[str, Column]:
        """See `Split.take`."""
        squares = np.empty((rows.size, 3, self.size, self.size), np.uint8)
        for place, row in enumerate(rows.tolist()):
            squares[place] = self._square(row, epoch).transpose(2, 0, 1)
        return {**super().take(rows), "image": Column(squares)}

    def _square(self, row: int, epoch: int | None) -> NDArray[Any]:
        picture = np.asarray(self.pixels.row(row)).reshape(-1, int(self.widths[row]), 3)
        draw = None if epoch is None else Draw(_STREAM, self.seed, epoch, row)
        cut = self._crop.one(picture, None if draw is None else draw.at(0))
        return self._flip.one(cut, None if draw is None else draw.at(1))
