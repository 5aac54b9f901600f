"""A user's own pictures: one folder a class (`image_folder`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from paddlecli.config.registry import DATASETS
from paddlecli.config.types import Count, Name, Natural, Pair
from paddlecli.data.formats import images
from paddlecli.data.own.fields import Field
from paddlecli.data.own.frame import Frame, Values, frame_of
from paddlecli.data.own.reader import Common, Files, OwnReader
from paddlecli.data.own.splits import SplitRule
from paddlecli.data.transforms.base import Chain, Step, Steps
from paddlecli.data.vocab import natural_key
from paddlecli.errors import ConfigError, DataError


class ImageFolderReader(OwnReader):
    """Pictures in folders named after their classes.

    Args:
        common: what all readers of own files are given.
        transforms: from a path to the picture of the network.
        classes: names of the classes, in order; None: those of the train folders.
    """

    def __init__(self, common: Common, transforms: Steps, classes: tuple[str, ...] | None) -> None:
        super().__init__("image_folder", common)
        self.transforms, self.classes = transforms, classes
        self.predicts = {"format": "pictures"}

    def read(self, path: Path) -> Frame:
        """See `OwnReader.read`."""
        return pictures_in(path)

    def fields(self, train: Frame) -> list[Field]:
        """See `OwnReader.fields`."""
        step: Step = (
            {"category_ids": {"classes": list(self.classes)}} if self.classes else "category_ids"
        )
        return [
            Field("image", "input", [Chain(["image"], self.transforms)]),
            Field("label", "label", [Chain(["label"], [step])]),
        ]


def pictures_in(folder: Path) -> Frame:
    """Paths and classes of the pictures below a folder, classes and files in natural order. A class is
    the folder directly below; what lies deeper belongs to it. Hidden files are passed over.

    Raises:
        DataError: no folder, a class without pictures, or no class at all.
    """
    if not folder.is_dir():
        raise DataError(f"{folder}: not a folder with one folder a class")
    classes = sorted((p for p in folder.iterdir() if p.is_dir() and p.name[0] != "."), key=_key)
    if not classes:
        raise DataError(f"{folder}: holds no folder; pictures lie in one folder a class")
    paths, labels, other = [], [], 0
    for place in classes:
        files = sorted(
            (p for p in place.rglob("*") if p.is_file() and not _hidden(p, place)), key=_key
        )
        found = [p for p in files if p.suffix.lower() in images.SUFFIXES]
        other += len(files) - len(found)
        if not found:
            raise DataError(f"{place}: holds no picture ({', '.join(images.SUFFIXES)})")
        paths += found
        labels += [place.name] * len(found)
    what = "1 file that is no picture" if other == 1 else f"{other:,} files that are no pictures"
    notes = (f"{folder}: {what} passed over",) if other else ()
    names = [str(p.absolute()) for p in paths]
    frame = frame_of(
        {"image": Values("cells", names), "label": Values("cells", labels)}, str(folder)
    )
    import numpy as np

    return Frame(
        frame.columns, tuple(names), np.arange(len(names), dtype=np.int32), frame.line_of, notes
    )


def _key(path: Path) -> list[tuple[int, float, str]]:
    return natural_key(str(path))


def _hidden(path: Path, root: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(root).parts)


@DATASETS.register("image_folder")
def image_folder(
    *,
    train: Files,
    valid: Files | None = None,
    test: Files | None = None,
    split: SplitRule | None = None,
    size: Pair | None = None,
    channels: Literal[1, 3] = 3,
    ground: Natural = 255,
    reduce_to: Count | None = None,
    transforms: Steps = (),
    classes: tuple[Name, ...] | None = None,
    memory_mb: Natural = 1024,
    workers: Natural = 0,
    seed: Natural = 0,
) -> ImageFolderReader:
    """Your own pictures, in one folder a class: `train/cat/1.jpg`, `train/dog/2.png`.

    A picture is the field `image` of bytes [channels, height, width], which the network sees divided by
    255 or as `normalise` says; its class is the field `label`.

    Args:
        train: the folder to train on, or several.
        valid: the folder to validate on, or several.
        test: the folder to test on, or several.
        split: shares of `train` that validate and test, instead of folders.
        size: height and width that every picture is scaled to, before `transforms`.
        channels: 3 for colours, 1 for grey.
        ground: grey value behind transparent pixels.
        reduce_to: JPEG is decoded at a half, a quarter or an eighth of its size where both sides keep at
            least so many pixels: much faster for photographs that are scaled down anyway.
        transforms: what is done to the pictures; without `size` one of them gives all the same size.
        classes: the classes in the order of their numbers; the train folders in natural order if left out.
        memory_mb: pictures are held in memory up to this, else read again in every epoch.
        workers: processes that read pictures that are not held; 0 reads them in threads.
        seed: start of the random numbers of transforms.
    """
    if size is None and not transforms:
        raise ConfigError(
            "data: pictures need one size",
            hint="give `size: [32, 32]`, or `transforms` that end with one",
        )
    decode: dict[str, Any] = {"channels": channels, "ground": ground}
    if reduce_to is not None:
        decode["reduce_to"] = reduce_to
    first: list[Step] = [{"decode": decode}]
    if size is not None:
        first.append({"resize": {"size": list(size)}})
    common = Common(train, valid, test, split, False, memory_mb << 20, workers, seed)
    return ImageFolderReader(common, (*first, *transforms), classes)
