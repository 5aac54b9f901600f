"""What fine-tuning asks for: frozen layers, weighted and smoothed labels, a new head; each against numbers that numpy gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import own_files
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file

from paddlecli import predict
from paddlecli.config.load import load_recipe
from paddlecli.engine import balance
from paddlecli.engine.evaluate import evaluate
from paddlecli.engine.fit import Options, changes, fit
from paddlecli.engine.prepare import data_of, fields_of
from paddlecli.engine.rundir import RunDir
from paddlecli.errors import ConfigError, RunError
from paddlecli.models.build import build

from .linear_twin import LINEAR, NORMS, first_batch, head_after, recipe_of, softmax, started
from .tiny_runs import MLP, MakeRecipe, events

KEPT = {
    "mean": np.array([0.5, -0.25], np.float32),
    "variance": np.array([2.0, 0.5], np.float32),
}


def test_a_frozen_batch_norm_keeps_its_statistics_and_uses_them(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    whole = recipe_of(NORMS, tmp_path)
    before, _ = started(whole, tmp_path / "first")
    start: dict[str, NDArray[Any]] = {
        **before,
        "norm/mean": KEPT["mean"],
        "norm/variance": KEPT["variance"],
    }
    save_file({k: np.asarray(v) for k, v in start.items()}, tmp_path / "start.safetensors")
    init = f"train.init_from={tmp_path / 'start.safetensors'}"
    frozen = 'model.parameters={"norm/*": {"trainable": false}}'
    _, after = started(recipe_of(NORMS, tmp_path, init, frozen), tmp_path / "kept")
    for name, value in KEPT.items():
        np.testing.assert_array_equal(after[f"norm/{name}"], value)
    np.testing.assert_array_equal(after["norm/w"], before["norm/w"])
    x, y = first_batch()
    mean, variance = (KEPT[k].astype(np.float64).reshape(2, 1, 1) for k in ("mean", "variance"))
    rows = np.maximum((x - mean) / np.sqrt(variance + 1e-5), 0).reshape(16, -1)
    w, b, _ = head_after(start, rows, np.eye(3)[y])
    np.testing.assert_allclose(after["head/w"], w, atol=1e-6)
    np.testing.assert_allclose(after["head/b"], b, atol=1e-6)

    update = 'model.parameters={"norm/*": {"trainable": false, "batch_norm": "update"}}'
    _, moved = started(recipe_of(NORMS, tmp_path, init, update), tmp_path / "moved")
    np.testing.assert_array_equal(moved["norm/w"], before["norm/w"])
    of_batch = 0.9 * KEPT["mean"] + 0.1 * x.mean(axis=(0, 2, 3))
    np.testing.assert_allclose(moved["norm/mean"], of_batch, atol=1e-6)


def test_the_run_says_what_is_frozen(tmp_path: Path) -> None:
    frozen = 'model.parameters={"norm/*": {"trainable": false}}'
    started(recipe_of(NORMS, tmp_path, frozen), tmp_path / "run")
    log = (tmp_path / "run" / "log.txt").read_text()
    assert "57 of them train; frozen: norm (4 parameters)" in log


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"nrm/*": {"trainable": False}}, r"no parameter matches `nrm/\*`.*norm/\*"),
        ({"head/*": {"batch_norm": "update"}}, r"no batch norm is among the parameters of `head/\*`"),
    ],
    ids=["no parameter", "no batch norm"],
)  # fmt: skip
def test_patterns_that_match_nothing(parameters: Any, message: str, tmp_path: Path) -> None:
    recipe = recipe_of(NORMS, tmp_path, f"model.parameters={json.dumps(parameters)}")
    with pytest.raises(ConfigError, match="(?s)" + message):
        fit(recipe, Options(run_dir=tmp_path / "run"))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weights", [None, [0.5, 2.0, 1.25]], ids=["plain", "weighted"])
@pytest.mark.parametrize("loss", ["softmax_with_cross_entropy", "cross_entropy"])
def test_labels_are_smoothed_and_weighted_in_training_alone(
    smoothing: float, weights: list[float] | None, loss: str, tmp_path: Path
) -> None:
    """As torch has it: the sum over classes of weight * smoothed label * -log p; divided by the rows."""
    text = LINEAR
    if loss == "cross_entropy":
        text = text.replace(
            "softmax_with_cross_entropy: {}, from: [head, y]", "cross_entropy: {}, from: [p, y]"
        )
        text = text.replace("name: head}", "name: head}\n    - {softmax: {}, name: p}")  # fmt: skip
    asked = [f"train.label_smoothing={smoothing}"]
    asked += [] if weights is None else [f"train.class_weights={weights}"]
    recipe = recipe_of(text, tmp_path, *asked)
    before, after = started(recipe, tmp_path / "run")
    x, y = first_batch()
    target = (1 - smoothing) * np.eye(3)[y] + smoothing / 3
    w, b, value = head_after(before, x.reshape(16, -1), target * (weights or [1.0, 1.0, 1.0]))
    np.testing.assert_allclose(after["head/w"], w, atol=2e-6)
    np.testing.assert_allclose(after["head/b"], b, atol=2e-6)
    assert events(tmp_path / "run", "step")[0]["loss"] == pytest.approx(value, abs=2e-6)
    test = data_of(recipe)["test"].columns
    rows = test["x"].values.reshape(16, -1).astype(np.float64)
    p = softmax(rows @ after["head/w"].astype(np.float64) + after["head/b"].astype(np.float64))
    plain = -np.log(p[np.arange(16), test["y"].values[:, 0]]).mean()
    assert evaluate(RunDir(tmp_path / "run")).metrics["loss"] == pytest.approx(plain, abs=2e-6)


def test_balanced_weights_are_those_of_the_train_split(tmp_path: Path) -> None:
    recipe = recipe_of(LINEAR, tmp_path, "train.class_weights=balanced")
    counts = np.bincount(data_of(recipe)["train"].columns["y"].values[:, 0], minlength=3)
    found = balance.resolved(recipe).train.class_weights
    assert found == pytest.approx(48 / (3 * counts))
    fit(recipe, Options(run_dir=tmp_path / "run"))
    log = (tmp_path / "run" / "log.txt").read_text()
    assert f"class weights (train labels): 0 {16 / counts[0]:.4g} ({counts[0]})" in log
    again = load_recipe(tmp_path / "run" / "config.yaml")
    assert again.train.class_weights == found
    assert changes(RunDir(tmp_path / "run"), recipe) == []


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("train.class_weights=[0, 0, 0]", "every class weighs 0, there is nothing to learn from"),
        ("train.class_weights=[1, 2]", "train.class_weights has 2 numbers, there are 3 classes"),
        ("train.class_weights={a: 2}", "goes by names, and the data have none"),
        ("train.class_weights=even", r"train\.class_weights"),
        ("train.label_smoothing=1", r"train\.label_smoothing"),
        ("train.init_skip=[head/*]", "has a meaning with `init_from` only"),
    ],
)
def test_wishes_that_do_not_fit(override: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        fit(recipe_of(LINEAR, tmp_path, override), Options(run_dir=tmp_path / "run"))


def test_a_loss_that_takes_no_classes_refuses_them(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"train.label_smoothing: no loss of this network takes"):
        fit(load_recipe("fit_a_line", ["train.label_smoothing=0.1"]), Options(run_dir=tmp_path / "r"))  # fmt: skip


# -- a new head ---------------------------------------------------------------------------------------------------------------
def test_a_new_head(tiny: MakeRecipe, tmp_path: Path) -> None:
    """Arrays that are named keep their initial values; all others must fit."""
    source = fit(tiny("train.epochs=1"), Options(run_dir=tmp_path / "source")).run_dir
    other = tmp_path / "other.yaml"
    other.write_text(
        MLP.replace("classes: 4", "classes: 7")
        .replace("below: 4", "below: 7")
        .replace("size: 4", "size: 7")
    )
    init = f"train.init_from={source}"
    with pytest.raises(RunError, match=r"(?s)shape +logits/b +7 +4.*logits/w +16x7 +16x4") as found:
        fit(load_recipe(other, [init]), Options(run_dir=tmp_path / "bad"))
    assert "-o 'train.init_skip=[logits/*]'" in (found.value.hint or "")
    assert not (tmp_path / "bad").exists()
    steps = ["train.max_steps=1", "optimizer.learning_rate=1e-20"]
    recipe = load_recipe(other, [init, "train.init_skip=[logits/*]", *steps])
    before, after = started(recipe, tmp_path / "run")
    given = load_file(source / "model" / "model.safetensors")
    np.testing.assert_array_equal(after["fc1/w"], given["fc1/w"])
    np.testing.assert_array_equal(after["logits/w"], before["logits/w"])
    log = (tmp_path / "run" / "log.txt").read_text()
    assert "2 arrays; not loaded: logits/w, logits/b" in log
    known = json.loads((tmp_path / "run" / "run.json").read_text())["init_from"]
    assert known["initial"] == known["not_taken"] == ["logits/b", "logits/w"]


def test_a_head_of_the_same_shape_may_be_new_too(tiny: MakeRecipe, tmp_path: Path) -> None:
    source = fit(tiny("train.epochs=1"), Options(run_dir=tmp_path / "source")).run_dir
    recipe = tiny(f"train.init_from={source}", "train.init_skip=[logits/w]", "train.max_steps=1", "optimizer.learning_rate=1e-20")  # fmt: skip
    before, after = started(recipe, tmp_path / "run")
    given = load_file(source / "model" / "model.safetensors")
    np.testing.assert_array_equal(after["logits/w"], before["logits/w"])
    np.testing.assert_array_equal(after["logits/b"], given["logits/b"])


def test_a_skip_that_fits_nothing(tiny: MakeRecipe, tmp_path: Path) -> None:
    source = fit(tiny("train.epochs=1"), Options(run_dir=tmp_path / "source")).run_dir
    recipe = tiny(f"train.init_from={source}", "train.init_skip=[logit/*]")
    with pytest.raises(ConfigError, match=r"`logit/\*` fits no array") as found:
        fit(recipe, Options(run_dir=tmp_path / "run"))
    assert "logits/*" in (found.value.hint or "")


def test_a_skip_that_leaves_nothing(tiny: MakeRecipe, tmp_path: Path) -> None:
    source = fit(tiny("train.epochs=1"), Options(run_dir=tmp_path / "source")).run_dir
    recipe = tiny(f"train.init_from={source}", "train.init_skip=['*']")
    with pytest.raises(RunError, match="not one array is loaded") as found:
        fit(recipe, Options(run_dir=tmp_path / "run"))
    assert "init_from=null" in (found.value.hint or "")
    assert not (tmp_path / "run").exists()


def test_from_scratch_after_all(tiny: MakeRecipe, tmp_path: Path) -> None:
    """`init_from=null` takes a fine-tuning recipe's weights away, in what the run saved too."""
    recipe = tiny("train.init_skip=[logits/*]", "train.init_from=null", "train.max_steps=1")
    assert recipe.train.init_from is None
    run = fit(recipe, Options(run_dir=tmp_path / "run")).run_dir
    assert "starting from scratch" in (run / "log.txt").read_text()
    assert load_recipe(run / "config.yaml").train.init_skip == ()


# -- pictures that are mixed --------------------------------------------------------------------------------------------------
def test_mixed_labels_are_weighted_and_smoothed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shares of classes go the same way: one step on mixed pictures, against numpy."""
    monkeypatch.chdir(tmp_path)
    own_files.write(tmp_path)
    text = """
name: mixed
description: an output of a picture
data:
  name: image_folder
  train: pictures
  size: [4, 4]
  transforms: [{mixup: {alpha: 1.0}}, {normalise: {mean: [100, 120, 140], std: [50, 60, 70]}}]
model: {name: mlp, hidden: []}
optimizer: {name: sgd, learning_rate: 0.5}
train: {epochs: 1, batch_size: 30, max_steps: 1, shuffle: none, eval_split: train, log_every: 1,
        label_smoothing: 0.2, class_weights: {light: 3}}
"""
    recipe = recipe_of(text, tmp_path)
    before, after = started(recipe, tmp_path / "run")
    taken = data_of(recipe)["train"].take(np.arange(30), 0)
    mean, std = np.array([100, 120, 140]), np.array([50, 60, 70])
    x = (taken["image"].values - mean[:, None, None]) / std[:, None, None]
    shares = taken["mixed_label"].values.astype(np.float64)
    assert ((shares > 0.05) & (shares < 0.95)).any()
    target = (0.8 * shares + 0.1) * [1.0, 3.0]
    names = {"fc1/w": "head/w", "fc1/b": "head/b"}
    start = {names[k]: v for k, v in before.items()}
    w, b, value = head_after(start, x.reshape(30, -1), target)
    np.testing.assert_allclose(after["fc1/w"], w, atol=3e-6)
    np.testing.assert_allclose(after["fc1/b"], b, atol=3e-6)
    assert events(tmp_path / "run", "step")[0]["loss"] == pytest.approx(value, abs=3e-6)
    wrong = recipe_of(text.replace("light: 3", "lihgt: 3"), tmp_path)
    with pytest.raises(
        ConfigError, match=r"(?s)no class `lihgt`.*key: train.class_weights.*dark, light.*`light`"
    ):
        fit(wrong, Options(run_dir=tmp_path / "wrong"))


def test_the_shipped_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As docs/fine-tuning.md says, from weights for other classes: what is frozen keeps its bits, the head is new, and the
    model answers."""
    from safetensors.numpy import save_file

    monkeypatch.chdir(tmp_path)
    own_files.write(tmp_path)
    size = "data.transforms=[{random_resized_crop: {size: [32]}}, flip, {normalise: {mean: [124, 116, 104], std: [58, 57, 57]}}]"
    common = [size, "data.train=pictures", "train.epochs=3", "checkpoint.every_epochs=0"]
    graph_recipe = load_recipe(
        "own_data/finetune_pictures", [*common, "~train.init_from", "~train.init_skip"]
    )
    before = dict(build(graph_recipe, fields_of(graph_recipe)).starts(7))
    before |= {"fc/w": np.zeros((512, 1000), np.float32), "fc/b": np.zeros(1000, np.float32)}
    save_file(before, tmp_path / "resnet18.safetensors")
    recipe = load_recipe(
        "own_data/finetune_pictures", [*common, "train.init_from=./resnet18.safetensors"]
    )
    fit(recipe, Options(run_dir=tmp_path / "run"))
    folder = tmp_path / "run" / "checkpoints" / "step-00000003"
    saved = load_file(folder / "model.safetensors") | load_file(folder / "optimizer.safetensors")
    for name in ("conv1/w", "layer2/1/bn2/w", "layer2/1/bn2/mean"):
        np.testing.assert_array_equal(saved[name], before[name])
    assert saved["fc/w"].shape == (512, 2) and (saved["trained:fc/w"] != saved["fc/w"]).any()
    answers = [p.as_dict() for p in predict(tmp_path / "run" / "model", ["pictures"])]
    assert len(answers) == 30 and {a["label"] for a in answers} <= {"dark", "light"}
