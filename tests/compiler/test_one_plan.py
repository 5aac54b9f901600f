"""One plan for every batch, no allocation in a step, room made when a batch is larger, poison and profile modes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from null.world import draw
from road import Road, same

from paddlecli.assets import directory
from paddlecli.compiler.groups import OptimizerSpec
from paddlecli.compiler.optimizer import optimizers
from paddlecli.config.load import load_recipe
from paddlecli.data.opening import describe
from paddlecli.errors import DataError
from paddlecli.graph.ir import Graph
from paddlecli.models.build import build
from paddlecli.runtime import native

Load = Callable[[str], tuple[Graph, dict[str, OptimizerSpec]]]
TRACERS = Path(__file__).parents[1] / "tracers"
NAMES = ("fit_a_line", "mlp", "conv", "scan", "two_axes", "two_networks", "decode")


def run_all(road: Road, size: int, step: int = 0) -> dict[str, dict[str, np.ndarray]]:
    """Outputs of all entries that update nothing, behind a step of those that do."""
    batch = replace(draw(road.graph, size, size), step=step)
    return {n: road.step(n, batch, 0.01, outputs=True).outputs for n in road.artifact.entries}


@pytest.mark.parametrize("name", NAMES)
def test_one_plan_serves_every_batch(name: str, load: Load) -> None:
    """Batches of 1, 7, 64 and a short last one give what a session of just that size gives; one plan was made."""
    before = native.counters().plans
    road = Road(*load(name))
    start = road.everything()
    for size in (1, 7, 64, 23):
        road.write(start)
        found, left = run_all(road, size), road.everything()
        fresh = Road(*load(name))
        expected = run_all(fresh, size)
        assert found.keys() == expected.keys()
        for entry, outputs in expected.items():
            same(found[entry], outputs)
        same(left, fresh.everything())
        assert native.counters().plans == before + 2  # the fresh one's too
        del fresh
        before += 1


@pytest.mark.parametrize("name", NAMES)
def test_steps_allocate_nothing(name: str, load: Load) -> None:
    road = Road(*load(name), threads=2)
    run_all(road, 64)
    before = native.counters()
    for step, size in enumerate((64, 1, 7, 64, 23)):
        run_all(road, size, step)
    after = native.counters()
    assert after.allocations_in_steps == before.allocations_in_steps == 0
    assert after.steps == before.steps + 5 * len(road.artifact.entries)


@pytest.mark.parametrize("name", NAMES)
def test_a_larger_batch_gets_room_and_is_repeated(name: str, load: Load) -> None:
    road, roomy = Road(*load(name)), Road(*load(name))
    roomy.session.reserve(
        {
            s.name: 4000
            for s in roomy.plan.info.symbols
            if s.kind in ("batch", "total", "longest", "pairs")
        }
    )
    known = roomy.session.bytes
    sizes = []
    for size in (2, 3, 50, 300):
        for entry, outputs in run_all(roomy, size).items():
            batch = draw(road.graph, size, size)
            same(road.step(entry, batch, 0.01, outputs=True).outputs, outputs)
        sizes.append(road.session.bytes)
    same(road.everything(), roomy.everything())
    assert sizes == sorted(sizes) and sizes[0] < sizes[-1] and roomy.session.bytes == known
    assert native.counters().allocations_in_steps == 0


SMALLER = ("model.dim=16", "model.hidden=16", "model.max_length=4")
"""Of networks whose 256 steps of 33 million parameters take minutes when every node's memory is poisoned."""


def recipes() -> list[str]:
    """Every shipped recipe but those for a user's own files, and every tracer."""
    shipped = directory("recipes")
    found = sorted(
        p.relative_to(shipped).with_suffix("").as_posix() for p in shipped.rglob("*.yaml")
    )
    found = [name for name in found if not name.startswith("own_data/")]
    return [*found, *(str(p) for p in sorted(TRACERS.glob("*.yaml")))]


def opened(recipe: str) -> tuple[Graph, dict[str, OptimizerSpec]]:
    small = SMALLER if recipe.startswith("machine_translation") else ()
    loaded = load_recipe(Path(recipe) if recipe.endswith(".yaml") else recipe, small)
    assert loaded.data is not None
    try:
        fields = describe(loaded.data.name, loaded.data.arguments)
    except DataError as error:  # settings other than the card's: sizes are known when it is read
        if "is not on this machine" not in str(error):
            raise
        pytest.skip(f"{recipe}: {error}")
    return build(loaded, fields), optimizers(loaded)


@pytest.mark.parametrize(
    "recipe", recipes(), ids=lambda r: Path(r).stem if r.endswith(".yaml") else r
)
def test_poison_finds_nothing(recipe: str) -> None:
    """Memory that is filled with NaN before every step and behind every last use, and every output checked: nothing reads what it
    should not, and the bits are those of a plain step."""
    found, plain = [], Road(*opened(recipe))
    for road in (plain, plain.poisoned()):
        road.shake()
        for step, size in enumerate((4, 1)):
            batch = replace(draw(road.graph, size, step), step=step)
            for entry in road.artifact.entries:
                assert road.step(entry, batch, 0.001).status == "done"
        found.append(road.everything())
    same(*found)


@pytest.mark.parametrize("name", NAMES)
def test_profile(name: str, load: Load) -> None:
    """A row for every node that ran, each with its calls; the bits are those of a plain step."""
    profiled, plain = Road(*load(name), profile=True), Road(*load(name))
    sizes = (5, 3)
    for size in sizes:
        for road in (profiled, plain):
            run_all(road, size)
    same(profiled.everything(), plain.everything())
    rows, nodes = profiled.session.profile(), profiled.plan.info.nodes
    assert plain.session.profile() == []
    assert all(
        r.seconds >= 0 and r.calls > 0 and r.signature == nodes[r.node].signature for r in rows
    )
    inside = {j for i, n in enumerate(nodes) for j in range(i + 1, i + 1 + n.body)}
    calls = {r.node: r.calls for r in rows}
    assert {i for i, n in enumerate(nodes) if n.kind == 0} == set(calls)
    assert all(calls[i] == len(sizes) for i in calls if i not in inside)
    assert sum(r.bytes for r in rows) > 0


@pytest.mark.parametrize("name", ["fit_a_line", "mlp", "conv", "scan", "memories", "shared"])
def test_poison_finds_nothing_in_parts(name: str, load: Load) -> None:
    """The entries of accumulation, in their order, with empty sequences in every part."""
    found, plain = [], Road(*load(name), accumulate=True)
    for road in (plain, plain.poisoned()):
        first, more = road.artifact.roles["accumulate"]
        for entry in (first, more, more, road.artifact.roles["apply"]):
            assert road.step(entry, draw(road.graph, 5, 2), 0.001).status == "done"
        found.append(road.everything())
    same(*found)
