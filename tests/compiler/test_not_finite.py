"""A loss or a gradient that is not finite: the step changes nothing, by any optimizer, in dense parameters and in tables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from null.executor import Batch
from null.world import draw, graph_of, recipe_of
from road import Road, same

from paddlecli.compiler.groups import OptimizerSpec
from paddlecli.compiler.optimizer import optimizer_op
from paddlecli.config.load import load_recipe
from paddlecli.config.registry import OPTIMIZERS
from paddlecli.engine.fit import Options, fit
from paddlecli.errors import NumericalError
from paddlecli.graph.ir import Graph

NETWORK = """
name: mixed
data:
  name: generated
  lengths: {words: [0, 4]}
  fields:
    - {name: x, shape: [3]}
    - {name: word, dtype: int64, classes: 9, axes: [words]}
    - {name: y, shape: [1], role: label}
model:
  inputs: {x: {shape: [3]}, word: {dtype: int64, below: 9, ragged: words}, y: {shape: [1], role: label}}
  layers:
    - {embedding: {size: 9, dim: 2, sparse: SPARSE}, from: word}
    - {sequence_pool: {kind: sum}, name: bag}
    - {fc: {size: 4}, from: [x, bag]}
    - {batch_norm: {activation: tanh}}
    - {dropout: {rate: 0.2}, name: h}
    - {fc: {size: 1}, from: [h, x], name: prediction}
  loss: {square_error_cost: {}, from: [prediction, y]}
optimizer: {name: sgd, learning_rate: 0.1}
"""
"""Dense parameters, a table, running statistics."""

CLIPS: tuple[Mapping[str, float], ...] = ({}, {"value": 0.1}, {"norm": 0.1}, {"global_norm": 0.1})


def graph(folder: Path, sparse: bool = True) -> Graph:
    return graph_of(recipe_of(NETWORK.replace("SPARSE", str(sparse).lower()), folder))


def specs() -> list[OptimizerSpec]:
    """Every optimizer in its variants, without clipping; two of them with every way to clip."""
    found = []
    for name in OPTIMIZERS.names():
        op = optimizer_op(name)
        clips = CLIPS if name in ("sgd", "adam") else CLIPS[:1]
        found += [
            OptimizerSpec("default", name, a, {"l2": 0.01}, clip)
            for a in op.variants()
            for clip in clips
        ]
    return found


def spoilt(batch: Batch, name: str, value: float) -> Batch:
    """The batch with one number of an input replaced."""
    array = np.array(batch.columns[name], np.float64)
    array.reshape(-1)[-1] = value
    return replace(batch, columns={**batch.columns, name: array})


@pytest.mark.parametrize(
    "spec", specs(), ids=lambda s: "-".join([s.op, *s.clip, *(f"{v:g}" for v in s.attrs.values())])
)
def test_a_bad_loss_changes_nothing(spec: OptimizerSpec, tmp_path: Path) -> None:
    """Parameters, tables, slots, update counts and running statistics stay; training goes on as if the step had not been."""
    whole = graph(tmp_path)
    hit, spared = Road(whole, {"default": spec}), Road(whole, {"default": spec})
    (entry,) = whole.roles["train"]
    good = [replace(draw(whole, 6, i), step=i) for i in range(3)]
    for road in (hit, spared):
        assert [road.step(entry, b).status for b in good[:2]] == ["done", "done"]
    before = hit.everything(but=["metric"])
    assert before["updates.default"] == 2 and any("batch_norm" in n for n in before)
    assert spec.op == "sgd" or any("@" in n for n in before)
    for number in (np.nan, np.inf):
        for name in ("x", "y"):
            bad = hit.step(entry, spoilt(good[2], name, number))
            assert bad.status == "halted" and bad.numbers["finite"] == 0
            same(before, hit.everything(but=["metric"]))
    assert hit.step(entry, good[2]).numbers == spared.step(entry, good[2]).numbers
    same(hit.everything(but=["metric"]), spared.everything(but=["metric"]))


HUGE = """
name: huge
data: {name: generated, fields: [{name: x, shape: [2]}, {name: i, dtype: int64, classes: 3}, {name: y, shape: [1], role: label}]}
model:
  inputs: {x: {shape: [2]}, i: {dtype: int64, below: 3}, y: {shape: [1], role: label}}
  layers:
    - {embedding: {size: 3, dim: 2, sparse: true}, from: i, name: e}
    - {fc: {size: 1}, from: [x, e], name: prediction}
  loss: {square_error_cost: {}, from: [prediction, y]}
optimizer: {name: sgd, learning_rate: 0.1}
"""


def huge(
    folder: Path, clip: Mapping[str, float], table: bool, accumulate: bool = False
) -> tuple[Road, Batch]:
    """A loss of 1e36 whose gradient, in a weight or in the table, is beyond float32."""
    text = HUGE.replace("sparse: true", "sparse: false") if accumulate else HUGE
    whole = graph_of(recipe_of(text, folder))
    attrs = optimizer_op("adam").variants()[0]
    spec = OptimizerSpec("default", "adam", attrs, {}, clip)
    road = Road(whole, {"default": spec}, accumulate=accumulate)
    big, small = 1e21, 5e-4
    road.write({n: np.zeros(road.places[n].shape) for n in whole.parameters})
    columns: dict[str, Any] = {"x": np.zeros((1, 2)), "i": np.array([1]), "y": np.zeros((1, 1))}
    weights = (
        {"prediction/w1": np.full((2, 1), big), "e/w": np.full((3, 2), small)}
        if table
        else {"prediction/w": np.full((2, 1), small)}
    )
    if not table:
        columns["x"] = np.full((1, 2), big)
    road.write(weights)
    return road, Batch(1, columns, dict.fromkeys(whole.arguments, 1.0))


@pytest.mark.parametrize("table", [False, True], ids=["dense", "table"])
@pytest.mark.parametrize("clip", CLIPS, ids=lambda clip: "-".join(clip) or "none")
def test_a_gradient_that_is_not_finite(
    clip: Mapping[str, float], table: bool, tmp_path: Path
) -> None:
    """The loss is finite; the step halts and changes nothing, whether its norm is taken for clipping or not."""
    road, batch = huge(tmp_path, clip, table)
    (entry,) = road.graph.roles["train"]
    before = road.everything(but=["metric"])
    step = road.step(entry, batch)
    assert np.isfinite(step.loss)
    if "global_norm" in clip:
        assert step.numbers["gradient_norm"] == np.inf
    assert step.status == "halted" and step.numbers["finite"] == 0
    same(before, road.everything(but=["metric"]))


def test_a_gradient_of_accumulated_parts(tmp_path: Path) -> None:
    """It is looked at when all parts are in."""
    road, batch = huge(tmp_path, {}, False, accumulate=True)
    first, _ = road.artifact.roles["accumulate"]
    assert road.step(first, batch).status == "done"
    before = road.everything(but=["metric"])
    assert road.step(road.artifact.roles["apply"], batch).status == "halted"
    same(before, road.everything(but=["metric"]))


def test_a_bad_part_of_an_accumulated_batch(tmp_path: Path) -> None:
    """The request ends with the part, so the update never comes; parameters, slots and counts stay."""
    whole = graph(tmp_path, sparse=False)
    spec = OptimizerSpec("default", "adam", optimizer_op("adam").variants()[0])
    road = Road(whole, {"default": spec}, accumulate=True)
    first, more = road.artifact.roles["accumulate"]
    before = road.everything(but=["metric", "state"])
    batch = draw(whole, 4, 1)
    assert road.step(first, batch).status == "done"
    assert road.step(more, spoilt(batch, "y", np.nan)).status == "halted"
    same(before, road.everything(but=["metric", "state"]))
    assert road.read("updates.default") == 0


def test_a_parameter_that_is_not_finite_is_never_saved(tmp_path: Path) -> None:
    """A rate beyond all measure takes parameters to infinity in a step whose own loss was finite: no checkpoint is made of them."""
    file = tmp_path / "wild.yaml"
    file.write_text(
        "name: wild\ndata: {name: uci_housing}\nmodel: {name: linear}\noptimizer: {name: sgd, learning_rate: 1.0e+38}\n"
        "train: {epochs: 1, batch_size: 20, shuffle: none}\ncheckpoint: {every_steps: 1}\n"
    )
    with pytest.raises(NumericalError, match=r"step 1: prediction/w is not finite"):
        fit(load_recipe(file), Options(run_dir=tmp_path / "run"))
    assert not list((tmp_path / "run" / "checkpoints").glob("step-*"))
    assert json.loads((tmp_path / "run" / "run.json").read_text())["exit_code"] == 6
