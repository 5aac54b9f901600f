"""Cases of the generated op tests: arguments drawn from samples, kernels run eagerly, references."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from paddlecli import ops
from paddlecli.ops._made import offsets as made_offsets
from paddlecli.ops.base import Arg, Attr, Kernel, Op, Ragged, RandomKey, Sample
from paddlecli.ops.spec import BATCH, Axis, Dim, Spec, Symbol
from paddlecli.runtime.eager import Out, run_kernel

NUMPY = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "i64": np.int64, "i32": np.int32, "i16": np.int16,
         "i8": np.int8, "u8": np.uint8, "bool": np.bool_}  # fmt: skip
FLOATS = ("f32", "f64", "f16", "bf16")
KEY = RandomKey(seed=7, step=3, stream=11)


@dataclass(frozen=True)
class Sizes:
    """A batch: samples, and for each axis the offsets of its sequences."""

    n: int
    offsets: Mapping[str, np.ndarray] = field(default_factory=dict)

    def edges(self, axis: Axis) -> np.ndarray:
        """Offsets of an axis, also of one that an op makes."""
        if not axis.of:
            return self.offsets[axis.name]
        return made_offsets(axis.name, lambda name: np.diff(self.offsets[name]))

    def of(self, dim: Dim) -> int:
        """The number that a dimension stands for."""
        return dim.coefficient * (1 if dim.symbol is None else self._symbol(dim.symbol))

    def _symbol(self, s: Symbol) -> int:
        if s.kind == "batch":
            return self.n
        if s.kind in ("sum", "product"):
            assert s.a is not None and s.b is not None
            a, b = self.of(s.a), self.of(s.b)
            return a + b if s.kind == "sum" else a * b
        assert s.axis is not None
        lengths = np.diff(self.edges(s.axis))
        if s.kind == "pairs":
            assert s.other is not None
            return int((lengths * np.diff(self.edges(s.other))).sum())
        return int(lengths.sum() if s.kind == "total" else lengths.max(initial=0))

    def shape(self, spec: Spec) -> tuple[int, ...]:
        """The numbers of a shape."""
        return tuple(self.of(d) for d in spec.shape)

    def alone(self, i: int) -> Sizes:
        """Sample i by itself."""
        return Sizes(1, {k: np.array([0, o[i + 1] - o[i]]) for k, o in self.offsets.items()})

    def rows(self, dim: Dim, i: int) -> slice | None:
        """Where sample i lies along a dimension; None where the dimension is not the batch's."""
        if dim.symbol is None or dim.symbol.kind not in ("batch", "total"):
            return None
        c, s = dim.coefficient, dim.symbol
        if s.kind == "batch":
            return slice(i * c, (i + 1) * c)
        assert s.axis is not None
        edges = self.edges(s.axis)
        if s.axis.parent is not None:
            edges = edges[self.edges(s.axis.parent)]
        return slice(int(edges[i]) * c, int(edges[i + 1]) * c)


@dataclass(frozen=True, eq=False)
class Value:
    """A tensor of the eager emitter: its spec and its array (the packed rows when it has an axis)."""

    spec: Spec
    array: np.ndarray


def each(value: Any, f: Any) -> Any:
    """f on a value, on each of a list, or None."""
    return (
        None
        if value is None
        else [f(v) for v in value]
        if isinstance(value, list | tuple)
        else f(value)
    )


@dataclass(frozen=True, eq=False)
class Call:
    """A kernel with its arguments, and what it gave."""

    kernel: Kernel
    args: Mapping[str, Any]
    attrs: Mapping[str, Attr]
    out: Mapping[str, Any]
    sizes: Sizes
    results: Mapping[str, Any]

    def run(self, **how: Any) -> dict[str, Any]:
        """The outputs of another run: port -> array or list of arrays; scratch left out."""
        return run(self.kernel, self.args, self.attrs, self.out, self.sizes, **how)


def run(
    kernel: Kernel,
    args: Mapping[str, Any],
    attrs: Mapping[str, Attr],
    out: Mapping[str, Any],
    sizes: Sizes,
    **how: Any,
) -> dict[str, Any]:
    """One kernel on :class:`Value` arguments with outputs of the given specs."""

    def given(v: Value) -> Any:
        return Ragged(v.array, sizes.edges(v.spec.axis)) if v.spec.axis is not None else v.array

    def wanted(s: Spec) -> Out:
        return Out(sizes.shape(s), s.dtype, "" if s.axis is None else s.axis.name)

    inputs = {k: each(v, given) for k, v in args.items()}
    outs = {k: each(s, wanted) for k, s in out.items() if s is not None}
    random = KEY if kernel.random else None
    specs = [s for value in out.values() for s in flat(value) if s.axis is not None]
    axes = {**sizes.offsets, **{s.axis.name: sizes.edges(s.axis) for s in specs}}
    found = run_kernel(kernel, inputs, attrs, outs, random=random, axes=axes, **how)
    return {k: v for k, v in found.items() if not k.startswith("work")}


class Eager:
    """An Emitter that runs every node at once and keeps a record of the calls."""

    def __init__(self, sizes: Sizes, wanted: Sequence[str] | None = None) -> None:
        self.sizes, self.wanted = sizes, wanted
        self.calls: list[Call] = []

    def needs(self, port: str) -> bool:
        """True for the ports named (all by default)."""
        return self.wanted is None or port in self.wanted

    def emit(
        self, kernel: Kernel, args: Mapping[str, Any], attrs: Any = None, out: Any = None
    ) -> Any:
        """Runs the kernel; see :class:`paddlecli.ops.base.Emitter`."""
        op = ops.get(kernel.op)
        known = {
            k: (attrs or {}).get(k, getattr(op, "defaults", {}).get(k)) for k, _ in kernel.attrs
        }
        given = {p.name: args.get(p.name) for p in kernel.inputs}
        specs = {
            k: each(v, lambda t: t if isinstance(t, Spec) else t.spec)
            for k, v in (out or {}).items()
        }
        if out is None:
            shapes = {k: each(v, lambda t: t.spec) for k, v in given.items()}
            specs = op.shape(shapes, known) if kernel is op.forward else like(kernel, shapes)
        found = run(kernel, given, known, specs, self.sizes)
        results = {k: pair(specs[k], v) for k, v in found.items()}
        self.calls.append(Call(kernel, given, known, specs, self.sizes, results))
        public = [results.get(p.name) for p in kernel.outputs if not p.name.startswith("work")]
        return public[0] if len(public) == 1 else tuple(public)

    def apply(self, op: str, *args: Any, **attrs: Attr) -> Any:
        """The forward kernel of an op by name."""
        kernel = ops.get(op).forward
        named: dict[str, Any] = {}
        for i, port in enumerate(kernel.inputs):
            rest = args[i:]
            if port.variadic:
                named[port.name] = (
                    list(rest[0]) if len(rest) == 1 and isinstance(rest[0], list) else list(rest)
                )
                break
            named[port.name] = rest[0] if rest else None
        return self.emit(kernel, named, attrs)


def like(kernel: Kernel, shapes: Mapping[str, Any]) -> dict[str, Any]:
    """Specs of outputs that nobody gave: dx is like x, p_out like p."""
    return {
        p.name: shapes[p.name.removesuffix("_out") if p.name.endswith("_out") else p.name[1:]]
        for p in kernel.outputs
    }


def pair(spec: Any, array: Any) -> Any:
    """Values of specs and arrays."""
    if isinstance(spec, list):
        return [Value(s, a) for s, a in zip(spec, array, strict=True)]
    return Value(spec, array)


# ---- cases ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Case:
    """Sample ``index`` of an op."""

    op: str
    index: int

    def __str__(self) -> str:
        return f"{self.op}-{self.index}"

    @property
    def it(self) -> Op:
        """The op."""
        return ops.get(self.op)

    @property
    def sample(self) -> Sample:
        """The sample."""
        return self.it.samples()[self.index]


def cases() -> list[Case]:
    """All samples of all ops."""
    return [Case(name, i) for name in ops.names() for i in range(len(ops.get(name).samples()))]


def sizes_of(case: Case, n: int, empty: bool = False) -> Sizes:
    """A batch of n samples; on an axis some sequences are empty (all of them when ``empty``)."""
    rng = np.random.default_rng(n + 1)
    offsets = {}
    for name in case.sample.axes:
        low, high = case.sample.lengths.get(name, (1, 4))
        lengths = rng.integers(low, high + 1, n) * (0 if empty else 1)
        if n > 2:
            lengths[1] = 0
        offsets[name] = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Sizes(n, offsets)


def spec_of(arg: Arg, axes: Sequence[str]) -> Spec:
    """The spec of an argument."""
    axis = (
        Axis(str(arg.shape[0]), str(arg.shape[0])) if arg.shape and arg.shape[0] in axes else None
    )
    dims = [
        BATCH if d == "N" else Dim(d) if isinstance(d, int) else Axis(d, d).total for d in arg.shape
    ]
    return Spec(tuple(dims), arg.dtype, axis)


def draw(arg: Arg, sample: Sample, sizes: Sizes, rng: np.random.Generator) -> Value:
    """Values for an argument, away from the sample's kinks."""
    spec = spec_of(arg, sample.axes)
    shape, dtype = sizes.shape(spec), NUMPY[arg.dtype]
    if arg.values:
        return Value(spec, np.array(arg.values, dtype).reshape(shape))
    if arg.choices:
        return Value(spec, rng.choice(np.array(arg.choices), shape).astype(dtype))
    if not np.issubdtype(dtype, np.floating):
        return Value(
            spec,
            rng.integers(int(arg.low), int(arg.high), shape, np.int64, endpoint=True).astype(dtype),
        )
    values = rng.uniform(arg.low, arg.high, shape)
    for kink in sample.kinks:
        near = np.abs(values - kink) < sample.kink
        values = np.where(near, kink + np.where(values < kink, -1, 1) * sample.kink, values)
    return Value(spec, values.astype(dtype))


def arguments(case: Case, sizes: Sizes) -> dict[str, Any]:
    """All arguments of a case; the same for the same case and batch."""
    rng = np.random.default_rng(zlib.crc32(str(case).encode()) + sizes.n)
    sample = case.sample
    found: dict[str, Any] = {p.name: None for p in case.it.forward.inputs}
    for port, arg in sample.args.items():
        found[port] = each(arg, lambda a: draw(a, sample, sizes, rng))
    return found


@dataclass(frozen=True, eq=False)
class Run:
    """A case on a batch: arguments, forward results by port, the calls made."""

    case: Case
    sizes: Sizes
    args: Mapping[str, Any]
    results: Mapping[str, Any]
    calls: Sequence[Call]

    @property
    def attrs(self) -> Mapping[str, Attr]:
        """Attributes of the forward kernel."""
        return self.calls[0].attrs


def forward(case: Case, sizes: Sizes, args: Mapping[str, Any] | None = None) -> Run:
    """Runs the forward kernel of a case."""
    e = Eager(sizes)
    args = arguments(case, sizes) if args is None else args
    out = (
        None
        if args or case.it.forward.inputs
        else {p.name: Spec.of(BATCH, 37) for p in case.it.forward.outputs}
    )
    e.emit(case.it.forward, args, case.sample.attrs, out)
    return Run(case, sizes, args, e.calls[0].results, e.calls)


@cache
def forward_of(case: Case, n: int, empty: bool = False) -> Run:
    """The same, remembered."""
    return forward(case, sizes_of(case, n, empty))


def numbers(value: Value) -> np.ndarray:
    """The array, with bfloat16 as floats: numpy has no such type, its bits come as integers."""
    if value.spec.dtype != "bf16":
        return value.array
    return (value.array.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)


def flat(value: Any) -> Iterator[Any]:
    """The members of a list, or the value itself; nothing for None."""
    if isinstance(value, list | tuple):
        yield from (v for v in value if v is not None)
    elif value is not None:
        yield value


def reference(run: Run, args: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The op's numpy reference: port -> array (list when variadic); floats as float64."""

    def wide(v: Value) -> Any:
        array = v.array.astype(np.float64) if v.array.dtype.kind == "f" else v.array
        return Ragged(array, run.sizes.edges(v.spec.axis)) if v.spec.axis is not None else array

    given = {k: each(v, wide) for k, v in (run.args if args is None else args).items()}
    found = run.case.it.reference(given, run.attrs, KEY)
    return {
        k: each(v, lambda a: np.asarray(a.values if isinstance(a, Ragged) else a))
        for k, v in found.items()
    }
