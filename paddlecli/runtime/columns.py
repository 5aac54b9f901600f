"""Arrays as the core takes them: one ``pk_column`` an input, checked for element type and row size.

A value is a dense array, or anything with ``values`` and ``offsets`` (one array of int64, or one for each level of a nested
axis, outermost first). Inputs that hold offsets alone are filled from the column whose axis they lie above, or from those
that an op makes their axis of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paddlecli.compiler.plan_info import PlanInfo
from paddlecli.ops._made import offsets as made_offsets
from paddlecli.ops._made import recipe, sources
from paddlecli.runtime.errors import CoreError

COLUMN = np.dtype([("data", "u8"), ("offsets", "u8"), ("rows", "i8"), ("sequences", "i8")])

NUMPY: dict[str, np.dtype[Any]] = {
    "f32": np.dtype("f4"), "f64": np.dtype("f8"), "f16": np.dtype("f2"), "bf16": np.dtype("u2"), "i64": np.dtype("i8"),
    "i32": np.dtype("i4"), "i16": np.dtype("i2"), "i8": np.dtype("i1"), "u8": np.dtype("u1"), "bool": np.dtype("?"),
}  # fmt: skip
"""numpy type of each element type; bf16 values are carried as their 16 bits."""


class Columns:
    """Columns of one batch or table: a structured array for C, and what keeps its memory alive.

    Args:
        info: the plan.
        inputs: indices of the inputs, one row each.
        values: by input name.

    Raises:
        CoreError: an input is missing, or a type or row size is not the plan's.
    """

    def __init__(self, info: PlanInfo, inputs: Sequence[int], values: Mapping[str, Any]) -> None:
        self.rows = np.zeros(len(inputs), COLUMN)
        self.keep: list[NDArray[Any]] = []
        for row, index in zip(self.rows, inputs, strict=True):
            self._fill(info, row, index, values)

    def _fill(self, info: PlanInfo, row: Any, index: int, values: Mapping[str, Any]) -> None:
        name, tensor = info.inputs[index]
        t = info.tensors[tensor]
        source = name if name in values else name.partition("@")[0]
        if source not in values:
            raise CoreError(f"input {name} is missing")
        data, offsets = _parts(values[source])
        if source != name and t.axis >= 0 and recipe(info.axes[t.axis].name):
            edges = self._hold(_made(info, info.axes[t.axis].name, values))
            row["offsets"], row["sequences"], row["rows"] = (
                edges.ctypes.data,
                edges.size - 1,
                edges[-1],
            )
            return
        if t.axis >= 0:
            level = len(info.levels(t.axis)) - 1
            if level >= len(offsets) or (source == name and level != len(offsets) - 1):
                raise CoreError(
                    f"input {name} needs offsets of {level + 1} levels, {len(offsets)} given"
                )
            edges = self._hold(np.asarray(offsets[level], np.int64))
            row["offsets"], row["sequences"] = edges.ctypes.data, edges.size - 1
            if source != name:
                row["rows"] = int(edges[-1])
                return
        elif offsets:
            raise CoreError(f"input {name} is dense, ragged values given")
        _check(name, data, NUMPY[t.dtype], t.row_shape)
        row["data"], row["rows"] = self._hold(data).ctypes.data, len(data)

    def _hold(self, array: NDArray[Any]) -> NDArray[Any]:
        kept = np.ascontiguousarray(array)
        if not kept.flags.aligned:
            kept = kept.copy()
        self.keep.append(kept)
        return kept


def given(info: PlanInfo, index: int, values: Mapping[str, Any]) -> bool:
    """Whether an input can be filled from these values."""
    name, tensor = info.inputs[index]
    if name in values:
        return True
    axis = info.tensors[tensor].axis
    made = [] if axis < 0 else [_input_of(info, n) for n in sources(info.axes[axis].name)]
    return all(n.partition("@")[0] in values for n in [name, *made])


def _input_of(info: PlanInfo, axis: str) -> str:
    """The input that defines an axis of the data."""
    return next(info.inputs[a.input][0] for a in info.axes if a.name == axis)


def _made(info: PlanInfo, name: str, values: Mapping[str, Any]) -> NDArray[np.int64]:
    """Offsets of an axis that an op makes."""

    def known(axis: str) -> NDArray[np.int64]:
        source = _input_of(info, axis)
        source = source if source in values else source.partition("@")[0]
        if source not in values:
            raise CoreError(f"input {source} is missing")
        index = next(i for i, a in enumerate(info.axes) if a.name == axis)
        return np.diff(_parts(values[source])[1][len(info.levels(index)) - 1])

    try:
        return made_offsets(name, known)
    except ValueError as error:
        raise CoreError(str(error)) from None


def _parts(value: Any) -> tuple[NDArray[Any], tuple[NDArray[np.int64], ...]]:
    if not hasattr(value, "offsets"):
        return np.asarray(value), ()
    offsets = value.offsets
    return np.asarray(value.values), tuple(offsets) if isinstance(offsets, (tuple, list)) else (
        np.asarray(offsets),
    )


def _check(name: str, data: NDArray[Any], dtype: np.dtype[Any], row: tuple[int, ...]) -> None:
    if data.dtype != dtype:
        raise CoreError(f"input {name} is {data.dtype}, the plan takes {dtype}")
    if data.ndim < 1 or prod(data.shape[1:]) != prod(row):
        raise CoreError(f"input {name} has rows of shape {data.shape[1:]}, the plan takes {row}")
