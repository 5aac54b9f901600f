"""Oxford Flowers 102: photographs in an archive, their labels and the splits in MATLAB files.

As in the original the set that its authors call test (`tstid`) trains, and the one that they call
train (`trnid`) tests. The shorter side of a photograph is scaled to `short` pixels and a square of
`size` is cut: for training at a random place, half of them mirrored, else from the middle. Photographs
come by their number; the original took them in the archive's order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from paddlecli.config.registry import READERS
from paddlecli.config.types import Count, Natural
from paddlecli.data.cards import Card
from paddlecli.data.readers.archived import ArchivedReader, Columns
from paddlecli.data.readers.base import check_classes
from paddlecli.data.spec import FieldSpec
from paddlecli.errors import ConfigError, DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from paddlecli.data.columns import Column, Dataset, Rows, Split

_ARCHIVE, _LABELS, _SETS = "102flowers.tgz", "imagelabels.mat", "setid.mat"
_PICTURE = re.compile(r"(?:.*/)?image_(\d+)\.jpg")
_SPLITS = {"train": "tstid", "valid": "valid", "test": "trnid"}


@READERS.register("flowers")
class FlowersReader(ArchivedReader):
    """Photographs as bytes [3, size, size] and their class.

    Args:
        short: pixels that the shorter side is scaled to.
        size: sides of the square that is cut.
        crop: where training cuts: `random`, with half of the squares mirrored, or the `centre`.
        seed: start of the random numbers.
    """

    def __init__(
        self, card: Card, *, short: Count = 256, size: Count = 224,
        crop: Literal["random", "centre"] = "random", seed: Natural = 0,
    ) -> None:  # fmt: skip
        super().__init__(card, short=short, size=size, crop=crop, seed=seed)
        self.short, self.size, self.crop, self.seed = short, size, crop, seed
        if size > short:
            raise ConfigError(f"data set {card.name}: size {size} is larger than short {short}")

    def fields(self, sizes: Mapping[str, int]) -> list[FieldSpec]:
        """See `ArchivedReader.fields`."""
        from dataclasses import replace

        shape = (3, self.size, self.size)
        return [replace(f, shape=shape) if f.name == "image" else f for f in super().fields(sizes)]

    def split(self, name: str, columns: Columns) -> Split:
        """See `ArchivedReader.split`."""
        from paddlecli.data.readers.photographs import PIXELS, CroppedSplit

        if PIXELS not in columns:
            return super().split(name, columns)
        return CroppedSplit(name, columns, self.size, self.seed)

    def open(self, files: Mapping[str, Path]) -> Dataset:
        """See `Reader.open`."""
        import numpy as np

        from paddlecli.data.columns import Column

        labels = _numbers(files[_LABELS], "labels") - 1
        sizes = self._sizes(files)
        splits: dict[str, dict[str, Any]] = {}
        places: dict[int, NDArray[np.uint8]] = {}
        for split, name in _SPLITS.items():
            numbers = np.sort(_numbers(files[_SETS], name))
            if not numbers.size or not 1 <= numbers[0] <= numbers[-1] <= labels.size:
                raise DataError(f"{files[_SETS]}: {name} holds no numbers, or some without a label")
            lacking = [n for n in numbers.tolist() if n not in sizes]
            if lacking:
                more = f"({len(lacking)} are missing)"
                raise DataError(f"{files[_ARCHIVE]}: holds no image_{lacking[0]:05d}.jpg {more}")
            mine = labels[numbers - 1]
            check_classes(mine, 102, files[_LABELS], "label")
            random = split == "train" and self.crop == "random"
            found = (
                self._whole(numbers, sizes, places) if random else self._squares(numbers, places)
            )
            splits[split] = {**found, "label": Column(mine)}
        for number, name, data in self._photographs(files):
            if number in places:
                self._put(places[number], data, f"{files[_ARCHIVE]}: {name}")
        return self.made(splits)

    def _photographs(self, files: Mapping[str, Path]) -> Iterator[tuple[int, str, bytes]]:
        for name, data in self.members(files, _ARCHIVE):
            found = _PICTURE.fullmatch(name)
            if found:
                yield int(found[1]), name, data

    def _sizes(self, files: Mapping[str, Path]) -> dict[int, tuple[int, int]]:
        """Width and height of every photograph whose shorter side has been scaled."""
        from paddlecli.data.readers.photographs import opened

        sizes = {}
        for number, name, data in self._photographs(files):
            width, height = opened(data, f"{files[_ARCHIVE]}: {name}").size
            least = min(width, height)
            sizes[number] = self.short * width // least, self.short * height // least
        return sizes

    def _squares(self, numbers: Rows, places: dict[int, NDArray[np.uint8]]) -> dict[str, Column]:
        """Room for squares, and where each goes."""
        from paddlecli.data.columns import Column
        from paddlecli.data.readers.photographs import room

        pixels = room(numbers.size, 3, self.size, self.size)
        places.update(zip(numbers.tolist(), pixels.transpose(0, 2, 3, 1), strict=True))
        return {"image": Column(pixels)}

    def _whole(
        self, numbers: Rows, sizes: Mapping[int, tuple[int, int]], places: dict[int, NDArray[np.uint8]]
    ) -> dict[str, Column]:  # fmt: skip
        """Room for whole photographs, and where each goes."""
        import numpy as np

        from paddlecli.data.columns import Column
        from paddlecli.data.readers.photographs import PIXELS, WIDTH, room

        found = np.asarray([sizes[n] for n in numbers.tolist()], np.int64)
        edges = np.append(0, np.cumsum(found[:, 0] * found[:, 1]))
        pixels = room(int(edges[-1]), 3)
        for number, (width, height), edge in zip(numbers.tolist(), found, edges, strict=False):
            places[number] = pixels[edge : edge + width * height].reshape(height, width, 3)
        return {PIXELS: Column(pixels, (edges,)), WIDTH: Column(np.ascontiguousarray(found[:, 0]))}

    def _put(self, place: NDArray[np.uint8], data: bytes, source: str) -> None:
        """Puts a photograph where it goes, or its middle where that is smaller."""
        from paddlecli.data.readers.photographs import opened, scaled

        image = opened(data, source)
        least = min(image.size)
        wide, tall = (self.short * n // least for n in image.size)
        height, width = place.shape[:2]
        left, top = (wide - width) // 2, (tall - height) // 2
        picture = scaled(image, wide, tall, source)
        place[:] = picture[top : top + height, left : left + width]


def _numbers(path: Path, name: str) -> NDArray[np.int64]:
    import numpy as np

    from paddlecli.data.formats.matlab import read_mat

    found = read_mat(path)
    if name not in found:
        raise DataError(f"{path}: holds no array {name}; it has {', '.join(found) or 'none'}")
    return np.asarray(found[name].reshape(-1), np.int64)
