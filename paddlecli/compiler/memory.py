"""Buffers in slots: which temporary tensors may share memory, from lifetimes alone.

Sizes depend on the batch, so Python only says which tensors share a slot; the core sizes a slot as
its largest tensor. Lifetimes are positions in the list of nodes. Whatever a loop touches lives for
the whole loop. An output takes over an input's memory where its kernel allows that and nobody reads
the input later; a reshape is another view of the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from paddlecli import ops
from paddlecli.graph.ir import Entry, Loop, Node, Tensor, flat, storage_of
from paddlecli.ops.spec import DTYPES, Dim, Spec

NOMINAL = {"batch": 64, "total": 2048, "longest": 64, "step_rows": 64, "pairs": 65536}
"""Sizes assumed where two slots are compared; a wrong guess costs memory, never correctness."""


def nominal(dim: Dim) -> int:
    """A guess of a dimension, for choosing between slots only."""
    s = dim.symbol
    if s is None:
        return dim.coefficient
    if s.kind in NOMINAL:
        return dim.coefficient * NOMINAL[s.kind]
    assert s.a is not None and s.b is not None
    a, b = nominal(s.a), nominal(s.b)
    return dim.coefficient * (a + b if s.kind == "sum" else a * b)


def nominal_bytes(spec: Spec) -> int:
    """A guess of a tensor's bytes."""
    size = DTYPES[spec.dtype]
    for d in spec.shape:
        size *= nominal(d)
    return size


@dataclass
class Life:
    """First and last position at which a tensor's bytes are touched."""

    tensor: Tensor
    first: int
    last: int


@dataclass
class MemoryPlan:
    """Slots of one entry.

    Attributes:
        slots: tensor id -> slot number (roots only).
        alias: tensor id -> the tensor whose bytes it shows.
        dropped: ids of nodes that alias their input and need not run.
        lives: lifetimes of the roots, for the printed stage.
    """

    slots: dict[int, int] = field(default_factory=dict)
    alias: dict[int, Tensor] = field(default_factory=dict)
    dropped: set[int] = field(default_factory=set)
    lives: list[Life] = field(default_factory=list)
    inplace: int = 0


def plan_memory(
    entry: Entry, *, inplace: bool = True, views: bool = True, reuse: bool = True
) -> MemoryPlan:
    """Assigns every temporary of the entry to a slot. Each switch turns one saving off (equal bits
    either way)."""
    plan = MemoryPlan()
    if views:
        _views(entry, plan)
    lives = _lifetimes(entry, plan)
    if inplace:
        _inplace(entry, plan, lives)
    _assign(plan, lives, reuse)
    plan.lives = sorted(lives.values(), key=lambda v: (v.first, v.last))
    return plan


def root(tensor: Tensor, alias: Mapping[int, Tensor]) -> Tensor:
    """The tensor that owns the bytes."""
    while id(tensor) in alias:
        tensor = alias[id(tensor)]
    return tensor


def _views(entry: Entry, plan: MemoryPlan) -> None:
    """A reshape's output is its input's bytes; not inside loops, where both may be views
    already."""
    inside = {id(n) for item in entry.items if isinstance(item, Loop) for n in item.body}
    for node in flat(entry.items):
        op = ops.get(node.kernel.op)
        if (
            op.inplace_views
            and len(node.outputs) == 1
            and id(node) not in inside
            and not node.accumulate
        ):
            source, target = node.inputs[0], node.outputs[0]
            if target.role == "value" and not source.is_view and source.role != "argument":
                plan.alias[id(target)] = source
                plan.dropped.add(id(node))


def _touch(lives: dict[int, Life], tensor: Tensor, plan: MemoryPlan, first: int, last: int) -> None:
    for s in storage_of(tensor):
        owner = root(s, plan.alias)
        if owner.is_view:
            _touch(lives, owner, plan, first, last)
        elif owner.role == "value":
            life = lives.setdefault(id(owner), Life(owner, first, last))
            life.first, life.last = min(life.first, first), max(life.last, last)


def _lifetimes(entry: Entry, plan: MemoryPlan) -> dict[int, Life]:
    lives: dict[int, Life] = {}
    position = 0
    for item in entry.items:
        nodes = item.body if isinstance(item, Loop) else [item]
        first, last = position, position + len(nodes) - 1
        for offset, node in enumerate(nodes):
            at = (first, last) if isinstance(item, Loop) else (position + offset,) * 2
            touched = [
                *node.inputs,
                *node.outputs,
                *([node.guard] if node.guard is not None else []),
            ]
            for t in touched:
                _touch(lives, t, plan, *at)
        if isinstance(item, Loop) and item.flag is not None:
            _touch(lives, item.flag, plan, first, last)
        position = last + 1
    for t in entry.roots:
        _touch(lives, t, plan, position, position)
    return lives


def _inplace(entry: Entry, plan: MemoryPlan, lives: dict[int, Life]) -> None:
    """Lets an output be its input's bytes where that input dies at this node."""
    inside = {id(n) for item in entry.items if isinstance(item, Loop) for n in item.body}
    for position, node in enumerate(flat(entry.items)):
        if id(node) in inside or id(node) in plan.dropped:
            continue
        for out, source in node.kernel.inplace.items():
            if out not in node.accumulate:
                _take_over(
                    plan, lives, node, node.results.get(out), node.args.get(source), position
                )


def _take_over(
    plan: MemoryPlan,
    lives: dict[int, Life],
    node: Node,
    target: object,
    source: object,
    position: int,
) -> None:
    if (
        not isinstance(target, Tensor)
        or not isinstance(source, Tensor)
        or target.role != "value"
        or source.is_view
    ):
        return
    owner = root(source, plan.alias)
    life, own = lives.get(id(owner)), lives.get(id(target))
    if (
        life is None
        or own is None
        or own.first != position
        or life.last != position
        or id(target) in plan.alias
    ):
        return
    same = (
        owner.spec.size == target.spec.size
        and DTYPES[owner.spec.dtype] == DTYPES[target.spec.dtype]
    )
    twice = sum(root(t, plan.alias) is owner for t in node.inputs) > 1
    if not same or twice:
        return
    plan.alias[id(target)] = owner
    plan.inplace += 1
    life.last = own.last
    del lives[id(target)]


def _assign(plan: MemoryPlan, lives: dict[int, Life], reuse: bool) -> None:
    """Greedy by start: the free slot whose guessed size is nearest, else a new one."""
    sizes: list[int] = []
    free_at: list[int] = []
    for life in sorted(lives.values(), key=lambda v: (v.first, -nominal_bytes(v.tensor.spec))):
        need = nominal_bytes(life.tensor.spec)
        free = [i for i, end in enumerate(free_at) if end < life.first] if reuse else []
        if free:
            fits = [i for i in free if sizes[i] >= need]
            slot = min(fits, key=lambda i: sizes[i]) if fits else max(free, key=lambda i: sizes[i])
            sizes[slot] = max(sizes[slot], need)
        else:
            slot = len(sizes)
            sizes.append(need)
            free_at.append(0)
        free_at[slot] = life.last
        plan.slots[id(life.tensor)] = slot


def slot_count(plan: MemoryPlan) -> int:
    """Number of slots."""
    return 1 + max(plan.slots.values(), default=-1)
