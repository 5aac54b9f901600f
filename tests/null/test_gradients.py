"""Gradients of whole networks against central differences of their loss."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from paddlecli.compiler.optimizer import optimizers
from paddlecli.compiler.pipeline import Stages, run_passes
from paddlecli.graph.ir import Entry, Rows, flat, storage_of

from .conftest import Compiled
from .executor import Batch, Params, Run
from .kernels import Array
from .world import SMALL, draw, fresh, gradients_of, graph_of, recipe_of

STEP = 1e-5
MOST = 24
"""Elements of a parameter that are checked; a larger one is sampled."""


def entries(stages: Stages) -> Iterator[Entry]:
    """Entries that update something, with gradients and before any other pass."""
    yield from (e for e in stages.gradients.entries.values() if e.updates)


def slopes(entry: Entry, batch: Batch, params: Params, name: str, places: Array) -> Array:
    """Central differences of the loss at some elements of a parameter."""
    flat = params.array(name).reshape(-1)
    found = []
    for i in places:
        kept = flat[i]
        flat[i] = kept + STEP
        high = Run(entry, batch, params.copy()).go().loss
        flat[i] = kept - STEP
        low = Run(entry, batch, params.copy()).go().loss
        flat[i] = kept
        found.append((high - low) / (2 * STEP))
    return np.array(found)


def check(stages: Stages, batch: Batch, seed: int = 1) -> None:
    """Every gradient of every training entry."""
    rng = np.random.default_rng(seed)
    params = fresh(stages, seed)
    for entry in entries(stages):
        forward = stages.graph.entries[entry.name]
        run = Run(entry, batch, params.copy()).go()
        assert run.loss == Run(forward, batch, params.copy()).go().loss
        found = gradients_of(entry, run)
        assert set(found) == {p for u in entry.updates for p in u.parameters}
        for name, gradient in found.items():
            size = gradient.size
            places = np.arange(size) if size <= MOST else rng.choice(size, MOST, replace=False)
            expected = slopes(forward, batch, params, name, places)
            scale = max(1e-3, np.abs(expected).max(initial=0))
            np.testing.assert_allclose(
                gradient.reshape(-1)[places],
                expected,
                rtol=0,
                atol=2e-6 * scale,
                err_msg=f"{entry.name}: {name}",
            )


@pytest.mark.parametrize("name", SMALL)
def test_gradients_are_slopes(name: str, compiled: Compiled) -> None:
    stages = compiled(name)
    check(stages, draw(stages.graph, 2 if name == "conv" else 5))


@pytest.mark.parametrize("lengths", [(0, 0, 0), (0, 4, 0), (1,), (2, 2, 2), (7, 1, 0, 7)])
@pytest.mark.parametrize("name", ["scan", "memories"])
def test_any_lengths(name: str, lengths: tuple[int, ...], compiled: Compiled) -> None:
    stages = compiled(name)
    check(stages, draw(stages.graph, len(lengths), lengths={"steps": lengths}))


@pytest.mark.parametrize("words, tags", [((0, 0), (0, 0)), ((2, 3), (0, 0)), ((1, 1), (4, 0))])
def test_any_lengths_on_two_axes(
    words: tuple[int, ...], tags: tuple[int, ...], compiled: Compiled
) -> None:
    stages = compiled("two_axes")
    check(stages, draw(stages.graph, 2, lengths={"words": words, "tags": tags}))


def test_an_empty_batch_has_no_gradient(compiled: Compiled) -> None:
    stages = compiled("two_axes")
    batch = draw(stages.graph, 0)
    (entry,) = entries(stages)
    run = Run(entry, batch, fresh(stages)).go()
    assert run.loss == 0
    assert all(not g.any() for g in gradients_of(entry, run).values())


def test_a_block_used_twice_has_one_set_of_parameters(compiled: Compiled) -> None:
    stages = compiled("twice")
    assert set(stages.graph.parameters) == {
        "branch/fc1/w",
        "branch/fc1/b",
        "branch/fc2/w",
        "branch/fc2/b",
    }
    nodes = flat(stages.graph.entries["train_step"].items)
    uses = [n for n in nodes if n.args.get("y") is stages.graph.parameters["branch/fc1/w"]]
    assert len(uses) == 3


def test_an_entry_reaches_only_its_own_parameters(compiled: Compiled) -> None:
    stages = compiled("two_networks")
    for entry in entries(stages):
        (update,) = entry.updates
        other = "generator/" if update.optimizer == "discriminator" else "discriminator/"
        assert entry.gradients
        assert not any(p.startswith(other) for p in entry.gradients)
        written = {
            t.name
            for n in flat(stages.fused.entries[entry.name].items)
            for t in n.outputs
            if t.persistent
        }
        assert not any(other in w for w in written), written


def test_a_parameter_that_the_loss_does_not_read_gets_zeros(compiled: Compiled) -> None:
    stages = compiled("idle")
    (entry,) = entries(stages)
    run = Run(entry, draw(stages.graph, 3), fresh(stages)).go()
    assert {n: bool(g.any()) for n, g in gradients_of(entry, run).items()} == {
        "idle/w": False, "idle/b": False, "prediction/w": True, "prediction/b": True,
    }  # fmt: skip


def test_tables_have_no_dense_gradient(compiled: Compiled) -> None:
    stages = compiled("two_axes")
    (entry,) = entries(stages)
    sparse = [n for n, g in entry.gradients.items() if isinstance(g, Rows)]
    assert sparse == ["bag/embedding1/w"]
    assert "gradient:bag/embedding1/w" not in stages.storage.placements


def test_uses_of_a_table_are_merged_in_forward_order(compiled: Compiled) -> None:
    stages = compiled("two_axes")
    (entry,) = entries(stages)
    (merge,) = (n for n in flat(entry.items) if n.kernel.op == "rows_merge")
    assert [t.name for t in merge.args["pairs"][::2]] == ["word", "tag"]


def test_a_table_that_the_loss_does_not_read_has_no_rows(compiled: Compiled) -> None:
    stages = compiled("tables")
    (entry,) = entries(stages)
    run = Run(entry, draw(stages.graph, 3), fresh(stages)).go()
    rows = entry.gradients["unread/w"]
    assert isinstance(rows, Rows)
    assert run.array(rows.count).tolist() == [0]


def test_a_node_never_writes_two_gradients_to_one_place(compiled: Compiled) -> None:
    """Keys that are the values too get two gradients from one node."""
    learn = compiled("attention").gradients.entries["learn"]
    several = [
        n for n in flat(learn.items) if n.kernel.full_name == "dot_attention.backward_source"
    ]
    assert len(several) == 2
    for node in flat(learn.items):
        places = [id(s) for t in node.outputs for s in storage_of(t)]
        assert len(places) == len(set(places)), node


SQUARES = """
name: squares
data:
  name: generated
  fields: [{name: x, shape: [3]}, {name: y, shape: [1], role: label}]
model:
  inputs: {x: {shape: [3]}, y: {shape: [1], role: label}}
  layers:
    - {fc: {size: 4}, from: x, name: a}
    - {mul: {}, from: [a, a], name: b}
    - {add: {}, from: [a, b]}
    - {fc: {size: 1}, name: prediction}
  loss: {square_error_cost: {}, from: [prediction, y]}
optimizer: {name: sgd, learning_rate: 0.1}
"""


def test_two_gradients_of_one_rule_beside_an_older_one(tmp_path: Path) -> None:
    """a + a * a: the sum's own gradient is passed on, so a's is summed anew, behind both of a * a."""
    recipe = recipe_of(SQUARES, tmp_path)
    stages = run_passes(graph_of(recipe), optimizers(recipe))
    check(stages, draw(stages.graph, 5))
