"""Recompute: the same bits from less memory, and nothing that changes state runs twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from null.world import draw, graph_of, recipe_of
from road import Road, same

from paddlecli.compiler.groups import OptimizerSpec
from paddlecli.compiler.memory import BATCH, MemoryPlan, nominal_bytes, nominal_peak, placed
from paddlecli.compiler.optimizer import optimizers
from paddlecli.compiler.pipeline import Passes, Stages, run_passes
from paddlecli.compiler.recompute import SMALL, Recomputed
from paddlecli.compiler.report import show_memory
from paddlecli.config.registry import LOSSES
from paddlecli.data.opening import open_dataset
from paddlecli.engine.passes import passes_for
from paddlecli.engine.prepare import fields_of, prepare
from paddlecli.engine.summary import summarize
from paddlecli.errors import ConfigError
from paddlecli.graph.ir import Entry, Graph, Loop, Tensor, flat, storage_of
from paddlecli.models import network as written
from paddlecli.models.losses import finish

Network = tuple[Graph, dict[str, OptimizerSpec]]
Load = Callable[[str], Network]

PICTURES = """
name: pictures
data:
  name: generated
  fields:
    - {name: image, shape: [3, SIDE, SIDE]}
    - {name: label, dtype: int64, classes: 4, role: label}
MODEL
optimizer: {name: momentum, learning_rate: 0.1, momentum: 0.9}
"""
WRITTEN = """model:
  inputs: {image: {shape: [3, 16, 16]}, label: {dtype: int64, role: label}}
  layers:
    - {conv2d: {filters: 6, size: 3, padding: 1, activation: tanh}, from: image, name: first}
    - {dropout: {rate: 0.4, mode: upscale_in_train}, name: thin}
    - {conv2d: {filters: 6, size: 3, padding: 1}, name: second}
    - {add: {}, from: [second, thin], name: both}
    - {relu: {}, name: bent}
    - {pool2d: {size: 2, stride: 2}, name: half}
    - {dropout: {rate: 0.3}, name: thinner}
    - {conv2d: {filters: 8, size: 3, padding: 1, activation: relu}, name: third}
    - {fc: {size: 40, activation: relu}, name: wide}
    - {fc: {size: 4, activation: softmax}, name: scores}
  loss: {cross_entropy: {}, from: [scores, label]}
  outputs: {scores: scores}
"""
VGG = """model:
  inputs: {image: {shape: [3, 16, 16]}, label: {dtype: int64, role: label}}
  layers:
    - {conv2d: {filters: 4, size: 3, padding: 1, bias: false}, from: image}
    - {batch_norm: {activation: relu}}
    - {dropout: {rate: 0.3}}
    - {conv2d: {filters: 4, size: 3, padding: 1}}
    - {batch_norm: {activation: relu}}
    - {pool2d: {size: 2, stride: 2}}
    - {conv2d: {filters: 8, size: 3, padding: 1}}
    - {batch_norm: {activation: relu}}
    - {dropout: {rate: 0.4}}
    - {conv2d: {filters: 8, size: 3, padding: 1}}
    - {batch_norm: {activation: relu}}
    - {pool2d: {size: 2, stride: 2}}
    - {dropout: {rate: 0.5}}
    - {fc: {size: 32}}
    - {batch_norm: {activation: relu}}
    - {fc: {size: 4, activation: softmax}, name: scores}
  loss: {cross_entropy: {}, from: [scores, label]}
  outputs: {scores: scores}
"""
SCANNED = """
name: scanned
data:
  name: generated
  lengths: {steps: [1, 9]}
  fields:
    - {name: x, shape: [8], axes: [steps]}
    - {name: y, shape: [1], role: label}
model:
  inputs: {x: {shape: [8], ragged: steps}, y: {shape: [1], role: label}}
  blocks:
    cell:
      inputs: [x_t]
      memories: {h: {shape: [12], next: h_next}}
      layers:
        - {dropout: {rate: 0.5, mode: upscale_in_train}, from: x_t, name: thin}
        - {fc: {size: 12, activation: tanh}, from: [thin, h], name: h_next}
  layers:
    - {fc: {size: 12, activation: tanh}, from: x, name: inner}
    - {scan: {block: cell}, from: inner, name: lower}
    - {dropout: {rate: 0.3}, from: lower, name: between}
    - {scan: {block: cell, reverse: true}, from: between, name: upper}
    - {fc: {size: 12, activation: relu}, from: upper, name: outer}
    - {sequence_pool: {kind: average}, from: outer, name: pooled}
    - {fc: {size: 1}, from: pooled, name: prediction}
  loss: {square_error_cost: {}, from: [prediction, y]}
  outputs: {prediction: prediction}
optimizer: {name: adam, learning_rate: 0.01, clip: {global_norm: 0.7}}
"""


def pictures(model: str, side: int) -> str:
    return PICTURES.replace("SIDE", str(side)).replace("MODEL", model)


NETWORKS = {
    "resnet": pictures("model: {name: resnet_cifar10, depth: 8, classes: 4}", 16),
    "vgg": pictures(VGG, 16),
    "written": pictures(WRITTEN, 16),
    "scanned": SCANNED,
}
PATTERNS = {
    "resnet": ("stage1/*", "stage3/projection1"),
    "vgg": ("conv2d?", "batch_norm[1-3]", "dropout1"),
    "written": ("first", "thin", "second", "both", "bent"),
    "scanned": ("inner", "cell", "outer"),
}


@pytest.fixture(scope="module")
def networks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Network]:
    folder = tmp_path_factory.mktemp("recipes")
    recipes = {name: recipe_of(text, folder) for name, text in NETWORKS.items()}
    return {name: (graph_of(r), optimizers(r)) for name, r in recipes.items()}


def trained(network: Network, passes: Passes, **how: Any) -> dict[str, Any]:
    """Losses of five steps, and all that is left behind: parameters, slots, running statistics, metrics."""
    road = Road(*network, passes=passes, **how)
    road.shake()
    (entry,) = network[0].roles["train"]
    numbers = []
    for step, size in enumerate((5, 8, 1, 7, 6)):
        done = road.step(entry, replace(draw(network[0], size, step), step=step), rate=0.01)
        assert done.status == "done"
        numbers.append(list(done.numbers.values()))
    return {"numbers": np.array(numbers), **road.everything()}


def bytes_of(plan: MemoryPlan) -> int:
    """What the core takes for an entry's temporaries at the nominal sizes."""
    return placed([nominal_bytes(v.tensor.spec) for v in plan.lives], plan.lives)[1]


def found(network: Network, passes: Passes) -> tuple[Entry, Recomputed]:
    stages = run_passes(*network, passes)
    (entry,) = network[0].roles["train"]
    return stages.fused.entries[entry], stages.recomputed[entry]


@pytest.mark.parametrize("fuse", [True, False], ids=["fused", "plain"])
@pytest.mark.parametrize("how", ["auto", "patterns"])
@pytest.mark.parametrize("name", NETWORKS)
def test_same_bits(name: str, how: str, fuse: bool, networks: dict[str, Network]) -> None:
    """Everything equal after five steps; what is freed is really poisoned memory until it is computed again."""
    network = networks[name]
    passes = Passes(fuse=fuse, recompute="auto" if how == "auto" else PATTERNS[name])
    assert found(network, passes)[1].again, "nothing is computed again: this compares equal plans"
    same(trained(network, passes, poison=True), trained(network, Passes(fuse=fuse)))


@pytest.mark.parametrize("name", NETWORKS)
def test_threads(name: str, networks: dict[str, Network]) -> None:
    passes = Passes(recompute="auto")
    first = trained(networks[name], passes)
    same(first, trained(networks[name], passes, threads=2, grain=True))


@pytest.mark.parametrize("name", NETWORKS)
def test_nothing_that_changes_state_runs_twice(name: str, networks: dict[str, Network]) -> None:
    """What is new are kernels of the forward pass on tensors of their own, with the same random stream."""
    network = networks[name]
    (role,) = network[0].roles["train"]
    before = list(flat(run_passes(*network).fused.entries[role].items))
    entry, report = found(network, Passes(recompute="auto"))
    second = list(flat(report.items))
    assert len(list(flat(entry.items))) == len(before) + len(second)
    assert second and not any(n.kernel.updates or n.guard is not None for n in second)
    written = {id(s) for n in before for t in n.outputs for s in storage_of(t)}
    assert not any(id(s) in written for n in second for t in n.outputs for s in storage_of(t))
    known = {(n.kernel.op, n.origin.path, n.stream) for n in before}
    assert {(n.kernel.op, n.origin.path, n.stream) for n in second} <= known
    assert {n.kernel.name for n in second} <= {"forward", "again"}
    for state in (t for n in flat(entry.items) if n.kernel.updates for t in n.outputs):
        assert sum(state in n.outputs for n in flat(entry.items)) == 1, state


def test_masks_are_drawn_again(networks: dict[str, Network]) -> None:
    """Dropout is among what runs twice, in a scan too."""
    for name in ("vgg", "written", "scanned"):
        second = list(flat(found(networks[name], Passes(recompute="auto"))[1].items))
        assert any(n.kernel.full_name == "dropout.forward" and n.stream for n in second), name
    items = found(networks["scanned"], Passes(recompute=PATTERNS["scanned"]))[1].items
    assert sum(isinstance(i, Loop) for i in items) == 2


def test_memory(tmp_path: Any) -> None:
    """Half of it at most, for the networks of the book."""
    for model in ("resnet_cifar10, depth: 32", "vgg_bn_drop"):
        recipe = recipe_of(pictures(f"model: {{name: {model}, classes: 10}}", 32), tmp_path)
        network = graph_of(recipe), optimizers(recipe)
        off, on = (run_passes(*network, p).memory for p in (Passes(), Passes(recompute="auto")))
        assert bytes_of(on["train_step"]) < 0.5 * bytes_of(off["train_step"])
        assert bytes_of(on["predict"]) == bytes_of(off["predict"])


def test_deeper_nets_need_little_more(tmp_path: Any) -> None:
    """More than three times the depth: the memory of what is kept and computed grows like the root of it, or less."""
    sizes = []
    for depth in (14, 44):
        text = pictures(f"model: {{name: resnet_cifar10, depth: {depth}, classes: 10}}", 32)
        recipe = recipe_of(text, tmp_path)
        network = graph_of(recipe), optimizers(recipe)
        sizes.append([
            bytes_of(run_passes(*network, p).memory["train_step"])
            for p in (Passes(), Passes(recompute="auto"))
        ])  # fmt: skip
    (few, less), (many, little) = sizes
    assert many > 2.8 * few and little < 2 * less


def test_patterns(networks: dict[str, Network]) -> None:
    """A scope that matches is one segment: its inner values go, what it gives stays."""
    entry, report = found(networks["resnet"], Passes(recompute=("stage1/*",)))
    again = {t.name.partition(".")[0] for t in report.again}
    assert again and all(name.startswith("stage1/residual1") for name in again)
    names = {t.name for t in report.kept}
    last = [n for n in flat(entry.items) if "stage1/residual1" in n.origin.scopes]
    outputs = [t.name for n in last if n.args.get("z") is not None for t in n.outputs[:1]]
    assert outputs and set(outputs) <= names
    assert all(nominal_bytes(t.spec) > SMALL for t in (*report.kept, *report.again))


def test_statistics_are_not_computed_again(networks: dict[str, Network]) -> None:
    """A second batch norm takes mean and spread from the first."""
    entry, report = found(networks["resnet"], Passes(recompute="auto"))
    norms = [n for n in flat(report.items) if n.kernel.op == "batch_norm"]
    first = {id(t) for n in flat(entry.items) for t in n.outputs if "again." not in t.name}
    assert norms and {n.kernel.name for n in norms} == {"again"}
    assert all(id(n.args[p]) in first for n in norms for p in ("mean", "rstd"))


def test_the_batch_decides(tmp_path: Any) -> None:
    """Plans are compared at the recipe's batch: where scratch of fixed size weighs more, other values are kept."""
    text = pictures("model: {name: resnet_cifar10, depth: 14, classes: 10}", 32)
    recipe = recipe_of(text + "train: {batch_size: 4, accumulate: 2, recompute: auto}\n", tmp_path)
    assert passes_for(recipe).batch == 2
    network = graph_of(recipe), optimizers(recipe)
    few, many = (run_passes(*network, Passes(recompute="auto", batch=n)) for n in (1, 256))
    assert "  at batch 256: " in show_memory(many)

    def peak(stages: Stages, batch: int) -> int:
        return nominal_peak(stages.memory["train_step"], batch)

    for mine, other, batch in ((few, many, 1), (many, few, 256)):
        assert peak(mine, batch) <= peak(other, batch)


def test_plans_are_compared_as_they_will_be(networks: dict[str, Network]) -> None:
    """Where no memory is used twice, a second run only adds to it."""
    network = networks["resnet"]
    assert found(network, Passes(recompute="auto"))[1].again
    assert not found(network, Passes(recompute="auto", reuse=False))[1].again


def test_what_saves_nothing_says_so(tmp_path: Any) -> None:
    """Layers that are frozen, a network without a value worth it."""
    frozen = NETWORKS["resnet"].replace(
        "classes: 4}", "classes: 4, parameters: {'stage1/*': {trainable: false}, 'conv2d1/*': {trainable: false}, "
        "'batch_norm1/*': {trainable: false}}}",
    )  # fmt: skip
    for how, told in (
        (("stage1/*",), "`stage1/*` saves nothing"),
        (("stage1/*", "stage2/*"), "`stage1/*`"),
    ):
        recipe = recipe_of(frozen + f"train: {{recompute: [{', '.join(how)}]}}\n", tmp_path)
        notes = prepare(recipe, fields_of(recipe)).artifact.notes
        assert [told in n for n in notes] == [True], notes
        assert not any("stage2" in n for n in notes)
    small = SCANNED.replace("model:", "train: {recompute: auto, batch_size: 2}\nmodel:", 1)
    recipe = recipe_of(small, tmp_path)
    notes = prepare(recipe, fields_of(recipe)).artifact.notes
    assert [n.partition(": ")[2][:18] for n in notes] == ["auto finds nothing"], notes
    assert not prepare(recipe_of(SCANNED, tmp_path), fields_of(recipe)).artifact.notes


@pytest.mark.parametrize("value", ["7", "all", "true"])
def test_what_may_be_said(value: str, tmp_path: Any) -> None:
    with pytest.raises(ConfigError) as e:
        recipe_of(NETWORKS["resnet"] + f"train: {{recompute: {value}}}\n", tmp_path)
    assert "or a list of patterns" in e.value.faults[0].expected


def test_off_is_the_default(networks: dict[str, Network]) -> None:
    stages = run_passes(*networks["resnet"])
    assert not stages.recomputed and Passes().recompute == "none"
    assert "computed again" not in show_memory(stages)


def test_the_memory_stage_says_what_is_kept(networks: dict[str, Network]) -> None:
    stages = run_passes(*networks["resnet"], Passes(recompute="auto"))
    text, report = show_memory(stages), stages.recomputed["train_step"]
    assert f"  computed again: {len(report.again)} values (" in text
    assert f" by {len(report.items)} nodes in {report.segments} segments\n" in text
    assert f"  kept: {len(report.kept)} values (" in text
    for t in (*report.again, *report.kept):
        assert f"\n    {t.spec}  {t.name}\n" in text
    assert text.count("computed again") == 1, "entries that train nothing have nothing to say"


def test_parts_of_a_batch(tmp_path: Any) -> None:
    """With `train.accumulate` every piece of the step computes again."""
    recipe = recipe_of(NETWORKS["written"], tmp_path)
    assert recipe.data is not None
    data = open_dataset(recipe.data.name, recipe.data.arguments)
    network = graph_of(recipe), optimizers(recipe)
    results = []
    for how in ("none", "auto"):
        road = Road(*network, passes=Passes(recompute=how), accumulate=True)
        road.shake()
        split = data["train"]
        road.run(road.maker(data.spec, split, 7, 0.05, 2).make(np.arange(17), 0, 3, 0), split)
        results.append(road.everything())
    same(*results)
    assert all(road.stages.recomputed[f"train_step.{p}"].again for p in ("first", "more"))


TWO_LOSSES = """
name: two
data:
  name: generated
  fields: [{name: x, shape: [6]}, {name: y, dtype: int64, classes: 5, role: label}]
model:
  inputs: {x: {shape: [6]}, y: {dtype: int64, below: 5, role: label}}
  layers: [{fc: {size: 5}, from: x, name: scores}]
  loss: {two_losses: {}, from: [scores, y]}
optimizer: {name: sgd, learning_rate: 0.1}
"""


def two_losses(net: written.Network, scores: Tensor, label: Tensor) -> Tensor:
    """Two losses of the same scores."""
    attrs: Any = {"soft_label": False, "axis": -1}
    with net.layer("two_losses"):
        one, other = (
            net.apply(
                "softmax_with_cross_entropy", scores, label, None, **attrs, ignore_index=ignored
            )[0]
            for ignored in (-100, 1)
        )
        return finish(net, net.apply("add", one, other), scores, label)


def test_a_gradient_made_with_the_loss(monkeypatch: Any, tmp_path: Path) -> None:
    """A later node adds to it; made a second time, it would lose that."""
    monkeypatch.setattr(LOSSES, "_entries", {**LOSSES._entries})
    LOSSES.register("two_losses")(two_losses)
    monkeypatch.setattr(
        "paddlecli.compiler.recompute.SMALL", BATCH * 4 * 4
    )  # below the scores' alone
    recipe = recipe_of(TWO_LOSSES, tmp_path)
    network = graph_of(recipe), optimizers(recipe)
    off, on = Passes(), Passes(recompute=("*",))
    nodes = list(flat(run_passes(*network, off).fused.entries["train_step"].items))
    (both,) = (n for n in nodes if n.kernel.name == "forward_backward")
    assert any("dx" in n.accumulate and n.results["dx"] is both.results["dx"] for n in nodes)
    same(trained(network, on, poison=True), trained(network, off))


def test_every_small_network(load: Load) -> None:
    """Several entries, sparse tables, memories, searches: whatever is found, the bits stay."""
    for name in ("mlp", "conv", "two_networks", "two_axes", "memories", "shared", "decode"):
        graph, specs = load(name)
        results = []
        for how in ("none", "auto", ("*",)):
            road = Road(graph, specs, passes=Passes(recompute=how), poison=True)
            road.shake()
            numbers = []
            for step, size in enumerate((5, 1, 9)):
                batch = replace(draw(graph, size, step), step=step)
                numbers += [
                    v
                    for e in road.artifact.entries
                    for v in road.step(e, batch, 0.01).numbers.values()
                ]
            results.append({"numbers": np.array(numbers), **road.everything()})
        same(results[0], results[1])
        same(results[0], results[2])


def test_a_recipe_says_so(tmp_path: Any) -> None:
    """Training compiles it, and the summary counts it: less kept, less memory, more work."""
    recipes = [
        recipe_of(f"{NETWORKS['resnet']}train: {{recompute: {how}, batch_size: 64}}\n", tmp_path)
        for how in ("none", "auto")
    ]
    plans = [prepare(r, fields_of(r)).artifact.plan for r in recipes]
    assert b"again.stage1/" in plans[1] and b"again." not in plans[0]
    off, on = (summarize(r, graph_of(r)) for r in recipes)
    assert on.memory.plan < 0.8 * off.memory.plan and on.memory.state == off.memory.state
    assert on.totals["activation_bytes"] < 0.8 * off.totals["activation_bytes"]
    assert off.totals["step_flops"] < on.totals["step_flops"] < 1.34 * off.totals["step_flops"]


def test_a_pattern_without_a_layer(tmp_path: Any) -> None:
    text = NETWORKS["resnet"] + "train: {recompute: ['stge1/*']}\n"
    with pytest.raises(ConfigError, match=r"no layer of the training step matches `stge1/\*`") as e:
        graph_of(recipe_of(text, tmp_path))
    assert e.value.faults[0].where.key == "train.recompute"
    assert "stage1" in e.value.faults[0].nearest
    assert e.value.faults[0].expected.startswith("a pattern of conv2d1, batch_norm1, stage1, ")
