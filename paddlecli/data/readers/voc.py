"""PASCAL VOC 2012: photographs and for each pixel the class of what it shows, from one archive.

`ImageSets/Segmentation/train.txt` and `val.txt` name the photographs; `JPEGImages/<name>.jpg` and
`SegmentationClass/<name>.png` hold them and their masks, pictures with a palette whose entries are the
classes. Both are scaled together so that the longer side has `size` pixels (a mask takes its nearest
pixel) and stand in the upper left corner of a square; below and beside them the photograph is black
and the mask void.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from paddlecli.config.registry import READERS
from paddlecli.config.types import Count
from paddlecli.data.cards import Card
from paddlecli.data.readers.archived import ArchivedReader
from paddlecli.data.readers.base import decode
from paddlecli.data.spec import FieldSpec
from paddlecli.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL import Image

    from paddlecli.data.columns import Dataset

_ARCHIVE = "VOCtrainval_11-May-2012.tar"
_SPLITS = {"train": "train.txt", "valid": "val.txt"}
_LISTS, _PHOTOGRAPHS, _MASKS = "/ImageSets/Segmentation/", "/JPEGImages/", "/SegmentationClass/"
VOID = 255
"""The class of outlines and of what belongs to no class; a loss passes it over (`ignore_index: 255`)."""


@READERS.register("voc")
class VocReader(ArchivedReader):
    """Photographs as bytes [3, size, size] and masks of class numbers as bytes [size, size].

    Args:
        size: sides of the square that both are brought into.
    """

    def __init__(self, card: Card, *, size: Count = 256) -> None:
        super().__init__(card, size=size)
        self.size = size

    def fields(self, sizes: Mapping[str, int]) -> list[FieldSpec]:
        """See `ArchivedReader.fields`."""
        shapes = {"image": (3, self.size, self.size), "mask": (self.size, self.size)}
        return [replace(f, shape=shapes[f.name]) for f in super().fields(sizes)]

    def open(self, files: Mapping[str, Path]) -> Dataset:
        """See `Reader.open`."""
        from paddlecli.data.columns import Column
        from paddlecli.data.readers.photographs import room

        source = files[_ARCHIVE]
        splits, places = {}, {}
        for split, names in self._lists(files).items():
            pixels, masks = (
                room(len(names), 3, self.size, self.size),
                room(len(names), self.size, self.size),
            )
            masks[:] = VOID
            splits[split] = {"image": Column(pixels), "mask": Column(masks)}
            for row, name in enumerate(names):
                places[_PHOTOGRAPHS + name + ".jpg"] = pixels[row].transpose(1, 2, 0)
                places[_MASKS + name + ".png"] = masks[row]
        for name, data in self._wanted(files, (_PHOTOGRAPHS, _MASKS)):
            place = places.pop(name, None)
            if place is not None:
                self._put(place, data, f"{source}: {name[1:]}")
        if places:
            raise DataError(f"{source}: holds no {min(places)[1:]} ({len(places)} are missing)")
        return self.made(splits)

    def _lists(self, files: Mapping[str, Path]) -> dict[str, list[str]]:
        """Names of the photographs of every split."""
        source = files[_ARCHIVE]
        texts = {
            name.removeprefix(_LISTS): decode(data, f"{source}: {name[1:]}")
            for name, data in self._wanted(files, (_LISTS,))
        }
        found = {}
        for split, file in _SPLITS.items():
            if file not in texts:
                raise DataError(f"{source}: holds no {_LISTS[1:]}{file}")
            found[split] = texts[file].split()
            if not found[split]:
                raise DataError(f"{source}: {_LISTS[1:]}{file} names no photographs")
        return found

    def _wanted(
        self, files: Mapping[str, Path], folders: tuple[str, ...]
    ) -> Iterator[tuple[str, bytes]]:
        """Members of these folders, named from the folder on; wherever in the archive they lie."""
        for name, data in self.members(files, _ARCHIVE):
            for folder in folders:
                _, at, rest = f"/{name}".rpartition(folder)
                if at and "/" not in rest:
                    yield folder + rest, data

    def _put(self, place: NDArray[np.uint8], data: bytes, source: str) -> None:
        """Puts a photograph [size, size, 3] or a mask [size, size] where it goes."""
        from paddlecli.data.readers.photographs import opened, scaled

        image = opened(data, source)
        most = max(image.size)
        width, height = (max(1, self.size * n // most) for n in image.size)
        if place.ndim == 3:
            place[:height, :width] = scaled(image, width, height, source)
            return
        place[:height, :width] = _mask(image, width, height, source)


def _mask(image: Image.Image, width: int, height: int, source: str) -> NDArray[np.uint8]:
    import numpy as np
    from PIL import Image

    if image.mode not in ("P", "L"):
        raise DataError(f"{source}: a mask has a palette, this picture is {image.mode}")
    try:
        found = np.asarray(image.resize((width, height), Image.Resampling.NEAREST))
    except (OSError, SyntaxError, ValueError) as error:
        raise DataError(f"{source}: no mask that can be read: {error}") from None
    odd = found[(found > 20) & (found != VOID)]
    if odd.size:
        raise DataError(
            f"{source}: a pixel has class {odd[0]}: there are 0 to 20, and {VOID} for void"
        )
    return found
