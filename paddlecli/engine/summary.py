"""`model summary`: the layers of a network with their shapes, parameters, work and memory.

Work is counted node by node on the graphs that the compiler sees, from each op's own `flops`: a multiply-add is two operations,
and only products count. Memory is what a session of this batch size reserves, asked of the core.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from paddlecli import ops
from paddlecli.compiler.emit import emit
from paddlecli.compiler.optimizer import optimizers
from paddlecli.compiler.pipeline import Stages, run_passes
from paddlecli.compiler.recompute import Recomputed
from paddlecli.config.recipe import Recipe
from paddlecli.engine.passes import passes_for
from paddlecli.graph.ir import Entry, Graph, Item, Loop, Node, Tensor, storage_of
from paddlecli.models.build import telling
from paddlecli.ops.spec import DTYPES, Dim, Spec
from paddlecli.runtime.device import device
from paddlecli.runtime.session import Params, Plan, Session

LENGTH = 64
"""Rows that a sequence is taken to have, where nobody says how many."""


@dataclass(frozen=True)
class Sizes:
    """Values of the symbols: samples of a batch, rows of every sequence.

    `whole` counts the rows of all steps of a scan together instead of those of one step.
    """

    batch: int
    length: int = LENGTH
    whole: bool = False

    def of(self, dim: Dim) -> int:
        """A dimension as a number."""
        s = dim.symbol
        if s is None:
            return dim.coefficient
        if s.kind in ("sum", "product"):
            assert s.a is not None and s.b is not None
            a, b = self.of(s.a), self.of(s.b)
            return dim.coefficient * (a + b if s.kind == "sum" else a * b)
        if s.kind == "batch":
            return dim.coefficient * self.batch
        if s.kind == "longest":
            return dim.coefficient * self.length
        assert s.axis is not None
        sequences = self.of(s.axis.sequences)
        if s.kind == "pairs":
            return dim.coefficient * sequences * self.length * self.length
        rows = sequences if s.kind == "step_rows" and not self.whole else sequences * self.length
        return dim.coefficient * rows

    def shape(self, spec: Spec) -> tuple[int, ...]:
        """All dimensions as numbers."""
        return tuple(map(self.of, spec.shape))

    def bytes(self, spec: Spec) -> int:
        """Bytes of a tensor."""
        return prod(self.shape(spec)) * DTYPES[spec.dtype]


@dataclass
class Layer:
    """One line of the table.

    Attributes:
        path: the layer's place in parameter names; "" for ops between layers.
        kind: `fc`; the ops' names for what is no layer.
        output: symbolic shape of what it gives, N being the batch.
        parameters: numbers in the parameters that it is the first to read.
        frozen: how many of them are not trained.
        flops: of one sample, forward.
        step_flops: of one training step, forward and gradients.
        activation_bytes: what a training step keeps of it for the gradients.
    """

    path: str
    kind: str
    output: str
    parameters: int = 0
    frozen: int = 0
    flops: int = 0
    step_flops: int = 0
    activation_bytes: int = 0


@dataclass(frozen=True)
class Memory:
    """Bytes of a training (of a prediction, where nothing is trained) at a batch size.

    Attributes:
        weights: parameters and running statistics: what a saved model holds.
        state: all that outlives a step: weights, gradients, optimizer slots, counters.
        plan: inputs and temporaries, as the core reserves them.
    """

    weights: int
    state: int
    plan: int


@dataclass(frozen=True)
class Summary:
    """A network in numbers; `length` is None where no input is ragged."""

    name: str
    batch_size: int
    length: int | None
    layers: tuple[Layer, ...]
    memory: Memory
    trained: bool
    totals: Mapping[str, int] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The object that `model summary --json` prints."""
        return {
            "schema": 1,
            "name": self.name,
            "batch_size": self.batch_size,
            "length": self.length,
            "layers": [vars(layer) for layer in self.layers],
            "totals": {**self.totals, **{f"{k}_bytes": v for k, v in vars(self.memory).items()}},
        }


def summarize(
    recipe: Recipe, graph: Graph, batch_size: int | None = None, length: int | None = None
) -> Summary:
    """The table of a network.

    Args:
        recipe: settings of the training: optimizer, batch size, parts of a batch.
        graph: its network, forward entries.
        batch_size: instead of the recipe's.
        length: rows of every sequence, where inputs are ragged.

    Raises:
        ConfigError: the network cannot be trained as the recipe says.
        ResourceError: a session of this size does not fit into memory.
    """
    batch, parts = batch_size or recipe.train.batch_size, recipe.train.accumulate
    ragged = any(t.spec.axis is not None for t in graph.inputs.values())
    sizes = Sizes(batch, length or LENGTH)
    with telling(recipe):
        stages = run_passes(graph, optimizers(recipe), passes_for(recipe), parts > 1)
    layers = _Table(stages, sizes).layers()
    weights = sum(sizes.bytes(t.spec) for t in (*graph.parameters.values(), *graph.states.values()))
    state, plan = _reserved(stages, Sizes(-(-batch // parts), sizes.length))
    keys = ("parameters", "frozen", "flops", "step_flops", "activation_bytes")
    totals = {key: sum(getattr(layer, key) for layer in layers) for key in keys}
    totals["trainable"] = totals["parameters"] - totals["frozen"]
    return Summary(
        recipe.name, batch, sizes.length if ragged else None, layers, Memory(weights, state, plan),
        bool(graph.roles.get("train")), totals,
    )  # fmt: skip


@dataclass(frozen=True)
class _Place:
    """A node, the row of the table it belongs to, and the loop around it."""

    row: str
    node: Node
    loop: Loop | None


class _Table:
    """Collects the rows of one network."""

    def __init__(self, stages: Stages, sizes: Sizes) -> None:
        self.stages, self.sizes = stages, sizes
        self.rows: dict[str, Layer] = {}
        self.counted: set[int] = set()

    def layers(self) -> tuple[Layer, ...]:
        """The rows in the network's order. What training runs comes first: it has all layers."""
        graph = self.stages.graph
        training = [graph.entries[name] for name in graph.roles.get("train", ())]
        forward = _forward(graph)
        for entry in (*training, forward):
            self._add(entry)
        for place in _places(forward.items):
            self.rows[place.row].flops += flops(place, Sizes(1, self.sizes.length))
        for entry in training:
            self._add_step(entry)
        return tuple(self.rows.values())

    def _add(self, entry: Entry) -> None:
        """Rows of layers that are new, and the parameters that they read."""
        fresh: dict[str, list[Node]] = {}
        for place in _places(entry.items):
            if place.row not in self.rows:
                origin = place.node.origin
                self.rows[place.row] = Layer(origin.path, origin.kind, "")
                fresh[place.row] = []
            if place.row in fresh:
                fresh[place.row].append(place.node)
            self._add_parameters(place)
        for name, nodes in fresh.items():
            row = self.rows[name]
            row.kind = row.kind or ", ".join(dict.fromkeys(n.kernel.op for n in nodes))
            found = [t for n in nodes for t in n.outputs[:1] if not t.persistent]
            row.output = str(found[-1].spec) if found else ""

    def _add_parameters(self, place: _Place) -> None:
        for t in place.node.inputs:
            if t.role == "parameter" and id(t) not in self.counted:
                self.counted.add(id(t))
                size = prod(self.sizes.shape(t.spec))
                self.rows[place.row].parameters += size
                trained = self.stages.storage.owner.get(t.name, FROZEN) != FROZEN
                self.rows[place.row].frozen += 0 if trained else size

    def _add_step(self, entry: Entry) -> None:
        """Work of a training step by layer, and what its gradients read of each layer's values."""
        whole = self.stages.gradients.entries[entry.name]
        places = list(_places(whole.items))
        forward = {id(p.node) for p in _places(entry.items)}
        makers: dict[int, str] = {}
        run = next(iter(self.stages.fused.roles.get("accumulate", ())), entry.name)
        again = self.stages.recomputed.get(run, Recomputed())
        freed = {t.name for t in again.again}
        for p in (*places, *self._again(again)):
            if p.row in self.rows:
                self.rows[p.row].step_flops += flops(p, self.sizes)
            if id(p.node) in forward:
                makers |= {id(s): p.row for t in p.node.outputs for s in _values(t)}
        kept = {
            id(s): s
            for p in places
            if id(p.node) not in forward
            for t in p.node.inputs
            for s in _values(t)
            if s.name not in freed
        }
        for key in makers.keys() & kept.keys():
            self.rows[makers[key]].activation_bytes += self.sizes.bytes(kept[key].spec)

    def _again(self, found: Recomputed) -> Iterator[_Place]:
        """What runs a second time, in the rows of the layers that it began with."""
        for node, loop in _nodes(found.items):
            row = next((s for s in node.origin.scopes if s in self.rows), "")
            yield _Place(row, node, loop)


FROZEN = "frozen"
"""Owner of parameters that no optimizer updates, in `compiler/storage.py`."""


def _forward(graph: Graph) -> Entry:
    """What a prediction runs; without predictions an evaluation, or the forward half of a step."""
    names = [graph.roles.get("predict"), graph.roles.get("evaluate"), *graph.roles.get("train", ())]
    return graph.entries[next(name for name in names if name)]


def _places(items: Sequence[Item]) -> Iterator[_Place]:
    """The nodes of a network without those of metrics. Neighbours without a layer share a row."""
    between = ""
    for node, loop in _nodes(items):
        if any(t.role == "metric" for t in node.outputs):
            continue
        path = node.origin.path
        between = "" if path else between or f"#{node.outputs[0].name}"
        yield _Place(path or between, node, loop)


def _nodes(items: Sequence[Item]) -> Iterator[tuple[Node, Loop | None]]:
    for item in items:
        if isinstance(item, Loop):
            yield from ((node, item) for node in item.body)
        else:
            yield item, None


def _values(tensor: Tensor) -> list[Tensor]:
    """The computed tensors whose bytes a tensor shows."""
    return [s for s in storage_of(tensor) if s.role == "value"]


def flops(place: _Place, sizes: Sizes) -> int:
    """Operations of one node: of all steps of a scan, of as many as a decode may make."""
    node, loop = place.node, place.loop
    at = sizes if loop is None else replace(sizes, whole=loop.kind == "scan")
    ports = {**node.args, **node.results}
    shapes = {k: at.shape(t.spec) for k, t in ports.items() if isinstance(t, Tensor)}
    once = ops.get(node.kernel.op).flops(node.kernel, shapes, node.attrs)
    return once * loop.limit if loop is not None and loop.kind == "decode" else once


def _reserved(stages: Stages, sizes: Sizes) -> tuple[int, int]:
    """Bytes that outlive a step, and bytes that a session of this size holds."""
    artifact = emit(stages, seed=0)
    where = device()
    plan = Plan(artifact.plan, where.kind)
    session = Session(plan, Params(plan), where)
    values = {"batch": sizes.batch, "longest": sizes.length}
    room = {}
    for symbol in plan.info.symbols:
        if symbol.kind == "pairs":
            room[symbol.name] = sizes.batch * sizes.length**2
        elif symbol.kind == "total":
            levels = len(plan.info.levels(symbol.a))
            room[symbol.name] = sizes.batch * sizes.length**levels
        elif symbol.kind in values:
            room[symbol.name] = values[symbol.kind]
    session.reserve(room)
    return sum(r.bytes for r in plan.info.ranges), session.bytes
