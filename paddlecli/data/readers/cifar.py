"""CIFAR-10 and CIFAR-100: the official archives of pickles, and folders of JPEG or PNG pictures.

A pickle holds `data` (uint8, 3,072 a picture: red, green and blue plane, rows from the top) and
`labels`, or `fine_labels`. Pictures in folders (`train/airplane/0000.jpg`) are another form of the
data, never the official one: theirs is the order by number, then by class, since the official order
cannot be had from them.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paddlecli.config.registry import READERS
from paddlecli.config.types import Natural
from paddlecli.data.cards import Card
from paddlecli.data.readers.archived import ArchivedReader
from paddlecli.data.readers.base import check_classes
from paddlecli.data.spec import DatasetSpec
from paddlecli.data.transforms.base import Steps
from paddlecli.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from paddlecli.data.columns import Dataset
    from paddlecli.data.fetching.cache import Found

_PICKLE = re.compile(r"(?:.*/)?(?:(data_batch_\d+|train)|(test_batch|test))")
_PICTURE = re.compile(r"(?:.*/)?(train|test)/([^/]+)/(\d+)\.(?:jpe?g|png)")
_LABELS = (b"labels", b"fine_labels")
_SHAPE = (3, 32, 32)

Part = tuple["NDArray[np.uint8]", "NDArray[np.int64]"]


@READERS.register("cifar")
class CifarReader(ArchivedReader):
    """Pictures as bytes [3, 32, 32] and their class.

    Args:
        transforms: what is done to the pictures, such as `random_crop`, `flip` and `normalise`.
        seed: start of the random numbers of transforms.
    """

    def __init__(self, card: Card, *, transforms: Steps = (), seed: Natural = 0) -> None:
        super().__init__(
            card
        )  # what is prepared on the disk are the pictures as they were published
        self.transforms, self.seed = transforms, seed

    def standard(self) -> bool:
        """See `Reader.standard`: transforms change no number of rows or classes."""
        return True

    def describe(self) -> DatasetSpec:
        """See `Reader.describe`."""
        stored = super().describe()
        if not self.transforms:
            return stored
        from paddlecli.data.own.held import Changed

        return Changed(stored, self.transforms).spec

    def load(self, found: Mapping[str, Found]) -> Dataset:
        """See `Reader.load`."""
        if not self.transforms:
            return super().load(found)
        from paddlecli.data.own.held import Changed

        stored = CifarReader(self.card).load(found)
        return Changed(stored.spec, self.transforms).dataset(stored, self.seed)

    def open(self, files: Mapping[str, Path]) -> Dataset:
        """See `Reader.open`."""
        (file,) = files
        pickles, pictures = [], []
        for name, data in self.members(files, file):
            if found := _PICTURE.fullmatch(name):
                pictures.append((found[1], int(found[3]), found[2], data))
            elif found := _PICKLE.fullmatch(name):
                split = "train" if found[1] else "test"
                pickles.append((split, name, data))
        if pickles:
            parts = self._unpickled(sorted(pickles, key=lambda p: p[:2]), files[file])
        elif pictures:
            parts = self._decoded(sorted(pictures, key=lambda p: p[:3]), files[file])
        else:
            raise DataError(f"{files[file]}: holds neither CIFAR's batches nor folders of pictures")
        return self.made(self._columns(parts, files[file]))

    def _columns(self, parts: Mapping[str, list[Part]], file: Path) -> dict[str, Any]:
        import numpy as np

        from paddlecli.data.columns import Column

        classes = next(f.classes for f in self.card.fields if f.name == "label")
        splits = {}
        for split in ("train", "test"):
            if split not in parts:
                raise DataError(f"{file}: holds no pictures of the split {split}")
            images, classes_of = zip(*parts[split], strict=True)
            pixels = images[0] if len(images) == 1 else np.concatenate(images)
            labels = np.concatenate(classes_of)
            check_classes(labels, classes, file, f"{split} label")
            splits[split] = {"image": Column(pixels), "label": Column(labels)}
        return splits

    def _unpickled(
        self, members: list[tuple[str, str, bytes]], file: Path
    ) -> dict[str, list[Part]]:
        parts: dict[str, list[Part]] = {}
        for split, name, data in members:
            parts.setdefault(split, []).append(_batch(data, f"{file}: {name}"))
        return parts

    def _decoded(
        self, members: list[tuple[str, int, str, bytes]], file: Path
    ) -> dict[str, list[Part]]:
        import numpy as np

        names = next(f.names for f in self.card.fields if f.name == "label")
        parts: dict[str, list[Part]] = {}
        for split in ("train", "test"):
            mine = [m for m in members if m[0] == split]
            odd = next((m[2] for m in mine if m[2] not in names), None)
            if odd is not None:
                raise DataError(f"{file}: {split}/{odd}: no class of {self.card.name}")
            if mine:
                pixels = np.empty((len(mine), *_SHAPE), np.uint8)
                for row, image in enumerate(_pictures(mine, file)):
                    pixels[row] = image
                labels = np.asarray([names.index(m[2]) for m in mine], np.int64)
                parts[split] = [(pixels, labels)]
        return parts


def _batch(data: bytes, source: str) -> Part:
    import numpy as np

    from paddlecli.data.formats.unpickle import loads

    batch = loads(data, source)
    if not isinstance(batch, dict):
        raise DataError(f"{source}: holds no dictionary")
    pixels = batch.get(b"data", batch.get("data"))
    found = [batch[k] for k in (*_LABELS, *(k.decode() for k in _LABELS)) if k in batch]
    if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.ndim != 2:
        raise DataError(f"{source}: holds no pictures: `data` is no uint8 matrix")
    if pixels.shape[1] != 3072:
        raise DataError(f"{source}: its pictures have {pixels.shape[1]} bytes, not 3072")
    if not found or not all(type(v) is int for v in found[0]):
        raise DataError(f"{source}: holds no list of labels")
    labels = np.asarray(found[0], np.int64)
    if len(labels) != len(pixels):
        raise DataError(f"{source}: {len(pixels)} pictures, but {len(labels)} labels")
    return pixels.reshape(-1, *_SHAPE), labels


def _pictures(
    members: list[tuple[str, int, str, bytes]], file: Path
) -> Iterator[NDArray[np.uint8]]:
    import numpy as np
    from PIL import Image

    for split, number, name, data in members:
        source = f"{file}: {split}/{name}/{number:04d}"
        try:
            with Image.open(io.BytesIO(data), formats=("JPEG", "PNG")) as image:
                if image.size != _SHAPE[1:]:
                    raise DataError(f"{source}: {image.size[0]}x{image.size[1]} pixels, not 32x32")
                yield np.asarray(image.convert("RGB")).transpose(2, 0, 1)
        except (OSError, SyntaxError, ValueError) as error:
            raise DataError(f"{source}: no picture that can be read: {error}") from None
