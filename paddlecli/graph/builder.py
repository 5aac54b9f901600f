"""Writing graphs: the emitter that layers, gradient rules and decompositions share."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from paddlecli import ops
from paddlecli.config.nodes import close_names
from paddlecli.errors import ConfigError, Fault, Where
from paddlecli.graph.ir import (
    ArgumentInfo,
    Entry,
    Graph,
    Item,
    Metric,
    Node,
    Origin,
    ParameterInfo,
    Tensor,
    tensors_of,
)  # fmt: skip
from paddlecli.ops.base import Attr, Kernel, Op, ShapeError
from paddlecli.ops.spec import Axis, Dim, Spec

MOST_ELEMENTS = 1 << 40
"""Of one tensor, for each unit of its symbol."""


def fault(
    origin: Origin, text: str, expected: str = "", nearest: tuple[str, ...] = ()
) -> ConfigError:
    """A graph error at its recipe line: ``text`` names the op and the numbers."""
    where = Where(origin.file, origin.line, origin.column, origin.path, "")
    return ConfigError(text, faults=[Fault(text, where, expected, nearest)])


class Emitter:
    """Appends nodes to ``items``. Base of :class:`Builder` and of the emitter that gradient rules
    get."""

    def __init__(self, graph: Graph, items: list[Item], prefix: str = "") -> None:
        self.graph = graph
        self.items = items
        self.origin = Origin()
        self._prefix = prefix
        self._names: dict[str, int] = {}

    def fresh(self, stem: str) -> str:
        """A tensor name not used yet in this entry."""
        stem = self._prefix + stem
        count = self._names.get(stem, 0)
        self._names[stem] = count + 1
        return stem if count == 0 else f"{stem}#{count}"

    def needs(self, port: str) -> bool:
        """A plain emitter wants every gradient."""
        return True

    def value(self, stem: str, spec: Spec) -> Tensor:
        """A computed tensor with a fresh name."""
        return Tensor(self.fresh(stem), spec)

    def constant(
        self, values: Sequence[float], dtype: str = "f32", shape: tuple[int, ...] | None = None
    ) -> Tensor:
        """A constant tensor; ``shape`` defaults to one dimension."""
        code = {"f32": "f", "f64": "d", "i64": "q", "i32": "i"}[dtype]
        data = struct.pack(f"<{len(values)}{code}", *values)
        spec = Spec.of(*(shape or (len(values),)), dtype=dtype)
        return Tensor(self.fresh("constant"), spec, "constant", data=data)

    def axis_data(self, axis: Axis, part: str) -> Tensor:
        """The i64 tensor of an axis' ``offsets``, ``order``, ``starts``, ``map``, ``map_reversed``
        or ``sequence``."""
        sizes = {"offsets": axis.sequences + 1, "order": axis.sequences, "starts": axis.longest + 1}
        spec = Spec((sizes.get(part, axis.total),), "i64", axis if part == "sequence" else None)
        return Tensor(f"{axis.name}.{part}", spec, "axis", part=part, source=axis)

    def emit(
        self,
        kernel: Kernel,
        args: Mapping[str, Any],
        attrs: Mapping[str, Attr] | None = None,
        out: Mapping[str, Any] | None = None,
    ) -> Any:
        """Adds a node; see :class:`paddlecli.ops.base.Emitter`."""
        op = ops.get(kernel.op)
        values = self._attrs(kernel, attrs or {})
        ports = {p.name: args.get(p.name) for p in kernel.inputs}
        self._check(kernel, ports, args)
        specs = self._specs(op, kernel, ports, values, out)
        results = {p.name: self._result(kernel, p.name, specs) for p in kernel.outputs}
        node = Node(
            kernel,
            ports,
            results,
            values,
            self.origin,
            stream=self.origin.path if kernel.random else "",
        )
        self.items.append(node)
        public = [v for k, v in results.items() if not k.startswith("work")]
        return public[0] if len(public) == 1 else tuple(public)

    def apply(self, op: str, *args: Any, **attrs: Attr) -> Any:
        """Adds the forward kernel of an op by name; inputs in signature order, a variadic one takes
        the rest.

        Raises:
            ConfigError: there is no such op, or its shapes do not fit.
        """
        if op not in ops.names():
            raise fault(self.origin, f"there is no op `{op}`", nearest=close_names(op, ops.names()))
        kernel = ops.get(op).forward
        named: dict[str, Any] = {}
        for i, port in enumerate(kernel.inputs):
            if port.variadic:
                rest = args[i:]
                named[port.name] = (
                    list(rest[0])
                    if len(rest) == 1 and isinstance(rest[0], list | tuple)
                    else list(rest)
                )
                break
            named[port.name] = args[i] if i < len(args) else None
        return self.emit(kernel, named, attrs)

    def update(
        self, kernel: Kernel, args: Mapping[str, Any], attrs: Mapping[str, Attr] | None = None
    ) -> None:
        """A node that changes state: output ``x_out`` is the same memory as input ``x``."""
        states = {
            p.name: args[p.name.removesuffix("_out")]
            for p in kernel.outputs
            if p.name.endswith("_out")
        }
        self.emit(kernel, args, attrs, out=states)
        node = self.items[-1]
        assert isinstance(node, Node)
        node.results.update(states)

    def _attrs(self, kernel: Kernel, given: Mapping[str, Attr]) -> dict[str, Attr]:
        known = dict(kernel.attrs)
        defaults = getattr(ops.get(kernel.op), "defaults", {})
        if extra := set(given) - set(known):
            raise TypeError(f"{kernel.full_name} has no attribute {sorted(extra)}")
        if missing := [k for k in known if k not in given and k not in defaults]:
            raise TypeError(f"{kernel.full_name} needs the attributes {missing}")
        make = {
            "int": int,
            "float": float,
            "bool": bool,
            "list": lambda v: tuple(int(i) for i in v),
        }
        return {k: make[t](given.get(k, defaults.get(k))) for k, t in known.items()}  # type: ignore[operator]

    def _check(self, kernel: Kernel, ports: Mapping[str, Any], given: Mapping[str, Any]) -> None:
        if extra := set(given) - set(ports):
            raise TypeError(f"{kernel.full_name} has no input {sorted(extra)}")
        for port in kernel.inputs:
            value = ports[port.name]
            if value is None and not (port.optional or port.variadic):
                raise TypeError(f"{kernel.full_name} needs the input {port.name!r}")
            for t in tensors_of(value):
                if port.dtype not in ("any", t.spec.dtype):
                    text = f"[{kernel.op}] {port.name} is {t.spec.dtype}, must be {port.dtype}"
                    raise fault(self.origin, text)

    def _specs(
        self,
        op: Op,
        kernel: Kernel,
        ports: Mapping[str, Any],
        attrs: Mapping[str, Attr],
        out: Any = None,
    ) -> Any:
        if out is not None:
            return {
                k: [_spec(t) for t in v] if isinstance(v, list | tuple) else _spec(v)
                for k, v in out.items()
            }
        specs = {
            k: [t.spec for t in v] if isinstance(v, list) else None if v is None else v.spec
            for k, v in ports.items()
        }
        try:
            if kernel is not op.forward:
                return _like(kernel, specs)
            return op.shape(specs, attrs)
        except ShapeError as error:
            raise fault(self.origin, str(error)) from None

    def _result(self, kernel: Kernel, port: str, specs: Mapping[str, Any]) -> Any:
        stem = f"{self.origin.path}.{port}" if self.origin.path else f"{kernel.op}.{port}"
        spec = specs[port]
        if isinstance(spec, list):
            return [self.value(stem, s) for s in spec]
        return None if spec is None else self.value(stem, self._bounded(stem, spec))

    def _bounded(self, name: str, spec: Spec) -> Spec:
        """The shape itself, if the core can count its elements."""
        if math.prod(d.coefficient for d in spec.shape) > MOST_ELEMENTS:
            raise fault(self.origin, f"{name} would be {spec}: more elements than can be held")
        return spec


def _spec(value: Any) -> Any:
    return value if isinstance(value, Spec) or value is None else value.spec


def _like(kernel: Kernel, specs: Mapping[str, Any]) -> dict[str, Any]:
    """The default rule of kernels that are not ``forward``: dx is like x, x_out like x."""
    found = {}
    for port in kernel.outputs:
        name = port.name[:-4] if port.name.endswith("_out") else port.name.removeprefix("d")
        if name not in specs:
            raise TypeError(f"{kernel.full_name}: the spec of output {port.name!r} must be given")
        found[port.name] = specs[name]
    return found


def step_value(axis: Axis, name: str, spec: Spec) -> Tensor:
    """A value computed inside a scan: its rows of the present step, a view of a tensor that keeps
    those of all steps."""
    if not spec.shape or spec.shape[0].symbol != axis.step_rows.symbol:
        return Tensor(name, spec)
    lead = Dim(spec.shape[0].coefficient, axis.total.symbol)
    base = Tensor(f"{name}.steps", Spec((lead, *spec.shape[1:]), spec.dtype))
    return Tensor(name, spec, "step", base=base)


class Builder(Emitter):
    """Writes one forward entry: inputs, parameters, layer paths, losses, outputs, metrics.

    ``training`` tells layers such as dropout and batch norm which form they take.
    """

    def __init__(self, graph: Graph, name: str, training: bool) -> None:
        self.entry = Entry(name, training)
        super().__init__(graph, self.entry.items)
        self.training = training
        self._path: list[str] = []
        self._scan: Axis | None = None
        self._name = ""
        self._layers: dict[str, int] = {}
        self._written: dict[str, Origin] = {}
        self._renaming: tuple[int, Mapping[str, str], dict[str, None]] | None = None
        graph.entries[name] = self.entry

    # -- paths -------------------------------------------------------------------------------------
    def unique(self, kind: str) -> str:
        """``fc1``, ``fc2`` ...: the name of the next layer of a kind in the present scope; one that
        a layer was given is left out."""
        key = "/".join([*self._path, kind])
        self._layers[key] = self._layers.get(key, 0) + 1
        taken = f"{key}{self._layers[key]}" in self._written
        return self.unique(kind) if taken else f"{kind}{self._layers[key]}"

    @property
    def path(self) -> str:
        """The present layer path, ``encoder/fc1``."""
        return "/".join(self._path)

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Nodes and parameters written inside get ``name`` in their path."""
        self._path.append(name)
        saved, self.origin = self.origin, self.origin.under(self.path)
        try:
            yield
        finally:
            self._path.pop()
            self.origin = saved

    @contextmanager
    def layer(self, kind: str) -> Iterator[None]:
        """The scope of one layer: the name given by :meth:`naming`, or the next free one of its
        kind.

        Raises:
            ConfigError: another layer has the name; they would share their parameters unseen.
        """
        name, self._name = self._name or self.unique(kind), ""
        with self.scope(name):
            first = self._written.setdefault(self.path, self.origin)
            if first is not self.origin:
                place = f"{first.file}:{first.line}" if first.line else "before"
                raise fault(self.origin, f"two layers are called {self.path!r}: here and {place}")
            self.origin = replace(self.origin, kind=kind)
            yield

    @contextmanager
    def shared(self, name: str) -> Iterator[None]:
        """The scope of a block: its parameters are called the same wherever it is used."""
        saved = self._path, self._layers, self._written, self.origin
        self._path, self._layers, self._written = [name], {}, {}
        self.origin = self.origin.under(name)
        try:
            yield
        finally:
            self._path, self._layers, self._written, self.origin = saved

    @contextmanager
    def naming(self, name: str) -> Iterator[None]:
        """The next layer written inside is called ``name``."""
        self._name = name
        try:
            yield
        finally:
            self._name = ""

    @contextmanager
    def renaming(self, names: Mapping[str, str]) -> Iterator[dict[str, None]]:
        """Parameters of the next layer written inside go by other full names: ``{"w": "words"}``.
        Gives the layer's own names of all parameters that it asks for."""
        asked: dict[str, None] = {}
        saved, self._renaming = self._renaming, (len(self._path) + 1, names, asked)
        try:
            yield asked
        finally:
            self._renaming = saved

    def _full_name(self, name: str) -> str:
        if self._renaming is not None:
            depth, names, asked = self._renaming
            own = "/".join([*self._path[depth:], name])
            asked[own] = None
            if own in names:
                return names[own]
        return "/".join([*self._path, name])

    @property
    def looping(self) -> bool:
        """True inside the body of a loop."""
        return self.items is not self.entry.items

    @property
    def scanned(self) -> Axis | None:
        """The axis of the scan whose body is written, None elsewhere."""
        return self._scan

    def outermost(self) -> None:
        """Raises ConfigError inside the body of a loop."""
        if self.looping:
            raise fault(self.origin, "[scan] a loop inside a loop is not possible")

    @contextmanager
    def body(self, axis: Axis | None = None) -> Iterator[list[Item]]:
        """Nodes written inside form the body of a loop; over ``axis`` their values are step
        views."""
        self.outermost()
        nodes: list[Item] = []
        self.items, self._scan = nodes, axis
        try:
            yield nodes
        finally:
            self.items, self._scan = self.entry.items, None

    def value(self, stem: str, spec: Spec) -> Tensor:
        """A computed tensor; inside a scan a view of the tensor that keeps all steps."""
        name = self.fresh(stem)
        return Tensor(name, spec) if self._scan is None else step_value(self._scan, name, spec)

    @contextmanager
    def at(self, origin: Origin) -> Iterator[None]:
        """Nodes written inside come from this line."""
        saved, self.origin = self.origin, origin.under(self.path)
        try:
            yield
        finally:
            self.origin = saved

    # -- tensors -----------------------------------------------------------------------------------
    def input(self, name: str, spec: Spec | None = None) -> Tensor:
        """An input of the graph, declared at first use."""
        found = self.graph.inputs.get(name)
        if found is None:
            if spec is None:
                raise fault(
                    self.origin,
                    f"no input is called {name!r}; there are {sorted(self.graph.inputs)}",
                )
            found = self.graph.inputs[name] = Tensor(name, spec, "input")
        return found

    def parameter(
        self,
        name: str,
        shape: Sequence[int],
        initializer: Mapping[str, Any] | str,
        *,
        path: str | None = None,
        trainable: bool = True,
        rate: float = 1.0,
        regularizer: Mapping[str, float] | None = None,
        clip: bool = True,
        sparse: bool = False,
    ) -> Tensor:
        """The parameter ``<layer path>/<name>`` (or ``path``), made at first use and shared by
        later ones.

        Raises:
            ConfigError: it exists with another shape.
        """
        full = path or self._full_name(name)
        spec = self._bounded(full, Spec.of(*shape))
        found = self.graph.parameters.get(full)
        if found is None:
            init = {"name": initializer} if isinstance(initializer, str) else dict(initializer)
            info = ParameterInfo(init, trainable, rate, regularizer, clip, sparse)
            found = self.graph.parameters[full] = Tensor(full, spec, "parameter", info=info)
        elif found.spec != spec:
            raise fault(
                self.origin, f"parameter {full!r} is {found.spec} and is used here as {spec}"
            )
        elif sparse and found.info is not None and not found.info.sparse:
            found.info = replace(found.info, sparse=True)
        return found

    def state(
        self, name: str, shape: Sequence[int], dtype: str = "f32", initial: float = 0.0
    ) -> Tensor:
        """A state tensor ``<layer path>/<name>`` that nodes update and checkpoints save."""
        full = "/".join([*self._path, name])
        found = self.graph.states.get(full)
        if found is None:
            found = Tensor(full, Spec.of(*shape, dtype=dtype), "state", initial=initial)
            self.graph.states[full] = found
        return found

    def argument(self, name: str, kind: str, of: str, count: str = "batch") -> Tensor:
        """A number given with each step."""
        found = self.graph.arguments.get(name)
        if found is None:
            found = ArgumentInfo(Tensor(name, Spec.of(1), "argument"), kind, of, count)
            self.graph.arguments[name] = found
        return found.tensor

    # -- what an entry is for ----------------------------------------------------------------------
    def loss(
        self, values: Tensor, name: str = "loss", count: str = "", counted: Tensor | None = None
    ) -> Tensor:
        """Adds per-row loss values [rows, ...] to the entry's loss: their sum over the total weight
        of the whole batch.

        ``count`` says what the weight counts (default: the rows of ``values``); ``counted`` [rows]
        i32 marks rows that count.
        """
        if not count:
            count = f"axis:{values.spec.axis.name}" if values.spec.axis else "batch"
        weight = self.argument(
            f"weight.{name}" if count == "batch" else f"weight.{name}.{count}",
            "weight",
            name,
            count,
        )
        mean: Tensor = self.apply("weighted_mean", values, weight)
        total = mean if self.entry.loss is None else self.apply("sum", [self.entry.loss, mean])
        self.entry.loss = self.entry.fetches["loss"] = total
        self._count(name, "mean_metric", {"values": values, "counted": counted})
        return mean

    def output(self, name: str, tensor: Tensor) -> None:
        """A named result of the entry."""
        self.entry.outputs[name] = tensor

    def metric(
        self,
        name: str,
        op: str,
        args: Mapping[str, Any],
        attrs: Mapping[str, Attr] | None = None,
        values: Sequence[str] = (),
    ) -> None:
        """A metric node that adds to its own int64 state; ``values`` of the op are reported, the usual
        ones where none is named.

        Raises:
            ConfigError: the entry reports something under that name already.
        """
        if name in self.entry.metrics:
            raise fault(self.origin, f"two metrics are called {name!r}: give one another `name:`")
        self._count(name, op, args, attrs, values)

    def _count(
        self,
        name: str,
        op: str,
        args: Mapping[str, Any],
        attrs: Mapping[str, Attr] | None = None,
        values: Sequence[str] = (),
    ) -> None:
        kernel = ops.get(op).forward
        known = self._attrs(kernel, attrs or {})
        shape = ops.get(op).state_shape(known)  # type: ignore[attr-defined]
        state = Tensor(f"{self.entry.name}/{name}", Spec.of(*shape, dtype="i64"), "metric")
        given = {**{k: v for k, v in args.items() if v is not None}, "state": state}
        self.update(kernel, given, known)
        self._specs(ops.get(op), kernel, {p.name: given.get(p.name) for p in kernel.inputs}, known)
        self.entry.metrics[name] = Metric(op, known, state, tuple(values))
