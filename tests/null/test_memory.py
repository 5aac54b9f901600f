"""Shared memory: runs in it equal runs where every tensor has its own."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from paddlecli.compiler.memory import (
    MemoryPlan,
    nominal_bytes,
    nominal_peak,
    placed,
    plan_memory,
    root,
)
from paddlecli.graph.ir import Entry, Loop, Node, Tensor, flat, storage_of, tensors_of

from .conftest import Compiled
from .executor import Batch, Params, Run
from .kernels import Array
from .world import SMALL, draw, fresh, with_rates

POISON = np.array([np.nan]).view(np.int64)[0]
SWITCHES: tuple[dict[str, bool], ...] = (
    {},
    {"inplace": False},
    {"views": False},
    {"reuse": False},
    {"inplace": False, "views": False, "reuse": False},
)


class Recorder:
    """What every kernel of a run read."""

    def __init__(self) -> None:
        self.seen: list[tuple[Node, list[Array]]] = []

    def __call__(self, node: Node, run: Run) -> None:
        self.seen.append((node, [np.array(run.array(t)) for t in node.inputs]))


class Comparer:
    """Compares what every kernel reads with a recorded run, and where it writes with what it
    reads."""

    def __init__(self, recorded: list[tuple[Node, list[Array]]], plan: MemoryPlan) -> None:
        self.plan = plan
        self.recorded = iter([(n, a) for n, a in recorded if id(n) not in plan.dropped])

    def __call__(self, node: Node, run: Run) -> None:
        other, arrays = next(self.recorded)
        assert other is node
        for t, expected in zip(node.inputs, arrays, strict=True):
            found = run.array(t)
            assert np.array_equal(found, expected), f"{node}: {t.name} was overwritten"
            assert not poisoned(found), f"{node}: nobody wrote {t.name}"
        self.apart(node, run)

    def apart(self, node: Node, run: Run) -> None:
        """Outputs share no byte with inputs, but where the kernel may work in place, and none with
        each other."""
        outputs = [(k, t) for k, v in node.results.items() for t in tensors_of(v)]
        for i, (port, t) in enumerate(outputs):
            mine = run.array(t)
            for _, o in outputs[:i]:
                assert not np.shares_memory(mine, run.array(o)), (
                    f"{node}: {t.name} and {o.name} overlap"
                )
            for name, value in node.args.items():
                for s in tensors_of(value):
                    if node.kernel.inplace.get(port) != name and s is not t:
                        assert not np.shares_memory(mine, run.array(s)), (
                            f"{node}: {t.name} overlaps {s.name}"
                        )


def poisoned(a: Array) -> bool:
    """True where the memory still holds what it was filled with."""
    return bool(np.isnan(a).any() if a.dtype.kind == "f" else (a == POISON).any())


def both(entry: Entry, batch: Batch, params: Params, plan: MemoryPlan) -> Run:
    """Runs apart and shared; compares everything. Returns the shared run."""
    recorder, mine, theirs = Recorder(), params.copy(), params.copy()
    apart = Run(entry, batch, mine, watch=recorder).go()
    shared = Run(entry, batch, theirs, plan, Comparer(recorder.seen, plan)).go()
    expected, found = apart.results(), shared.results()
    assert all(np.array_equal(expected[k], found[k]) for k in expected)
    assert all(np.array_equal(a, b) for a, b in zip(mine.ranges, theirs.ranges, strict=True))
    return shared


@pytest.mark.parametrize("switches", SWITCHES, ids=lambda s: "-".join(s) or "all")
@pytest.mark.parametrize("name", SMALL)
def test_shared_memory_changes_nothing(
    name: str, switches: dict[str, bool], compiled: Compiled
) -> None:
    stages = compiled(name)
    params = fresh(stages)
    for entry in stages.fused.entries.values():
        plan = plan_memory(entry, **switches)
        for size in (1, 2, 0) if name == "conv" else (1, 7, 20, 0):
            both(entry, with_rates(stages.fused, draw(stages.graph, size, seed=size)), params, plan)


@pytest.mark.parametrize("name", ["scan", "memories"])
def test_shared_memory_with_empty_sequences(name: str, compiled: Compiled) -> None:
    stages = compiled(name)
    for lengths in ((0, 0), (0, 1, 0), (9,), (4, 4, 4, 4)):
        batch = draw(stages.graph, len(lengths), lengths={"steps": lengths})
        for entry in stages.fused.entries.values():
            both(entry, with_rates(stages.fused, batch), fresh(stages), stages.memory[entry.name])


def touched(entry: Entry) -> Iterator[tuple[int, int, Tensor]]:
    """(first, last, tensor) of every use; a loop is one use from its first to its last node."""
    at = 0
    for item in entry.items:
        nodes = item.body if isinstance(item, Loop) else [item]
        for i, node in enumerate(nodes):
            span = (at, at + len(nodes) - 1) if isinstance(item, Loop) else (at + i, at + i)
            guard = [node.guard] if node.guard is not None else []
            for t in (*node.inputs, *node.outputs, *guard):
                yield from ((*span, s) for s in storage_of(t))
        if isinstance(item, Loop) and item.flag is not None:
            yield at, at + len(nodes) - 1, item.flag
        at += len(nodes)
    for t in entry.roots:
        yield from ((at, at, s) for s in storage_of(t))


@pytest.mark.parametrize("switches", SWITCHES, ids=lambda s: "-".join(s) or "all")
@pytest.mark.parametrize("name", SMALL)
def test_no_two_live_tensors_share_bytes(
    name: str, switches: dict[str, bool], compiled: Compiled
) -> None:
    for entry in compiled(name).fused.entries.values():
        plan = plan_memory(entry, **switches)
        spans: dict[int, list[int]] = {}
        for first, last, t in touched(entry):
            owner = root(t, plan.alias)
            if owner.role == "value":
                span = spans.setdefault(id(owner), [first, last])
                span[0], span[1] = min(span[0], first), max(span[1], last)
        planned = {id(v.tensor): v for v in plan.lives}
        assert set(spans) == set(planned), "every temporary has a place, nothing else has"
        for owner_id, span in spans.items():
            life = planned[owner_id]
            assert life.first <= span[0] and span[1] <= life.last, (entry.name, life, span)
        apart(plan)


def apart(plan: MemoryPlan) -> None:
    """No two that are alive together have a byte in common; none lies outside of the whole."""
    sizes = [nominal_bytes(v.tensor.spec) for v in plan.lives]
    places, whole = placed(sizes, plan.lives)
    for i, a in enumerate(plan.lives):
        assert 0 <= places[i] <= whole - sizes[i]
        for k, b in enumerate(plan.lives[:i]):
            together = a.first <= b.last and b.first <= a.last
            over = places[i] < places[k] + sizes[k] and places[k] < places[i] + sizes[i]
            assert not (together and over), (a, b)


def bytes_of(plan: MemoryPlan) -> int:
    """What the core takes for an entry's temporaries at the nominal sizes."""
    return placed([nominal_bytes(v.tensor.spec) for v in plan.lives], plan.lives)[1]


def test_places_come_near_what_is_needed(compiled: Compiled) -> None:
    """No more than a fifth above the bytes that are alive at the fullest moment."""
    for name in SMALL:
        for entry in compiled(name).fused.entries.values():
            plan = plan_memory(entry)
            assert nominal_peak(plan) <= bytes_of(plan) <= 1.2 * nominal_peak(plan), name


def test_each_saving_saves(compiled: Compiled) -> None:
    entry = compiled("shared").fused.entries["train_step"]
    plan = plan_memory(entry)
    assert plan.inplace > 0
    assert len(plan.dropped) >= 2
    alone = plan_memory(entry, reuse=False)
    whole = sum(-(-nominal_bytes(v.tensor.spec) // 64) * 64 for v in alone.lives)
    assert bytes_of(plan) < bytes_of(alone) == whole
    assert not plan_memory(entry, views=False).dropped
    assert plan_memory(entry, inplace=False).inplace == 0
    reshapes = [n for n in flat(entry.items) if n.kernel.op == "reshape" and not n.accumulate]
    assert {id(n) for n in reshapes} == plan.dropped


def test_planned_twice_the_same(compiled: Compiled) -> None:
    for name in SMALL:
        stages = compiled(name)
        for entry in stages.fused.entries.values():
            a, b = plan_memory(entry), plan_memory(entry)
            assert (a.lives, a.dropped) == (b.lives, b.dropped)
