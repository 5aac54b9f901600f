"""A user's own texts in files: one folder a class, one file a text (`text_folder`)."""

from __future__ import annotations

from pathlib import Path

from paddlecli.config.registry import DATASETS
from paddlecli.config.types import Name
from paddlecli.data.own.columnar import TEXT_STEPS
from paddlecli.data.own.fields import Field
from paddlecli.data.own.frame import Frame, Values, frame_of
from paddlecli.data.own.reader import Common, Files, OwnReader
from paddlecli.data.own.splits import SplitRule
from paddlecli.data.readers.base import read_text
from paddlecli.data.transforms.base import Chain, Step, Steps
from paddlecli.data.vocab import natural_key
from paddlecli.errors import DataError


class TextFolderReader(OwnReader):
    """Text files in folders named after their classes.

    Args:
        common: what all readers of own files are given.
        transforms: from a text to ids.
        classes: names of the classes, in order; None: those of the train folders.
        encoding: of the files.
    """

    def __init__(
        self, common: Common, transforms: Steps, classes: tuple[str, ...] | None, encoding: str
    ) -> None:
        super().__init__("text_folder", common)
        self.transforms, self.classes, self.encoding = transforms, classes, encoding
        self.predicts = {"format": "files", "columns": ["text"], "encoding": encoding}

    def read(self, path: Path) -> Frame:
        """See `OwnReader.read`."""
        return texts_in(path, self.encoding)

    def fields(self, train: Frame) -> list[Field]:
        """See `OwnReader.fields`."""
        step: Step = (
            {"category_ids": {"classes": list(self.classes)}} if self.classes else "category_ids"
        )
        return [
            Field("text", "input", [Chain(["text"], self.transforms)]),
            Field("label", "label", [Chain(["label"], [step])]),
        ]


def texts_in(folder: Path, encoding: str = "utf-8") -> Frame:
    """Texts and classes of the files below a folder, classes and files in natural order. A class is the
    folder directly below; what lies deeper belongs to it. Hidden files are passed over.

    Raises:
        DataError: no folder, a class without files, no class at all, an empty file, or one that is no
            text.
    """
    if not folder.is_dir():
        raise DataError(f"{folder}: not a folder with one folder a class")
    classes = sorted((p for p in folder.iterdir() if p.is_dir() and p.name[0] != "."), key=_key)
    if not classes:
        raise DataError(f"{folder}: holds no folder; texts lie in one folder a class")
    names, texts, labels = [], [], []
    for place in classes:
        found = sorted((p for p in place.rglob("*") if p.is_file() and p.name[0] != "."), key=_key)
        if not found:
            raise DataError(f"{place}: holds no file")
        for file in found:
            text = " ".join(read_text(file, encoding).split())
            if not text:
                raise DataError(f"{file}: holds no text")
            names.append(str(file))
            texts.append(text)
            labels.append(place.name)
    import numpy as np

    held = {"label": Values("cells", labels), "text": Values("cells", texts)}
    frame = frame_of(held, str(folder))
    return Frame(frame.columns, tuple(names), np.arange(len(names), dtype=np.int32), frame.line_of)


def _key(path: Path) -> list[tuple[int, float, str]]:
    return natural_key(str(path))


@DATASETS.register("text_folder")
def text_folder(
    *,
    train: Files,
    valid: Files | None = None,
    test: Files | None = None,
    split: SplitRule | None = None,
    transforms: Steps = TEXT_STEPS,
    classes: tuple[Name, ...] | None = None,
    encoding: Name = "utf-8",
) -> TextFolderReader:
    """Your own texts in files, in one folder a class: `train/good/1.txt`, `train/bad/2.txt`.

    The words of a text are the ragged field `text` of ids, its class is the field `label`.

    Args:
        train: the folder to train on, or several.
        valid: the folder to validate on, or several.
        test: the folder to test on, or several.
        split: shares of `train` that validate and test, instead of folders.
        transforms: what is done to a text; they end with `vocabulary`.
        classes: the classes in the order of their numbers; the train folders in natural order if left out.
        encoding: how the files are written, for example `latin-1`.
    """
    return TextFolderReader(Common(train, valid, test, split), transforms, classes, encoding)
