"""The command `plan`: every stage can be printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .runs import call, recipe, strict


@pytest.mark.parametrize("stage", ["graph", "gradients", "fused", "memory"])
@pytest.mark.parametrize("name", ["fit_a_line", "recognize_digits"])
def test_stages(tmp_path: Path, stage: str, name: str) -> None:
    text = call(tmp_path, "plan", name, "--stage", stage).stdout
    assert text.strip()
    found = strict(call(tmp_path, "plan", name, "--stage", stage, "--json").stdout)
    assert (found["schema"], found["recipe"], found["stage"], found["text"]) == (
        1,
        name,
        stage,
        text,
    )


def test_stages_show_what_they_are_for(tmp_path: Path) -> None:
    name = recipe(tmp_path)
    texts = {
        s: call(tmp_path, "plan", name, "--stage", s).stdout
        for s in ("graph", "gradients", "fused", "memory")
    }
    assert ".backward" not in texts["graph"] and ".backward" in texts["gradients"]
    assert ".update" in texts["fused"]
    assert " without sharing" in texts["memory"]


def test_without_data(tmp_path: Path) -> None:
    """The inputs that a network declares are enough."""
    text = (tmp_path / recipe(tmp_path)).read_text()
    start, end = text.index("data:"), text.index("model:")
    assert call(tmp_path, "plan", recipe(tmp_path, text[:start] + text[end:])).stdout


def test_unknown_stage(tmp_path: Path) -> None:
    assert (
        "graph, gradients, fused, memory"
        in call(tmp_path, "plan", "fit_a_line", "--stage", "x", code=2).stderr
    )


def test_parts_of_a_batch(tmp_path: Path) -> None:
    """What `train` runs is what is printed: the pieces, in the place of the step that is cut."""
    name, parts = recipe(tmp_path), ("-o", "train.accumulate=4")
    fused = call(tmp_path, "plan", name, "--stage", "fused", *parts).stdout
    found = re.findall(r"^entry (\S+?)(?: \(training\))?:$", fused, re.MULTILINE)
    pieces = [f"train_step.{piece}" for piece in ("first", "more", "apply")]
    assert found == [*pieces, "eval_step", "predict"]
    told = call(tmp_path, "train", name, *parts, "--run-dir", "out", "-v").stderr
    assert f"entries {', '.join(found)}\n" in told


def test_parts_that_cannot_be(tmp_path: Path) -> None:
    for command in (("plan",), ("train", "--run-dir", "out")):
        message = call(
            tmp_path, *command, "bench/word2vec", "-o", "train.accumulate=2", code=3
        ).stderr
        assert "train.accumulate needs dense gradients" in message


SQUARES = """
name: squares
data:
  name: generated
  fields:
    - {name: x, shape: [16, 32, 32]}
    - {name: y, dtype: int64, classes: 4, role: label}
model:
  inputs: {x: {shape: [16, 32, 32]}, y: {dtype: int64, role: label}}
  layers:
    - {conv2d: {filters: 64, size: 3, padding: 1}}
    - {fc: {size: 4, activation: softmax}, name: scores}
  loss: {cross_entropy: {}, from: [scores, y]}
optimizer: {name: sgd, learning_rate: 0.1}
"""


def test_the_device_decides(tmp_path: Path) -> None:
    """Tiled convolutions are the CPU's; no GPU and no CUDA library is needed to print what one would run."""
    name = recipe(tmp_path, SQUARES)

    def tiled(*arguments: str) -> bool:
        return "conv2d_tiled" in call(tmp_path, "plan", name, "--stage", "fused", *arguments).stdout

    assert tiled() and tiled("--device", "auto") and tiled("--device", "cpu")
    assert not tiled("--device", "cuda") and not tiled("--device", "cuda:1")
    assert "unknown device 'gpu'" in call(tmp_path, "plan", name, "--device", "gpu", code=2).stderr
