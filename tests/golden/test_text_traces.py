"""Whole trainings of the book's nets on text by other frameworks: loss of every step, and the parameters behind it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from null.world import recipe_of
from road import Road
from test_traces import ids, pattern

from paddlecli.compiler.optimizer import optimizers
from paddlecli.data.columns import Column, Split
from paddlecli.data.spec import DatasetSpec, FieldSpec
from paddlecli.engine.averages import by_iteration, keys_of
from paddlecli.models.build import build
from paddlecli.ops import get

TRACES = json.loads((Path(__file__).parent / "text_traces.json").read_text())
Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Case:
    """A network as a recipe, its data by step, and the learning rates."""

    recipe: str
    fields: tuple[FieldSpec, ...]
    columns: Callable[[int], dict[str, Column]]


def field(name: str, role: Any, classes: int, *shape: int, axis: str = "") -> FieldSpec:
    return FieldSpec(name, role, shape, "int64", (axis,) if axis else (), classes)


def offsets(lengths: list[int]) -> Array:
    return np.cumsum([0, *lengths]).astype(np.int64)


def sentiment() -> Case:
    recipe = "model: {name: sentiment_conv, dim: 8, filters: 8}\noptimizer: {name: adagrad, learning_rate: 0.02}\nmetrics: [accuracy]\n"
    fields = (field("words", "input", 30, axis="words"), field("label", "label", 2))
    edges = offsets([4, 1, 6])

    def columns(t: int) -> dict[str, Column]:
        return {"words": Column(ids(11, 30, t), (edges,)), "label": Column(np.array([0, 1, 1]))}

    return Case(recipe, fields, columns)


SRL = """
model:
  name: db_lstm
  word_dim: 4
  mark_dim: 2
  hidden: 12
  depth: 4
  parameters:
    emb: {trainable: false}
    crfw: {learning_rate_factor: 0.5}
optimizer: {name: sgd, learning_rate: 0.05}
"""
NEAR = ("word", "ctx_n2", "ctx_n1", "ctx_0", "ctx_p1", "ctx_p2")


def roles() -> Case:
    names = [(n, 11) for n in NEAR] + [("verb", 5), ("mark", 2)]
    fields = (
        *(field(n, "input", size, axis="words") for n, size in names),
        field("label", "label", 4, axis="words"),
    )
    lengths = [4, 1, 3]
    edges, n = offsets(lengths), 8

    def columns(t: int) -> dict[str, Column]:
        values = {name: ids(n, 11, t + j) for j, name in enumerate(NEAR)}
        values["verb"] = np.repeat(ids(3, 5, t), lengths)
        values["mark"], values["label"] = ids(n, 2, t), ids(n, 4, t + 1)
        return {name: Column(v, (edges,)) for name, v in values.items()}

    return Case(SRL, fields, columns)


def skip_gram() -> Case:
    recipe = "model: {name: skipgram, dim: 4}\noptimizer: {name: sgd, learning_rate: 0.5}\n"
    fields = (
        field("centre", "input", 12, 1),
        field("negatives", "input", 12, 3),
        field("neighbours", "label", 12, 1),
    )

    def columns(t: int) -> dict[str, Column]:
        return {
            "centre": Column(ids(8, 12, t)[:, None]),
            "negatives": Column(ids(24, 12, t + 7).reshape(8, 3)),
            "neighbours": Column(ids(8, 12, t + 4)[:, None]),
        }

    return Case(recipe, fields, columns)


def bag_of_words() -> Case:
    recipe = (
        "model: {name: cbow, dim: 5}\n"
        "optimizer: {name: adagrad, learning_rate: 0.1, epsilon: 1.0e-6, regularizer: {l2: 8.0e-4}}\n"
    )
    fields = (field("context", "input", 11, 4), field("next", "label", 11))

    def columns(t: int) -> dict[str, Column]:
        context = np.stack([ids(6, 11, t + j) for j in range(4)], axis=1)
        return {"context": Column(context), "next": Column(ids(6, 11, t + 9))}

    return Case(recipe, fields, columns)


def translation() -> Case:
    recipe = (
        "model: {name: translation_plain, dim: 3, hidden: 4}\n"
        "optimizer: {name: adagrad, learning_rate: 0.05, regularizer: {l2: 0.1}}\n"
    )
    fields = (
        field("source", "input", 13, axis="source"),
        field("target", "input", 11, axis="target"),
        field("next", "label", 11, axis="target"),
    )
    read, written = offsets([5, 1, 3, 2]), offsets([2, 4, 1, 3])

    def columns(t: int) -> dict[str, Column]:
        u = t % 2
        return {
            "source": Column(ids(11, 13, u), (read,)),
            "target": Column(ids(10, 11, u + 2), (written,)),
            "next": Column(ids(10, 11, u + 5), (written,)),
        }

    return Case(recipe, fields, columns)


CASES: dict[str, Callable[[], Case]] = {
    "sentiment_conv": sentiment,
    "db_lstm_crf": roles,
    "skip_gram_negative_sampling": skip_gram,
    "cbow": bag_of_words,
    "translation_plain": translation,
}


def set_weights(road: Road, wanted: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Weights by the rule in the order of creation, all others 0; gives what each was set by."""
    rest, used = list(wanted), {}
    for name in road.graph.parameters:
        shape = road.places[name].shape
        road.write({name: np.zeros(shape)})
        if not rest or int(np.prod(rest[0]["shape"])) != int(np.prod(shape)):
            continue
        weight = rest.pop(0)
        road.write({name: pattern(tuple(shape), weight["k"], weight["amp"])})
        used[name] = weight
    assert not rest, f"no parameter for {rest[0]}"
    return used


@pytest.mark.parametrize("name", CASES)
def test_trace(name: str, tmp_path: Path) -> None:
    golden, case = TRACES[name], CASES[name]()
    losses = golden["loss_before_step"]
    rates = golden.get("lr") or [golden.get("learning_rate", 0.02)] * len(losses)
    recipe = recipe_of(f"name: trace\n{case.recipe}", tmp_path)
    spec = DatasetSpec("trace", "", case.fields, {})
    road = Road(build(recipe, spec), optimizers(recipe))
    used = set_weights(road, golden["weights_in_creation_order"])
    for step, (loss, rate) in enumerate(zip(losses, rates, strict=True)):
        split = Split("train", case.columns(step))
        accuracy = counted(road)
        maker = road.maker(spec, split, len(split), rate)
        work = maker.make(np.arange(len(split)), 0, 1, step)
        found = by_iteration(keys_of(maker.calls), work, road.run(work, split), 1)
        assert found["loss"][0] == pytest.approx(loss, rel=2e-5), step
        if "also_fetched" in golden:
            assert accuracy() == pytest.approx(golden["also_fetched"][step][0], abs=1e-6)
    finals = list(golden["final"])
    for parameter, weight in used.items():
        wanted = weight.get("name")
        final = next(
            f
            for f in finals
            if wanted == f["name"] or (not wanted and f["shape"] == weight["shape"])
        )
        finals.remove(final)
        compare(parameter, road.read(parameter).astype(np.float64), final)


def counted(road: Road) -> Callable[[], float]:
    """Sets the accuracy's counts to 0; the result tells what has been counted since."""
    entry = road.artifact.entries[road.graph.roles["train"][0]]
    if "accuracy" not in entry.metrics:
        return lambda: float("nan")
    metric = entry.metrics["accuracy"]
    road.write({metric.state: np.zeros(road.places[metric.state].shape)})

    def report() -> float:
        state = road.read(metric.state).tolist()
        found: float = get(metric.op).report("accuracy", state, metric.attrs, metric.values)[
            "accuracy"
        ]
        return found

    return report


def compare(name: str, value: Array, final: dict[str, Any]) -> None:
    """Sum and magnitude of a parameter behind the last step."""
    magnitude = max(1.0, float(np.abs(value).sum()))
    assert value.sum() == pytest.approx(final["sum"], abs=1e-5 * magnitude), name
    if "abs" in final:
        assert np.abs(value).sum() == pytest.approx(final["abs"], abs=1e-5 * magnitude), name
    else:
        assert (value**2).sum() == pytest.approx(final["sumsq"], rel=1e-4), name
