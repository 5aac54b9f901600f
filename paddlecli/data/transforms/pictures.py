"""Transforms for pictures. Between them a picture is uint8 [height, width, channels].

Random ones draw from counters keyed by (seed, epoch, row, place in the list), so what a row becomes
does not depend on the batch, the order or who makes it. In prediction and evaluation they do nothing
random: crops are taken from the middle, flips, turns, jitter, erasing and mixing are left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from paddlecli.config.registry import TRANSFORMS
from paddlecli.config.types import Count, Natural
from paddlecli.data.columns import Column
from paddlecli.data.formats import images
from paddlecli.data.loader import random_words
from paddlecli.data.own.frame import Faults, Kind, Values
from paddlecli.data.transforms.base import Transform
from paddlecli.errors import ConfigError, DataError

if TYPE_CHECKING:
    from PIL import Image

Picture = NDArray[Any]


class Draw:
    """Random numbers of one row in one epoch.

    Args:
        key: seed, epoch, row and whatever else tells draws apart.
    """

    def __init__(self, *key: int) -> None:
        self.key = key
        self._used = 0
        self._words: list[int] = []

    def at(self, place: int) -> Draw:
        """The numbers of one transform in the list."""
        return Draw(*self.key, place)

    def word(self) -> int:
        """64 random bits."""
        if self._used == len(self._words):
            self._words += random_words(8, *self.key, first=self._used).tolist()
        self._used += 1
        return self._words[self._used - 1]

    def uniform(self, low: float = 0.0, high: float = 1.0) -> float:
        """A number in [low, high)."""
        return low + (high - low) * ((self.word() >> 11) * 2.0**-53)

    def below(self, count: int) -> int:
        """A whole number from 0 to count - 1."""
        return int(self.uniform() * count)

    def beta(self, alpha: float) -> float:
        """A number of the distribution Beta(alpha, alpha); M. D. Jöhnk, Metrika 8 (1964)."""
        while True:
            x, y = (math.log(self.uniform() or 2.0**-60) / alpha for _ in range(2))
            most = max(x, y)
            if most + math.log(math.exp(x - most) + math.exp(y - most)) <= 0:
                return 1.0 / (1.0 + math.exp(min(y - x, 700.0)))


@TRANSFORMS.register("decode")
class Decode(Transform):
    """Opens the picture that a path names: turned upright as its EXIF entry says, 16 bits scaled to 8,
    what is transparent laid on a ground.

    Args:
        channels: 3 for colours, 1 for grey.
        folder: where relative paths start; the folder of the file that names them if left out.
        ground: grey value behind transparent pixels.
        reduce_to: JPEG is decoded at a half, a quarter or an eighth of its size where both sides keep at
            least so many pixels: much faster for photographs that are scaled down anyway.
    """

    takes: ClassVar[tuple[Kind, ...]] = ("cells",)
    gives: ClassVar[Kind | None] = "pictures"

    def __init__(
        self, *, channels: Literal[1, 3] = 3, folder: Path | None = None, ground: Natural = 255,
        reduce_to: Count | None = None,
    ) -> None:  # fmt: skip
        self.channels, self.folder, self.ground = channels, folder, min(ground, 255)
        self.reduce_to = reduce_to

    def apply(self, values: Values, faults: Faults) -> Values:
        """See `Transform.apply`."""
        made = []
        for row, given in enumerate(values.rows):
            source = faults.place(row).file
            try:
                made.append(self.open(given, source))
            except DataError as error:
                faults.add(row, error.message.removeprefix(f"{source}: "))
                made.append(np.zeros((1, 1, self.channels), np.uint8))
        return Values("pictures", made)

    def open(self, given: str | bytes, source: str) -> Picture:
        """The picture behind a path, or in the bytes of a file named `source`.

        Raises:
            DataError: missing, foreign or damaged.
        """
        if isinstance(given, str):
            path = Path(given)
            if not path.is_absolute():
                path = (self.folder or Path(source).parent) / path
            source = str(path)
            try:
                given = path.read_bytes()
            except OSError as error:
                raise DataError(f"{source}: {error.strerror or 'cannot be read'}") from None
        image = images.load(given, source, self.reduce_to)
        if self.channels == 1:
            return np.rint(images.flat_grey(image, self.ground)).astype(np.uint8)[:, :, None]
        return images.flat_colour(image, self.ground)


class PictureTransform(Transform):
    """A transform that works on one picture at a time."""

    takes: ClassVar[tuple[Kind, ...]] = ("pictures",)

    def one(self, picture: Picture, draw: Draw | None) -> Picture:
        """The picture, transformed; without `draw` nothing random happens."""
        raise NotImplementedError

    def apply(self, values: Values, faults: Faults) -> Values:
        """See `Transform.apply`; nothing random."""
        return Values("pictures", [self.one(picture, None) for picture in values.rows])


def pair(size: Sequence[int]) -> tuple[int, int]:
    """Height and width from one number or two.

    Raises:
        ConfigError: not above 0.
    """
    height, width = (size[0], size[-1])
    if height < 1 or width < 1:
        raise ConfigError(
            f"a picture of {height}x{width} pixels is none: give a height and a width"
        )
    return height, width


def image_of(picture: Picture) -> Image.Image:
    from PIL import Image

    return Image.fromarray(picture[:, :, 0] if picture.shape[2] == 1 else picture)


def array_of(image: Image.Image) -> Picture:
    array = np.asarray(image, np.uint8)
    return array[:, :, None] if array.ndim == 2 else array


def resized(picture: Picture, height: int, width: int) -> Picture:
    """The picture scaled, with antialiasing."""
    from PIL import Image

    if picture.shape[:2] == (height, width):
        return picture
    return array_of(image_of(picture).resize((width, height), Image.Resampling.BILINEAR))


def window(picture: Picture, top: int, left: int, height: int, width: int) -> Picture:
    return picture[top : top + height, left : left + width]


def padded(picture: Picture, top: int, left: int, height: int, width: int, value: int) -> Picture:
    """The picture on a plane of that size, which it fits in."""
    out = np.full((height, width, picture.shape[2]), value, picture.dtype)
    out[top : top + picture.shape[0], left : left + picture.shape[1]] = picture
    return out


def stacked(rows: Sequence[Picture], faults: Faults) -> Column:
    """Pictures of one size as [n, channels, height, width]."""
    first = rows[0].shape
    for row, picture in enumerate(rows):
        if picture.shape != first:
            faults.add(row, odd_size(picture, first))
    fitting = [p if p.shape == first else np.zeros(first, rows[0].dtype) for p in rows]
    return Column(np.ascontiguousarray(np.stack([p.transpose(2, 0, 1) for p in fitting])))


def odd_size(picture: Picture, wanted: Sequence[int]) -> str:
    """What to say of a picture whose size is not that of the others."""
    return (
        f"the picture is {picture.shape[1]}x{picture.shape[0]}, others are {wanted[1]}x{wanted[0]}: "
        f"end the transforms with one that gives all the same size, such as `resize`"
    )
