"""Flat storage: which range every parameter, gradient, optimizer slot and state lives in, and
where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from paddlecli.compiler.artifact import Placement
from paddlecli.compiler.groups import OptimizerSpec, Segment
from paddlecli.compiler.memory import ALIGN
from paddlecli.compiler.optimizer import slots_of
from paddlecli.graph.builder import fault
from paddlecli.graph.ir import Graph, ParameterInfo, Tensor
from paddlecli.ops.spec import DTYPES, Spec

AVERAGE = "average"
"""Name of the slot with a parameter's average; no rule has a slot of that name."""


@dataclass
class Range:
    """One range of the plan; ``klass`` is param, grad, optimizer, state or metric."""

    name: str
    klass: str
    dtype: str
    bytes: int = 0


@dataclass
class Storage:
    """All ranges and the place of every persistent tensor by its key (see :func:`key_of`)."""

    ranges: list[Range] = field(default_factory=list)
    placements: dict[str, Placement] = field(default_factory=dict)
    owner: dict[str, str] = field(default_factory=dict)
    """Parameter -> the optimizer that updates it, or ``frozen``."""
    slot_start: dict[str, float] = field(default_factory=dict)
    """First value of each optimizer slot."""
    averages: dict[str, str] = field(default_factory=dict)
    """Parameter -> key of its average over the updates, where one is kept."""

    def range(self, name: str, klass: str, dtype: str) -> int:
        """Index of the range of that name, made at first use.

        Raises:
            ValueError: it holds another element type: an update walks numbers of one type.
        """
        for i, r in enumerate(self.ranges):
            if r.name == name:
                if r.dtype != dtype:
                    raise ValueError(f"range {name} holds {r.dtype}, not {dtype}")
                return i
        self.ranges.append(Range(name, klass, dtype))
        return len(self.ranges) - 1

    def add(self, key: str, range_name: str, klass: str, spec: Spec) -> Placement:
        """Puts a tensor at the next 64-byte boundary of a range."""
        index = self.range(range_name, klass, spec.dtype)
        r = self.ranges[index]
        shape = tuple(d.coefficient for d in spec.shape)
        offset = -(-r.bytes // ALIGN) * ALIGN
        r.bytes = offset + prod(shape) * DTYPES[spec.dtype]
        self.placements[key] = placement = Placement(index, offset, shape, spec.dtype)
        return placement

    def flat(self, name: str) -> Tensor:
        """A tensor [n] over all of a range."""
        index = next(i for i, r in enumerate(self.ranges) if r.name == name)
        r = self.ranges[index]
        spec = Spec.of(r.bytes // DTYPES[r.dtype], dtype=r.dtype)
        self.placements[f"flat:{name}"] = Placement(index, 0, (spec.shape[0].coefficient,), r.dtype)
        return Tensor(f"flat:{name}", spec, "flat", of=name)


def key_of(tensor: Tensor) -> str:
    """The name under which a persistent tensor is placed."""
    return f"gradient:{tensor.of}" if tensor.role == "gradient" else tensor.name


def slot_key(parameter: str, optimizer: str, slot: str) -> str:
    """``fc1/w@adam.m``."""
    return f"{parameter}@{optimizer}.{slot}"


def assign(graph: Graph, optimizers: Mapping[str, OptimizerSpec]) -> Storage:
    """Places all persistent tensors of the graph.

    Raises:
        ConfigError: a parameter is updated by two optimizers, or by one that does not exist.
    """
    storage = Storage()
    _owners(graph, optimizers, storage)
    slots = {name: slots_of(spec) for name, spec in optimizers.items()}
    for name, t in graph.parameters.items():
        owner = storage.owner.get(name, "frozen")
        info = t.info or ParameterInfo({})
        stem = name if info.sparse and owner != "frozen" else owner
        storage.add(name, f"{stem}:parameters", "param", t.spec)
        if owner == "frozen":
            continue
        if not info.sparse:
            storage.add(f"gradient:{name}", f"{stem}:gradients", "grad", t.spec)
        for slot in slots[owner]:
            key = slot_key(name, owner, slot.name)
            storage.add(key, f"{stem}:{slot.name}", "optimizer", t.spec)
            storage.slot_start[key] = slot.initial
        if optimizers[owner].average:
            key = storage.averages[name] = slot_key(name, owner, AVERAGE)
            storage.add(key, f"{stem}:{AVERAGE}", "optimizer", t.spec)
    for name, t in graph.states.items():
        storage.add(name, f"states:{t.spec.dtype}", "state", t.spec)
    for entry in graph.entries.values():
        for metric in entry.metrics.values():
            storage.add(metric.state.name, "metrics", "metric", metric.state.spec)
    owned = [(o, graph.parameters[p].info) for p, o in storage.owner.items() if o != "frozen"]
    for owner, since in sorted({(o, 1 if i is None else i.since) for o, i in owned}):
        key = count_name(owner, since)
        storage.add(key, "states:i64", "state", Spec.of(1, dtype="i64"))
    return storage


def count_name(optimizer: str, since: int = 1) -> str:
    """State that counts an optimizer's updates, of parameters that are updated from an epoch on."""
    return f"updates.{optimizer}" if since == 1 else f"updates.{optimizer}.from_{since}"


def _owners(graph: Graph, optimizers: Mapping[str, OptimizerSpec], storage: Storage) -> None:
    for entry in graph.entries.values():
        for update in entry.updates:
            if update.optimizer not in optimizers:
                text = f"entry {entry.name!r} asks for optimizer {update.optimizer!r}"
                raise fault(update.origin, f"{text}; there are {sorted(optimizers)}")
            for p in update.parameters:
                other = storage.owner.setdefault(p, update.optimizer)
                if other != update.optimizer:
                    text = f"parameter {p!r} is updated by {other!r} and by {update.optimizer!r}"
                    raise fault(update.origin, f"{text}: give each parameter to one optimizer")


def segment(name: str, info: ParameterInfo, storage: Storage, optimizer: OptimizerSpec) -> Segment:
    """What the update does with one parameter; its own regulariser replaces the optimizer's."""
    place = storage.placements[name]
    own = optimizer.regularizer if info.regularizer is None else info.regularizer
    return Segment(
        name,
        place.offset // DTYPES[place.dtype],
        prod(place.shape),
        info.rate,
        float(own.get("l2", 0.0)),
        float(own.get("l1", 0.0)),
        info.clip,
        info.since,
    )
