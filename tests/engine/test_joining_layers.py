"""Layers that train from an epoch on: frozen until then to the bit, counted apart from then on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file

from paddlecli.engine.fit import Options, fit, resume
from paddlecli.engine.prepare import data_of
from paddlecli.engine.rundir import RunDir
from paddlecli.errors import ConfigError

from .linear_twin import LINEAR, NORMS, recipe_of, softmax, started
from .test_training import StopAt
from .tiny_runs import MakeRecipe, events, same_results

LATER = (
    'model.parameters={"fc1/*": {"trainable_from": 3}}',
    "checkpoint.keep_last=9",
    "train.ema={decay: 0.9, warmup: false}",
)


def trained_weights(run: Path, step: int) -> NDArray[Any]:
    folder = run / "checkpoints" / f"step-{step:08d}"
    return load_file(folder / "optimizer.safetensors")["trained:fc1/w"]


def test_layers_that_train_from_an_epoch_on(tiny: MakeRecipe, tmp_path: Path) -> None:
    """Until then they are as frozen ones are, to the bit; from then on they move."""
    run = fit(tiny(*LATER), Options(run_dir=tmp_path / "run")).run_dir
    fixed = fit(
        tiny('model.parameters={"fc1/*": {"trainable": false}}', *LATER[1:], "train.epochs=2"),
        Options(run_dir=tmp_path / "fixed"),
    ).run_dir
    model = f"checkpoints/step-{20:08d}/model.safetensors"
    one, other = load_file(run / model), load_file(fixed / model)
    for name, value in other.items():
        np.testing.assert_array_equal(one[name], value, name)
    assert np.array_equal(trained_weights(run, 10), trained_weights(run, 20))
    assert not np.array_equal(trained_weights(run, 20), trained_weights(run, 30))
    log = (run / "log.txt").read_text()
    assert "68 of them train; frozen: fc1 (112 parameters); from epoch 3 on all train" in log
    assert [e["epoch"] for e in events(run, "epoch")] == [1, 2, 3, 4]
    log = (fixed / "log.txt").read_text()
    assert "from epoch" not in log
    short = fit(tiny(LATER[0], "train.epochs=2"), Options(run_dir=tmp_path / "short")).run_dir
    assert "what trains from epoch 3 on stays frozen" in (short / "log.txt").read_text()


@pytest.mark.parametrize("stop", [17, 20, 24])
def test_killed_before_and_behind_that_epoch(stop: int, tiny: MakeRecipe, tmp_path: Path) -> None:
    fit(tiny(*LATER), Options(run_dir=tmp_path / "whole"))
    fit(tiny(*LATER), Options(run_dir=tmp_path / "cut", streamed=True), StopAt(stop))
    resume(RunDir(tmp_path / "cut"))
    same_results(tmp_path / "whole", tmp_path / "cut")


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (['model.parameters={"*": {"trainable_from": 2}}'], "every parameter is frozen in epoch 1"),
        ([LATER[0], "train.accumulate=2"], "train.accumulate works with one training step"),
        (['model.parameters={"*": {"trainable_from": 2, "trainable": false}}'], "both say when"),
    ],
)  # fmt: skip
def test_wishes_for_later_that_do_not_fit(
    overrides: list[str], message: str, tiny: MakeRecipe, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=message):
        fit(tiny(*overrides), Options(run_dir=tmp_path / "run"))


def test_a_batch_norm_is_kept_until_its_layer_trains(tmp_path: Path) -> None:
    later = 'model.parameters={"norm/*": {"trainable_from": 2}}'
    recipe = recipe_of(
        NORMS, tmp_path, later, "train.epochs=2", "train.max_steps=6", "checkpoint.keep_last=9"
    )
    fit(recipe, Options(run_dir=tmp_path / "run"))
    first, second = (
        load_file(tmp_path / "run" / "checkpoints" / f"step-{step:08d}" / "model.safetensors")
        for step in (3, 6)
    )
    np.testing.assert_array_equal(first["norm/mean"], 0)
    assert (second["norm/mean"] != 0).all() and (second["norm/w"] != first["norm/w"]).all()


@pytest.mark.parametrize("clip", [{}, {"global_norm": 0.05}, {"norm": 0.05}], ids=str)
def test_moments_of_what_joins_later_begin_anew(clip: Any, tmp_path: Path) -> None:
    """Adam corrects each parameter's moments by its own updates: six steps, the bias from the fourth on, against numpy."""
    text = LINEAR.replace(
        "{name: sgd, learning_rate: 0.5}",
        f"{{name: adam, learning_rate: 0.05, clip: {json.dumps(clip)}}}" if clip else "{name: adam, learning_rate: 0.05}",
    )  # fmt: skip
    later = 'model.parameters={"head/b": {"trainable_from": 2}}'
    recipe = recipe_of(
        text,
        tmp_path,
        later,
        "train.epochs=2",
        "train.max_steps=6",
        "train.ema={decay: 0.5, warmup: false}",
    )
    before, after = started(recipe, tmp_path / "run")
    data = data_of(recipe)["train"].columns
    p = {k: before[f"head/{k}"].astype(np.float64) for k in ("w", "b")}
    average = dict(p)
    moments = {k: (np.zeros_like(v), np.zeros_like(v)) for k, v in p.items()}
    for step in range(6):
        part = slice(16 * (step % 3), 16 * (step % 3 + 1))
        x = data["x"].values[part].reshape(16, -1).astype(np.float64)
        dz = (softmax(x @ p["w"] + p["b"]) - np.eye(3)[data["y"].values[part, 0]]) / 16
        found = {"w": x.T @ dz, "b": dz.sum(axis=0)}
        found = found if step >= 3 else {"w": found["w"]}
        norm = np.sqrt(sum((g**2).sum() for g in found.values()))
        for k, g in found.items():
            if clip:
                own = norm if "global_norm" in clip else np.sqrt((g**2).sum())
                g = g * min(1.0, 0.05 / own)
            m, v = (0.9 * moments[k][0] + 0.1 * g, 0.999 * moments[k][1] + 0.001 * g * g)
            moments[k] = (m, v)
            t = step + 1 if k == "w" else step - 2
            root = np.sqrt(1 - 0.999**t)
            p[k] = p[k] - 0.05 * root / (1 - 0.9**t) * m / (np.sqrt(v) + 1e-8 * root)
        average = {k: 0.5 * average[k] + 0.5 * p[k] for k in p}
    for k, value in average.items():
        np.testing.assert_allclose(after[f"head/{k}"], value, atol=1e-6)
    assert np.abs(p["b"]).max() > 0.05
