"""Graph to bytes: writes the tables of a plan and collects where everything in it is found."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from paddlecli.compiler.artifact import Argument, Artifact, EntryInfo, MetricInfo, Placement
from paddlecli.compiler.memory import MemoryPlan
from paddlecli.compiler.plan import PlanWriter
from paddlecli.compiler.storage import key_of
from paddlecli.graph.ir import Entry, Graph, Item, Loop, Node, Tensor, flat
from paddlecli.ops.spec import Axis

ORDERED = ("order", "starts", "map", "map_reversed")


def emit(stages: Any, seed: int) -> Artifact:
    """The plan of a graph that has gone through all passes (``stages``:
    ``paddlecli.compiler.pipeline.Stages``)."""
    graph: Graph = stages.fused
    writer = PlanWriter(seed)
    out = _Writer(writer, graph, stages.storage.placements)
    for r in stages.storage.ranges:
        writer.range(r.name, r.klass, r.dtype, r.bytes)
    out.axes()
    for name in graph.arguments:
        out.argument(name)
    for name in graph.inputs:
        out.input(name)
    entries = {
        name: out.entry(i, e, stages.memory[name])
        for i, (name, e) in enumerate(graph.entries.items())
    }
    arguments = tuple(Argument(n, a.kind, a.of, a.count) for n, a in graph.arguments.items())
    placed: Mapping[str, Placement] = stages.storage.placements
    return Artifact(
        plan=writer.finish(),
        entries=entries,
        arguments=arguments,
        symbols=tuple(writer.symbols()),
        parameters={n: placed[n] for n in graph.parameters},
        states={
            n: p
            for n, p in placed.items()
            if stages.storage.ranges[p.range].klass == "state" and ":" not in n
        },
        slots={n: p for n, p in placed.items() if "@" in n and not n.startswith("flat:")},
        slot_start=dict(stages.storage.slot_start),
        averages=dict(stages.storage.averages),
        metric_states={
            m.state.name: placed[m.state.name]
            for e in graph.entries.values()
            for m in e.metrics.values()
        },
        roles=dict(graph.roles),
        notes=tuple(stages.notes),
        axes=tuple(writer.axis_names()),
    )


class _Writer:
    """Tensors of the graph as records of the plan; shared ones once, temporaries once an entry."""

    def __init__(
        self, writer: PlanWriter, graph: Graph, placements: Mapping[str, Placement]
    ) -> None:
        self.w, self.graph, self.placements = writer, graph, placements
        self.shared: dict[tuple[str, str], int] = {}
        self.local: dict[int, int] = {}
        self.memory = MemoryPlan()
        self.slots: dict[int, int] = {}
        self.clock = 0
        self.keep: list[Tensor] = []

    def axes(self) -> None:
        """Declares every ragged axis; those that a scan or an ordered part uses get their step
        order."""
        ordered: set[Axis] = set()
        for entry in self.graph.entries.values():
            ordered |= {i.axis for i in entry.items if isinstance(i, Loop) and i.axis is not None}
            parts = [t for n in flat(entry.items) for t in n.inputs if t.part in ORDERED]
            ordered |= {t.source for t in parts if t.source is not None}
        for t in self.graph.inputs.values():
            axis = t.spec.axis
            while axis is not None:
                self.w.axis(axis, ordered=axis in ordered)
                axis = axis.parent

    def argument(self, name: str) -> int:
        """Tensor index of an argument."""
        return self._once(
            "argument", name, lambda: self.w.argument(name, self.graph.arguments[name].tensor.spec)
        )

    def input(self, name: str) -> int:
        """Tensor index of an input."""
        return self._once("input", name, lambda: self.w.input(name, self.graph.inputs[name].spec))

    def _once(self, kind: str, name: str, make: Callable[[], int]) -> int:
        if (kind, name) not in self.shared:
            self.shared[kind, name] = make()
        return self.shared[kind, name]

    # -- tensors -----------------------------------------------------------------------------------
    def index(self, t: Tensor) -> int:
        """Index of a tensor's record, written at first use."""
        if t.role == "input":
            return self.input(t.name)
        if t.role == "argument":
            return self.argument(t.name)
        if t.persistent:
            return self._once("range", key_of(t), lambda: self._range(t))
        if t.role == "axis":
            return self._once("axis", t.name, lambda: self._axis_part(t))
        if id(t) not in self.local:
            self.keep.append(t)
            self.local[id(t)] = self._local(t)
        return self.local[id(t)]

    def _axis_part(self, t: Tensor) -> int:
        assert t.source is not None
        return self.w.tensor(t.name, t.spec, "axis", self.w.axis(t.source), part=t.part)

    def _range(self, t: Tensor) -> int:
        place = self.placements[key_of(t)]
        return self.w.tensor(t.name, t.spec, "range", place.range, offset=place.offset)

    def _local(self, t: Tensor) -> int:
        if t.role == "constant":
            return self.w.tensor(t.name, t.spec, "constant", offset=self.w.constant(t.data))
        if t.is_view:
            assert t.base is not None
            init = -1 if t.init is None else self.index(t.init)
            return self.w.tensor(t.name, t.spec, t.role, self.index(t.base), part=init)
        if id(t) in self.memory.alias:
            return self.w.tensor(t.name, t.spec, "alias", self.index(self.memory.alias[id(t)]))
        return self.w.tensor(t.name, t.spec, "slot", self.slots[id(t)])

    # -- entries -----------------------------------------------------------------------------------
    def entry(self, index: int, entry: Entry, memory: MemoryPlan) -> EntryInfo:
        """Writes one entry."""
        self.local, self.keep, self.memory = {}, [], memory
        self.slots = {
            id(v.tensor): self.w.slot(self.clock + v.first, self.clock + v.last)
            for v in memory.lives
        }
        self.clock += 1 + max((v.last for v in memory.lives), default=0)
        first = self.w.node_count()
        for item in entry.items:
            self._item(item)
        used = {t.name for n in flat(entry.items) for t in n.inputs if t.role == "input"}
        axes = [a for n in flat(entry.items) for a in _axes(n)]
        used |= {a.input for a in axes}
        inputs = tuple(n for n in self.graph.inputs if n in used)
        self.w.entry(
            entry.name, first, self.w.node_count() - first, inputs=inputs,
            fetches=[self.index(t) for t in entry.fetches.values()],
            outputs=[self.index(t) for t in entry.outputs.values()],
            halt=-1 if entry.halt is None else self.index(entry.halt), axes=[a for a in axes if a.of],
        )  # fmt: skip
        return EntryInfo(
            entry.name,
            index,
            inputs,
            tuple(entry.fetches),
            {k: t.spec for k, t in entry.outputs.items()},
            {
                k: MetricInfo(m.op, m.attrs, m.state.name, m.values)
                for k, m in entry.metrics.items()
            },
            bool(entry.updates),
            frozenset(t.name for n in flat(entry.items) for t in n.inputs if t.role == "argument"),
        )

    def _item(self, item: Item) -> None:
        if isinstance(item, Node):
            if id(item) not in self.memory.dropped:
                self._node(item)
            return
        for node in item.body:  # every record that a body needs stands before the loop's
            for t in (*node.inputs, *node.outputs):
                self.index(t)
        if item.kind == "scan":
            assert item.axis is not None
            self.w.scan(item.axis, len(item.body), item.reverse, item.origin)
        else:
            assert item.flag is not None
            self.w.decode(item.limit, self.index(item.flag), len(item.body), item.origin)
        for node in item.body:
            self._node(node)

    def _node(self, node: Node) -> None:
        def indices(ports: Mapping[str, Any], records: Any) -> list[int]:
            found: list[int] = []
            for port in records:
                value = ports.get(port.name)
                values = value if isinstance(value, list) else [value]
                found += [-1 if v is None else self.index(v) for v in values]
            return found

        flags = 0
        position = 0
        for port in node.kernel.outputs:
            value = node.results.get(port.name)
            if port.name in node.accumulate:
                flags |= 1 << position
            position += len(value) if isinstance(value, list) else 1
        self.w.node(
            node.kernel,
            indices(node.args, node.kernel.inputs),
            indices(node.results, node.kernel.outputs),
            node.attrs,
            accumulate=flags,
            guard=-1 if node.guard is None else self.index(node.guard),
            stream=stream_key(node.stream),
            origin=node.origin,
            updates=node.kernel.updates,
        )


def stream_key(stream: str) -> int:
    """Key of a random stream, from the layer's path alone: 64 bits, not 0; 0 for a node that draws
    nothing."""
    if not stream:
        return 0
    return int.from_bytes(hashlib.blake2b(stream.encode(), digest_size=8).digest(), "little") | 1


def _axes(node: Node) -> list[Any]:
    """Axes whose offsets a node needs: those of its tensors' rows and sizes."""
    found = []
    for t in (*node.inputs, *node.outputs):
        found += [a for a in (t.spec.axis, t.source) if a is not None]
        found += [
            d.symbol.axis
            for d in t.spec.shape
            if d.symbol is not None and d.symbol.axis is not None
        ]
    return found
