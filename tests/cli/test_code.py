"""`--code FILE.py`: a user's own layer, loss, network and data set, from training to prediction."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from .runs import recipe, run, strict

CODE = '''
"""A network, a layer and a loss, all of known ops."""

from paddlecli.config.registry import INITIALIZERS, LAYERS, LOSSES, METRICS, MODELS
from paddlecli.config.types import Count
from paddlecli.models import layers, losses


@INITIALIZERS.register("eighth")
def eighth(shape, stream, *, sign: int = 1):
    import numpy as np

    return np.full(shape, sign / 8, np.float32)


@LAYERS.register("gated")
def gated(net, x, *, size: Count):
    with net.layer("gated"):
        gate = layers.fc(net, x, size=size, activation="sigmoid")
        return net.apply("mul", layers.fc(net, x, size=size), gate)


@LOSSES.register("half_square")
def half_square(net, prediction, label):
    with net.layer("half_square"):
        values = net.apply("square_error_cost", prediction, label)
        return losses.finish(net, net.apply("scale", values, a=0.5, b=0.0), prediction, label)


@METRICS.register("near")
def near(net, scores, label):
    net.metric(net.called("near"), "accuracy", {"scores": scores, "label": label}, {"k": 2})


@MODELS.register("gates")
def gates(net, *, hidden: Count = 4):
    with net.naming("prediction"):
        y = layers.fc(net, gated(net, net.feature(), size=hidden), size=1)
    net.output("prediction", y)
    half_square(net, y, net.label())
'''
DATA = """
from paddlecli.config.registry import DATASETS

FIELDS = [{"name": "x", "shape": (3,)}, {"name": "y", "shape": (1,), "role": "label"}]


@DATASETS.register("mine")
def mine(*, rows: int = 64):
    from paddlecli.config.registry import DATASETS
    found = DATASETS.get("generated").function
    return found(**DATASETS.bind("generated", {"fields": FIELDS, "samples": rows, "test_samples": 16}))
"""
NAMED = """
name: own
data:
  name: generated
  samples: 64
  test_samples: 16
  fields:
    - {name: x, shape: [3]}
    - {name: y, shape: [1], role: label}
model: {name: gates, hidden: 5}
optimizer: {name: sgd, learning_rate: 0.05}
train: {epochs: 3, batch_size: 16}
"""
WRITTEN = """
  inputs:
    x: {shape: [3]}
    y: {shape: [1], role: label}
  layers:
    - gated: {size: 5}
    - fc: {size: 1, weight_init: {eighth: {sign: -1}}}
      name: prediction
  loss: {half_square: {}, from: [prediction, y]}
  outputs: {prediction: prediction}
"""
RECIPES = {
    "named": NAMED,
    "written": NAMED.replace("model: {name: gates, hidden: 5}", f"model:{WRITTEN.rstrip()}"),
}


@pytest.fixture
def code(tmp_path: Path) -> str:
    """The user's file."""
    (tmp_path / "own.py").write_text(CODE)
    return "own.py"


@pytest.mark.parametrize("kind", list(RECIPES))
def test_the_stored_network_needs_no_code(tmp_path: Path, code: str, kind: str) -> None:
    name = recipe(tmp_path, RECIPES[kind])
    done = run(tmp_path, "train", name, "--code", code, "--run-dir", "out", "--json", "-q")
    trained = strict(done.stdout)["metrics"]["test"]
    facts = json.loads((tmp_path / "out" / "run.json").read_text())
    sha256 = hashlib.sha256(CODE.encode()).hexdigest()
    assert facts["code"] == [{"path": str(tmp_path / "own.py"), "sha256": sha256}]
    (tmp_path / "own.py").unlink()
    found = strict(run(tmp_path, "evaluate", "out", "--json", "-q").stdout)
    assert found["metrics"] == trained
    answers = run(tmp_path, "predict", "out", "--field", "x=[1,2,3]", "--json", "-q").stdout
    assert isinstance(strict(answers)["prediction"], float)


def test_resume_without_the_network_s_code(tmp_path: Path, code: str) -> None:
    name = recipe(tmp_path, RECIPES["written"])
    run(tmp_path, "train", name, "--code", code, "--run-dir", "whole", "-q", "--epochs", "4")
    run(tmp_path, "train", name, "--code", code, "--run-dir", "parts", "-q", "--epochs", "2")
    config = (tmp_path / "parts" / "config.yaml").read_text()
    run(tmp_path, "train", "--resume", "parts", "-o", "train.epochs=4", "-q")
    for file in ("metrics.jsonl", "model/model.safetensors", "config.yaml"):
        assert (tmp_path / "whole" / file).read_bytes() == (tmp_path / "parts" / file).read_bytes()
    assert config != (tmp_path / "parts" / "config.yaml").read_text()
    assert json.loads((tmp_path / "parts" / "run.json").read_text())["code"], "the record stays"


def test_before_step_1_the_recipe_is_all_there_is(tmp_path: Path, code: str) -> None:
    run(tmp_path, "train", recipe(tmp_path, NAMED), "--code", code, "--run-dir", "out", "-q")
    for path in (tmp_path / "out" / "model").iterdir():
        path.unlink()
    message = run(tmp_path, "train", "--resume", "out", code=3).stderr
    assert "unknown model `gates`" in message
    assert f"--code {tmp_path / 'own.py'}" in message


@pytest.mark.parametrize("command", ["evaluate", "resume"])
def test_own_data_are_asked_for(tmp_path: Path, code: str, command: str) -> None:
    (tmp_path / "data.py").write_text(DATA)
    text = (
        NAMED[: NAMED.index("data:")]
        + "data: {name: mine, rows: 48}\n"
        + NAMED[NAMED.index("model:") :]
    )
    both = ("--code", code, "--code", "data.py")
    run(tmp_path, "train", recipe(tmp_path, text), *both, "--run-dir", "out", "-q")
    arguments = (
        ("evaluate", "out")
        if command == "evaluate"
        else ("train", "--resume", "out", "--epochs", "4")
    )
    message = run(tmp_path, *arguments, code=3).stderr
    assert "unknown data set `mine`" in message
    assert f"--code {tmp_path / 'own.py'} --code {tmp_path / 'data.py'}" in message
    (tmp_path / "data.py").write_text(DATA + "\n")
    again = run(tmp_path, *arguments, "--code", "data.py")
    assert "data.py has changed since the run was started" in again.stderr
    assert run(tmp_path, "predict", "out", "--field", "x=[1,2,3]", "-q").stdout


def test_an_own_metric_is_in_the_stored_network(tmp_path: Path, code: str) -> None:
    from .runs import DIGITS

    name = recipe(tmp_path, DIGITS.replace("metrics: [accuracy]", "metrics: [near]"))
    trained = strict(
        run(tmp_path, "train", name, "--code", code, "--run-dir", "out", "--json", "-q").stdout
    )
    found = strict(run(tmp_path, "evaluate", "out", "--json", "-q").stdout)
    assert found["metrics"]["near"] == trained["metrics"]["test"]["near"] > 0.3


def test_other_commands(tmp_path: Path, code: str) -> None:
    name = recipe(tmp_path, RECIPES["written"])
    assert "gated" in run(tmp_path, "plan", name, "--code", code).stdout
    assert (
        strict(run(tmp_path, "bench", name, "--code", code, "--steps", "5", "--json").stdout)[
            "steps"
        ]
        == 5
    )
    assert "valid" in run(tmp_path, "recipe", "validate", name, "--code", code).stdout
    assert run(tmp_path, "train", name, "--code", code, "--dry-run", "--json").stdout
    assert "unknown layer `gated`" in run(tmp_path, "train", name, code=3).stderr


def test_a_mistake_in_an_own_layer_is_the_users(tmp_path: Path, code: str) -> None:
    (tmp_path / "own.py").write_text(CODE.replace('net.apply("mul"', 'net.aply("mul"'))
    message = run(
        tmp_path, "train", recipe(tmp_path, NAMED), "--code", code, code=3, users=True
    ).stderr
    assert "AttributeError" in message and "in gated" in message
    assert message.count("File ") == 2, "only the user's lines"
    assert not (tmp_path / "runs").exists()


def test_a_shipped_name_cannot_be_taken(tmp_path: Path, code: str) -> None:
    (tmp_path / "own.py").write_text(CODE.replace('"gated"', '"relu"'))
    message = run(
        tmp_path, "train", recipe(tmp_path, NAMED), "--code", code, code=3, users=True
    ).stderr
    assert "the layer `relu` is registered twice" in message
