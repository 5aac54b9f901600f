"""Turns an entry with gradients into a whole training step: finite check, guarded state updates,
clip, optimizers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from paddlecli.compiler.groups import Group, OptimizerSpec, Table
from paddlecli.compiler.optimizer import append_updates, slots_of
from paddlecli.compiler.storage import AVERAGE, Storage, count_name, segment, slot_key
from paddlecli.errors import ConfigError
from paddlecli.graph.builder import Emitter, fault
from paddlecli.graph.ir import (
    ArgumentInfo,
    Entry,
    Graph,
    Item,
    Loop,
    Node,
    Origin,
    ParameterInfo,
    Rows,
    Tensor,
)
from paddlecli.ops.spec import Spec


def add_updates(graph: Graph, optimizers: Mapping[str, OptimizerSpec], storage: Storage) -> Graph:
    """A graph whose updating entries check their loss and update their parameters."""
    arguments = dict(graph.arguments)
    entries = {}
    for name, entry in graph.entries.items():
        entries[name] = (
            _step(graph, entry, optimizers, storage, arguments) if entry.training else entry
        )
    return replace(graph, arguments=arguments, entries=entries)


def read_averages(graph: Graph, storage: Storage) -> Graph:
    """A graph whose entries that update nothing read the averages of the parameters, where those are
    kept."""
    kept = {
        name: Tensor(key, graph.parameters[name].spec, "slot")
        for name, key in storage.averages.items()
    }

    def average(t: Tensor) -> Tensor:
        return kept.get(t.name, t) if t.role == "parameter" else t

    def read(item: Item) -> Item:
        if isinstance(item, Loop):
            return replace(item, body=[n.map(average) for n in item.body])
        return item.map(average)

    def entry(e: Entry) -> Entry:
        if e.training:
            return e
        outputs = {k: average(t) for k, t in e.outputs.items()}
        return replace(e, items=[read(i) for i in e.items], outputs=outputs)

    if not kept:
        return graph
    return replace(graph, entries={name: entry(e) for name, e in graph.entries.items()})


def split_accumulation(graph: Graph) -> Graph:
    """A graph with three pieces in the place of its training step: gradients of the first part of a
    batch, gradients of a further part added to them, and the update. Loss weights are those of the
    whole batch, so the sum is the whole batch's gradient. The role ``train`` still names the step.

    Raises:
        ConfigError: several entries train, a gradient is row-sparse, or a scan draws random numbers.
    """
    names = graph.roles.get("train", [])
    if len(names) != 1:
        raise ConfigError(
            f"train.accumulate works with one training step; this network has {len(names)}: {names}"
        )
    step = graph.entries[names[0]]
    sparse = [n for n, g in step.gradients.items() if isinstance(g, Rows)]
    if sparse:
        raise ConfigError(
            f"train.accumulate needs dense gradients; {', '.join(sparse)} has row-sparse ones",
            hint="say sparse: false where it is embedded",
        )
    for node in (n for i in step.items if isinstance(i, Loop) for n in i.body if n.kernel.random):
        # a step's rows are counted in the order of the part's lengths, not of the whole batch's
        text = (
            f"train.accumulate would draw other numbers here: [{node.kernel.op}] stands in a scan"
        )
        raise fault(node.origin, text)
    first, more, apply = (f"{step.name}.{k}" for k in ("first", "more", "apply"))
    pieces = {
        first: Entry(**{**vars(step), "name": first, "updates": []}),
        more: Entry(**{**vars(step), "name": more, "updates": [], "items": _adding(step)}),
        apply: Entry(apply, True, updates=list(step.updates), gradients=dict(step.gradients)),
    }
    whole = {name: e for name, e in graph.entries.items() if e is not step}
    roles = {**graph.roles, "accumulate": [first, more], "apply": apply}
    return replace(graph, entries={**pieces, **whole}, roles=roles)


def _adding(step: Entry) -> list[Item]:
    """The step's items with every gradient added to what its range holds."""

    def adds(node: Node) -> Node:
        ports = {
            k for k, v in node.results.items() if isinstance(v, Tensor) and v.role == "gradient"
        }
        return replace(node, accumulate=node.accumulate | ports) if ports else node

    return [
        replace(i, body=[adds(n) for n in i.body]) if isinstance(i, Loop) else adds(i)
        for i in step.items
    ]


def rate_argument(optimizer: str, arguments: dict[str, ArgumentInfo]) -> Tensor:
    """The learning rate of an optimizer, one number per step."""
    name = f"learning_rate.{optimizer}"
    if name not in arguments:
        arguments[name] = ArgumentInfo(
            Tensor(name, Spec.of(1), "argument"), "learning_rate", optimizer
        )
    return arguments[name].tensor


def _step(
    graph: Graph, entry: Entry, optimizers: Mapping[str, OptimizerSpec], storage: Storage,
    arguments: dict[str, ArgumentInfo],
) -> Entry:  # fmt: skip
    items, late = _split(entry.items)
    e = Emitter(graph, items, "u.")
    done = Entry(**{**vars(entry), "items": items, "fetches": dict(entry.fetches)})
    moving: list[Node] = []
    numbers = [] if entry.loss is None else [entry.loss]
    for update in entry.updates:
        rate = rate_argument(update.optimizer, arguments)
        group = _group(graph, done, update.parameters, optimizers[update.optimizer], storage, rate)
        norm, watched = _append(e, group, moving, update.origin)
        numbers += watched
        if norm is not None:
            only = len(entry.updates) == 1
            done.fetches["gradient_norm" if only else f"gradient_norm.{update.optimizer}"] = norm
    _check(e, done, numbers)
    items += [replace(node, guard=done.finite) for node in (*late, *moving)]
    return done


def _append(
    e: Emitter, group: Group, moving: list[Node], origin: Origin
) -> tuple[Tensor | None, list[Tensor]]:
    """An optimizer's nodes: those of its clipping here, those that change something to ``moving``.
    Returns the norm of its gradients, and what is finite where they all are."""
    nodes: list[Item] = []
    updates = Emitter(e.graph, nodes, f"u.{group.optimizer.name}.")
    updates.origin = origin
    norm, watched = append_updates(updates, group)
    for node in nodes:
        assert isinstance(node, Node)
        (moving if node.kernel.updates else e.items).append(node)
    return norm, watched


def _check(e: Emitter, entry: Entry, numbers: list[Tensor]) -> None:
    """The loss and all gradients must be finite before anything changes."""
    if numbers:
        entry.finite, entry.halt = e.apply("check_finite", numbers)
        entry.fetches["finite"] = entry.finite


def _split(items: list[Item]) -> tuple[list[Item], list[Node]]:
    """Nodes that update state (running statistics) wait for the finite check; metrics stay where
    they are."""
    kept: list[Item] = []
    late: list[Node] = []
    for item in items:
        if (
            not isinstance(item, Loop)
            and item.kernel.updates
            and any(t.role == "state" for t in item.outputs)
        ):
            late.append(item)
        else:
            kept.append(item)
    return kept, late


def _group(
    graph: Graph,
    entry: Entry,
    names: list[str],
    optimizer: OptimizerSpec,
    storage: Storage,
    rate: Tensor,
) -> Group:
    dense = [n for n in names if not isinstance(entry.gradients[n], Rows)]
    slots = [s.name for s in slots_of(optimizer)]
    stem = optimizer.name
    info = {n: graph.parameters[n].info or ParameterInfo({}) for n in names}
    return Group(
        optimizer=optimizer,
        segments=tuple(segment(n, info[n], storage, optimizer) for n in dense),
        parameters=storage.flat(f"{stem}:parameters") if dense else None,
        gradients=storage.flat(f"{stem}:gradients") if dense else None,
        slots={s: storage.flat(f"{stem}:{s}") for s in slots} if dense else {},
        tables=tuple(
            _table(graph, entry, n, optimizer, storage, slots, info[n])
            for n in names
            if n not in dense
        ),
        counts={
            since: Tensor(count_name(stem, since), Spec.of(1, dtype="i64"), "state")
            for since in sorted({i.since for i in info.values()})
        },
        rate=rate,
        average=storage.flat(f"{stem}:{AVERAGE}") if dense and optimizer.average else None,
    )


def _table(
    graph: Graph,
    entry: Entry,
    name: str,
    optimizer: OptimizerSpec,
    storage: Storage,
    slots: list[str],
    info: ParameterInfo,
) -> Table:
    parameter = graph.parameters[name]
    tensors = {s: Tensor(slot_key(name, optimizer.name, s), parameter.spec, "slot") for s in slots}
    key = storage.averages.get(name)
    average = None if key is None else Tensor(key, parameter.spec, "slot")
    own = segment(name, info, storage, optimizer)
    return Table(own, parameter, entry.gradients[name], tensors, average)
