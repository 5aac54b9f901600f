"""An entry that stands several times in `train.loop`: other random numbers each time, and the mean of its losses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from null.world import recipe_of
from road import Road

from paddlecli.compiler.optimizer import optimizers
from paddlecli.data.opening import open_dataset
from paddlecli.engine.averages import by_iteration, keys_of
from paddlecli.engine.requests import TURN, Maker, iteration
from paddlecli.models.build import build

NOISE = """
name: noise
data: {name: synthetic/regression, features: 2, samples: 12}
model:
  inputs:
    x: {shape: [2]}
  entries:
    guess:
      layers:
        - {random_uniform: {shape: [3]}, from: x, name: noise}
        - {fc: {size: 1}}
        - {full_like: {value: 1}, name: target, from: noise}
        - {fc: {size: 1}, from: noise, name: score}
        - {full_like: {value: 1}, name: one, from: score}
      loss: {square_error_cost: {}, from: [score, one]}
      update: {parameters: "*", optimizer: default}
optimizer: {default: {name: sgd, learning_rate: 1.0e-30}}
"""


def test_each_turn_draws_its_own(tmp_path: Path) -> None:
    recipe = recipe_of(NOISE, tmp_path)
    data = open_dataset("synthetic/regression", {"features": 2, "samples": 12})
    road = Road(build(recipe, data.spec), optimizers(recipe))
    found = {}
    for turns in (1, 3):
        calls = iteration(road.artifact, ["guess"] * turns, 1)
        maker = Maker(road.artifact, calls, data.spec, data["train"], 4, lambda first, count: {"default": np.full(count, 1e-30)})  # fmt: skip
        work = maker.make(np.arange(12), 0, 3, 5)
        results = road.run(work, data["train"])
        losses = results[:, 0].reshape(3, turns)
        told = by_iteration(keys_of(calls), work, results, 3)["loss"]
        assert told.tolist() == [sum(row) / turns for row in losses.tolist()]
        assert (work.steps.reshape(3, turns)[:, 0] == [5, 6, 7]).all()
        assert (np.diff(work.steps.reshape(3, turns)) == TURN).all()
        found[turns] = losses
    assert (found[3][:, 0] == found[1][:, 0]).all()
    assert len(set(found[3].ravel().tolist())) == 9


def test_parts_of_a_batch_are_added(tmp_path: Path) -> None:
    """Unlike turns: two parts have the numbers of the whole batch."""
    text = "data: {name: synthetic/regression, features: 2}\nmodel: {name: linear}\noptimizer: {name: sgd, learning_rate: 0.1}\n"
    recipe = recipe_of(text, tmp_path)
    data = open_dataset("synthetic/regression", {"features": 2})
    road = Road(build(recipe, data.spec), optimizers(recipe), accumulate=True)
    told = []
    for parts in (2, 4):
        calls = iteration(road.artifact, (), parts)
        maker = Maker(road.artifact, calls, data.spec, data["train"], 8, lambda first, count: {"default": np.zeros(count)})  # fmt: skip
        work = maker.make(np.arange(16), 0, 2, 0)
        assert (work.steps < TURN).all()
        told.append(by_iteration(keys_of(calls), work, road.run(work, data["train"]), 2)["loss"])
    np.testing.assert_allclose(told[0], told[1], rtol=1e-6)
