"""The compiler's results as text: places, ranges, bytes that a token or a sample costs."""

from __future__ import annotations

from collections.abc import Iterator

from paddlecli.compiler.layout import REORDER
from paddlecli.compiler.memory import MemoryPlan, aligned, nominal_bytes, placed
from paddlecli.compiler.pipeline import Stages
from paddlecli.compiler.recompute import Recomputed
from paddlecli.graph.ir import Entry, Loop, flat


def show_memory(stages: Stages) -> str:
    """Ranges, then per entry every temporary with its place and lifetime, and what sharing saved."""
    lines = ["ranges:"]
    lines += [
        f"  {i} {r.name}: {r.klass} {r.dtype}, {r.bytes} bytes"
        for i, r in enumerate(stages.storage.ranges)
    ]
    for name, plan in stages.memory.items():
        lines += ["", *_entry(stages.fused.entries[name], plan, stages.batch)]
        lines += _recomputed(stages.recomputed.get(name, Recomputed()), stages.batch)
    return "\n".join(lines) + "\n"


def _entry(entry: Entry, plan: MemoryPlan, batch: int) -> Iterator[str]:
    count = f"{len(plan.lives)} temporaries"
    yield f"entry {entry.name}: {count}, {plan.inplace} in place, {len(plan.dropped)} views"
    sizes = [nominal_bytes(v.tensor.spec, batch) for v in plan.lives]
    places, whole = placed(sizes, plan.lives)
    for life, place in zip(plan.lives, places, strict=True):
        t = life.tensor
        yield f"  at {place}  nodes {life.first}-{life.last}  {t.spec}  {t.name}"
    if whole:
        yield f"  at batch {batch}: {whole} bytes, {sum(map(aligned, sizes))} without sharing"
    for item in entry.items:
        if isinstance(item, Loop) and item.kind == "scan" and item.axis is not None:
            over = f"{item.axis.name}{' reversed' if item.reverse else ''}"
            yield f"  scan over {over}: {_per_token(item)} bytes a token kept"


def _recomputed(found: Recomputed, batch: int) -> Iterator[str]:
    """What the gradients read: values that stay, values that are computed again."""
    if not found.again:
        return
    kept, again = (
        sum(nominal_bytes(t.spec, batch) for t in ts) for ts in (found.kept, found.again)
    )
    count = f"{len(found.again)} values ({again} bytes) by {len(found.items)} nodes"
    yield f"  computed again: {count} in {found.segments} segments"
    yield from (f"    {t.spec}  {t.name}" for t in found.again)
    yield f"  kept: {len(found.kept)} values ({kept} bytes)"
    yield from (f"    {t.spec}  {t.name}" for t in found.kept)


def _per_token(loop: Loop) -> int:
    """Bytes of packed values a token of the scanned axis costs."""
    bases = {
        id(t.base): t.base
        for t in (*loop.inputs, *loop.outputs)
        if t.role == "step" and t.base is not None
    }
    return sum(nominal_bytes(b.spec.with_shape(1, *b.spec.shape[1:])) for b in bases.values())


def show_layouts(stages: Stages) -> str:
    """How many nodes only bring a tensor into another layout."""
    nodes = (n for entry in stages.fused.entries.values() for n in flat(entry.items))
    return f"layouts: {sum(n.kernel.op == REORDER for n in nodes)} {REORDER} nodes\n"


def show_notes(stages: Stages) -> str:
    """Why fusions that were possible did not happen."""
    return "".join(f"note: {n}\n" for n in stages.notes)
