"""Writes the byte string that the core runs: tables of symbols, tensors, nodes and entries.

The writer interns what repeats (texts, symbols, axes, origins) and knows nothing of graphs; the
core validates every number of the result. Inputs are named in entries, so an axis may be declared
before the input that defines it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from paddlecli.compiler import records as r
from paddlecli.compiler.plan_sizes import OriginLike, SizeTables
from paddlecli.ops.base import Attr, Kernel
from paddlecli.ops.spec import DTYPES, Axis, Spec

MAX_DIM = 8
_DTYPE = {name: i for i, name in enumerate(DTYPES)}


@dataclass(frozen=True)
class _Entry:
    name: str
    first_node: int
    nodes: int
    inputs: tuple[str, ...]
    fetches: tuple[int, ...]
    outputs: tuple[int, ...]
    halt: int
    axes: tuple[Axis, ...]


class PlanWriter(SizeTables):
    """Collects the tables of one plan; ``finish`` gives its bytes.

    Args:
        seed: first half of the key of every random number, 0 to 2**64 - 1.
    """

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self._seed = seed
        self._tensors: list[bytes] = []
        self._nodes: list[bytes] = []
        self._refs: list[int] = []
        self._attrs: list[bytes] = []
        self._lists: list[int] = []
        self._list_at: dict[tuple[int, ...], int] = {}
        self._entries: list[_Entry] = []
        self._slots: list[bytes] = []
        self._ranges: list[bytes] = []
        self._inputs: dict[str, tuple[int, Axis | None]] = {}
        self._arguments: list[tuple[str, int]] = []
        self._constants = bytearray()
        self._constant_at: dict[bytes, int] = {}

    # -- places ------------------------------------------------------------------------------------
    def constant(self, data: bytes) -> int:
        """Offset of a piece of constant bytes, 64-byte aligned."""
        if data not in self._constant_at:
            self._constants += bytes(-len(self._constants) % 64)
            self._constant_at[data] = len(self._constants)
            self._constants += data
        return self._constant_at[data]

    def slot(self, first: int = 0, last: int = 0) -> int:
        """Index of a new slot, as large as its largest tensor. Two slots share memory where their
        times, both ends included, have nothing in common."""
        self._slots.append(r.SLOT.pack(first, last))
        return len(self._slots) - 1

    def range(self, name: str, klass: str, dtype: str, size: int) -> int:
        """Index of a new range of ``size`` bytes; ``klass`` is one of
        :data:`records.RANGE_CLASSES`."""
        kind = r.RANGE_CLASSES.index(klass)
        self._ranges.append(r.RANGE.pack(self._text(name), kind, _DTYPE[dtype], 0, size))
        return len(self._ranges) - 1

    # -- tensors -----------------------------------------------------------------------------------
    def tensor(
        self,
        name: str,
        spec: Spec,
        storage: str,
        place: int = -1,
        *,
        part: int | str = 0,
        offset: int = 0,
        origin: OriginLike | None = None,
        scale: float = 1.0,
    ) -> int:
        """Index of a new tensor.

        Args:
            name: for messages.
            spec: shape, element type, axis, layout.
            storage: one of :data:`records.STORAGE`.
            place: slot, range, axis or tensor that it lies in.
            part: of an axis (a name of :data:`records.AXIS_PARTS`), or of ``previous`` the tensor
                of the first step.
            offset: bytes from the start of its place.
            origin: where it came from.
            scale: of quantised values.
        """
        if spec.ndim > MAX_DIM:
            raise ValueError(f"tensor {name} has {spec.ndim} dimensions, the most is {MAX_DIM}")
        number = r.AXIS_PARTS.index(part) if isinstance(part, str) else part
        dims: list[int] = []
        for coefficient, symbol in map(self.dim, spec.shape):
            dims += [coefficient, symbol, 0]
        dims += [0, -1, 0] * (MAX_DIM - spec.ndim)
        axis = -1 if spec.axis is None else self.axis(spec.axis)
        self._tensors.append(
            r.TENSOR.pack(
                self._text(name),
                self._origin_of(origin),
                _DTYPE[spec.dtype],
                r.LAYOUTS.index(spec.layout),
                r.STORAGE.index(storage),
                spec.ndim,
                axis,
                place,
                number,
                offset,
                scale,
                0,
                *dims,
            )
        )
        return len(self._tensors) - 1

    def input(self, name: str, spec: Spec) -> int:
        """Tensor of a new input; its first dimension is the batch, its axis' total or a number."""
        if name in self._inputs:
            raise ValueError(f"input {name} is declared twice")
        tensor = self.tensor(name, spec, "input", len(self._inputs))
        self._inputs[name] = (tensor, spec.axis)
        return tensor

    def argument(self, name: str, spec: Spec | None = None) -> int:
        """Tensor of a new argument: one number that each step is given."""
        tensor = self.tensor(name, spec or Spec.of(1), "argument", len(self._arguments))
        self._arguments.append((name, tensor))
        return tensor

    # -- nodes -------------------------------------------------------------------------------------
    def node_count(self) -> int:
        """Nodes written so far."""
        return len(self._nodes)

    def _add_refs(self, refs: Iterable[int]) -> tuple[int, int]:
        first = len(self._refs)
        self._refs += refs
        return first, len(self._refs) - first

    def _list(self, values: Sequence[int]) -> int:
        key = tuple(values)
        if key not in self._list_at:
            self._list_at[key] = len(self._lists)
            self._lists += [len(key), *key]
        return self._list_at[key]

    def _attr(self, kind: str, value: Attr) -> bytes:
        if kind == "float":
            return r.ATTR_FLOAT.pack(r.ATTR_KINDS[kind], 0, float(value))  # type: ignore[arg-type]
        if kind == "list":
            return r.ATTR_INT.pack(r.ATTR_KINDS[kind], 0, self._list(value))  # type: ignore[arg-type]
        return r.ATTR_INT.pack(r.ATTR_KINDS[kind], 0, int(value))  # type: ignore[arg-type]

    def node(
        self,
        kernel: Kernel,
        inputs: Sequence[int],
        outputs: Sequence[int],
        attrs: Mapping[str, Attr] | None = None,
        *,
        accumulate: int = 0,
        guard: int = -1,
        stream: int = 0,
        origin: OriginLike | None = None,
        updates: bool = False,
    ) -> int:
        """Adds a kernel node.

        Args:
            kernel: its signature names the attributes and their order.
            inputs: tensors in signature order, -1 for an absent optional one.
            outputs: tensors in signature order.
            attrs: every attribute of the kernel.
            accumulate: bit i set: output i is added to.
            guard: tensor of one i32; the node does nothing where it is 0.
            stream: key of its random numbers, not 0 for a kernel that draws some.
            origin: where it came from.
            updates: writes parameters.

        Raises:
            ValueError: an attribute is missing or unknown.
        """
        given = dict(attrs or {})
        first_attr = len(self._attrs)
        for name, kind in kernel.attrs:
            if name not in given:
                raise ValueError(f"{kernel.full_name}: attribute {name} is missing")
            self._attrs.append(self._attr(kind, given.pop(name)))
        if given:
            raise ValueError(f"{kernel.full_name}: unknown attribute {next(iter(given))}")
        refs, _ = self._add_refs([*inputs, *outputs])
        self._nodes.append(
            r.NODE.pack(
                r.NODE_KERNEL,
                self._text(kernel.signature),
                refs,
                len(inputs),
                len(outputs),
                first_attr,
                len(kernel.attrs),
                accumulate,
                guard,
                stream,
                self._origin_of(origin),
                0,
                -1,
                -1,
                0,
                r.NODE_UPDATES if updates else 0,
                0,
            )
        )
        return len(self._nodes) - 1

    def _loop(
        self,
        kind: int,
        name: str,
        body: int,
        origin: OriginLike | None,
        guard: int,
        axis: int = -1,
        flag: int = -1,
        limit: int = 0,
        flags: int = 0,
    ) -> int:
        self._nodes.append(
            r.NODE.pack(
                kind,
                self._text(name),
                0,
                0,
                0,
                0,
                0,
                0,
                guard,
                0,
                self._origin_of(origin),
                body,
                axis,
                flag,
                limit,
                flags,
                0,
            )
        )
        return len(self._nodes) - 1

    def scan(
        self,
        axis: Axis,
        body: int,
        reversed: bool = False,
        origin: OriginLike | None = None,
        guard: int = -1,
    ) -> int:
        """Adds a loop over the steps of an axis; the next ``body`` nodes are its body."""
        flags = r.NODE_REVERSED if reversed else 0
        return self._loop(
            r.NODE_SCAN,
            "scan",
            body,
            origin,
            guard,
            axis=self.axis(axis, ordered=True),
            flags=flags,
        )

    def decode(
        self, limit: int, flag: int, body: int, origin: OriginLike | None = None, guard: int = -1
    ) -> int:
        """Adds a loop that ends when tensor ``flag`` (one i32) is not 0 after a repetition, at the
        latest after ``limit``."""
        return self._loop(r.NODE_DECODE, "decode", body, origin, guard, flag=flag, limit=limit)

    def entry(
        self,
        name: str,
        first_node: int,
        nodes: int,
        inputs: Iterable[str] = (),
        fetches: Iterable[int] = (),
        outputs: Iterable[int] = (),
        halt: int = -1,
        axes: Iterable[Axis] = (),
    ) -> int:
        """Adds an entry.

        Args:
            name: its name; the core uses the index.
            first_node: its first node.
            nodes: how many nodes, loop bodies counted.
            inputs: names of the inputs that it reads. Those that define their axes are added.
            fetches: tensors of one number.
            outputs: tensors copied out.
            halt: tensor of one i32 that ends a request.
            axes: those made by ops that it uses.
        """
        self._entries.append(
            _Entry(
                name,
                first_node,
                nodes,
                tuple(inputs),
                tuple(fetches),
                tuple(outputs),
                halt,
                tuple(dict.fromkeys(axes)),
            )
        )
        return len(self._entries) - 1

    # -- bytes -------------------------------------------------------------------------------------
    def _define_axes(self) -> dict[Axis, str]:
        """The input that gives each axis its offsets. An outer level that no input lies on, or an
        axis that an op makes, gets an input of offsets alone, named ``<input>@<axis>``."""
        found: dict[Axis, str] = {}
        for axis in self._axes:
            if axis.input not in self._inputs:
                raise ValueError(f"axis {axis.name} is defined by the unknown input {axis.input}")
            found[axis] = axis.input
            if self._inputs[axis.input][1] != axis:
                found[axis] = f"{axis.input}@{axis.name}"
                if found[axis] not in self._inputs:
                    self.input(found[axis], Spec.of(axis.total, dtype="u8", axis=axis))
        return found

    def _entry_inputs(self, entry: _Entry, definers: Mapping[Axis, str]) -> list[int]:
        names = dict.fromkeys(entry.inputs)
        for name in entry.inputs:
            axis = self._inputs[name][1]
            while axis is not None:
                names[definers[axis]] = None
                axis = axis.parent
        names |= dict.fromkeys(definers[axis] for axis in entry.axes)
        order = list(self._inputs)
        return [order.index(n) for n in names]

    def _entry_record(self, entry: _Entry, definers: Mapping[Axis, str]) -> bytes:
        inputs = self._add_refs(self._entry_inputs(entry, definers))
        fetches, outputs = self._add_refs(entry.fetches), self._add_refs(entry.outputs)
        name = self._text(entry.name)
        return r.ENTRY.pack(
            name, entry.first_node, entry.nodes, *inputs, *fetches, *outputs, entry.halt
        )

    def finish(self) -> bytes:
        """The plan's bytes."""
        definers = self._define_axes()
        order = list(self._inputs)
        axes = [
            r.AXIS.pack(
                self._text(a.name),
                -1 if a.parent is None else self._axes[a.parent],
                order.index(definers[a]),
                r.AXIS_ORDERED if self._ordered[i] else 0,
            )
            for a, i in self._axes.items()
        ]
        entries = [self._entry_record(e, definers) for e in self._entries]
        inputs = [r.INPUT.pack(self._text(n), t) for n, (t, _) in self._inputs.items()]
        arguments = [r.ARGUMENT.pack(self._text(n), t) for n, t in self._arguments]
        origins = [
            r.ORIGIN.pack(self._text(f), self._text(p), n, c) for f, p, n, c in self._origins
        ]
        return _assemble(
            self._seed,
            {
                r.SYMBOLS: b"".join(self._symbol_records),
                r.AXES: b"".join(axes),
                r.TENSORS: b"".join(self._tensors),
                r.NODES: b"".join(self._nodes),
                r.REFS: b"".join(map(r.REF.pack, self._refs)),
                r.ATTRS: b"".join(self._attrs),
                r.LISTS: b"".join(map(r.LIST.pack, self._lists)),
                r.ENTRIES: b"".join(entries),
                r.SLOTS: b"".join(self._slots),
                r.RANGES: b"".join(self._ranges),
                r.INPUTS: b"".join(inputs),
                r.ARGUMENTS: b"".join(arguments),
                r.CONSTANTS: bytes(self._constants),
                r.ORIGINS: b"".join(origins),
                r.STRINGS: bytes(self._string_bytes),
            },
        )


def _assemble(seed: int, sections: Mapping[int, bytes]) -> bytes:
    """Header, section table and sections; each section 64-byte aligned."""
    at = r.HEADER.size + len(sections) * r.SECTION.size
    table, body = [], []
    for kind, data in sections.items():
        pad = -at % 64
        table.append(
            r.SECTION.pack(kind, r.RECORD_BYTES[kind], at + pad, len(data) // r.RECORD_BYTES[kind])
        )
        body += [bytes(pad), data]
        at += pad + len(data)
    return (
        r.HEADER.pack(r.MAGIC, r.VERSION, len(sections), at, seed)
        + b"".join(table)
        + b"".join(body)
    )
