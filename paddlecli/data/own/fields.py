"""From the columns of a user's files to the fields of a network: what a recipe may say, and how a
field is learned from the train split, frozen and made again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from paddlecli.config.schema_network import NameOrNames
from paddlecli.config.sections import Section, complain
from paddlecli.config.types import Name
from paddlecli.data.columns import Column, pack
from paddlecli.data.own.frame import Faults, Frame, Kind, Values
from paddlecli.data.own.packed import Packed
from paddlecli.data.spec import FieldSpec, Preprocess, Role
from paddlecli.data.transforms.base import Chain, Steps
from paddlecli.data.transforms.categories import Categories, CategoryIds, ClassIds, OneHot
from paddlecli.data.transforms.colours import Normalise
from paddlecli.data.transforms.pictures import stacked
from paddlecli.data.transforms.tables import Scale
from paddlecli.data.transforms.text import VocabularyIds
from paddlecli.errors import ConfigError, DataError

_WIDEST = 3.4e38  # of float32
_ROWS = 1 << 14  # that are converted at a time


class Part(Section):
    """Columns that go through transforms together."""

    columns: NameOrNames
    """Column, or list of columns, of the files."""
    transforms: Steps = ()
    """What is done to them, in order."""


class FieldRecipe(Section):
    """One input or label of the network, made from columns of the files."""

    role: Literal["input", "label"] = "input"
    """Labels are not needed to predict."""
    columns: NameOrNames | None = None
    """Column, or list of columns, of the files."""
    transforms: Steps = ()
    """What is done to them, in order."""
    parts: tuple[Part, ...] = ()
    """Instead of `columns` and `transforms`: several of them, whose numbers stand side by side."""
    axis: Name | None = None
    """Ragged axis of a sequence; fields on one axis have equal lengths. The field's own name if left
    out."""

    @model_validator(mode="after")
    def _one_way(self) -> FieldRecipe:
        if (self.columns is None) == (not self.parts):
            complain("give `columns`, or `parts` that have columns each")
        if self.parts and self.transforms:
            complain("`transforms` belong into the `parts`", "transforms")
        return self


def names_of(columns: NameOrNames | None) -> tuple[str, ...]:
    """One name or several, as a tuple."""
    if columns is None:
        return ()
    return (columns,) if isinstance(columns, str) else tuple(columns)


class Field:
    """A field in the making: chains of transforms whose results stand side by side.

    Args:
        name: of the field.
        role: input or label.
        chains: one a part.
        axis: ragged axis, where the field is a sequence.
    """

    def __init__(
        self, name: str, role: Role, chains: Sequence[Chain], axis: str | None = None
    ) -> None:
        self.name, self.role, self.chains, self.axis = name, role, tuple(chains), axis
        for chain in self.chains:
            for step in chain.steps:
                if isinstance(step, Categories) and step.unknown is None:
                    step.unknown = role == "input" and isinstance(step, CategoryIds)
        self._shape: tuple[int, ...] = ()
        self._dtype, self._ragged = "float32", False
        self._preprocess: Preprocess | None = None
        self._usual: tuple[float, float] | None = None

    @classmethod
    def of(cls, name: str, recipe: FieldRecipe) -> Field:
        """The field that a recipe describes."""
        parts = recipe.parts or (
            Part(columns=names_of(recipe.columns), transforms=recipe.transforms),
        )
        chains = [Chain(names_of(p.columns), p.transforms) for p in parts]
        return cls(name, recipe.role, chains, recipe.axis)

    def __repr__(self) -> str:
        return f"Field({self.freeze()!r})"

    @property
    def columns(self) -> tuple[str, ...]:
        """The files' columns that it reads."""
        return tuple(dict.fromkeys(c for chain in self.chains for c in chain.columns))

    def fit(self, frame: Frame, faults: Faults) -> Column:
        """Learns from the train rows, and gives their column."""
        made = []
        for chain in self.chains:
            values = chain.fit([frame.column(c) for c in chain.columns], faults)
            made.append(chain.finished(values, faults))
        return self._column(made, faults, learn=True)

    def apply(self, frame: Frame, faults: Faults) -> Column:
        """The column of other rows."""
        made = []
        for chain in self.chains:
            values = chain.apply([frame.column(c) for c in chain.columns], faults)
            made.append(chain.finished(values, faults))
        return self._column(made, faults, learn=False)

    def words(self, frame: Frame, faults: Faults) -> list[str] | None:
        """The words of the first row, before they become ids; None where the field has none."""
        chain = self.chains[0]
        if len(self.chains) != 1 or chain.find(VocabularyIds) is None:
            return None
        columns = [frame.column(c) for c in chain.columns]
        return list(chain.before(VocabularyIds, columns, faults).rows[0])

    def unknown(self, frame: Frame, faults: Faults) -> dict[str, str]:
        """By column the category of the first row that none of the train rows had."""
        odd = {}
        for chain in self.chains:
            step = chain.find(Categories)
            if step is None:
                continue
            columns = [frame.column(c) for c in chain.columns]
            value = chain.before(Categories, columns, faults).rows[0]
            if value and value not in step.table.ids:
                odd[chain.name] = value
        return odd

    def notes(self) -> list[str]:
        """What a user should know of what was learned."""
        return [note for chain in self.chains for note in chain.notes()]

    # -- what it is -------------------------------------------------------------------------------
    def spec(self) -> FieldSpec:
        """The field as the other rooms see it; only behind `fit` or `thaw`."""
        classes, names = self._classes()
        axes = (self.axis or self.name,) if self._ragged else ()
        return FieldSpec(
            self.name, self.role, self._shape, self._dtype, axes, classes,
            names if self.role == "label" else (), self._preprocess,
            usual=self._usual,
        )  # fmt: skip

    def _classes(self) -> tuple[int | None, tuple[str, ...]]:
        if len(self.chains) != 1 or not self.chains[0].steps:
            return None, ()
        last = self.chains[0].steps[-1]
        table = self.chains[0].find(VocabularyIds) or self.chains[0].find(Categories)
        if isinstance(last, ClassIds):
            return last.classes, ()
        if table is None or isinstance(last, OneHot):
            return None, ()
        return len(table.table), table.table.words

    def freeze(self) -> dict[str, Any]:
        """The field with what it learned, as plain data."""
        p = self._preprocess
        return {
            "name": self.name,
            "role": self.role,
            "axis": self.axis,
            "shape": list(self._shape),
            "dtype": self._dtype,
            "ragged": self._ragged,
            "usual": list(self._usual) if self._usual else None,
            "preprocess": None
            if p is None
            else {
                "dtype": p.dtype,
                "scale": p.scale,
                "shift": p.shift,
                "channels": [list(c) for c in p.channels],
            },
            "parts": [chain.freeze() for chain in self.chains],
        }

    @classmethod
    def thaw(cls, frozen: Mapping[str, Any]) -> Field:
        """The field that `freeze` wrote."""
        chains = [Chain.thaw(part) for part in frozen["parts"]]
        field = cls(frozen["name"], frozen["role"], chains, frozen["axis"])
        field._shape, field._dtype = tuple(frozen["shape"]), frozen["dtype"]
        field._ragged, p = bool(frozen["ragged"]), frozen["preprocess"]
        if p is not None:
            channels = tuple((scale, shift) for scale, shift in p.get("channels", ()))
            field._preprocess = Preprocess(p["dtype"], p["scale"], p["shift"], channels)
        usual = frozen["usual"]
        field._usual = (usual[0], usual[1]) if usual else None
        return field

    # -- columns ----------------------------------------------------------------------------------
    def _column(self, parts: Sequence[Values], faults: Faults, learn: bool) -> Column:
        values = parts[0] if len(parts) == 1 else self._side_by_side(parts)
        column: Column = _MAKERS[values.kind](values.rows, faults.about(self.name))
        self._formed(column.item_shape, str(column.dtype), bool(column.offsets), learn)
        if learn and values.kind in ("pictures", "arrays"):
            self._preprocess = self._affine(values.kind == "pictures")
        if learn and self.role == "label" and column.dtype == np.float32 and len(column.values):
            self._usual = _usual(column)
        return column

    def pictures(self, shape: tuple[int, ...], dtype: str, learn: bool) -> None:
        """Says what the pictures of a split are, which are made elsewhere."""
        self._formed(shape, dtype, False, learn)
        if learn:
            self._preprocess = self._affine(True)

    def _formed(self, shape: tuple[int, ...], dtype: str, ragged: bool, learn: bool) -> None:
        if learn:
            self._shape, self._dtype, self._ragged = shape, dtype, ragged
        elif (shape, dtype, ragged) != (self._shape, self._dtype, self._ragged):
            raise DataError(
                f"field {self.name}: the train rows are {self._dtype} {list(self._shape)}, "
                f"other rows are {dtype} {list(shape)}"
            )

    def _side_by_side(self, parts: Sequence[Values]) -> Values:
        odd = next((p.kind for p in parts if p.kind not in ("numbers", "ids")), None)
        if odd is not None:
            raise ConfigError(f"field {self.name}: only numbers can stand side by side, not {odd}")
        rows = [np.asarray(p.rows, np.float64).reshape(len(p), -1) for p in parts]
        return Values("numbers", np.concatenate(rows, axis=1))

    def _affine(self, pictures: bool) -> Preprocess | None:
        """What the plan does to values that are kept as bytes; a network takes no bytes."""
        if self._dtype != "uint8":
            return None
        if pictures:
            found = self.chains[0].find(Normalise)
            return found.affine() if found is not None else Preprocess("float32", 1.0 / 255.0)
        scale = self.chains[0].find(Scale)
        return (
            Preprocess("float32", scale.by, scale.plus)
            if scale is not None
            else Preprocess("float32")
        )


def _usual(column: Column) -> tuple[float, float] | None:
    """Mean and standard deviation of single numbers; None for anything else."""
    values = column.values.astype(np.float64)
    if column.offsets or values[0].size != 1:
        return None
    return float(values.mean()), float(values.std())


def _of_numbers(rows: NDArray[np.float64], faults: Faults) -> Column:
    made = np.empty(rows.shape, np.float32)
    for first in range(0, len(rows), _ROWS):
        part = rows[first : first + _ROWS]
        faults.behind(first)
        for row in np.flatnonzero(np.isnan(part).any(axis=1)).tolist():
            faults.add(row, "a value is missing (the transform `fill_missing` puts one there)")
        for row in np.flatnonzero((np.abs(part) > _WIDEST).any(axis=1)).tolist():
            faults.add(row, "a number is too large for float32")
        made[first : first + _ROWS] = np.clip(part, -_WIDEST, _WIDEST)
    faults.behind(0)
    return Column(made)


def _of_ids(rows: NDArray[np.int64], faults: Faults) -> Column:
    return Column(np.ascontiguousarray(rows, np.int64))


def _of_tokens(rows: Sequence[NDArray[np.int64]], faults: Faults) -> Column:
    if isinstance(rows, Packed):
        values, edges = rows.ids()
        return Column(values, (edges,))
    return pack(rows, "int64")


def _of_series(rows: Sequence[NDArray[np.float64]], faults: Faults) -> Column:
    width = rows[0].shape[1:] if rows else ()
    for row, values in enumerate(rows):
        if values.shape[1:] != width:
            faults.add(
                row, f"items have shape {list(values.shape[1:])}, those before {list(width)}"
            )
        elif not len(values) or not np.isfinite(values).all():
            faults.add(row, "a sequence is empty, or holds a number that is missing or not finite")
    fitting = [v if v.shape[1:] == width else np.zeros((1, *width)) for v in rows]
    return pack(fitting, "float32", width)


def _of_arrays(rows: NDArray[Any], faults: Faults) -> Column:
    kept = {"u": "uint8", "i": "int64", "b": "float32", "f": "float32"}
    if rows.dtype.kind not in kept:
        raise ConfigError(
            f"{faults.frame.files[0]}: {faults.subject}: arrays of {rows.dtype} cannot be used"
        )
    dtype = (
        kept[rows.dtype.kind] if rows.dtype != np.uint16 and rows.dtype.itemsize < 9 else "float32"
    )
    if rows.dtype.kind == "u" and rows.dtype.itemsize > 1:
        dtype = "int64"
    if rows.dtype.kind == "f":
        for row in np.flatnonzero(~np.isfinite(rows).reshape(len(rows), -1).all(axis=1)).tolist():
            faults.add(row, "a number is missing or not finite")
    return Column(np.ascontiguousarray(rows.astype(dtype, copy=False)))


_MAKERS: dict[Kind, Callable[..., Column]] = {
    "numbers": _of_numbers,
    "ids": _of_ids,
    "tokens": _of_tokens,
    "series": _of_series,
    "arrays": _of_arrays,
    "pictures": stacked,
}
