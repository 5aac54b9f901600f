"""Memory of temporary tensors: when each is needed, and which are the same bytes.

Sizes depend on the batch, so Python only says from when to when a tensor lives; the core, which knows
the sizes, lays those that never meet over each other. Lifetimes are positions in the list of nodes.
Whatever a loop touches lives for the whole loop. An output takes over an input's memory where its
kernel allows that and nobody reads the input later; a reshape is another view of the same bytes.
"""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from paddlecli import ops
from paddlecli.graph.ir import Entry, Loop, Node, Tensor, flat, storage_of
from paddlecli.ops.spec import DTYPES, Dim, Spec

ALIGN = 64
"""Bytes at a multiple of which every tensor begins."""
BATCH = 64
"""Samples of a batch in reports, and where plans are compared, if a recipe says nothing else: a wrong
guess costs memory, never correctness."""
NOMINAL = {"batch": 1, "total": 32, "step_rows": 1, "pairs": 1024}
"""Sizes taken for a sample's share of what depends on the batch."""
LONGEST = 64
"""Rows of the longest sequence."""


def nominal(dim: Dim, batch: int = BATCH) -> int:
    """A guess of a dimension."""
    s = dim.symbol
    if s is None:
        return dim.coefficient
    if s.kind == "longest":
        return dim.coefficient * LONGEST
    if s.kind in NOMINAL:
        return dim.coefficient * NOMINAL[s.kind] * batch
    assert s.a is not None and s.b is not None
    a, b = nominal(s.a, batch), nominal(s.b, batch)
    return dim.coefficient * (a + b if s.kind == "sum" else a * b)


def nominal_bytes(spec: Spec, batch: int = BATCH) -> int:
    """A guess of a tensor's bytes."""
    size = DTYPES[spec.dtype]
    for d in spec.shape:
        size *= nominal(d, batch)
    return size


@dataclass
class Life:
    """First and last position at which a tensor's bytes are touched."""

    tensor: Tensor
    first: int
    last: int


@dataclass
class MemoryPlan:
    """Temporaries of one entry.

    Attributes:
        alias: tensor id -> the tensor whose bytes it shows.
        dropped: ids of nodes that alias their input and need not run.
        lives: lifetimes of those that own their bytes.
        inplace: how many results take over an input's bytes.
    """

    alias: dict[int, Tensor] = field(default_factory=dict)
    dropped: set[int] = field(default_factory=set)
    lives: list[Life] = field(default_factory=list)
    inplace: int = 0


def plan_memory(
    entry: Entry, *, inplace: bool = True, views: bool = True, reuse: bool = True
) -> MemoryPlan:
    """When every temporary of the entry is needed. Each switch turns one saving off (equal bits either
    way); without ``reuse`` all are needed to the end."""
    plan = MemoryPlan()
    if views:
        _views(entry, plan)
    lives = _lifetimes(entry, plan)
    if inplace:
        _inplace(entry, plan, lives)
    plan.lives = sorted(lives.values(), key=lambda v: (v.first, v.last))
    if not reuse:
        end = max((v.last for v in plan.lives), default=0)
        plan.lives = [replace(v, first=0, last=end) for v in plan.lives]
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


def placed(sizes: Sequence[int], lives: Sequence[Life]) -> tuple[list[int], int]:
    """Where the core puts temporaries of these sizes in bytes, and how much memory they take in all:
    the same places as ``pk_place_slots`` of core/src/slots.c, which says how."""
    places = [0] * len(lives)
    order: list[int] = []
    for i in sorted((i for i, size in enumerate(sizes) if size), key=lambda i: -sizes[i]):
        own, end, best, least = lives[i], 0, -1, 0
        for k in order:
            if lives[k].last < own.first or own.last < lives[k].first:
                continue
            room = places[k] - end
            if room >= sizes[i] and (best < 0 or room < least):
                best, least = end, room
            end = max(end, places[k] + aligned(sizes[k]))
        places[i] = best if best >= 0 else end
        insort(order, i, key=lambda k: places[k])
    return places, max((places[i] + aligned(sizes[i]) for i in order), default=0)


def aligned(size: int) -> int:
    """Bytes with those up to the next tensor's beginning."""
    return -(-size // ALIGN) * ALIGN


def nominal_peak(plan: MemoryPlan, batch: int = BATCH) -> int:
    """Most bytes that are needed at one time at the nominal sizes: no placement takes less."""
    change: dict[int, int] = defaultdict(int)
    for life in plan.lives:
        size = aligned(nominal_bytes(life.tensor.spec, batch))
        change[life.first] += size
        change[life.last + 1] -= size
    return max(accumulate(change[at] for at in sorted(change)), default=0)
