"""Transforms for the pictures of a published data set, which lie in memory as bytes.

What is random is made anew for each picture and epoch, as with pictures of one's own
(`own/streams.py`); splits that are not trained on are transformed once, when the data are opened. A
model of such data reads pictures as one of own pictures does: scaled to the size of the set's, then
through the same transforms.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from paddlecli.config.words import MIXED
from paddlecli.data.columns import Column, Dataset, Split
from paddlecli.data.own.fields import Field
from paddlecli.data.own.streams import PictureStream, Recipe, StreamedSplit, recipe_of
from paddlecli.data.spec import DatasetSpec, FieldSpec
from paddlecli.data.transforms.base import Chain, Step
from paddlecli.data.transforms.colours import Mixup, Normalise
from paddlecli.data.transforms.pictures import Draw
from paddlecli.errors import ConfigError

TRAIN = "train"


class HeldPictures(PictureStream):
    """Pictures of one split that are all in memory.

    Args:
        column: bytes [rows, channels, height, width].
        recipe: how they are changed; its files are not read.
        seed: start of the random numbers.
    """

    def __init__(self, column: Column, recipe: Recipe, seed: int = 0) -> None:
        self.recipe = replace(recipe, files=("",) * len(column.values), sources=())
        self.seed, self.workers = seed, 0
        self.held = column.values.transpose(0, 2, 3, 1)
        made = recipe.rest(self.held[0], None)
        self.shape, self.dtype = (made.shape[2], made.shape[0], made.shape[1]), str(made.dtype)
        self._column = column

    def all(self) -> Column:
        """All pictures as they are outside of training."""
        return self.take(np.arange(len(self._column.values), dtype=np.int64), None)

    def fingerprint(self) -> bytes:
        """The bytes of all pictures."""
        return hashlib.sha256(np.ascontiguousarray(self._column.values).data).digest()


class Changed:
    """What transforms make of a data set with one field of pictures and one label.

    Args:
        spec: the data set as it is stored.
        steps: the transforms as a recipe writes them.

    Raises:
        ConfigError: a transform does not go with pictures, or stands in the wrong place.
    """

    def __init__(self, spec: DatasetSpec, steps: Sequence[Step]) -> None:
        self.stored = spec
        self.image = next(f for f in spec.fields if f.role == "input")
        self.label = next(f for f in spec.fields if f.role == "label")
        size = {"size": list(self.image.shape[1:])}
        decode = {"decode": {"channels": self.image.shape[0]}}
        chain = Chain([self.image.name], [decode, {"resize": size}, *steps])
        whole = recipe_of(chain, (), ())
        self.recipe = replace(whole, steps=whole.steps[1:], cut=0)
        self.field = Field(self.image.name, "input", [chain])
        blank = np.zeros((*self.image.shape[1:], self.image.shape[0]), np.uint8)
        made = self.recipe.rest(blank, None)
        if self.recipe.rest(blank, Draw(0)).shape != made.shape:
            raise ConfigError(
                "the transforms give pictures of other sizes in training than outside"
            )
        self.field.pictures((made.shape[2], *made.shape[:2]), str(made.dtype), learn=True)
        self.normalised = chain.find(Normalise) is not None

    @property
    def mixed(self) -> tuple[str, str, int] | None:
        """The field of shares, the label's and the number of classes, where pictures are mixed."""
        if not any(isinstance(s, Mixup) for s in self.recipe.steps):
            return None
        return MIXED, self.label.name, self.label.classes or 0

    @property
    def spec(self) -> DatasetSpec:
        """The data set as networks see it."""
        image = self.field.spec()
        if not self.normalised and image.dtype == self.image.dtype:
            image = replace(image, preprocess=self.image.preprocess)
        fields = [{self.image.name: image}.get(f.name, f) for f in self.stored.fields]
        if self.mixed is not None:
            fields.append(FieldSpec(self.mixed[0], "label", (self.mixed[2],), "float32"))
        predict = {"kind": "fields", "source": {"format": "pictures"}}
        pipelines = [self.field.freeze(), _frozen(self.label)]
        return replace(
            self.stored, fields=tuple(fields), predict={**predict, "pipelines": pipelines}
        )

    def dataset(self, stored: Dataset, seed: int) -> Dataset:
        """The stored data set with its pictures changed."""
        splits = {name: self._split(split, seed) for name, split in stored.splits.items()}
        spec = replace(self.spec, sizes=stored.spec.sizes, remarks=stored.spec.remarks)
        return Dataset(spec, splits, None, stored.vocabularies)

    def _split(self, split: Split, seed: int) -> Split:
        stream = HeldPictures(split.columns[self.image.name], self.recipe, seed)
        others = {n: c for n, c in split.columns.items() if n != self.image.name}
        if split.name == TRAIN:
            return StreamedSplit(split.name, others, {self.image.name: stream}, self.mixed)
        columns = {**others, self.image.name: stream.all()}
        if self.mixed is not None:
            eye = np.eye(self.mixed[2], dtype=np.float32)
            columns[self.mixed[0]] = Column(eye[split.columns[self.label.name].values])
        return Split(split.name, columns)


def _frozen(label: FieldSpec) -> Mapping[str, Any]:
    """A label of named classes as `frozen.freeze` has it."""
    state = {"vocabulary": list(label.names), "unknown": None}
    steps = [{"name": "category_ids", "arguments": {}, "state": state}]
    return {
        "name": label.name, "role": label.role, "axis": None, "shape": list(label.shape),
        "dtype": label.dtype, "ragged": False, "usual": None, "preprocess": None,
        "parts": [{"columns": [label.name], "steps": steps}],
    }  # fmt: skip
