"""Reads a plan's bytes back: names, sizes and origins, for the runtime's checks and for messages.

The core has its own reader, which validates; this one is used on plans that it has accepted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from struct import Struct

from paddlecli.compiler import records as r
from paddlecli.ops.spec import DTYPES

_DTYPES = tuple(DTYPES)


@dataclass(frozen=True)
class TensorInfo:
    """One tensor: ``dims`` are (coefficient, symbol or -1); ``axis`` -1 when dense."""

    name: str
    dtype: str
    layout: str
    storage: str
    dims: tuple[tuple[int, int], ...]
    axis: int
    place: int
    offset: int

    @property
    def row_shape(self) -> tuple[int, ...]:
        """The dimensions behind the first, which must be numbers."""
        return tuple(c for c, _ in self.dims[1:])

    def shape(self, symbols: Sequence[int]) -> tuple[int, ...]:
        """The shape for values of the symbols."""
        return tuple(c if s < 0 else c * symbols[s] for c, s in self.dims)


@dataclass(frozen=True)
class AxisInfo:
    """One ragged axis: outer axis or -1, input that defines it."""

    name: str
    parent: int
    input: int
    ordered: bool


@dataclass(frozen=True)
class SymbolInfo:
    """One symbol, in the order of capacities."""

    name: str
    kind: str
    a: int
    b: int


@dataclass(frozen=True)
class RangeInfo:
    """One range of params."""

    name: str
    klass: str
    dtype: str
    bytes: int


@dataclass(frozen=True)
class NodeInfo:
    """One node: what it runs and where it came from (file, line, column, layer path)."""

    kind: int
    signature: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    origin: tuple[str, int, int, str]
    body: int


@dataclass(frozen=True)
class EntryTable:
    """One entry: indices of its inputs, tensors of its fetches and outputs."""

    name: str
    first_node: int
    nodes: int
    inputs: tuple[int, ...]
    fetches: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True)
class PlanInfo:
    """The tables of a plan."""

    seed: int
    symbols: tuple[SymbolInfo, ...]
    axes: tuple[AxisInfo, ...]
    tensors: tuple[TensorInfo, ...]
    nodes: tuple[NodeInfo, ...]
    entries: tuple[EntryTable, ...]
    ranges: tuple[RangeInfo, ...]
    inputs: tuple[tuple[str, int], ...]
    arguments: tuple[str, ...]
    slots: int

    def levels(self, axis: int) -> tuple[int, ...]:
        """The axes from the outermost to ``axis``."""
        found: list[int] = []
        while axis >= 0:
            found.insert(0, axis)
            axis = self.axes[axis].parent
        return tuple(found)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        magic, version, count, size, self.seed = r.HEADER.unpack_from(data)
        if magic != r.MAGIC or size != len(data):
            raise ValueError("these bytes are not a plan")
        if version != r.VERSION:
            text = f"the plan has version {version}, this paddlecli reads {r.VERSION}"
            raise ValueError(f"{text}: compile it anew")
        self.sections: dict[int, memoryview] = {}
        for i in range(count):
            kind, record, offset, records = r.SECTION.unpack_from(
                data, r.HEADER.size + i * r.SECTION.size
            )
            self.sections[kind] = memoryview(data)[offset : offset + record * records]
        self.texts = bytes(self.sections[r.STRINGS])
        self.refs = [v for (v,) in self.rows(r.REFS, r.REF)]

    def text(self, at: int) -> str:
        return self.texts[at : self.texts.index(b"\0", at)].decode(errors="surrogateescape")

    def rows(self, kind: int, record: Struct) -> Iterator[tuple[int, ...]]:
        return record.iter_unpack(self.sections.get(kind, b""))

    def some(self, first: int, count: int) -> tuple[int, ...]:
        return tuple(self.refs[first : first + count])

    def tensors(self) -> Iterator[TensorInfo]:
        for row in self.rows(r.TENSORS, r.TENSOR):
            name, _, dtype, layout, storage, ndim, axis, place, _, offset = row[:10]
            dims = tuple((row[12 + 3 * i], row[13 + 3 * i]) for i in range(ndim))
            yield TensorInfo(
                self.text(name),
                _DTYPES[dtype],
                r.LAYOUTS[layout],
                r.STORAGE[storage],
                dims,
                axis,
                place,
                offset,
            )

    def nodes(self) -> Iterator[NodeInfo]:
        origins = [
            (self.text(f), n, c, self.text(p)) for f, p, n, c in self.rows(r.ORIGINS, r.ORIGIN)
        ]
        for row in self.rows(r.NODES, r.NODE):
            kind, signature, first, inputs, outputs = row[:5]
            refs = self.some(first, inputs + outputs)
            yield NodeInfo(
                kind, self.text(signature), refs[:inputs], refs[inputs:], origins[row[10]], row[11]
            )

    def entries(self) -> Iterator[EntryTable]:
        for name, first, nodes, i, ni, f, nf, o, no, _ in self.rows(r.ENTRIES, r.ENTRY):
            yield EntryTable(
                self.text(name), first, nodes, self.some(i, ni), self.some(f, nf), self.some(o, no)
            )


def read_plan(data: bytes) -> PlanInfo:
    """The tables of a plan.

    Raises:
        ValueError: the bytes are not a plan of this version.
    """
    rd = _Reader(data)
    return PlanInfo(
        seed=rd.seed,
        symbols=tuple(
            SymbolInfo(rd.text(n), r.SYMBOL_KINDS[k], a, b)
            for k, n, a, b, _, _ in rd.rows(r.SYMBOLS, r.SYMBOL)
        ),
        axes=tuple(
            AxisInfo(rd.text(n), p, i, bool(f & r.AXIS_ORDERED))
            for n, p, i, f in rd.rows(r.AXES, r.AXIS)
        ),
        tensors=tuple(rd.tensors()),
        nodes=tuple(rd.nodes()),
        entries=tuple(rd.entries()),
        ranges=tuple(
            RangeInfo(rd.text(n), r.RANGE_CLASSES[k], _DTYPES[d], b)
            for n, k, d, _, b in rd.rows(r.RANGES, r.RANGE)
        ),
        inputs=tuple((rd.text(n), t) for n, t in rd.rows(r.INPUTS, r.INPUT)),
        arguments=tuple(rd.text(n) for n, _ in rd.rows(r.ARGUMENTS, r.ARGUMENT)),
        slots=len(rd.sections.get(r.SLOTS, b"")) // r.SLOT.size,
    )
