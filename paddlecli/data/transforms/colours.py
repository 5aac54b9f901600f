"""Transforms that change the values of a picture and leave its size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Gt, Le

from paddlecli.config.registry import TRANSFORMS
from paddlecli.config.types import Natural, Positive, Share
from paddlecli.data.spec import Preprocess
from paddlecli.data.transforms.pictures import Draw, Picture, PictureTransform
from paddlecli.errors import ConfigError


@TRANSFORMS.register("grey")
class Grey(PictureTransform):
    """Makes colours grey (ITU-R 601: 0.299 red + 0.587 green + 0.114 blue).

    Args:
        channels: 1, or 3 equal ones.
    """

    def __init__(self, *, channels: Literal[1, 3] = 1) -> None:
        self.channels = channels

    def one(self, picture: Picture, draw: Draw | None) -> Picture:
        """See `PictureTransform.one`."""
        plane = picture if picture.shape[2] == 1 else _grey(picture)
        return np.asarray(np.repeat(plane, self.channels, axis=2) if self.channels > 1 else plane)


def _grey(picture: Picture) -> Picture:
    mixed = picture.astype(np.float64) @ np.asarray([0.299, 0.587, 0.114])
    return np.asarray(np.rint(mixed).astype(np.uint8)[:, :, None])


@TRANSFORMS.register("colour_jitter")
class ColourJitter(PictureTransform):
    """Changes brightness, contrast and saturation in training, each by a random factor between 1 - x
    and 1 + x.

    Args:
        brightness: x of the brightness.
        contrast: x of the differences from the picture's mean.
        saturation: x of the differences from grey.
    """

    random = True

    def __init__(
        self, *, brightness: Share = 0.0, contrast: Share = 0.0, saturation: Share = 0.0
    ) -> None:
        self.by = (brightness, contrast, saturation)

    def one(self, picture: Picture, draw: Draw | None) -> Picture:
        """See `PictureTransform.one`."""
        if draw is None:
            return picture
        bright, contrast, colour = (draw.uniform(1.0 - x, 1.0 + x) for x in self.by)
        made = picture.astype(np.float64) * bright
        made = made.mean() + (made - made.mean()) * contrast
        if picture.shape[2] == 3:
            grey = (made @ np.asarray([0.299, 0.587, 0.114]))[:, :, None]
            made = grey + (made - grey) * colour
        return np.asarray(np.rint(np.clip(made, 0, 255)), np.uint8)


@TRANSFORMS.register("erase")
class Erase(PictureTransform):
    """Fills a random rectangle of some of the pictures in training.

    Args:
        chance: share of the pictures.
        area: least and greatest share of the picture.
        value: grey value that it is filled with.
    """

    random = True

    def __init__(
        self, *, chance: Share = 0.5, area: tuple[Share, Share] = (0.02, 0.33), value: Natural = 0
    ) -> None:
        if area[0] > area[1]:
            raise ConfigError("erase: `area` goes from the least to the greatest share")
        self.chance, self.area, self.value = chance, area, min(value, 255)

    def one(self, picture: Picture, draw: Draw | None) -> Picture:
        """See `PictureTransform.one`."""
        if draw is None or draw.uniform() >= self.chance:
            return picture
        height, width = picture.shape[:2]
        area = height * width * draw.uniform(*self.area)
        ratio = math.exp(draw.uniform(-math.log(3.3), math.log(3.3)))
        h = min(height, max(1, round(math.sqrt(area / ratio))))
        w = min(width, max(1, round(math.sqrt(area * ratio))))
        top, left = draw.below(height - h + 1), draw.below(width - w + 1)
        made = picture.copy()
        made[top : top + h, left : left + w] = self.value
        return made


@TRANSFORMS.register("normalise")
class Normalise(PictureTransform):
    """(value - mean) / std, values from 0 to 255; the last of the transforms that change pixels. Without
    it the network sees value / 255. The plan does it: pictures stay bytes.

    Args:
        mean: one number, or one a channel.
        std: one number, or one a channel.
    """

    def __init__(
        self, *, mean: tuple[float, ...] = (127.5,), std: tuple[Positive, ...] = (127.5,)
    ) -> None:
        if not mean or not std:
            raise ConfigError(
                "normalise: `mean` and `std` are lists of one number, or of one a channel"
            )
        self.mean, self.std = mean, std

    def affine(self) -> Preprocess:
        """The cast that the plan makes."""
        count = max(len(self.mean), len(self.std))
        means, stds = (v * count if len(v) == 1 else v for v in (self.mean, self.std))
        pairs = tuple((1.0 / s, -m / s) for m, s in zip(means, stds, strict=True))
        if len(set(pairs)) == 1:
            return Preprocess("float32", *pairs[0])
        return Preprocess("float32", channels=pairs)

    def one(self, picture: Picture, draw: Draw | None) -> Picture:
        """See `PictureTransform.one`; bytes stay, as the plan does it."""
        if {len(self.mean), len(self.std)} - {1, picture.shape[2]}:
            raise ConfigError(
                f"normalise: {len(self.mean)} means and {len(self.std)} stds for "
                f"{picture.shape[2]} channels"
            )
        return picture


@TRANSFORMS.register("mixup")
class Mixup(PictureTransform):
    """Lays a second picture, drawn from the whole train split, over each in training: l times the one
    and 1 - l times the other, l from Beta(alpha, alpha). The field `mixed_label` has the classes' shares;
    use it with a loss of soft labels.

    Args:
        alpha: large values mix evenly, small ones leave one of the two nearly alone.
    """

    random = True

    def __init__(self, *, alpha: Annotated[float, Gt(0), Le(4)] = 0.2) -> None:
        self.alpha = alpha

    def one(self, picture: Picture, draw: Draw | None) -> Picture:
        """See `PictureTransform.one`; mixing takes two, see `PictureStream`."""
        return picture

    def share(self, draw: Draw, rows: int) -> tuple[int, float]:
        """The second row, and the first one's share."""
        return draw.below(rows), draw.beta(self.alpha)


def check_order(steps: Sequence[Any], names: Sequence[str]) -> None:
    """Normalising comes last, mixing behind all that change single pictures.

    Raises:
        ConfigError: it does not.
    """
    for place, step in enumerate(steps):
        behind = steps[place + 1 :]
        if isinstance(step, Normalise) and any(not isinstance(s, Mixup) for s in behind):
            raise ConfigError(
                f"normalise must be the last transform, `{names[place + 1]}` is behind it"
            )
        if isinstance(step, Mixup) and any(not isinstance(s, Normalise) for s in behind):
            raise ConfigError(
                f"mixup must be behind all other transforms, `{names[place + 1]}` is behind it"
            )
