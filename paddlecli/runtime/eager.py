"""One kernel alone: a plan of one node, for tests and for looking at a kernel's numbers.

Outputs lie in params between guard bytes and start as bytes that are NaN in every float type, so a kernel that writes outside
or not at all is found. Inputs must come back unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paddlecli.compiler.plan import PlanWriter
from paddlecli.ops.base import Attr, Kernel, Port, Ragged, RandomKey
from paddlecli.ops.spec import BATCH, Axis, Dim, Spec
from paddlecli.runtime.columns import NUMPY
from paddlecli.runtime.device import Device, device
from paddlecli.runtime.request import Request
from paddlecli.runtime.session import Params, Plan, Session

GUARD = 64
GUARD_BYTE = 0xA5
_NAMES = {v: k for k, v in NUMPY.items() if k != "bf16"}


class KernelFaultError(AssertionError):
    """A kernel wrote outside its outputs or changed an input."""


@dataclass(frozen=True)
class Out:
    """An output by its numbers. ``axis``: name of the axis that its rows are, a key of ``axes`` or the port of a ragged
    input."""

    shape: tuple[int, ...]
    dtype: str = "f32"
    axis: str = ""


OutSpec = Out | Spec
"""A Spec must hold numbers only, but for its first dimension when it has an axis."""


@dataclass
class _Cell:
    """Where one output is: range and the memory it starts from."""

    port: str
    range: int
    shape: tuple[int, ...]
    dtype: str
    start: NDArray[np.uint8]


class _Builder:
    def __init__(
        self, kernel: Kernel, random: RandomKey | None, axes: Mapping[str, NDArray[np.int64]], args: Mapping[str, Any],
    ) -> None:  # fmt: skip
        self.kernel, self.writer = kernel, PlanWriter(random.seed if random else 0)
        self.values: dict[str, Any] = {}
        self.axes = dict(axes)
        self.made: dict[str, Axis] = {}
        self.samples = 1
        self.cells: list[_Cell] = []
        self.writable: dict[str, int] = {}
        for name, value in _flatten(kernel.inputs, args, None):
            if isinstance(value, Ragged):
                self.share(name, value.offsets)

    def axis(self, name: str) -> Axis:
        """The axis of that name under an outer axis of its own, so that it may have any number of sequences."""
        if name not in self.made:
            outer = Axis(f"{name}.outer", f"{name}.outer")
            self.made[name] = Axis(name, f"{name}.rows", outer)
            for axis in (outer, self.made[name]):
                self.writer.input(axis.input, Spec.of(axis.total, dtype="u8", axis=axis))
            edges = np.ascontiguousarray(self.axes[name], np.int64)
            outer_edges = np.full(self.samples + 1, edges.size - 1, np.int64)
            outer_edges[0] = 0
            self.values[outer.input] = Ragged(np.zeros(edges.size - 1, np.uint8), outer_edges)
            inner = Ragged(np.zeros(int(edges[-1]), np.uint8), (outer_edges, edges))  # type: ignore[arg-type]
            self.values[self.made[name].input] = inner
        return self.made[name]

    def share(self, name: str, offsets: NDArray[np.int64]) -> str:
        """The name under which these offsets are known."""
        for known, other in self.axes.items():
            if np.array_equal(other, offsets):
                return known
        self.axes[name] = offsets
        return name

    def input(self, name: str, value: Any) -> int:
        """Tensor of one input array."""
        if value is None:
            return -1
        if isinstance(value, Ragged):
            axis = self.axis(self.share(name, value.offsets))
            array = np.ascontiguousarray(value.values)
            spec = Spec.of(axis.total, *array.shape[1:], dtype=_NAMES[array.dtype], axis=axis)
            self.values[name] = Ragged(array, (self.values[axis.input].offsets))
        else:
            array = np.ascontiguousarray(value)
            array = array.reshape(np.shape(value))
            shape = array.shape
            if array.ndim == 0:
                array = array.reshape(1)
            spec = Spec.of(*array.shape, dtype=_NAMES[array.dtype])
            self.values[name] = array
            if shape == ():
                return self.writer.tensor(
                    name, Spec.of(dtype=spec.dtype), "alias", self.writer.input(name, spec)
                )
        return self.writer.input(name, spec)

    def output(self, name: str, out: Out, start: NDArray[np.uint8], batch: bool) -> int:
        """Tensor of one output in a range of its own."""
        size = prod(out.shape) * NUMPY[out.dtype].itemsize
        place = self.writer.range(name, "state", out.dtype, size + 2 * GUARD)
        self.cells.append(_Cell(name, place, out.shape, out.dtype, start))
        axis = self.axis(out.axis) if out.axis else None
        dims: list[Dim | int] = list(out.shape)
        if axis is not None:
            dims[0] = axis.total
        elif batch and dims and dims[0] == self.samples:
            dims[0] = BATCH
        return self.writer.tensor(
            name, Spec.of(*dims, dtype=out.dtype, axis=axis), "range", place, offset=GUARD
        )


def _flatten(
    ports: Sequence[Port], values: Mapping[str, Any], absent: Any
) -> list[tuple[str, Any]]:
    """(name, value) in signature order; a variadic port gives several."""
    found: list[tuple[str, Any]] = []
    for port in ports:
        value = values.get(port.name, absent)
        if port.variadic:
            found += [(f"{port.name}.{i}", v) for i, v in enumerate(value or ())]
        else:
            found.append((port.name, value))
    return found


def _out_of(spec: OutSpec, builder: _Builder) -> Out:
    if isinstance(spec, Out):
        return spec
    if spec.axis is None:
        if not all(d.known for d in spec.shape):
            raise ValueError(f"an output of run_kernel needs numbers, not {spec}")
        return Out(tuple(d.coefficient for d in spec.shape), spec.dtype)
    if spec.axis.name not in builder.axes:
        raise ValueError(
            f"run_kernel: give axes={{{spec.axis.name!r}: offsets}} for the output {spec}"
        )
    rows = int(builder.axes[spec.axis.name][-1])
    return Out((rows, *(d.coefficient for d in spec.shape[1:])), spec.dtype, spec.axis.name)


def _start(out: Out, initial: Any) -> NDArray[np.uint8]:
    """First bytes of an output: the array to add to, or NaN."""
    dtype = NUMPY[out.dtype]
    if initial is None:
        return np.full(prod(out.shape) * dtype.itemsize, 0xFF, np.uint8)
    values = initial.values if isinstance(initial, Ragged) else initial
    array = np.ascontiguousarray(values, dtype)
    if array.size != prod(out.shape):
        raise ValueError(f"an array of {array.size} numbers for an output of shape {out.shape}")
    return array.reshape(-1).view(np.uint8).copy()


def run_kernel(
    kernel: Kernel,
    args: Mapping[str, Any],
    attrs: Mapping[str, Attr] | None = None,
    out_specs: Mapping[str, OutSpec | Sequence[OutSpec]] | None = None,
    *,
    accumulate: Mapping[str, Any] | None = None,
    inplace: bool = False,
    threads: int = 1,
    smallest_grain: bool = False,
    random: RandomKey | None = None,
    guard_bytes: bool = True,
    axes: Mapping[str, NDArray[np.int64]] | None = None,
    backend: str = "cpu",
) -> dict[str, Any]:
    """Runs one kernel on numpy arrays.

    Args:
        kernel: which.
        args: input port -> array, Ragged, list of them (variadic) or None. Element types must be the signature's.
        attrs: every attribute.
        out_specs: output port -> its Spec or Out (list when variadic), scratch outputs (``work*``) too.
        accumulate: output port -> array that the kernel adds to (list when variadic, None where it assigns).
        inplace: outputs named by ``kernel.inplace`` take the memory of their inputs. Kernels that update state always do.
        threads: of the session.
        smallest_grain: cut parallel work as finely as possible.
        random: key of the random numbers.
        guard_bytes: look for writes outside the outputs and for changed inputs.
        axes: offsets of axes named by outputs, when no ragged input of that port name has them.
        backend: whose kernel, a key of ``native.BACKENDS``.

    Returns:
        output port -> array (list when variadic); ragged outputs as their packed values.

    Raises:
        KernelFaultError: a write outside the outputs or to an input.
        PaddleCliError: the kernel's own refusal.
    """
    builder = _Builder(kernel, random, axes or {}, args)
    ports = [
        (n, None if s is None else _out_of(s, builder))
        for n, s in _flatten(kernel.outputs, out_specs or {}, None)
    ]
    outs = [(n, o) for n, o in ports if o is not None]
    if random is not None and outs and outs[0][1].shape:
        builder.samples = max(outs[0][1].shape[0], 1)
    shared = {o: i for o, i in kernel.inplace.items() if inplace or kernel.updates}
    tensors, bits = _outputs(builder, ports, args, accumulate or {}, shared)
    inputs = _inputs(builder, args, shared, tensors)
    stream = (random.stream or 1) if random else 0
    outputs = [tensors.get(n, -1) for n, _ in ports]
    builder.writer.node(
        kernel, inputs, outputs, attrs, accumulate=bits, stream=stream, updates=kernel.updates
    )
    builder.writer.entry("run", 0, 1, inputs=list(builder.values))
    found = _run(builder, device(backend, threads), smallest_grain, random, guard_bytes)
    return {
        p.name: [found[n] for n, _ in outs if n.startswith(f"{p.name}.")] if p.variadic else found[p.name]
        for p in kernel.outputs if p.variadic or p.name in found
    }  # fmt: skip


def _inputs(
    builder: _Builder,
    args: Mapping[str, Any],
    shared: Mapping[str, str],
    tensors: Mapping[str, int],
) -> list[int]:
    """Numbers of the input tensors; one that an output shares its memory with is that output."""
    over = {i: tensors[o] for o, i in shared.items() if o in tensors}
    return [
        over[name] if name in over and value is not None else builder.input(name, value)
        for name, value in _flatten(builder.kernel.inputs, args, None)
    ]


def _outputs(
    builder: _Builder, ports: Sequence[tuple[str, Out | None]], args: Mapping[str, Any], accumulate: Mapping[str, Any],
    shared: Mapping[str, str],
) -> tuple[dict[str, int], int]:  # fmt: skip
    """Tensors by output, and the accumulate bits."""
    initial = dict(_flatten(builder.kernel.outputs, accumulate, None))
    tensors: dict[str, int] = {}
    bits = 0
    for i, (name, out) in enumerate(ports):
        if out is None:
            continue
        first = initial.get(name)
        bits |= (first is not None) << i
        if name in shared and first is None:
            first = args[shared[name]]
        tensors[name] = builder.output(name, out, _start(out, first), batch=builder.samples > 1)
    return tensors, bits


def _run(
    builder: _Builder,
    where: Device,
    smallest_grain: bool,
    random: RandomKey | None,
    guard_bytes: bool,
) -> dict[str, NDArray[Any]]:
    plan = Plan(builder.writer.finish(), where.kind)
    params = Params(plan)
    guard = np.full(GUARD, GUARD_BYTE, np.uint8)
    for cell in builder.cells:
        params.write_bytes(cell.range, 0, np.concatenate([guard, cell.start, guard]))
    session = Session(plan, params, where, smallest_grain=smallest_grain)
    first = random.first if random else 0
    request = Request(
        plan, 0, [builder.samples], steps=random.step if random else 0, firsts=first,
        first_rows=np.full((1, len(plan.info.axes)), first),
    ).from_columns([builder.values])  # fmt: skip
    before = {n: _values(v).copy() for n, v in builder.values.items()} if guard_bytes else {}
    session.run(request)
    for name, value in before.items():
        if value.tobytes() != _values(builder.values[name]).tobytes():
            raise KernelFaultError(f"{builder.kernel.full_name} changed its input {name}")
    return {c.port: _result(builder.kernel, params, c, guard_bytes) for c in builder.cells}


def _values(value: Any) -> NDArray[Any]:
    return np.asarray(value.values if isinstance(value, Ragged) else value)


def _result(kernel: Kernel, params: Params, cell: _Cell, guard_bytes: bool) -> NDArray[Any]:
    data = params.read_bytes(cell.range, 0, cell.start.size + 2 * GUARD)
    edges = np.concatenate([data[:GUARD], data[GUARD + cell.start.size :]])
    if guard_bytes and (edges != GUARD_BYTE).any():
        raise KernelFaultError(f"{kernel.full_name} wrote outside its output {cell.port}")
    return data[GUARD : GUARD + cell.start.size].view(NUMPY[cell.dtype]).reshape(cell.shape)
