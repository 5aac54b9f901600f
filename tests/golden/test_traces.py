"""Whole trainings of another framework: loss of every step and the parameters behind it, through the requests that `train` makes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from null.world import recipe_of
from road import Road

from paddlecli.compiler.optimizer import optimizer_spec, optimizers
from paddlecli.config.schema import Optimizer
from paddlecli.data.columns import Column, Split
from paddlecli.data.spec import DatasetSpec, FieldSpec
from paddlecli.engine.averages import by_iteration, keys_of
from paddlecli.engine.requests import Work
from paddlecli.graph.ir import Graph, Update
from paddlecli.models import layers
from paddlecli.models.build import build
from paddlecli.models.network import Network
from paddlecli.ops import get

HERE = Path(__file__).parent
TRACES = json.loads((HERE / "traces.json").read_text())
ACCUMULATION = json.loads((HERE / "accumulation.json").read_text())

Array = np.ndarray[Any, np.dtype[Any]]


def pattern(shape: tuple[int, ...], k: float, amplitude: float) -> Array:
    """The file's rule for weights and features."""
    values = np.round(amplitude * np.sin(0.9 * np.arange(np.prod(shape)) + k), 4)
    return values.astype(np.float32).reshape(shape)


def ids(n: int, vocabulary: int, k: int) -> Array:
    """The file's rule for ids."""
    i = np.arange(n)
    return (7 * i + 3 * k + i // 5) % vocabulary


@dataclass(frozen=True)
class Case:
    """A network as a recipe, and the data of all steps one behind the other."""

    recipe: str
    fields: tuple[FieldSpec, ...]
    columns: dict[str, Array]
    batch: int
    rate: float


def houses(steps: int) -> Case:
    recipe = "name: houses\nmodel: {name: linear}\noptimizer: {name: sgd, learning_rate: 0.01}\n"
    fields = FieldSpec("x", "input", (13,), "float32"), FieldSpec("y", "label", (1,), "float32")
    x = [pattern((20, 13), 0.3 + t, 0.5) for t in range(steps)]
    y = [22 + pattern((20, 1), 1.3 + t, 9) for t in range(steps)]
    return Case(recipe, fields, {"x": np.concatenate(x), "y": np.concatenate(y)}, 20, 0.01)


def digits(model: str, steps: int) -> Case:
    recipe = f"name: digits\nmodel: {model}\noptimizer: {{name: adam, learning_rate: 0.001}}\nmetrics: [accuracy]\n"
    fields = (
        FieldSpec("image", "input", (1, 28, 28), "float32"),
        FieldSpec("digit", "label", (1,), "int64", classes=10),
    )
    x = [pattern((8, 1, 28, 28), 0.3 + t, 1) for t in range(steps)]
    y = [ids(8, 10, t).reshape(8, 1) for t in range(steps)]
    return Case(recipe, fields, {"image": np.concatenate(x), "digit": np.concatenate(y)}, 8, 0.001)


WORDS = """
name: words
model:
  inputs:
    w0: {dtype: int64, below: 50}
    w1: {dtype: int64, below: 50}
    w2: {dtype: int64, below: 50}
    w3: {dtype: int64, below: 50}
    next: {shape: [1], dtype: int64, below: 50, role: label}
  layers:
    - {embedding: {size: 50, dim: 32, table: shared_w}, from: w0, name: e0}
    - {embedding: {size: 50, dim: 32, table: shared_w}, from: w1, name: e1}
    - {embedding: {size: 50, dim: 32, table: shared_w}, from: w2, name: e2}
    - {embedding: {size: 50, dim: 32, table: shared_w}, from: w3, name: e3}
    - {concat: {}, from: [e0, e1, e2, e3]}
    - {fc: {size: 256, activation: sigmoid}}
    - {fc: {size: 50, activation: softmax}, name: probability}
  loss: {cross_entropy: {}, from: [probability, next]}
optimizer: {name: adagrad, learning_rate: 0.003, regularizer: {l2: 8.0e-4}}
"""


def words(steps: int, sparse: bool = False) -> Case:
    inputs = tuple(FieldSpec(f"w{i}", "input", (), "int64", classes=50) for i in range(4))
    fields = (*inputs, FieldSpec("next", "label", (1,), "int64", classes=50))
    columns = {
        f"w{i}": np.concatenate([ids(16, 50, t + i) for t in range(steps)]) for i in range(4)
    }
    columns["next"] = np.concatenate([ids(16, 50, t + 9) for t in range(steps)]).reshape(-1, 1)
    recipe = WORDS.replace("table: shared_w", "table: shared_w, sparse: true") if sparse else WORDS
    return Case(recipe, fields, columns, 16, 0.003)


def case_of(name: str, steps: int) -> Case:
    if name == "fit_a_line":
        return houses(steps)
    if name == "digits_softmax":
        return digits("{name: digits_softmax}", steps)
    if name == "digits_mlp_tanh":
        return digits("{name: digits_mlp, hidden_act: tanh}", steps)
    assert name.startswith("word2vec_ngram")
    return words(steps, sparse=name.endswith("_sparse"))


def set_weights(road: Road, wanted: list[dict[str, Any]]) -> None:
    """Weights by the rule in order of creation, everything else 0."""
    names = iter([n for n, t in road.graph.parameters.items() if t.spec.ndim > 1])
    road.write({n: np.zeros(road.places[n].shape) for n in road.graph.parameters})
    for weight in wanted:
        road.write({next(names): pattern(tuple(weight["shape"]), weight["k"], weight["amp"])})
    assert next(names, None) is None


@pytest.mark.parametrize("streamed", [False, True], ids=["resident", "streamed"])
@pytest.mark.parametrize("name", [n for n in TRACES if n != "rule"] + ["word2vec_ngram_sparse"])
def test_trace(name: str, streamed: bool, tmp_path: Path) -> None:
    """A table with row-sparse gradients gives the same trace: its regulariser moves the rows without one too."""
    golden = TRACES[name.removesuffix("_sparse")]
    losses = golden["loss_before_step"]
    case = case_of(name, len(losses))
    recipe = recipe_of(case.recipe, tmp_path)
    spec = DatasetSpec("trace", "", case.fields, {})
    split = Split("train", {k: Column(v) for k, v in case.columns.items()})
    road = Road(build(recipe, spec), optimizers(recipe))
    set_weights(road, golden["weights_in_creation_order"])
    maker = road.maker(spec, split, case.batch, case.rate)
    order = np.arange(len(split))
    work = maker.make(order, 0, len(losses), 0, gather=streamed)
    found = by_iteration(keys_of(maker.calls), work, road.run(work, split), len(losses))
    np.testing.assert_allclose(found["loss"], losses, rtol=1e-4)
    for name, final in zip(road.graph.parameters, golden["final"], strict=True):
        value = road.read(name).astype(np.float64)
        assert list(value.shape) == final["shape"]
        magnitude = max(1.0, final["abs"])
        assert np.abs(value).sum() == pytest.approx(final["abs"], abs=1e-5 * magnitude)
        assert value.sum() == pytest.approx(final["sum"], abs=1e-5 * magnitude)


@pytest.mark.parametrize("name", ["digits_softmax", "digits_mlp_tanh"])
def test_accuracy_of_every_step(name: str, tmp_path: Path) -> None:
    golden = TRACES[name]
    fetched = golden["also_fetched"]
    case = case_of(name, len(fetched))
    recipe = recipe_of(case.recipe, tmp_path)
    spec = DatasetSpec("trace", "", case.fields, {})
    split = Split("train", {k: Column(v) for k, v in case.columns.items()})
    road = Road(build(recipe, spec), optimizers(recipe))
    set_weights(road, golden["weights_in_creation_order"])
    entries = road.graph.roles["train"]
    metric = road.artifact.entries[entries[0]].metrics["accuracy"]
    maker = road.maker(spec, split, case.batch, case.rate)
    for step, (expected,) in enumerate(fetched):
        road.write({metric.state: np.zeros(road.places[metric.state].shape)})
        road.run(maker.make(np.arange(len(split)), step, 1, step), split)
        state = road.read(metric.state).tolist()
        report = get(metric.op).report("accuracy", state, metric.attrs, metric.values)
        assert report == {"accuracy": pytest.approx(expected)}


# -- accumulation -------------------------------------------------------------------------------------------------------
AFFINE = DatasetSpec(
    "affine",
    "",
    (FieldSpec("x", "input", (3,), "float32"), FieldSpec("y", "label", (2,), "float32")),
    {},
)
RENAMED = {"mu": "momentum"}
PARTS = ("learning_rate", "kind", "global_norm_clip", "l2", "micro_batches")


def affine() -> Graph:
    """Sum over outputs of (x W + b - y)^2, mean over samples."""
    graph = Graph(labels=("y",))
    net = Network(graph, "fit", True, AFFINE)
    y = layers.fc(net, net.feature(), size=2)
    squares = net.apply("square_error_cost", y, net.label())
    net.loss(net.apply("reduce_sum", squares, dims=(1,)), "loss", "")
    graph.roles = {"train": ["fit"]}
    net.entry.updates.append(Update("default", list(graph.parameters)))
    return graph


def settings_of(given: dict[str, Any]) -> Optimizer:
    """The file's settings as a recipe's section."""
    own = {RENAMED.get(k, k): v for k, v in given.items() if k not in PARTS}
    if given["kind"] in ("adam", "adamw"):
        own["scale_epsilon"] = False
    decay = {"regularizer": {"l2": given["l2"]}} if "l2" in given else {}
    clip = {"global_norm": given["global_norm_clip"]}
    return Optimizer.model_validate(
        {"name": given["kind"], "learning_rate": given["learning_rate"], "clip": clip, **decay, **own})  # fmt: skip


def cut(road: Road, sizes: list[int], rate: float, step: int) -> Work:
    """One iteration over parts of any sizes, as the engine cuts a batch into equal ones."""
    first, more = (road.artifact.entries[n].index for n in road.artifact.roles["accumulate"])
    apply = road.artifact.entries[road.artifact.roles["apply"]].index
    total, starts = sum(sizes), np.cumsum([0, *sizes[:-1], 0])
    starts[-1] = 0
    row = [rate if a.kind == "learning_rate" else float(total) for a in road.artifact.arguments]
    n = len(sizes) + 1
    return Work(
        entries=np.array([first, *[more] * (len(sizes) - 1), apply], np.int32), counts=np.array([*sizes, total]),
        firsts=starts, steps=np.full(n, step), starts=starts + total * step, rows=np.arange(5 * total),
        args=np.tile(row, (n, 1)), iterations=np.zeros(n, np.int64),
    )  # fmt: skip


@pytest.mark.parametrize("equal", [False, True], ids=["as_given", "engine_cut"])
@pytest.mark.parametrize("name", ACCUMULATION["cases"])
def test_accumulation(name: str, equal: bool) -> None:
    """Three parts of a batch, clipped by the norm of their sum: loss and norm of every step, parameters behind it. However the
    batch is cut the numbers are the same."""
    case, data = ACCUMULATION["cases"][name], ACCUMULATION["in"]
    settings = settings_of(case["settings"])
    road = Road(affine(), {"default": optimizer_spec("default", settings)}, accumulate=True)
    weight, bias = road.graph.parameters
    road.write({weight: data["W"], bias: data["b"]})
    x, y = (np.array(data[k], np.float32) for k in "XY")
    split = Split("train", {"x": Column(x.reshape(-1, 3)), "y": Column(y.reshape(-1, 2))})
    parts = case["settings"]["micro_batches"]
    maker = road.maker(AFFINE, split, x.shape[1], settings.learning_rate, len(parts))
    keys = keys_of(maker.calls)
    for step in range(len(x)):
        work = (
            maker.make(np.arange(len(split)), step, 1, step)
            if equal
            else cut(road, parts, settings.learning_rate, step)
        )
        found = by_iteration(keys, work, road.run(work, split), 1)
        loss, norm = (
            next(float(v[0]) for k, v in found.items() if part in k)
            for part in ("loss", "gradient_norm")
        )
        assert loss == pytest.approx(case["out"]["loss"][step], rel=1e-5)
        assert norm == pytest.approx(case["out"]["grad_norm"][step], rel=1e-5)
        np.testing.assert_allclose(road.read(weight), case["out"]["W"][step], rtol=2e-5, atol=2e-6)
        np.testing.assert_allclose(road.read(bias), case["out"]["b"][step], rtol=2e-5, atol=2e-6)
