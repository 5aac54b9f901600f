"""The plan's bytes: the same everywhere and for every batch; stored networks give the same plan;
parts add up to the whole."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from paddlecli import ops
from paddlecli.compiler.optimizer import optimizers
from paddlecli.compiler.pipeline import compile_graph, run_passes
from paddlecli.compiler.plan_info import PlanInfo, read_plan
from paddlecli.config.load import load_recipe
from paddlecli.errors import ConfigError, RunError
from paddlecli.graph.ir import Entry, Graph, Loop, Node, Origin, flat
from paddlecli.graph.serialize import from_yaml, to_plain, to_yaml
from paddlecli.graph.show import show
from paddlecli.ops.base import Ragged

from .conftest import Load
from .executor import Batch, Run
from .world import SMALL, TRACERS, draw, fresh, graph_of, with_rates

SCRIPT = """
import hashlib, sys, tempfile
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from null.world import SMALL, network
from paddlecli.compiler.pipeline import compile_graph
for name in SMALL:
    graph, optimizers = network(name, Path(sys.argv[2]))
    print(name, hashlib.sha256(compile_graph(graph, optimizers, seed=7).plan).hexdigest())
"""


def test_the_same_recipe_gives_the_same_bytes_in_any_process(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    tests = Path(__file__).parent.parent

    def run(salt: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": salt, "PYTHONPATH": str(tests.parent)}
        command = [sys.executable, "-c", SCRIPT, str(tests), str(tmp_path / "one")]
        return subprocess.run(
            command, env=environment, check=True, capture_output=True, text=True
        ).stdout

    first = run("1")
    assert len(set(first.split())) == 2 * len(SMALL)
    assert first == run("2")


@pytest.mark.parametrize("name", SMALL)
def test_compiling_twice_gives_the_same_bytes(name: str, load: Load) -> None:
    graph, specs = load(name)
    assert compile_graph(graph, specs, seed=3) == compile_graph(graph, specs, seed=3)
    assert read_plan(compile_graph(graph, specs, seed=3).plan).seed == 3


def test_one_plan_for_every_batch() -> None:
    plans = set()
    for size in (1, 7, 64):
        recipe = load_recipe(TRACERS / "scan.yaml", [f"train.batch_size={size}"])
        plans.add(compile_graph(graph_of(recipe), optimizers(recipe)).plan)
    (plan,) = plans
    info = read_plan(plan)
    sizes = {s.name: i for i, s in enumerate(info.symbols)}
    for batch, rows in ((1, 5), (7, 20), (64, 300)):
        symbols = [
            batch if s.kind in ("batch", "sequences", "step_rows") else rows for s in info.symbols
        ]
        shapes = {t.name: t.shape(symbols) for t in info.tensors if t.storage == "input"}
        assert shapes == {"x": (rows, 4), "y": (batch, 1)}
    assert {"N", "S(steps)", "T(steps)", "L(steps)", "n(steps)"} == set(sizes)


def check_tables(info: PlanInfo) -> None:
    """What the core's validation demands, as far as Python's reader sees it."""
    known = {k.signature for name in ops.names() for k in ops.get(name).kernels}
    seen: set[int] = set()
    for entry in info.entries:
        span = set(range(entry.first_node, entry.first_node + entry.nodes))
        assert not span & seen
        seen |= span
        assert all(0 <= i < len(info.inputs) for i in entry.inputs)
        assert all(0 <= t < len(info.tensors) for t in (*entry.fetches, *entry.outputs))
    assert seen == set(range(len(info.nodes)))
    for node in info.nodes:
        assert node.body or node.signature in known
        assert all(-1 <= t < len(info.tensors) for t in (*node.inputs, *node.outputs))
    for i, t in enumerate(info.tensors):
        if t.storage in ("alias", "step", "previous", "prefix"):
            assert 0 <= t.place < i, "a view stands behind what it shows"
        if t.storage == "slot":
            assert 0 <= t.place < info.slots
        if t.storage == "range":
            size = int(np.prod(t.shape([0] * len(info.symbols)))) * {"f32": 4, "i64": 8}[t.dtype]
            assert t.offset + size <= info.ranges[t.place].bytes


@pytest.mark.parametrize("name", SMALL)
def test_tables_are_in_order(name: str, load: Load) -> None:
    check_tables(read_plan(compile_graph(*load(name)).plan))


def test_entries_of_an_ordinary_network(load: Load) -> None:
    found = compile_graph(*load("mlp"))
    assert found.roles == {"train": ["train_step"], "evaluate": "eval_step", "predict": "predict"}
    train, evaluate, predict = (found.entries[n] for n in ("train_step", "eval_step", "predict"))
    assert (train.inputs, train.fetches, tuple(train.outputs), train.updates) == (
        ("image", "label"), ("loss", "finite"), (), True,
    )  # fmt: skip
    assert (evaluate.inputs, evaluate.fetches, tuple(evaluate.outputs), evaluate.updates) == (
        ("image", "label"), ("loss",), ("probability",), False,
    )  # fmt: skip
    assert (predict.inputs, predict.fetches, tuple(predict.outputs)) == (
        ("image",),
        (),
        ("probability",),
    )
    assert str(predict.outputs["probability"]) == "f32[N, 3]"
    assert {k: m[0] for k, m in evaluate.metrics.items()} == {
        "loss": "mean_metric",
        "accuracy": "accuracy",
    }
    assert [(a.name, a.kind, a.of, a.count) for a in found.arguments] == [
        ("weight.loss", "weight", "loss", "batch"), ("learning_rate.default", "learning_rate", "default", "batch"),
    ]  # fmt: skip
    info = read_plan(found.plan)
    assert [e.name for e in info.entries] == list(found.entries)
    for entry in info.entries:
        assert [info.inputs[i][0] for i in entry.inputs] == list(found.entries[entry.name].inputs)


def test_entries_of_two_networks(load: Load) -> None:
    found = compile_graph(*load("two_networks"))
    assert found.roles == {"train": ["d_fake", "d_real", "g_step"], "predict": "predict"}
    assert {n: e.inputs for n, e in found.entries.items()} == {
        "d_fake": ("noise", "zero"), "d_real": ("real", "one"), "g_step": ("noise", "one"), "predict": ("noise",),
    }  # fmt: skip
    assert {n for n, e in found.entries.items() if e.updates} == {"d_fake", "d_real", "g_step"}
    rates = {a.name for a in found.arguments if a.kind == "learning_rate"}
    assert rates == {"learning_rate.generator", "learning_rate.discriminator"}


def test_metrics_and_losses_have_their_names(load: Load) -> None:
    graph, specs = load("mixed")
    found = compile_graph(graph, specs)
    evaluate = found.entries["eval_step"]
    assert {k: (m.op, m.attrs.get("k")) for k, m in evaluate.metrics.items()} == {
        "surprise": ("mean_metric", None), "top2": ("accuracy", 2), "accuracy": ("accuracy", 1),
    }  # fmt: skip
    weight = found.arguments[0]
    assert (weight.kind, weight.of, weight.count) == ("weight", "surprise", "labels:label:0")
    scores = {
        n.results["state_out"].name: n.args["scores"].name
        for n in flat(graph.entries["eval_step"].items)
        if n.kernel.op == "accuracy"
    }
    assert scores == {"eval_step/top2": "share.y", "eval_step/accuracy": "share.y"}


def test_an_axis_brings_the_input_that_defines_it(load: Load) -> None:
    found = compile_graph(*load("two_axes"))
    assert found.entries["predict"].inputs == ("word", "tag")
    info = read_plan(found.plan)
    assert [(a.name, info.inputs[a.input][0], a.ordered) for a in info.axes] == [
        ("words", "word", False),
        ("tags", "tag", False),
    ]
    assert [a.ordered for a in read_plan(compile_graph(*load("scan")).plan).axes] == [True]


def test_names_of_what_is_saved(load: Load) -> None:
    found = compile_graph(*load("conv"))
    assert set(found.states) == {"batch_norm1/mean", "batch_norm1/variance", "updates.default"}
    weights = {
        "conv2d1/w",
        "conv2d1/b",
        "batch_norm1/w",
        "batch_norm1/b",
        "conv2d2/w",
        "conv2d2/b",
        "fc1/w",
        "fc1/b",
    }
    assert set(found.parameters) == weights
    assert set(found.slots) == {f"{w}@default.{s}" for w in weights for s in ("moment1", "moment2")}
    assert all(p.offset % 64 == 0 for p in (*found.parameters.values(), *found.slots.values()))
    assert set(found.metric_states) == {
        "train_step/loss",
        "train_step/accuracy",
        "eval_step/loss",
        "eval_step/accuracy",
    }


# -- stored networks -------------------------------------------------------------------------------
def stored(graph: Graph, source: str = "graph.yaml") -> Graph:
    """The graph with the origins that a stored one has: the layer paths alone."""

    def place(origin: Origin) -> Origin:
        return Origin(source, 0, 0, origin.path, origin.kind)

    def node(n: Node) -> Node:
        return replace(n, origin=place(n.origin))

    def entry(e: Entry) -> Entry:
        items = [
            replace(i, body=[node(n) for n in i.body], origin=place(i.origin))
            if isinstance(i, Loop)
            else node(i)
            for i in e.items
        ]
        return replace(e, items=items, updates=[replace(u, origin=Origin()) for u in e.updates])

    return replace(graph, entries={k: entry(e) for k, e in graph.entries.items()})


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("name", SMALL)
def test_a_stored_network_gives_the_same_plan(name: str, accumulate: bool, load: Load) -> None:
    if accumulate and name in ("two_networks", "two_axes", "tables", "decode"):
        pytest.skip("this network cannot be accumulated")
    graph, specs = load(name)
    text = to_yaml(graph)
    again = from_yaml(text)
    assert to_yaml(again) == text
    assert show(again) == show(graph)
    assert compile_graph(again, specs, accumulate=accumulate) == compile_graph(
        stored(graph), specs, accumulate=accumulate
    )


@pytest.mark.parametrize("name", SMALL)
def test_a_stored_network_evaluates_and_predicts(name: str, load: Load) -> None:
    """Only the entries that do not train, as a model directory keeps them."""
    graph, _ = load(name)
    kept = replace(graph, entries={n: e for n, e in graph.entries.items() if not e.updates})
    assert compile_graph(from_yaml(to_yaml(kept))).plan == compile_graph(stored(kept)).plan


def test_initial_values_survive(load: Load) -> None:
    graph, _ = load("conv")
    a, b = dict(graph.starts(5)), dict(from_yaml(to_yaml(graph)).starts(5))
    assert all(np.array_equal(a[k], b[k]) for k in a) and a.keys() == b.keys()


def test_faulty_stored_networks_are_refused(load: Load) -> None:
    graph, _ = load("mlp")
    text = to_yaml(graph)
    for bad in (
        "",
        "- 1",
        "format: 1",
        text[: len(text) // 2],
        text.replace("image", "picture", 1),
    ):
        with pytest.raises(RunError, match=r"old\.yaml"):
            from_yaml(bad, "old.yaml")
    with pytest.raises(RunError, match=r"old\.yaml has format 2, this version reads 1"):
        from_yaml(text.replace("format: 1", "format: 2", 1), "old.yaml")
    with pytest.raises(
        RunError, match=r"old\.yaml uses the op 'warp', which this version does not have"
    ):
        from_yaml(text.replace("op: matmul.forward", "op: warp.forward"), "old.yaml")


def test_a_compiled_network_is_not_stored(load: Load) -> None:
    with pytest.raises(TypeError, match="belongs to a compiled graph, not to a stored one"):
        to_plain(run_passes(*load("mlp")).fused)


# -- accumulation ----------------------------------------------------------------------------------
def part(batch: Batch, start: int, stop: int) -> Batch:
    """Some samples of a batch; the loss weights stay those of the whole batch."""
    columns = {}
    for name, c in batch.columns.items():
        if isinstance(c, Ragged):
            first, last = c.offsets[start], c.offsets[stop]
            columns[name] = Ragged(c.values[first:last], c.offsets[start : stop + 1] - first)
        else:
            columns[name] = c[start:stop]
    return Batch(stop - start, columns, batch.arguments, first=start)


@pytest.mark.parametrize("cuts", [(0, 7), (0, 3, 7), (0, 1, 2, 6, 7), (0, 4, 4, 7)])
@pytest.mark.parametrize(
    "name",
    ["fit_a_line", "scan", "memories", "softmax", "mlp", "twice", "shared", "idle", "masked"],
)
def test_parts_add_up_to_the_whole(name: str, cuts: tuple[int, ...], load: Load) -> None:
    stages, step = run_passes(*load(name), accumulate=True), run_passes(*load(name))
    entries, roles = stages.fused.entries, stages.fused.roles
    assert "train_step" not in entries
    batch = with_rates(stages.fused, draw(stages.graph, 7))
    whole, pieces = fresh(step), fresh(stages)
    for r, array in zip(stages.storage.ranges, pieces.ranges, strict=True):
        if r.klass == "grad":  # what the gradients hold before the first part does not matter
            array[...] = 1e9
    Run(step.fused.entries["train_step"], batch, whole).go()
    loss = 0.0
    for i, (start, stop) in enumerate(pairwise(cuts)):
        run = Run(entries[roles["accumulate"][min(i, 1)]], part(batch, start, stop), pieces).go()
        loss += run.loss
    Run(entries[roles["apply"]], batch, pieces).go()
    for r, a, b in zip(stages.storage.ranges, whole.ranges, pieces.ranges, strict=True):
        if r.klass == "grad":
            continue
        if r.klass == "metric":
            np.testing.assert_array_equal(a, b, err_msg=r.name)
        else:
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12, err_msg=r.name)
    assert loss == pytest.approx(
        Run(stages.graph.entries["train_step"], batch, fresh(stages)).go().loss
    )


@pytest.mark.parametrize("name", ["mlp", "memories", "shared"])
def test_parts_share_memory_safely(name: str, load: Load) -> None:
    from .test_memory import both

    stages = run_passes(*load(name), accumulate=True)
    check_tables(read_plan(compile_graph(*load(name), accumulate=True).plan))
    for entry in stages.fused.entries.values():
        both(
            entry,
            with_rates(stages.fused, draw(stages.graph, 5)),
            fresh(stages),
            stages.memory[entry.name],
        )


def test_what_cannot_be_accumulated_says_why(load: Load) -> None:
    with pytest.raises(
        ConfigError,
        match=r"works with one training step; this network has 3: \['d_fake', 'd_real', 'g_step'\]",
    ):
        run_passes(*load("two_networks"), accumulate=True)
    with pytest.raises(
        ConfigError, match=r"needs dense gradients; bag/embedding1/w has row-sparse ones"
    ):
        run_passes(*load("two_axes"), accumulate=True)


def test_hashes_are_not_in_the_plan(load: Load) -> None:
    """Random streams are named by layer paths: equal digests, whatever the process."""
    from paddlecli.compiler.emit import stream_key

    assert stream_key("") == 0
    assert (
        stream_key("dropout1")
        == int.from_bytes(hashlib.blake2b(b"dropout1", digest_size=8).digest(), "little") | 1
    )
