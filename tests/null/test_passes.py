"""Every pass on equals every pass off: exactly, or within a tolerance where the order of sums
changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from paddlecli.compiler.fuse import fuse
from paddlecli.compiler.hoist import hoist
from paddlecli.compiler.layout import layout
from paddlecli.compiler.pipeline import Passes, Stages, run_passes
from paddlecli.errors import ConfigError
from paddlecli.graph.ir import Entry, Loop, Node, flat
from paddlecli.graph.prune import prune

from .conftest import Compiled, Load
from .executor import Batch, Params, Run
from .kernels import Array
from .world import SMALL, draw, fresh, graph_of, network, recipe_of, with_rates

BATCHES = (4, 1, 0, 7)


def train(
    stages: Stages, batches: tuple[Batch, ...], seed: int = 1
) -> tuple[list[dict[str, Array]], Params]:
    """Results of all entries over some batches, and the parameters in the end."""
    params = fresh(stages, seed)
    found = []
    for batch in batches:
        for entry in stages.fused.entries.values():
            found.append(Run(entry, with_rates(stages.fused, batch), params).go().results())
    return found, params


def compare(a: Stages, b: Stages, tolerance: float) -> None:
    """Both give the same results, parameters, slots, states and metrics."""
    batches = tuple(draw(a.graph, n, seed=n) for n in BATCHES)
    (first, mine), (second, theirs) = train(a, batches), train(b, batches)
    for x, y in zip(first, second, strict=True):
        assert x.keys() == y.keys()
        for name in x:
            np.testing.assert_allclose(
                x[name], y[name], rtol=tolerance, atol=tolerance, err_msg=name
            )
    for r, held, other in zip(a.storage.ranges, mine.ranges, theirs.ranges, strict=True):
        if r.klass == "metric":
            np.testing.assert_allclose(
                held, other, rtol=1e-6, atol=2**40 * tolerance, err_msg=r.name
            )
        elif r.klass != "grad":
            np.testing.assert_allclose(held, other, rtol=tolerance, atol=tolerance, err_msg=r.name)


@pytest.mark.parametrize("switch, tolerance", [("hoist", 1e-9), ("fuse", 1e-9), ("layout", 0.0)])
@pytest.mark.parametrize("name", SMALL)
def test_on_equals_off(
    name: str, switch: str, tolerance: float, load: Load, compiled: Compiled
) -> None:
    graph, optimizers = load(name)
    compare(
        compiled(name),
        run_passes(graph, optimizers, replace(Passes(), **{switch: False})),
        tolerance,
    )


@pytest.mark.parametrize("name", SMALL)
def test_pruning_changes_nothing(name: str, compiled: Compiled) -> None:
    stages = compiled(name)
    batch = draw(stages.graph, 4)
    for entry in stages.gradients.entries.values():
        ours, theirs = fresh(stages), fresh(stages)
        a, b = (
            Run(entry, batch, ours).go().results(),
            Run(prune(entry), batch, theirs).go().results(),
        )
        assert all(np.array_equal(a[k], b[k]) for k in a)
        assert all(np.array_equal(x, y) for x, y in zip(ours.ranges, theirs.ranges, strict=True))


def body(entry: Entry) -> list[Node]:
    """Nodes inside of loops."""
    return [n for i in entry.items if isinstance(i, Loop) for n in i.body]


def count(entry: Entry, kernel: str) -> int:
    """Nodes of a kernel."""
    return sum(n.kernel.full_name == kernel for n in flat(entry.items))


def test_pruning_leaves_out_what_nobody_reads(compiled: Compiled) -> None:
    stages = compiled("idle")
    entry = stages.fused.entries["train_step"]
    assert not any(
        "idle" in t.name for n in flat(entry.items) for t in n.inputs if t.role == "parameter"
    )
    assert not any(n.origin.path == "idle" for n in flat(entry.items))
    assert count(stages.graph.entries["train_step"], "matmul.forward") == 2
    assert count(stages.fused.entries["predict"], "fc.forward") == 1


def test_prediction_needs_no_labels(compiled: Compiled) -> None:
    for name in ("mlp", "conv", "scan", "memories"):
        stages = compiled(name)
        used = {
            t.name
            for n in flat(stages.fused.entries["predict"].items)
            for t in n.inputs
            if t.role == "input"
        }
        assert not used & set(stages.graph.labels), name


def test_products_of_a_sum_add_to_one_tensor(compiled: Compiled) -> None:
    """Outside of loops nothing is left of the sum and of the bias; the second product and the third add."""
    entry = compiled("memories").fused.entries["predict"]
    nodes = [i for i in entry.items if isinstance(i, Node) and "prediction" in i.origin.path]
    kernels = [n.kernel.full_name for n in nodes]
    assert kernels == ["matmul.forward", "matmul.forward", "fc.forward"]
    assert [bool(n.accumulate) for n in nodes] == [False, True, True]
    assert len({id(n.outputs[0]) for n in nodes}) == 1 and nodes[-1].args["b"] is not None


def test_what_depends_on_no_memory_leaves_the_loop(load: Load, compiled: Compiled) -> None:
    stages = compiled("scan")
    off = run_passes(*load("scan"), Passes(hoist=False))
    entry, plain = stages.fused.entries["train_step"], off.fused.entries["train_step"]
    assert len(body(entry)) < len(body(plain))
    forward, backward = (i for i in entry.items if isinstance(i, Loop))
    inputs = stages.graph.parameters["cell/h_next/w"], stages.graph.parameters["cell/h_next/w1"]
    read = [t for n in forward.body for t in n.inputs]
    assert (
        inputs[0] not in read and inputs[1] in read
    )  # the input's product runs once for all steps, the memory's each step
    assert backward.reverse and not any(
        t.role == "gradient" for n in backward.body for t in n.outputs
    )
    batch = with_rates(stages.fused, draw(stages.graph, 6))
    assert (
        Run(entry, batch, fresh(stages)).go().kernels < Run(plain, batch, fresh(off)).go().kernels
    )


def test_fusion_makes_one_kernel_of_a_layer(compiled: Compiled) -> None:
    mlp, conv = compiled("mlp").fused.entries, compiled("conv").fused.entries
    assert count(mlp["eval_step"], "fc.forward") == 3
    assert [n.attrs["activation"] for n in flat(mlp["eval_step"].items) if n.kernel.op == "fc"] == [
        2,
        2,
        0,
    ]
    assert count(mlp["train_step"], "fc.backward_wb") == 3
    for left in (
        "matmul.forward",
        "bias.forward",
        "tanh.forward",
        "bias.backward",
        "matmul.backward_y",
    ):
        assert count(mlp["train_step"], left) == 0, left
    assert count(conv["predict"], "conv2d.forward") == 2
    assert count(conv["predict"], "relu.forward") == 0


def test_what_is_read_elsewhere_is_not_fused(compiled: Compiled) -> None:
    """``raw`` is an output of evaluation; ``read`` has a second reader beside its relu."""
    entries = compiled("shared").fused.entries

    def activations(name: str) -> dict[str, object]:
        nodes = flat(entries[name].items)
        return {
            n.origin.path: n.attrs["activation"]
            for n in nodes
            if n.kernel.op == "fc" and "activation" in n.attrs and not n.accumulate
        }

    assert activations("eval_step") == {"raw": 0, "read": 0}
    assert activations("train_step") == {"raw+h": 2, "read": 0}, "a fused node names all its layers"


@pytest.mark.parametrize("name", [n for n in SMALL if n != "decode"])
def test_a_loss_that_is_not_finite_changes_nothing(name: str, compiled: Compiled) -> None:
    """Neither parameters nor running statistics, slots and counts; the entry says so and halts."""
    stages = compiled(name)
    batch = with_rates(stages.fused, draw(stages.graph, 3))
    bad = Batch(
        3, batch.columns, {k: np.nan if "weight" in k else v for k, v in batch.arguments.items()}
    )
    for entry in stages.fused.entries.values():
        if not entry.updates:
            continue
        before, after = fresh(stages), fresh(stages)
        run = Run(entry, bad, after).go()
        assert run.results()["finite"].tolist() == [0]
        assert entry.halt is not None and run.array(entry.halt).tolist() == [1]
        for r, a, b in zip(stages.storage.ranges, before.ranges, after.ranges, strict=True):
            if r.klass not in ("grad", "metric"):
                assert np.array_equal(a, b), r.name
        Run(entry, batch, after).go()
        counts = [k for k in stages.storage.placements if k.startswith("updates.")]
        assert sum(int(after.array(k)[0]) for k in counts) == 1


@pytest.mark.parametrize("name", ["twice", "tables"])
def test_a_gradient_that_is_not_finite_changes_nothing(name: str, compiled: Compiled) -> None:
    """Where clipping computes their norm anyway, it is checked with the loss."""
    stages = compiled(name)
    batch = with_rates(stages.fused, draw(stages.graph, 3))
    entry = stages.fused.entries["train_step"]
    before, after = fresh(stages), fresh(stages)

    def spoil(node: Node, run: Run) -> None:
        if node.kernel.full_name == "global_norm.forward":
            run.array(node.args["totals"][0])[...] = np.inf

    run = Run(entry, batch, after, watch=spoil).go()
    assert run.results()["finite"].tolist() == [0]
    assert np.isfinite(run.loss)
    for r, a, b in zip(stages.storage.ranges, before.ranges, after.ranges, strict=True):
        if r.klass not in ("grad", "metric"):
            assert np.array_equal(a, b), r.name


def test_near_misses_are_noted(tmp_path: Path) -> None:
    from paddlecli.compiler.optimizer import optimizers

    text = """
name: gelu
data: {name: generated, fields: [{name: x, shape: [3]}, {name: y, shape: [1], role: label}]}
model:
  inputs: {x: {shape: [3]}, y: {shape: [1], role: label}}
  layers: [{fc: {size: 2, activation: gelu}, from: x, name: hidden}, {fc: {size: 1}, name: prediction}]
  loss: {square_error_cost: {}, from: [prediction, y]}
optimizer: {name: sgd, learning_rate: 0.1}
"""
    recipe = recipe_of(text, tmp_path)
    stages = run_passes(graph_of(recipe), optimizers(recipe))
    note = "hidden: gelu stays apart from matmul: its gradient needs the value before it"
    assert note in stages.notes
    assert len(stages.notes) == len(set(stages.notes))


def test_passes_leave_their_input_alone(compiled: Compiled, load: Load) -> None:
    from paddlecli.graph.show import show

    for name in ("scan", "mlp", "conv", "shared"):
        graph, optimizers = load(name)
        before = show(graph)
        stages = run_passes(graph, optimizers)
        assert show(graph) == before
        gradients = show(stages.gradients)
        for entry in stages.gradients.entries.values():
            layout(fuse(hoist(prune(entry)), []))
        assert show(stages.gradients) == gradients


def test_a_layout_that_no_kernel_takes_is_refused(load: Load) -> None:
    graph, _ = network("fit_a_line", Path())
    entry = graph.entries["predict"]
    node = next(flat(entry.items))
    node.args["x"].spec = replace(node.args["x"].spec, layout="nchw8c")
    with pytest.raises(ConfigError, match=r"\[matmul\] takes plain tensors, x is nchw8c"):
        layout(entry)
