"""Outputs that are pictures: as bytes, as PNG files, many in one grid.

A network's output is a picture where the recipe says so (`predict.pictures`: which values are black and
white) and it is [N, channels, height, width] with 1 or 3 channels; or where it is a mask, class numbers
[N, height, width], whose PNG keeps the numbers and has a colour for each.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paddlecli.data.formats import images
from paddlecli.engine.files import ELSEWHERE, replace, saving
from paddlecli.errors import ConfigError, UsageError
from paddlecli.ops.spec import Spec

Bytes = NDArray[np.uint8]
_GAP, _GREY = 2, 96
_MOST_PIXELS = 100_000_000
"""Of a grid: what viewers open, and what is read as a picture here."""


@dataclass(frozen=True)
class Picture:
    """How rows of an output become pictures.

    Attributes:
        output: name of the output.
        low: value that is black; `high` the one that is white. Not used for masks.
        mask: whether the output holds numbers of classes.
        size: height and width.
    """

    output: str
    low: float = 0.0
    high: float = 1.0
    mask: bool = False
    size: tuple[int, int] = (1, 1)

    @classmethod
    def of(cls, output: str, spec: Spec, said: Mapping[str, float] | None) -> Picture | None:
        """None where the output is no picture. `said` is the recipe's `predict.pictures`.

        Raises:
            ConfigError: the recipe says that it is one, and it cannot be.
        """
        known = spec.axis is None and all(d.known for d in spec.shape[1:])
        if known and spec.dtype.startswith("i") and spec.ndim == 3:
            return cls(output, mask=True, size=_size(spec))
        if said is None:
            return None
        if not known or spec.ndim != 4 or spec.shape[1].coefficient not in (1, 3):
            raise ConfigError(
                f"predict.pictures: the output `{output}` is {spec}, no picture",
                hint="pictures are [N, channels, height, width] with 1 or 3 channels, or class numbers "
                "[N, height, width]; choose one with `predict.output`",
            )
        return cls(output, said["low"], said["high"], size=_size(spec))

    def bytes(self, row: NDArray[Any]) -> Bytes:
        """uint8 [channels, height, width] of one row, or [height, width] of a mask; what lies outside
        of `low` to `high` is cut."""
        if self.mask:
            ids: Bytes = np.clip(row, 0, images.MOST_CLASSES - 1).astype(np.uint8)
            return ids
        share = (row.astype(np.float64) - self.low) / (self.high - self.low)
        shade: Bytes = np.rint(255.0 * np.clip(np.nan_to_num(share), 0.0, 1.0)).astype(np.uint8)
        return shade

    @property
    def most(self) -> int:
        """How many a grid of as many columns as lines holds."""
        high, wide = (s + _GAP for s in self.size)
        side = math.isqrt(_MOST_PIXELS // (high * wide))
        while side > 1 and (side * high + _GAP) * (side * wide + _GAP) > _MOST_PIXELS:
            side -= 1
        return max(1, side) ** 2

    def grid(self, rows: Sequence[NDArray[Any]], columns: int = 0) -> Bytes:
        """All rows in one picture, from left to right and down; about as many `columns` as lines if
        none are given."""
        return self.joined([self.bytes(row) for row in rows], columns)

    def joined(self, tiles: Sequence[Bytes], columns: int = 0) -> Bytes:
        """What `bytes` gave for some rows in one picture, see `grid`."""
        across = columns or math.ceil(math.sqrt(len(tiles)))
        *above, high, wide = tiles[0].shape
        down = -(-len(tiles) // across)
        size = (down * (high + _GAP) + _GAP, across * (wide + _GAP) + _GAP)
        whole = np.full((*above, *size), images.NO_CLASS if self.mask else _GREY, np.uint8)
        for i, tile in enumerate(tiles):
            top, left = (
                _GAP + a * (s + _GAP) for a, s in zip(divmod(i, across), (high, wide), strict=True)
            )
            whole[..., top : top + high, left : left + wide] = tile
        return whole

    def answer(self, row: NDArray[Any], names: Sequence[str]) -> dict[str, Any]:
        """What a record says of a picture: its size, and the share of each class or the range of values."""
        if not self.mask:
            found = {"min": row.min(), "mean": row.mean(dtype=np.float64), "max": row.max()}
            return {"shape": list(row.shape), **{k: float(v) for k, v in found.items()}}
        ids, counts = np.unique(row, return_counts=True)
        shares = {
            names[i] if i < len(names) else str(i): float(c) / row.size
            for i, c in zip(ids.tolist(), counts.tolist(), strict=True)
        }
        return {"shape": list(row.shape), "classes": shares}


def _size(spec: Spec) -> tuple[int, int]:
    high, wide = (d.coefficient for d in spec.shape[-2:])
    return high, wide


class Album:
    """Takes the pictures of predictions: each into a file of a folder, or all into one.

    Args:
        picture: how they are made.
        folder: gets `00001-NAME.png` and so on.
        grid: a file that gets all of them, as many as fit.
    """

    def __init__(self, picture: Picture, folder: Path | None, grid: Path | None) -> None:
        self._picture, self._folder, self._grid = picture, folder, grid
        self._tiles: list[Bytes] = []

    def expect(self, count: int) -> None:
        """Raises UsageError where a grid does not hold so many."""
        most = self._picture.most
        if self._grid is not None and count > most:
            raise UsageError(
                f"--grid {self._grid}: {count:,} pictures are too many for one, at most {most:,} fit",
                hint="ask for fewer, or let --pictures write each into a file of its own",
            )

    def add(self, number: int, name: str, row: NDArray[Any]) -> Mapping[str, str]:
        """Takes one; gives where it was written, for its record.

        Raises:
            UsageError: the grid is full; it is written with those before.
        """
        tile = self._picture.bytes(row)
        if self._grid is not None:
            if len(self._tiles) == self._picture.most:
                self.close()
                self.expect(len(self._tiles) + 1)
            self._tiles.append(tile)
        if self._folder is None:
            return {}
        stem = re.sub(r"[^A-Za-z0-9._-]+", "_", Path(name).name)[:80] or "input"
        stem = re.sub(r"\.(png|jpe?g|bmp|gif|webp|tiff?)$", "", stem, flags=re.IGNORECASE)
        path = self._folder / f"{number:05d}-{stem}.png"
        save(path, tile)
        return {"picture": str(path)}

    def close(self) -> None:
        """Writes the grid."""
        if self._grid is not None and self._tiles:
            save(self._grid, self._picture.joined(self._tiles))


def save(path: Path, picture: Bytes) -> None:
    """Writes a PNG file; makes its folder."""
    with saving(path, ELSEWHERE):
        path.parent.mkdir(parents=True, exist_ok=True)
    replace(path, images.png(picture), hint=ELSEWHERE)
