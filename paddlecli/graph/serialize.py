"""Graphs as YAML: what a model directory keeps of its architecture.

Forward entries with ops, versions, attributes, names and axes; parameters and states with their
shapes. The stored text alone serves evaluation, prediction, export and further training, whatever
becomes of the recipe.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from paddlecli import ops
from paddlecli.errors import RunError
from paddlecli.graph.ir import (
    ArgumentInfo,
    Entry,
    Graph,
    Item,
    Loop,
    Metric,
    Node,
    Origin,
    ParameterInfo,
    Tensor,
    Update,
    flat,
)  # fmt: skip
from paddlecli.ops._made import Axes
from paddlecli.ops.spec import Axis, Dim, Spec, Symbol

VERSION = 1
Plain = dict[str, Any]


# -- to text ---------------------------------------------------------------------------------------
def to_yaml(graph: Graph) -> str:
    """The graph as YAML text.

    Raises:
        TypeError: a node is no forward kernel (gradients and updates are made anew from the stored
            graph).
    """
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # the same text, in half the time
    text: str = yaml.dump(
        to_plain(graph), Dumper=dumper, sort_keys=False, width=120, allow_unicode=True,
        default_flow_style=None,
    )  # fmt: skip
    return text


def to_plain(graph: Graph) -> Plain:
    """The graph as dicts, lists and scalars."""
    axes = {a.name: a for t in graph.inputs.values() for a in _chain(t.spec.axis)}
    return {
        "format": VERSION,
        "axes": {
            n: {"input": a.input, "parent": a.parent.name if a.parent else None}
            for n, a in axes.items()
        },
        "inputs": {n: _spec(t.spec) for n, t in graph.inputs.items()},
        "labels": list(graph.labels),
        "parameters": {n: _parameter(t) for n, t in graph.parameters.items()},
        "states": {n: {**_spec(t.spec), "initial": t.initial} for n, t in graph.states.items()},
        "arguments": {
            n: {"kind": a.kind, "of": a.of, "count": a.count} for n, a in graph.arguments.items()
        },
        "roles": graph.roles,
        "entries": {n: _entry(e) for n, e in graph.entries.items()},
    }


def _chain(axis: Axis | None) -> list[Axis]:
    return [] if axis is None else [*_chain(axis.parent), axis]


def _dim(dim: Dim) -> Any:
    if dim.symbol is None:
        return dim.coefficient
    s = dim.symbol
    if s.kind == "batch":
        found: Any = "N"
    elif s.kind in ("sum", "product"):
        assert s.a is not None and s.b is not None
        found = {s.kind: [_dim(s.a), _dim(s.b)]}
    else:
        assert s.axis is not None
        found = {s.kind: [s.axis.name, *([s.other.name] if s.other else [])]}
    return found if dim.coefficient == 1 else {"times": [dim.coefficient, found]}


def _spec(spec: Spec) -> Plain:
    found: Plain = {"shape": [_dim(d) for d in spec.shape], "dtype": spec.dtype}
    if spec.axis is not None:
        found["axis"] = spec.axis.name
    return found


def _parameter(t: Tensor) -> Plain:
    info = t.info or ParameterInfo({})
    found = {**_spec(t.spec), "initializer": dict(info.initializer)}
    usual = ParameterInfo({})
    for key in ("trainable", "rate", "clip", "sparse", "since"):
        if getattr(info, key) != getattr(usual, key):
            found[key] = getattr(info, key)
    if info.regularizer is not None:
        found["regularizer"] = dict(info.regularizer)
    return found


def _entry(entry: Entry) -> Plain:
    names = _Names(entry)
    items = [names.item(i) for i in entry.items]
    return {
        "training": entry.training,
        "tensors": names.tensors,
        "nodes": items,
        "loss": None if entry.loss is None else names.of(entry.loss),
        "fetches": {k: names.of(t) for k, t in entry.fetches.items()},
        "outputs": {k: names.of(t) for k, t in entry.outputs.items()},
        "metrics": {k: _metric(m, names) for k, m in entry.metrics.items()},
        "updates": [
            {"optimizer": u.optimizer, "parameters": list(u.parameters)} for u in entry.updates
        ],
    }


def _metric(metric: Metric, names: _Names) -> Plain:
    found = {"op": metric.op, "attrs": _attrs(metric.attrs), "state": names.of(metric.state)}
    return {**found, "values": list(metric.values)} if metric.values else found


def _attrs(attrs: Mapping[str, Any]) -> Plain:
    return {k: list(v) if isinstance(v, tuple) else v for k, v in attrs.items()}


class _Names:
    """Names of an entry's tensors; shared ones carry their role, so that reading finds them
    again."""

    def __init__(self, entry: Entry) -> None:
        self.tensors: Plain = {}
        self._seen: dict[int, str] = {}
        for node in flat(entry.items):
            for t in (*node.inputs, *node.outputs):
                self.of(t)

    def of(self, t: Tensor) -> str:
        """The name of a tensor, described at first use."""
        if t.role in ("input", "parameter", "state", "argument"):
            return f"{t.role}:{t.name}"
        if t.role == "axis" and t.name in self.tensors:  # its part of the axis, whoever asks
            return t.name
        if id(t) not in self._seen:
            name = t.name
            while name in self.tensors:
                name += "'"
            self._seen[id(t)] = name
            self.tensors[name] = self._describe(t)
        return self._seen[id(t)]

    def _describe(self, t: Tensor) -> Plain:
        found = _spec(t.spec)
        if t.role != "value":
            found["role"] = t.role
        if t.role == "constant":
            found["data"] = base64.b64encode(t.data).decode()
        if t.role == "axis":
            assert t.source is not None
            found.update(part=t.part, source=t.source.name)
        for key, other in (("base", t.base), ("init", t.init)):
            if other is not None:
                found[key] = self.of(other)
        return found

    def item(self, item: Item) -> Plain:
        """A node or a loop."""
        if isinstance(item, Loop):
            loop: Plain = {"loop": item.kind, "body": [self.item(n) for n in item.body]}
            if item.axis is not None:
                loop["axis"] = item.axis.name
            if item.flag is not None:
                loop.update(limit=item.limit, flag=self.of(item.flag))
            return {**loop, **_origin(item.origin)}
        op = ops.get(item.kernel.op)
        if item.kernel not in op.kernels or item.accumulate or item.guard is not None:
            raise TypeError(
                f"{item.kernel.full_name} belongs to a compiled graph, not to a stored one"
            )
        found: Plain = {
            "op": item.kernel.full_name,
            "version": op.version,
            "args": self._ports(item.args),
            "results": self._ports(item.results),
        }
        if item.attrs:
            found["attrs"] = _attrs(item.attrs)
        if item.stream:
            found["stream"] = item.stream
        return {**found, **_origin(item.origin)}

    def _ports(self, ports: Mapping[str, Any]) -> Plain:
        return {
            k: [self.of(t) for t in v] if isinstance(v, list) else self.of(v)
            for k, v in ports.items()
            if v is not None
        }


def _origin(origin: Origin) -> Plain:
    found = {"layer": origin.path, "kind": origin.kind}
    return {k: v for k, v in found.items() if v}


# -- from text -------------------------------------------------------------------------------------
def from_yaml(text: str, source: str = "graph.yaml") -> Graph:
    """The graph that ``to_yaml`` wrote.

    Args:
        source: name of the file, for messages and as the origin of the nodes.

    Raises:
        RunError: the text is no stored graph, or one of a newer version or with an op that is not
            known here.
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the same, in a fifth of the time
    try:
        return from_plain(yaml.load(text, loader), source)
    except (yaml.YAMLError, KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise RunError(
            f"{source} is not a stored network: {type(error).__name__}: {error}"
        ) from None


def from_plain(plain: Plain, source: str) -> Graph:
    """The graph that ``to_plain`` gave."""
    if plain["format"] != VERSION:
        raise RunError(
            f"{source} has format {plain['format']}, this version reads {VERSION}",
            hint="update paddlecli",
        )
    axes = Axes()
    for name, a in plain["axes"].items():
        axes[name] = Axis(name, a["input"], axes[a["parent"]] if a["parent"] else None)
    read = _Reader(axes, source)
    graph = read.graph
    graph.inputs = {n: Tensor(n, read.spec(s), "input") for n, s in plain["inputs"].items()}
    graph.labels = tuple(plain["labels"])
    graph.parameters = {
        n: Tensor(n, read.spec(p), "parameter", info=_info(p))
        for n, p in plain["parameters"].items()
    }
    graph.states = {
        n: Tensor(n, read.spec(s), "state", initial=s["initial"])
        for n, s in plain["states"].items()
    }
    graph.arguments = {
        n: ArgumentInfo(Tensor(n, Spec.of(1), "argument"), **a)
        for n, a in plain["arguments"].items()
    }
    graph.roles = plain["roles"]
    graph.entries = {n: read.entry(n, e) for n, e in plain["entries"].items()}
    return graph


def _info(p: Plain) -> ParameterInfo:
    keys = ("trainable", "rate", "clip", "sparse", "since", "regularizer")
    return ParameterInfo(p["initializer"], **{k: p[k] for k in keys if k in p})


class _Reader:
    """Rebuilds tensors and nodes from their names."""

    def __init__(self, axes: Mapping[str, Axis], source: str) -> None:
        self.axes, self.source, self.graph = axes, source, Graph()

    def dim(self, value: Any) -> Dim:
        """A dimension from its text form."""
        if isinstance(value, int):
            return Dim(value)
        if value == "N":
            return Dim(1, Symbol("batch"))
        kind, args = next(iter(value.items()))
        if kind == "times":
            return Dim(args[0]) * self.dim(args[1])
        if kind == "sum":
            return self.dim(args[0]) + self.dim(args[1])
        if kind == "product":
            return self.dim(args[0]) * self.dim(args[1])
        other = self.axes[args[1]] if len(args) > 1 else None
        return Dim(1, Symbol(kind, axis=self.axes[args[0]], other=other))

    def spec(self, value: Plain) -> Spec:
        """A spec from its text form."""
        axis = self.axes[value["axis"]] if "axis" in value else None
        return Spec(tuple(self.dim(d) for d in value["shape"]), value["dtype"], axis)

    def entry(self, name: str, plain: Plain) -> Entry:
        """One entry."""
        known: dict[str, Tensor] = {n: self._tensor(n, t) for n, t in plain["tensors"].items()}
        for n, t in plain["tensors"].items():
            for key in ("base", "init"):
                if key in t:
                    setattr(known[n], key, self._find(t[key], known))
        entry = Entry(name, plain["training"], [self._item(i, known) for i in plain["nodes"]])
        entry.loss = None if plain["loss"] is None else self._find(plain["loss"], known)
        entry.fetches = {k: self._find(t, known) for k, t in plain["fetches"].items()}
        entry.outputs = {k: self._find(t, known) for k, t in plain["outputs"].items()}
        for k, m in plain["metrics"].items():
            state, values = self._find(m["state"], known), tuple(m.get("values", ()))
            entry.metrics[k] = Metric(m["op"], _tuples(m["attrs"]), state, values)
        entry.updates = [Update(u["optimizer"], list(u["parameters"])) for u in plain["updates"]]
        return entry

    def _tensor(self, name: str, t: Plain) -> Tensor:
        made = Tensor(name, self.spec(t), t.get("role", "value"), part=t.get("part", ""))
        made.data = base64.b64decode(t["data"]) if "data" in t else b""
        made.source = self.axes[t["source"]] if "source" in t else None
        return made

    def _find(self, name: str, known: Mapping[str, Tensor]) -> Tensor:
        role, _, rest = name.partition(":")
        shared: dict[str, Any] = {
            "input": self.graph.inputs,
            "parameter": self.graph.parameters,
            "state": self.graph.states,
        }
        if role == "argument" and name not in known:
            return self.graph.arguments[rest].tensor
        found: Tensor = shared[role][rest] if role in shared and name not in known else known[name]
        return found

    def _item(self, plain: Plain, known: Mapping[str, Tensor]) -> Item:
        origin = Origin(self.source, 0, 0, plain.get("layer", ""), plain.get("kind", ""))
        if "loop" in plain:
            body = [n for n in (self._item(b, known) for b in plain["body"]) if isinstance(n, Node)]
            axis = self.axes[plain["axis"]] if "axis" in plain else None
            flag = self._find(plain["flag"], known) if "flag" in plain else None
            return Loop(
                plain["loop"], body, axis, limit=plain.get("limit", 0), flag=flag, origin=origin
            )
        op, _, kernel_name = plain["op"].partition(".")
        if op not in ops.names():
            from paddlecli.config.plugins import hint

            raise RunError(
                f"{self.source} uses the op {op!r}, which this version does not have",
                hint=f"update paddlecli; {hint('op', op)}",
            )
        if plain["version"] != ops.get(op).version:
            raise RunError(
                f"{self.source} uses {op!r} in version {plain['version']}, this paddlecli has version "
                f"{ops.get(op).version}",
                hint="use the paddlecli that wrote the run",
            )
        kernel = next(k for k in ops.get(op).kernels if k.name == kernel_name)

        def ports(values: Plain, records: Any) -> dict[str, Any]:
            found: dict[str, Any] = {}
            for port in records:
                value = values.get(port.name)
                found[port.name] = (
                    [self._find(v, known) for v in value]
                    if isinstance(value, list)
                    else (None if value is None else self._find(value, known))
                )
            return found

        return Node(
            kernel,
            ports(plain["args"], kernel.inputs),
            ports(plain["results"], kernel.outputs),
            _tuples(plain.get("attrs", {})),
            origin,
            stream=plain.get("stream", ""),
        )


def _tuples(attrs: Plain) -> Plain:
    return {k: tuple(v) if isinstance(v, list) else v for k, v in attrs.items()}
