"""From a forward graph to a plan: the passes in order, each a pure function whose result can be
printed.

``differentiate -> (split_accumulation) -> add_updates -> prune -> hoist -> fuse -> tiles -> layout ->
prune -> recompute -> memory -> bytes``.
Every pass that could be left out has a switch in :class:`Passes`; ``PADDLECLI_DEBUG=3`` prints the
graph after each.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from paddlecli.compiler.artifact import Artifact
from paddlecli.compiler.emit import emit
from paddlecli.compiler.fuse import fuse
from paddlecli.compiler.groups import OptimizerSpec
from paddlecli.compiler.hoist import hoist
from paddlecli.compiler.layout import layout
from paddlecli.compiler.memory import BATCH, MemoryPlan, plan_memory
from paddlecli.compiler.optimizer import table_notes
from paddlecli.compiler.recompute import Recompute, Recomputed, recompute
from paddlecli.compiler.recompute import notes as recompute_notes
from paddlecli.compiler.storage import Storage, assign, segment
from paddlecli.compiler.tiles import tiles
from paddlecli.compiler.update import add_updates, read_averages, split_accumulation
from paddlecli.graph.autodiff import differentiate
from paddlecli.graph.ir import Entry, Graph, Loop, ParameterInfo, Rows
from paddlecli.graph.prune import prune


@dataclass(frozen=True)
class Passes:
    """Switches. ``hoist``, ``fuse`` and ``tiles`` change bits within a tolerance; the others never do.
    ``tiles`` is for devices that have its kernels (:func:`paddlecli.engine.passes.passes_for` asks).
    ``recompute`` is a recipe's ``train.recompute``: nothing, ``auto`` or patterns of layer paths."""

    hoist: bool = True
    fuse: bool = True
    tiles: bool = True
    layout: bool = True
    inplace: bool = True
    views: bool = True
    reuse: bool = True
    recompute: Recompute = "none"
    batch: int = BATCH
    """Samples of the batch for which plans are compared; another one takes more memory, no other bits."""


@dataclass
class Stages:
    """The graph after each step, for printing and tests."""

    graph: Graph
    gradients: Graph
    fused: Graph
    storage: Storage
    memory: Mapping[str, MemoryPlan]
    recomputed: Mapping[str, Recomputed] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    batch: int = BATCH


def run_passes(
    graph: Graph,
    optimizers: Mapping[str, OptimizerSpec],
    passes: Passes = Passes(),
    accumulate: bool = False,
) -> Stages:
    """All passes but the last.

    Raises:
        ConfigError: the graph cannot be trained as asked (see ``differentiate`` and ``assign``).
    """
    gradients = differentiate(graph)
    storage = assign(gradients, optimizers)
    notes = [*_table_notes(gradients, optimizers, storage), *_noise_notes(graph)]
    split = split_accumulation(gradients) if accumulate else gradients
    whole = read_averages(add_updates(split, optimizers, storage), storage)
    steps: list[tuple[str, bool, Callable[[Entry], Entry]]] = [
        ("prune", True, prune),
        ("hoist", passes.hoist, hoist),
        ("fuse", passes.fuse, lambda e: fuse(e, notes)),
        ("tiles", passes.tiles, tiles),
        ("layout", passes.layout, layout),
        ("prune", True, prune),
    ]
    fused = whole
    for name, wanted, step in steps:
        if wanted:
            fused = replace(fused, entries={k: step(e) for k, e in fused.entries.items()})
            _debug(name, fused)
    planned = partial(plan_memory, inplace=passes.inplace, views=passes.views, reuse=passes.reuse)
    recomputed: dict[str, Recomputed] = {}
    if passes.recompute != "none":
        how, batch = passes.recompute, passes.batch
        found = {k: recompute(e, how, batch, planned) for k, e in fused.entries.items()}
        fused = replace(fused, entries={k: e for k, (e, _) in found.items()})
        recomputed = {k: r for k, (_, r) in found.items()}
        steps_with = {k for k, e in fused.entries.items() if e.gradients and e.loss is not None}
        trained = [r for k, r in recomputed.items() if k in steps_with]
        notes += recompute_notes(passes.recompute, trained)
        _debug("recompute", fused)
    memory = {k: planned(e) for k, e in fused.entries.items()}
    return Stages(graph, gradients, fused, storage, memory, recomputed, notes, passes.batch)


def compile_graph(
    graph: Graph,
    optimizers: Mapping[str, OptimizerSpec] | None = None,
    seed: int = 0,
    passes: Passes = Passes(),
    accumulate: bool = False,
) -> Artifact:
    """Graph to plan bytes and the names of everything in them.

    Args:
        graph: forward entries (``paddlecli.models.build.build``).
        optimizers: by the names that ``entry.updates`` use.
        seed: first half of the key of every random number.
        accumulate: also the entries for batches that are cut into parts.
    """
    return emit(run_passes(graph, optimizers or {}, passes, accumulate), seed)


def _table_notes(
    graph: Graph, optimizers: Mapping[str, OptimizerSpec], storage: Storage
) -> list[str]:
    notes: list[str] = []
    for entry in graph.entries.values():
        for update in entry.updates:
            spec = optimizers[update.optimizer]
            tables = [p for p in update.parameters if isinstance(entry.gradients[p], Rows)]
            sizes = [
                (segment(p, graph.parameters[p].info or ParameterInfo({}), storage, spec), p)
                for p in tables
            ]
            found = table_notes(spec, [(s, 4 * s.length) for s, _ in sizes])
            notes += [n for n in found if n not in notes]
    return notes


def _noise_notes(graph: Graph) -> list[str]:
    """Noise of a scan in what is evaluated: a step's rows stand in the order of the batch's lengths."""
    names = {graph.roles.get("evaluate"), graph.roles.get("predict")}
    loops = [
        i for name, e in graph.entries.items() if name in names
        for i in e.items if isinstance(i, Loop) and i.kind == "scan"
    ]  # fmt: skip
    drawn = {n.kernel.op: None for loop in loops for n in loop.body if n.kernel.random}
    return [
        f"[{op}] stands in a scan: its numbers follow the order of lengths in a batch, so evaluations and "
        "predictions change with the batch size"
        for op in drawn
    ]


def stages(
    graph: Graph,
    optimizers: Mapping[str, OptimizerSpec] | None = None,
    passes: Passes = Passes(),
    accumulate: bool = False,
) -> dict[str, str]:
    """``graph``, ``gradients``, ``fused`` and ``memory`` of what :func:`compile_graph` makes, as text."""
    from paddlecli.compiler.report import show_layouts, show_memory, show_notes
    from paddlecli.graph.show import show

    done = run_passes(graph, optimizers or {}, passes, accumulate)
    return {
        "graph": show(done.graph),
        "gradients": show(done.gradients),
        "fused": show(done.fused) + show_layouts(done) + show_notes(done),
        "memory": show_memory(done),
    }


def _debug(name: str, graph: Graph) -> None:
    from paddlecli import settings

    if settings.debug() >= 3:
        from paddlecli.graph.show import show

        sys.stderr.write(f"---- after {name} ----\n{show(graph)}\n")
