"""What is known of a data set before it is opened: fields, sizes, names. No numpy, no files.

DatasetSpec
  fields: FieldSpec...     name, item shape, stored dtype, ragged axes, classes, preprocessing
  sizes:  split -> rows
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Role = Literal["input", "label"]


@dataclass(frozen=True)
class Preprocess:
    """What the plan does to a stored value: cast to `dtype`, then `value * scale + shift`; with
    `channels` each channel of a picture has a scale and a shift of its own instead.

    Data stay in memory in their stored type; the model builder turns this into plan nodes.
    """

    dtype: str
    scale: float = 1.0
    shift: float = 0.0
    channels: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class FieldSpec:
    """One named column.

    `shape` is the shape of one item: a row of a dense field, a token of a ragged one. `axes` names
    the ragged axes, outermost first; fields that name the same axis have equal offsets. `classes`
    is the number of ids of an integer field (its values lie in [0, classes)). `names` are the
    classes' names, in id order. `columns` are the table columns that make the field. `vocabulary`
    names the data set's table that the values are ids of. `usual` are mean and standard deviation of
    the train rows, for a label that is one number.
    """

    name: str
    role: Role
    shape: tuple[int, ...]
    dtype: str
    axes: tuple[str, ...] = ()
    classes: int | None = None
    names: tuple[str, ...] = ()
    preprocess: Preprocess | None = None
    columns: tuple[str, ...] = ()
    vocabulary: str | None = None
    usual: tuple[float, float] | None = None

    def as_dict(self) -> dict[str, Any]:
        """What reading one input for `predict` needs, as plain data."""
        return {
            "name": self.name,
            "role": self.role,
            "shape": list(self.shape),
            "dtype": self.dtype,
            "axes": list(self.axes),
            "classes": self.classes,
            "columns": list(self.columns),
            **({"vocabulary": self.vocabulary} if self.vocabulary else {}),
        }

    def plan_dtype(self) -> str:
        """The dtype that the field has behind its preprocessing."""
        return self.preprocess.dtype if self.preprocess else self.dtype


@dataclass(frozen=True)
class DatasetSpec:
    """Fields in order, rows per split (None: known only after opening) and where the data come
    from.

    `predict` says how `predict` reads one input (see `data/inputs.py`); without it inputs are given
    as values. `unofficial`: some of it is not what the authors published. `remarks` are what a user
    of these data has to know, one sentence each.
    """

    name: str
    title: str
    fields: tuple[FieldSpec, ...]
    sizes: Mapping[str, int | None]
    generated: bool = False
    predict: Mapping[str, Any] = field(default_factory=lambda: {"kind": "values"})
    unofficial: bool = False
    remarks: tuple[str, ...] = ()

    def find(self, name: str) -> FieldSpec:
        """The field of that name.

        Raises:
            KeyError: no such field.
        """
        for spec in self.fields:
            if spec.name == name:
                return spec
        raise KeyError(
            f"{self.name} has no field {name}; it has {', '.join(f.name for f in self.fields)}"
        )

    def inputs(self) -> tuple[FieldSpec, ...]:
        """The fields that a prediction needs."""
        return tuple(f for f in self.fields if f.role == "input")

    def labels(self) -> tuple[FieldSpec, ...]:
        """The fields that only training and evaluation need."""
        return tuple(f for f in self.fields if f.role == "label")
