"""Runs an entry of a graph in numpy, float64: no kernels, no core, the sizes of one batch.

Every element takes 8 bytes, so slots, aliases and in-place results share memory here as they do in
the core. Without a memory plan each tensor has its own array. The axis data and the views of loops
follow core/include/pk_plan.h.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from paddlecli.compiler.emit import stream_key
from paddlecli.compiler.memory import MemoryPlan, placed, root
from paddlecli.compiler.storage import Storage, key_of
from paddlecli.graph.ir import Entry, Loop, Node, Tensor
from paddlecli.ops._made import offsets as made_offsets
from paddlecli.ops.base import Ragged, RandomKey
from paddlecli.ops.spec import DTYPES, Axis, Dim

from .kernels import Array, compute

CODES = {"f32": "f", "f64": "d", "i64": "q", "i32": "i"}


@dataclass(frozen=True)
class Batch:
    """Inputs of one step: dense arrays, or packed values with the offsets of their axis. ``first``:
    of a part, its first sample in the whole batch."""

    size: int
    columns: Mapping[str, Any]
    arguments: Mapping[str, float]
    step: int = 0
    first: int = 0


class Params:
    """Everything that outlives a step, laid out by the compiler's storage."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.ranges = [np.zeros(r.bytes // DTYPES[r.dtype], _kind(r.dtype)) for r in storage.ranges]

    def array(self, key: str) -> Array:
        """The array of a persistent tensor, a view of its range."""
        place = self.storage.placements[key]
        start = place.offset // DTYPES[place.dtype]
        return self.ranges[place.range][start : start + int(np.prod(place.shape))].reshape(
            place.shape
        )

    def fill(self, values: Mapping[str, Any]) -> None:
        """Sets tensors by key."""
        for key, value in values.items():
            self.array(key)[...] = value

    def copy(self) -> Params:
        """Another one with the same values."""
        other = Params(self.storage)
        for mine, theirs in zip(self.ranges, other.ranges, strict=True):
            theirs[...] = mine
        return other


def _kind(dtype: str) -> Any:
    return np.float64 if dtype in ("f32", "f64", "f16", "bf16") else np.int64


class Sizes:
    """Values of symbols and the data of axes for one batch."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.step_rows: dict[Axis, int] = {}
        self._parts: dict[tuple[str, str], Array] = {}

    def offsets(self, axis: Axis) -> Array:
        """Offsets [sequences + 1]."""
        if axis.of:
            known = {a.name: a for a in axis.of}
            return made_offsets(axis.name, lambda name: np.diff(self.offsets(known[name])))
        column = self.batch.columns[axis.input]
        assert isinstance(column, Ragged)
        return column.offsets

    def dim(self, dim: Dim) -> int:
        """A dimension as a number."""
        s = dim.symbol
        if s is None:
            return dim.coefficient
        if s.kind == "batch":
            return dim.coefficient * self.batch.size
        if s.kind in ("sum", "product"):
            assert s.a is not None and s.b is not None
            a, b = self.dim(s.a), self.dim(s.b)
            return dim.coefficient * (a + b if s.kind == "sum" else a * b)
        assert s.axis is not None
        lengths = np.diff(self.offsets(s.axis))
        if s.kind == "step_rows":
            return dim.coefficient * self.step_rows.get(s.axis, len(lengths))
        return dim.coefficient * int(lengths.sum() if s.kind == "total" else lengths.max(initial=0))

    def shape(self, t: Tensor) -> tuple[int, ...]:
        """Shape of a tensor."""
        return tuple(self.dim(d) for d in t.spec.shape)

    def part(self, axis: Axis, part: str) -> Array:
        """Axis data: see ``enum pk_axis_part``."""
        if (axis.name, part) not in self._parts:
            self._parts[axis.name, part] = self._make(axis, part)
        return self._parts[axis.name, part]

    def _make(self, axis: Axis, part: str) -> Array:
        offsets = self.offsets(axis)
        lengths = np.diff(offsets)
        order = np.argsort(-lengths, kind="stable")
        running = [int((lengths > t).sum()) for t in range(int(lengths.max(initial=0)))]
        if part == "offsets":
            return offsets
        if part == "order":
            return order
        if part == "starts":
            return np.concatenate([[0], np.cumsum(running)]).astype(np.int64)
        if part == "sequence":
            return np.repeat(np.arange(len(lengths)), lengths)
        steps = [(t, s) for t, n in enumerate(running) for s in order[:n]]
        rows = [offsets[s] + t if part == "map" else offsets[s + 1] - 1 - t for t, s in steps]
        return np.array(rows, np.int64)


def _shaped(memory: Array, t: Tensor, shape: tuple[int, ...]) -> Array:
    """The same memory as a tensor's elements."""
    array: Array = memory.view(_kind(t.spec.dtype)).reshape(shape)
    return array


Watch = Callable[[Node, "Run"], None]


@dataclass
class Run:
    """One step of one entry.

    ``memory`` places temporaries in shared memory as the core does; ``watch`` is called before each
    kernel.
    """

    entry: Entry
    batch: Batch
    params: Params
    memory: MemoryPlan | None = None
    watch: Watch | None = None
    seed: int = 0
    own: dict[int, Array] = field(default_factory=dict)
    slots: dict[int, Array] = field(default_factory=dict)
    at: tuple[Loop, int] | None = None
    kernels: int = 0

    def __post_init__(self) -> None:
        self.sizes = Sizes(self.batch)
        self.keep: list[Tensor] = []
        if self.memory is not None:
            self._slots(self.memory)

    def _slots(self, plan: MemoryPlan) -> None:
        """Places of all temporaries in one memory, full of NaN."""
        sizes = [int(np.prod(self.sizes.shape(v.tensor))) for v in plan.lives]
        places, whole = placed(sizes, plan.lives)
        arena = np.full(whole, np.nan)
        for life, place, size in zip(plan.lives, places, sizes, strict=True):
            self.slots[id(life.tensor)] = arena[place : place + size]

    # -- tensors -----------------------------------------------------------------------------------
    def array(self, t: Tensor) -> Array:
        """The memory of a tensor at the loop's present step."""
        shape = self.sizes.shape(t)
        if t.is_view:
            return self._view(t, shape)
        if self.memory is not None and id(t) in self.memory.alias:
            return _shaped(self.array(root(t, self.memory.alias)), t, shape)
        if t.persistent:
            return self.params.array(key_of(t)) if t.role != "flat" else self.params.array(t.name)
        if t.role == "input":
            column = self.batch.columns[t.name]
            return np.asarray(column.values if isinstance(column, Ragged) else column)
        if t.role == "argument":
            return np.array([self.batch.arguments[t.name]])
        if t.role == "axis":
            assert t.source is not None
            return self.sizes.part(t.source, t.part)
        if t.role == "constant":
            count = int(np.prod(shape))
            numbers = struct.unpack(f"<{count}{CODES[t.spec.dtype]}", t.data)
            return np.array(numbers, _kind(t.spec.dtype)).reshape(shape)
        return self._temporary(t, shape)

    def _temporary(self, t: Tensor, shape: tuple[int, ...]) -> Array:
        if self.memory is not None:
            return _shaped(self.slots[id(t)], t, shape)
        if id(t) not in self.own:
            self.keep.append(t)
            self.own[id(t)] = _shaped(np.full(int(np.prod(shape)), np.nan), t, shape)
        return self.own[id(t)]

    def _view(self, t: Tensor, shape: tuple[int, ...]) -> Array:
        assert self.at is not None and t.base is not None, f"{t.name} is used outside of a loop"
        loop, step = self.at
        rows = shape[0]
        if t.role == "prefix":
            return self.array(t.base)[:rows]
        if t.role == "previous" and step == 0:
            assert t.init is not None
            return self.array(t.init)[:rows]
        step -= t.role == "previous"
        start = (
            step * rows if loop.axis is None else int(self.sizes.part(loop.axis, "starts")[step])
        )
        return self.array(t.base)[start : start + rows]

    def value(self, t: Tensor) -> Any:
        """What a kernel reads: a copy, with offsets where the tensor lies on an axis."""
        array = np.array(self.array(t))
        return array if t.spec.axis is None else Ragged(array, self.sizes.offsets(t.spec.axis))

    # -- nodes -------------------------------------------------------------------------------------
    def go(self) -> Run:
        """Runs all nodes."""
        for item in self.entry.items:
            if isinstance(item, Loop):
                self._loop(item)
            elif self.memory is None or id(item) not in self.memory.dropped:
                self._node(item)
        return self

    def _loop(self, loop: Loop) -> None:
        if loop.axis is None:
            steps = list(range(loop.limit))
        else:
            starts = self.sizes.part(loop.axis, "starts")
            steps = list(range(len(starts) - 1))
        for t in reversed(steps) if loop.reverse else steps:
            self.at = (loop, t)
            if loop.axis is not None:
                self.sizes.step_rows[loop.axis] = int(starts[t + 1] - starts[t])
            for node in loop.body:
                self._node(node)
            if loop.flag is not None and self.array(loop.flag)[0] != 0:
                break
        self.at = None
        self.sizes.step_rows.clear()

    def _node(self, node: Node) -> None:
        if node.guard is not None and self.array(node.guard)[0] == 0:
            return
        if self.watch is not None:
            self.watch(node, self)
        self.kernels += 1
        args = {k: [self.value(t) for t in v] if isinstance(v, list) else None if v is None else self.value(v)
                for k, v in node.args.items()}  # fmt: skip
        shapes: dict[str, Any] = {}
        for port, target in node.results.items():
            several = isinstance(target, list)
            shapes[port] = (
                [self.sizes.shape(t) for t in target]
                if several
                else None
                if target is None
                else self.sizes.shape(target)
            )
            if isinstance(target, Tensor) and target.spec.axis is not None:
                shapes[f"offsets:{port}"] = self.sizes.offsets(target.spec.axis)
        random = RandomKey(self.seed, self.batch.step, stream_key(node.stream), self.batch.first)
        found = compute(node, args, shapes, random)
        for port, target in node.results.items():
            if target is not None and not port.startswith("work"):
                self._store(node, port, target, found[port])

    def _store(self, node: Node, port: str, target: Any, value: Any) -> None:
        if isinstance(target, list):
            for t, v in zip(target, value, strict=True):
                self._store(node, port, t, v)
            return
        array, values = (
            self.array(target),
            np.asarray(value.values if isinstance(value, Ragged) else value),
        )
        assert values.shape in ((), array.shape), (
            f"{node}: {port} is {values.shape}, planned {array.shape}"
        )
        if port in node.accumulate:
            array += values
        else:
            array[...] = values

    # -- results -----------------------------------------------------------------------------------
    def results(self) -> dict[str, Array]:
        """Fetches and outputs by name."""
        return {
            k: np.array(self.array(t))
            for k, t in {**self.entry.fetches, **self.entry.outputs}.items()
        }

    @property
    def loss(self) -> float:
        """The entry's loss."""
        assert self.entry.loss is not None
        return float(self.array(self.entry.loss)[0])
