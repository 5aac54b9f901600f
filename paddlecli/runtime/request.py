"""Requests: the steps of one foreign call, built from numpy arrays without a cost in Python for each step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from paddlecli.compiler.plan_info import PlanInfo
from paddlecli.runtime.columns import NUMPY, Columns
from paddlecli.runtime.errors import CoreError

if TYPE_CHECKING:
    from paddlecli.runtime.session import Plan, Table

STEP = np.dtype([
    ("entry", "i4"), ("n_columns", "i4"), ("n_outputs", "i4"), ("reserved", "i4"), ("n", "i8"), ("first_sample", "i8"),
    ("step", "i8"), ("table", "u8"), ("rows", "u8"), ("columns", "u8"), ("args", "u8"), ("outputs", "u8"),
    ("results", "u8"), ("first_rows", "u8"),
])  # fmt: skip
BUFFER = np.dtype([("data", "u8"), ("bytes", "i8"), ("written", "i8"), ("rows", "i8")])


class Request:
    """Steps to run in order.

    Args:
        plan: the plan that they run.
        entries: entry of each step, by index (one for all, or one each).
        counts: samples of each step.
        args: numbers for the plan's arguments, [steps, arguments].
        steps: number of each step, the key of its random numbers.
        firsts: index of its first sample in the whole batch.
        first_rows: [steps, axes]: index of the first row of each axis in the whole batch; None for 0.

    ``from_table`` and ``from_columns`` give the data. ``results`` [steps, most fetches] holds a row for each step that ended,
    NaN elsewhere.
    """

    def __init__(
        self, plan: Plan, entries: ArrayLike, counts: ArrayLike, args: ArrayLike | None = None, steps: ArrayLike = 0,
        firsts: ArrayLike = 0, first_rows: ArrayLike | None = None,
    ) -> None:  # fmt: skip
        info = plan.info
        counts = np.atleast_1d(np.asarray(counts, np.int64))
        self.plan = plan
        self.steps = np.zeros(counts.size, STEP)
        self.steps["entry"], self.steps["n"] = entries, counts
        self.steps["step"], self.steps["first_sample"] = steps, firsts
        if counts.size and not 0 <= self.steps["entry"].min() <= self.steps["entry"].max() < len(
            info.entries
        ):
            raise CoreError(f"entries {self.steps['entry']} of a plan with {len(info.entries)}")
        self._keep: list[Any] = []
        self._per_row("args", args, len(info.arguments), np.dtype("f8"))
        if first_rows is not None:
            self._per_row("first_rows", first_rows, len(info.axes), np.dtype("i8"))
        width = max(
            (len(info.entries[e].fetches) for e in np.unique(self.steps["entry"])), default=0
        )
        self.results: NDArray[np.float64] = np.full((counts.size, max(width, 1)), np.nan)
        self.steps["results"] = _row_addresses(self.results)
        self._buffers: dict[int, NDArray[Any]] = {}
        self._outputs: dict[int, list[NDArray[Any]]] = {}

    def __len__(self) -> int:
        return int(self.steps.size)

    def _per_row(
        self, field: str, values: ArrayLike | None, width: int, dtype: np.dtype[Any]
    ) -> None:
        table = np.zeros((len(self), width), dtype)
        if values is not None:
            given = np.asarray(values, dtype)
            if given.shape[-1:] != (width,):
                raise CoreError(
                    f"{field}: rows of {given.shape[-1:]} numbers, the plan takes {width}"
                )
            table[:] = given
        elif width:
            raise CoreError(f"the plan takes {width} numbers of {field}, none given")
        self._keep.append(table)
        self.steps[field] = _row_addresses(table)

    # -- data -------------------------------------------------------------------------------------------------------
    def from_table(self, table: Table, rows: ArrayLike, starts: ArrayLike | None = None) -> Request:
        """Every step gathers its samples from a table: ``rows`` [all] are row numbers, step i begins at ``starts[i]`` (by
        default where the step before ends)."""
        numbers = np.ascontiguousarray(rows, np.int64)
        counts = self.steps["n"]
        begin = np.cumsum(counts) - counts if starts is None else np.asarray(starts, np.int64)
        if len(self) and (begin.min() < 0 or (begin + counts).max() > numbers.size):
            raise CoreError(
                f"steps need row numbers up to {(begin + counts).max()}, {numbers.size} given"
            )
        self._keep += [table, numbers]
        self.steps["table"] = table.address
        self.steps["rows"] = numbers.ctypes.data + 8 * begin.astype(np.uint64)
        return self

    def from_columns(self, values: Sequence[Mapping[str, Any]]) -> Request:
        """Every step brings its own columns, by input name."""
        if len(values) != len(self):
            raise CoreError(f"{len(self)} steps and columns for {len(values)}")
        for i, step in enumerate(values):
            columns = Columns(
                self.plan.info, self.plan.info.entries[self.steps["entry"][i]].inputs, step
            )
            self._keep.append(columns)
            self.steps["n_columns"][i] = len(columns.rows)
            self.steps["columns"][i] = columns.rows.ctypes.data
        return self

    # -- outputs ----------------------------------------------------------------------------------------------------
    def want_outputs(self) -> Request:
        """The entries' outputs are copied out too; see :meth:`outputs`."""
        info = self.plan.info
        for i in range(len(self)):
            tensors = info.entries[self.steps["entry"][i]].outputs
            self._place(i, [_known_bytes(info, t, int(self.steps["n"][i])) for t in tensors])
        return self

    def _place(self, i: int, sizes: Sequence[int]) -> None:
        places = [np.empty(max(size, 1), np.uint8) for size in sizes]
        buffers = np.zeros(len(places), BUFFER)
        buffers["data"] = [p.ctypes.data for p in places]
        buffers["bytes"] = sizes
        self._outputs[i], self._buffers[i] = places, buffers
        self.steps["n_outputs"][i] = len(places)
        self.steps["outputs"][i] = buffers.ctypes.data if len(places) else 0

    def grow_outputs(self, i: int) -> bool:
        """Makes places of step ``i`` as large as the core said; False when they were large enough."""
        buffers = self._buffers.get(i)
        if buffers is None or not (buffers["written"] > buffers["bytes"]).any():
            return False
        self._place(i, [int(b) for b in buffers["written"]])
        return True

    def outputs(self, i: int) -> list[NDArray[Any]]:
        """The outputs of step ``i`` in the entry's order, in their shapes. Valid for steps that ended."""
        info = self.plan.info
        found = []
        tensors = info.entries[self.steps["entry"][i]].outputs
        for tensor, place, buffer in zip(tensors, self._outputs[i], self._buffers[i], strict=True):
            t = info.tensors[tensor]
            data = place[: buffer["written"]].view(NUMPY[t.dtype])
            fixed = all(s < 0 for _, s in t.dims[1:])
            shape = (int(buffer["rows"]), *(t.row_shape if fixed else (-1,))) if t.dims else ()
            found.append(data.reshape(shape))
        return found


def _row_addresses(table: NDArray[Any]) -> NDArray[np.uint64]:
    return table.ctypes.data + np.arange(len(table), dtype=np.uint64) * np.uint64(
        table.strides[0] if table.size else 0
    )


def _known_bytes(info: PlanInfo, tensor: int, n: int) -> int:
    """Bytes of an output whose sizes are numbers or the batch; 0 where only the core knows."""
    t = info.tensors[tensor]
    size = NUMPY[t.dtype].itemsize
    for coefficient, symbol in t.dims:
        if symbol >= 0 and info.symbols[symbol].kind != "batch":
            return 0
        size *= coefficient * (1 if symbol < 0 else n)
    return size
