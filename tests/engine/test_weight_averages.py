"""Averages of the weights: what they are, where they are saved, and that a run that is continued goes on with both."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from paddlecli.config.load import load_recipe
from paddlecli.engine.evaluate import evaluate
from paddlecli.engine.fit import Options, fit, resume
from paddlecli.engine.prepare import data_of
from paddlecli.engine.rundir import RunDir

from .linear_twin import LINEAR, head_after, recipe_of, started
from .test_training import StopAt
from .tiny_runs import MakeRecipe, events, same_results


@pytest.mark.parametrize("warmup", [True, False])
def test_averages_are_what_is_evaluated_and_saved(warmup: bool, tmp_path: Path) -> None:
    """Five steps of one batch each, against the same training in numpy."""
    ema = f"train.ema={{decay: 0.5, warmup: {str(warmup).lower()}}}"
    recipe = recipe_of(LINEAR, tmp_path, ema, "train.max_steps=5", "train.epochs=3")
    before, after = started(recipe, tmp_path / "run")
    data = data_of(recipe)["train"].columns
    w, b = before["head/w"].astype(np.float64), before["head/b"].astype(np.float64)
    average = w.copy()
    for step in range(5):
        part = slice(16 * (step % 3), 16 * (step % 3 + 1))
        x = data["x"].values[part].reshape(16, -1).astype(np.float64)
        target = np.eye(3)[data["y"].values[part, 0]]
        w, b, _ = head_after({"head/w": w, "head/b": b}, x, target)
        decay = min(0.5, (2 + step) / (11 + step)) if warmup else 0.5
        average = decay * average + (1 - decay) * w
    np.testing.assert_allclose(after["head/w"], average, atol=2e-6)
    folder = tmp_path / "run" / "checkpoints" / "step-00000005"
    rest = load_file(folder / "optimizer.safetensors")
    np.testing.assert_allclose(rest["trained:head/w"], w, atol=2e-6)
    told = events(tmp_path / "run", "evaluation")[-1]["loss"]
    assert evaluate(RunDir(tmp_path / "run")).metrics["loss"] == told
    assert "averages of the weights (decay 0.5)" in (tmp_path / "run" / "log.txt").read_text()


EVERYTHING = (
    "train.ema={decay: 0.9}",
    "train.label_smoothing=0.1",
    "train.class_weights=balanced",
    'model.parameters={"fc1/*": {"trainable": false}}',
)


@pytest.mark.parametrize("stop", [4, 17])
def test_killed_and_resumed(stop: int, tiny: MakeRecipe, tmp_path: Path) -> None:
    whole = fit(tiny(*EVERYTHING), Options(run_dir=tmp_path / "whole"))
    assert whole.status == "completed"
    fit(tiny(*EVERYTHING), Options(run_dir=tmp_path / "cut"), StopAt(stop))
    resume(RunDir(tmp_path / "cut"))
    same_results(tmp_path / "whole", tmp_path / "cut")


def test_averages_of_batches_that_are_cut(tiny: MakeRecipe, tmp_path: Path) -> None:
    ema = "train.ema={decay: 0.9}"
    one = fit(tiny(ema), Options(run_dir=tmp_path / "one"))
    parts = fit(tiny(ema, "train.accumulate=4"), Options(run_dir=tmp_path / "parts"))
    a, b = (load_file(r.run_dir / "model" / "model.safetensors") for r in (one, parts))
    for name in a:
        np.testing.assert_allclose(a[name], b[name], atol=1e-5)


def test_averages_of_several_networks(tmp_path: Path) -> None:
    """Each optimizer's parameters have theirs, and a run that is continued has the same bits."""
    path = Path(__file__).parents[1] / "tracers" / "two_networks.yaml"
    recipe = load_recipe(path, ["train.ema={decay: 0.9}", "train.epochs=2"])
    run = fit(recipe, Options(run_dir=tmp_path / "whole")).run_dir
    saved = load_file(sorted((run / "checkpoints").glob("step-*"))[-1] / "optimizer.safetensors")
    model = load_file(run / "model" / "model.safetensors")
    trained = {n.removeprefix("trained:") for n in saved if n.startswith("trained:")}
    assert trained == {n for n in model if f"trained:{n}" in saved} and len(trained) > 2
    assert all((saved[f"trained:{n}"] != model[n]).any() for n in trained)
    fit(recipe, Options(run_dir=tmp_path / "cut"), StopAt(3))
    resume(RunDir(tmp_path / "cut"))
    same_results(run, tmp_path / "cut")


def test_averages_of_a_row_sparse_table(tmp_path: Path) -> None:
    """Rows that no batch touches keep their initial values, and so do their averages."""
    text = """
name: table
description: rows of a table
data:
  name: generated
  samples: 20
  test_samples: 4
  fields: [{name: x, shape: [1], dtype: int64, classes: 200}, {name: y, shape: [1], dtype: int64, classes: 3, role: label}]
model:
  inputs: {x: {shape: [1], dtype: int64, below: 200}, y: {shape: [1], dtype: int64, below: 3, role: label}}
  layers: [{embedding: {size: 200, dim: 3, sparse: true}, name: rows}]
  loss: {softmax_with_cross_entropy: {}, from: [rows, y]}
optimizer: {name: sgd, learning_rate: 0.5}
train: {epochs: 1, batch_size: 20, ema: {decay: 0.75, warmup: false}}
"""
    recipe = recipe_of(text, tmp_path)
    before, after = started(recipe, tmp_path / "run")
    trained = load_file(
        tmp_path / "run" / "checkpoints" / "step-00000001" / "optimizer.safetensors"
    )
    name = next(n for n in before if n.startswith("rows"))
    moved = trained[f"trained:{name}"]
    assert 0 < (moved != before[name]).any(axis=1).sum() <= 20
    np.testing.assert_allclose(after[name], before[name] + 0.25 * (moved - before[name]), atol=1e-7)
