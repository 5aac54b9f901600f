"""Transforms that change the size or the place of what is in a picture."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from paddlecli.config.registry import TRANSFORMS
from paddlecli.config.types import Natural, NonNegative, Pair, Positive, Share
from paddlecli.data.transforms.pictures import (
    Draw,
    Picture,
    PictureTransform,
    array_of,
    image_of,
    padded,
    pair,
    resized,
    window,
)
from paddlecli.errors import ConfigError


@TRANSFORMS.register("resize")
class Resize(PictureTransform):
    """Scales the picture to a size, or its shorter side to one and keeps the proportions.

    Args:
        size: height and width, or one number for both.
        keep: keep the proportions; the shorter side gets the first number of `size`.
    """

    def __init__(self, *, size: Pair, keep: bool = False) -> None:
        self.size, self.keep = pair(size), keep

    def one(self, picture: Picture, draw: Draw | None) -> Picture:
        """See `PictureTransform.one`."""
        height, width = picture.shape[:2]
        if not self.keep:
            return resized(picture, *self.size)
        factor = self.size[0] / min(height, width)
        return resized(picture, max(1, round(height * factor)), max(1, round(width * factor)))


def _middle(picture: Picture, height: int, width: int) -> Picture:
    """The middle of the picture, padded with 0 where it is too small."""
    h, w = picture.shape[:2]
    if h < height or w < width:
        tall, wide = max(h, height), max(w, width)
        picture = padded(picture, (tall - h) // 2, (wide - w) // 2, tall, wide, 0)
        h, w = tall, wide
    return window(picture, (h - height) // 2, (w - width) // 2, height, width)


@TRANSFORMS.register("centre_crop")
class CentreCrop(PictureTransform):
    """The middle of the picture; a smaller picture gets a rim of 0.

    Args:
        size: height and width, or one number for both.
    """

    def __init__(self, *, size: Pair) -> None:
        self.size = pair(size)

    def one(self, picture: Picture, draw: Draw | None) -> Picture:
        """See `PictureTransform.one`."""
        return _middle(picture, *self.size)


@TRANSFORMS.register("random_crop")
class RandomCrop(PictureTransform):
    """A part of the picture from a random place; from the middle outside of training.

    Args:
        size: height and width, or one number for both.
        padding: pixels of 0 that are put around the picture before.
    """

    random = True

    def __init__(self, *, size: Pair, padding: Natural = 0) -> None:
        self.size, self.padding = pair(size), padding

    def one(self, picture: Picture, draw: Draw | None) -> Picture:
        """See `PictureTransform.one`."""
        if draw is None:
            return _middle(picture, *self.size)
        pad = self.padding
        h, w = (n + 2 * pad for n in picture.shape[:2])
        tall, wide = max(h, self.size[0]), max(w, self.size[1])
        top, left = (tall - h) // 2 + pad, (wide - w) // 2 + pad
        if pad or (tall, wide) != (h, w):
            picture = padded(picture, top, left, tall, wide, 0)
        top = draw.below(tall - self.size[0] + 1)
        return window(picture, top, draw.below(wide - self.size[1] + 1), *self.size)


@TRANSFORMS.register("random_resized_crop")
class RandomResizedCrop(PictureTransform):
    """A part of random size and shape, scaled to `size`; outside of training the largest part in the
    middle that has the shape of `size`.

    Args:
        size: height and width, or one number for both.
        scale: least and greatest share of the picture's area.
        ratio: least and greatest width divided by height.
    """

    random = True

    def __init__(
        self, *, size: Pair, scale: tuple[Positive, Positive] = (0.08, 1.0),
        ratio: tuple[Positive, Positive] = (0.75, 1.3333333333333333),
    ) -> None:  # fmt: skip
        self.size, self.scale, self.ratio = pair(size), scale, ratio
        if scale[0] > scale[1] or scale[1] > 1 or ratio[0] > ratio[1]:
            raise ConfigError(
                "random_resized_crop: `scale` and `ratio` go from least to greatest, `scale` to 1 at most"
            )

    def one(self, picture: Picture, draw: Draw | None) -> Picture:
        """See `PictureTransform.one`."""
        height, width = picture.shape[:2]
        for _ in range(10 if draw is not None else 0):
            assert draw is not None
            area = height * width * draw.uniform(*self.scale)
            ratio = math.exp(draw.uniform(math.log(self.ratio[0]), math.log(self.ratio[1])))
            h, w = round(math.sqrt(area / ratio)), round(math.sqrt(area * ratio))
            if 0 < h <= height and 0 < w <= width:
                top, left = draw.below(height - h + 1), draw.below(width - w + 1)
                return resized(window(picture, top, left, h, w), *self.size)
        factor = min(height / self.size[0], width / self.size[1])
        h, w = (max(1, round(n * factor)) for n in self.size)
        return resized(_middle(picture, min(h, height), min(w, width)), *self.size)


@TRANSFORMS.register("flip")
class Flip(PictureTransform):
    """Mirrors some of the pictures in training.

    Args:
        axis: `horizontal` swaps left and right, `vertical` top and bottom.
        chance: share of the pictures.
    """

    random = True

    def __init__(
        self, *, axis: Literal["horizontal", "vertical"] = "horizontal", chance: Share = 0.5
    ) -> None:
        self.axis, self.chance = 1 if axis == "horizontal" else 0, chance

    def one(self, picture: Picture, draw: Draw | None) -> Picture:
        """See `PictureTransform.one`."""
        if draw is None or draw.uniform() >= self.chance:
            return picture
        return np.flip(picture, self.axis)


@TRANSFORMS.register("rotate")
class Rotate(PictureTransform):
    """Turns the picture in training by a random angle around its middle; what comes in is 0.

    Args:
        degrees: the largest angle, to either side.
    """

    random = True

    def __init__(self, *, degrees: NonNegative) -> None:
        self.degrees = degrees

    def one(self, picture: Picture, draw: Draw | None) -> Picture:
        """See `PictureTransform.one`."""
        if draw is None:
            return picture
        from PIL import Image

        angle = draw.uniform(-self.degrees, self.degrees)
        return array_of(
            image_of(np.ascontiguousarray(picture)).rotate(angle, Image.Resampling.BILINEAR)
        )


@TRANSFORMS.register("pad")
class Pad(PictureTransform):
    """A rim around the picture.

    Args:
        size: its height at top and bottom and width at the sides, or one number for both.
        value: grey value of the rim.
    """

    def __init__(self, *, size: Pair, value: Natural = 0) -> None:
        self.size, self.value = (size[0], size[-1]), min(value, 255)

    def one(self, picture: Picture, draw: Draw | None) -> Picture:
        """See `PictureTransform.one`."""
        (h, w), (y, x) = picture.shape[:2], self.size
        return padded(picture, y, x, h + 2 * y, w + 2 * x, self.value)
