"""Oxford Flowers 102: photographs in an archive, their labels and the splits in MATLAB files.

As in the original the set that its authors call test (`tstid`) trains, and the one that they call
train (`trnid`) tests. The shorter side of a photograph is scaled to `short` pixels and a square of
`size` is cut from the middle, as the original did when testing. Photographs come by their number; the
original took them in the archive's order.
"""

from __future__ import annotations

import io
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paddlecli import settings
from paddlecli.config.registry import READERS
from paddlecli.config.types import Count
from paddlecli.data.cards import Card
from paddlecli.data.readers.archived import ArchivedReader
from paddlecli.data.readers.base import check_classes
from paddlecli.data.spec import FieldSpec
from paddlecli.errors import ConfigError, DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from paddlecli.data.columns import Dataset

_ARCHIVE, _LABELS, _SETS = "102flowers.tgz", "imagelabels.mat", "setid.mat"
_PICTURE = re.compile(r"(?:.*/)?image_(\d+)\.jpg")
_SPLITS = {"train": "tstid", "valid": "valid", "test": "trnid"}
_MOST_PIXELS = 1 << 26


@READERS.register("flowers")
class FlowersReader(ArchivedReader):
    """Photographs as bytes [3, size, size] and their class.

    Args:
        short: pixels that the shorter side is scaled to.
        size: sides of the square that is cut from the middle.
    """

    def __init__(self, card: Card, *, short: Count = 256, size: Count = 224) -> None:
        super().__init__(card, short=short, size=size)
        self.short, self.size = short, size
        if size > short:
            raise ConfigError(f"data set {card.name}: size {size} is larger than short {short}")

    def fields(self, sizes: Mapping[str, int]) -> list[FieldSpec]:
        """See `ArchivedReader.fields`."""
        from dataclasses import replace

        shape = (3, self.size, self.size)
        return [replace(f, shape=shape) if f.name == "image" else f for f in super().fields(sizes)]

    def open(self, files: Mapping[str, Path]) -> Dataset:
        """See `Reader.open`."""
        import numpy as np

        from paddlecli.data.columns import Column

        labels = _numbers(files[_LABELS], "labels") - 1
        places: dict[int, tuple[NDArray[np.uint8], int]] = {}
        splits: dict[str, dict[str, Any]] = {}
        for split, name in _SPLITS.items():
            numbers = np.sort(_numbers(files[_SETS], name))
            if not numbers.size or not 1 <= numbers[0] <= numbers[-1] <= labels.size:
                raise DataError(f"{files[_SETS]}: {name} holds no numbers, or some without a label")
            pixels = self._room(numbers.size)
            places.update({int(n): (pixels, row) for row, n in enumerate(numbers)})
            mine = labels[numbers - 1]
            check_classes(mine, 102, files[_LABELS], "label")
            splits[split] = {"image": Column(pixels), "label": Column(mine)}
        for name, data in self.members(files, _ARCHIVE):
            found = _PICTURE.fullmatch(name)
            place = places.pop(int(found[1]), None) if found else None
            if place is not None:
                place[0][place[1]] = self._square(data, f"{files[_ARCHIVE]}: {name}")
        if places:
            raise DataError(
                f"{files[_ARCHIVE]}: holds no image_{min(places):05d}.jpg ({len(places)} are missing)"
            )
        return self.made(splits)

    def _room(self, count: int) -> NDArray[np.uint8]:
        """Room for pictures, in a file without a name: all of them are more than a gigabyte."""
        import numpy as np

        shape = (count, 3, self.size, self.size)
        folder = settings.cache_dir()
        with tempfile.TemporaryFile(dir=folder if folder.is_dir() else None) as stream:
            return np.memmap(stream, np.uint8, "w+", shape=shape)

    def _square(self, data: bytes, source: str) -> NDArray[np.uint8]:
        import numpy as np
        from PIL import Image

        try:
            with Image.open(io.BytesIO(data), formats=("JPEG", "PNG")) as image:
                width, height = image.size
                if width * height > _MOST_PIXELS:
                    raise DataError(f"{source}: {width}x{height} pixels are too many")
                least = min(width, height)
                wide = self.short * width // least, self.short * height // least
                scaled = image.convert("RGB").resize(wide, Image.Resampling.BICUBIC)
        except (OSError, SyntaxError, ValueError) as error:
            raise DataError(f"{source}: no picture that can be read: {error}") from None
        left, top = (wide[0] - self.size) // 2, (wide[1] - self.size) // 2
        square = scaled.crop((left, top, left + self.size, top + self.size))
        return np.asarray(square).transpose(2, 0, 1)


def _numbers(path: Path, name: str) -> NDArray[np.int64]:
    import numpy as np

    from paddlecli.data.formats.matlab import read_mat

    found = read_mat(path)
    if name not in found:
        raise DataError(f"{path}: holds no array {name}; it has {', '.join(found) or 'none'}")
    return np.asarray(found[name].reshape(-1), np.int64)
