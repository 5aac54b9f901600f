"""Deterministic arrays of declared shapes, for benchmarks, smoke runs and tests. No file is read.

Every value is a function of (seed, split, field, position), so the same recipe sees the same data
anywhere. Float fields are standard normal, integer fields uniform in [0, classes); the lengths of a
ragged axis are uniform in its range.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from zlib import crc32

from pydantic import model_validator

from paddlecli.config.registry import READERS
from paddlecli.config.types import Count, Natural
from paddlecli.data.card_files import CardModel
from paddlecli.data.cards import Card, CardPreprocess
from paddlecli.data.readers.base import Reader
from paddlecli.data.spec import DatasetSpec, FieldSpec
from paddlecli.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from paddlecli.data.columns import Column, Dataset, Rows

ANNOUNCED = "these data are generated: what is learned from them says nothing about the world"
"""What every user of generated data is told."""
_STREAM = crc32(b"generated")
_PIECE = 1 << 14  # numbers drawn at a time


class GeneratedField(CardModel):
    """One column to generate."""

    name: str
    """Name of the column."""
    role: Literal["input", "label"] = "input"
    """Labels are not needed to predict."""
    shape: tuple[Count, ...] = ()
    """Shape of one sample, or of one row on a ragged axis."""
    dtype: Literal["uint8", "int32", "int64", "float32", "float64"] = "float32"
    """Type the values are stored in."""
    axes: tuple[str, ...] = ()
    """Ragged axes that the field lies on, outermost first."""
    classes: Count | None = None
    """Integer values are drawn from [0, classes)."""
    preprocess: CardPreprocess | None = None
    """What the plan does to the values first."""

    @model_validator(mode="after")
    def _bounded(self) -> GeneratedField:
        if self.dtype.startswith("int") and self.classes is None:
            raise ValueError(f"field {self.name}: an integer field needs `classes`")
        if self.dtype == "uint8" and (self.classes or 0) > 256:
            raise ValueError(f"field {self.name}: uint8 holds at most 256 classes")
        return self


@READERS.register("generated")
class GeneratedReader(Reader):
    """Builds the declared fields.

    Args:
        fields: the columns.
        samples: rows of the split train.
        test_samples: rows of the split test; 0 leaves it out.
        lengths: shortest and longest sequence of each ragged axis.
        seed: start of all values.

    Raises:
        ConfigError: a field lies on an axis of which `lengths` says nothing, or a range is none.
    """

    def __init__(
        self,
        card: Card,
        *,
        fields: tuple[GeneratedField, ...],
        samples: Count = 1024,
        test_samples: Natural = 256,
        lengths: dict[str, tuple[Natural, Natural]] | None = None,
        seed: Natural = 0,
    ) -> None:
        super().__init__(card)
        self.fields, self.samples, self.test_samples = fields, samples, test_samples
        self.lengths, self.seed = lengths or {}, seed
        self._check()

    def _check(self) -> None:
        if not self.fields:
            raise ConfigError("data set generated: `fields` is empty")
        for axis, (low, high) in self.lengths.items():
            if low > high:
                raise ConfigError(
                    f"data set generated: lengths.{axis}: {low} to {high} is no range"
                )
        for field in self.fields:
            unknown = [axis for axis in field.axes if axis not in self.lengths]
            if unknown:
                raise ConfigError(
                    f"data set generated: field {field.name} lies on the axis {unknown[0]}, of "
                    f"which `lengths` says nothing"
                )

    def describe(self) -> DatasetSpec:
        """See `Reader.describe`."""
        sizes: dict[str, int | None] = {"train": self.samples}
        if self.test_samples:
            sizes["test"] = self.test_samples
        fields = tuple(_spec(f) for f in self.fields)
        return DatasetSpec(
            self.card.name, self.card.title, fields, sizes, generated=True, remarks=(ANNOUNCED,)
        )

    def open(self, files: Mapping[str, Path]) -> Dataset:
        """See `Reader.open`."""
        from paddlecli.data.columns import Dataset, Split

        spec = self.describe()
        splits = {}
        for split, rows in spec.sizes.items():
            draw = _Draw(self.seed, split, rows or 0, self.lengths)
            splits[split] = Split(split, {f.name: draw.column(f) for f in spec.fields})
        return Dataset(spec, splits)


def _spec(f: GeneratedField) -> FieldSpec:
    p = f.preprocess
    return FieldSpec(
        f.name,
        f.role,
        tuple(f.shape),
        f.dtype,
        tuple(f.axes),
        f.classes,
        (),
        p.made() if p else None,
    )


class _Draw:
    """One split's values. Offsets of a chain of axes are drawn once, so that fields on one axis
    agree."""

    def __init__(
        self, seed: int, split: str, rows: int, lengths: Mapping[str, tuple[int, int]]
    ) -> None:
        self.seed, self.split, self.rows, self.lengths = seed, split, rows, lengths
        self.made: dict[tuple[str, ...], Rows] = {}

    def words(self, what: str, count: int, first: int = 0) -> NDArray[np.uint64]:
        """Random words of one field or axis, `count` from the position `first` on."""
        from paddlecli.data.loader import random_words

        name = crc32(f"{self.split}/{what}".encode())
        return random_words(count, _STREAM, self.seed, name, first=first)

    def offsets(self, chain: tuple[str, ...]) -> Rows:
        """Offsets of the last axis of the chain; a chain is an axis with all that are around it."""
        import numpy as np

        if chain not in self.made:
            count = int(self.offsets(chain[:-1])[-1]) if len(chain) > 1 else self.rows
            low, high = self.lengths[chain[-1]]
            words = self.words("axis/" + "/".join(chain), count)
            offsets = np.zeros(count + 1, np.int64)
            np.cumsum(low + (words % np.uint64(high - low + 1)).astype(np.int64), out=offsets[1:])
            self.made[chain] = offsets
        return self.made[chain]

    def column(self, field: FieldSpec) -> Column:
        """The column of one field."""
        from paddlecli.data.columns import Column

        offsets = tuple(self.offsets(field.axes[: i + 1]) for i in range(len(field.axes)))
        count = (int(offsets[-1][-1]) if offsets else self.rows) * math.prod(field.shape)
        values = _values(self, field, count)
        return Column(values.reshape(-1, *field.shape), offsets)


def _values(draw: _Draw, field: FieldSpec, count: int) -> NDArray[Any]:
    """All values of a field, drawn in pieces so that no more than the column itself is held."""
    import numpy as np

    values = np.empty(count, field.dtype)
    if not field.dtype.startswith("float"):
        classes = np.uint64(field.classes or 256)
        for first in range(0, count, _PIECE):
            piece = values[first : first + _PIECE]
            piece[:] = draw.words(field.name, piece.size, first) % classes
        return values
    half = (count + 1) // 2
    for first in range(0, half, _PIECE):
        size = min(_PIECE, half - first)
        # Box and Muller 1958: two uniforms make two independent normals
        radius = np.sqrt(-2.0 * np.log(_uniform(draw.words(field.name, size, first))))
        angle = 2.0 * math.pi * _uniform(draw.words(field.name, size, half + first))
        values[first : first + size] = radius * np.cos(angle)
        second = values[half + first : half + first + size]  # one short at the end of an odd count
        second[:] = (radius * np.sin(angle))[: second.size]
    return values


def _uniform(words: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Numbers inside (0, 1)."""
    import numpy as np

    return ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
