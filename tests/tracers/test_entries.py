"""Which entry of a written network predicts and evaluates, and in which form."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from null.world import draw, graph_of, recipe_of
from road import Road

from paddlecli.compiler.optimizer import optimizers
from paddlecli.graph.ir import Graph, flat

TEXT = """
name: several
data: {name: generated, fields: [{name: x, shape: [5]}, {name: y, shape: [1], role: label}]}
model:
  inputs: {x: {shape: [5]}, y: {shape: [1], role: label}}
  layers:
    - {fc: {size: 4, activation: tanh}, from: x}
    - {batch_norm: {}}
    - {dropout: {rate: 0.5}, name: h}
  entries:
    learn:
      layers: [{fc: {size: 1}, from: h, name: out}]
      loss: {square_error_cost: {}, from: [out, y]}
      OUTPUTS
      update: {parameters: "*", optimizer: o}
    MORE
optimizer: {o: {name: sgd, learning_rate: 0.1}}
"""
OUTPUTS = "outputs: {out: out}"
WRITE = "write: {layers: [{fc: {size: 1}, from: h, name: out}], outputs: {out: out}}"
CHECK = """NAME:
      layers: [{fc: {size: 1}, from: h, name: out}]
      loss: {square_error_cost: {}, from: [out, y]}
      outputs: {out: out}"""


def written(folder: Path, outputs: str, more: str) -> Graph:
    return graph_of(recipe_of(TEXT.replace("OUTPUTS", outputs).replace("MORE", more), folder))


def kernels(graph: Graph) -> set[str]:
    return {n.kernel.full_name for n in flat(graph.entries[graph.roles["predict"]].items)}


@pytest.mark.parametrize("outputs, more", [(OUTPUTS, ""), (OUTPUTS, WRITE), ("", WRITE), (OUTPUTS, CHECK.replace("NAME", "check")),
                                           ("", CHECK.replace("NAME", "predict"))])  # fmt: skip
def test_predicts_outside_of_training(outputs: str, more: str, tmp_path: Path) -> None:
    """No mask, running statistics, no label; an entry that trains lends its layers only where nothing else gives outputs."""
    graph = written(tmp_path, outputs, more)
    chosen = graph.roles["predict"]
    assert chosen == (
        "write" if more == WRITE else "predict.predict" if "predict" in more else "predict"
    )
    assert graph.roles["train"] == ["learn"]
    assert graph.roles.get("evaluate") == {"c": "check", "p": "predict"}.get(more[:1])
    assert "batch_norm.inference" in kernels(graph) and "dropout.forward" not in kernels(graph)
    entry = graph.entries[chosen]
    assert not entry.training and entry.loss is None
    assert {t.name for n in flat(entry.items) for t in n.inputs if t.role == "input"} == {"x"}


def test_statistics_of_training_serve_prediction(tmp_path: Path) -> None:
    recipe = recipe_of(TEXT.replace("OUTPUTS", OUTPUTS).replace("MORE", ""), tmp_path)
    graph = graph_of(recipe)
    road = Road(graph, optimizers(recipe))
    batch = draw(graph, 8, 1)
    states = {n: road.read(n) for n in graph.states}
    first = road.step(graph.roles["predict"], batch, outputs=True).outputs["out"]
    road.step("learn", batch, rate=0.0)
    assert all(not np.array_equal(road.read(n), v) for n, v in states.items())
    second = road.step(graph.roles["predict"], batch, outputs=True).outputs["out"]
    assert not np.array_equal(first, second)
    third = road.step(graph.roles["predict"], batch, outputs=True).outputs["out"]
    np.testing.assert_array_equal(second, third)


def test_no_outputs_predict_nothing(tmp_path: Path) -> None:
    assert "predict" not in written(tmp_path, "", "").roles
