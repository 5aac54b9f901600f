"""Metrics in Python: what they are fed, dense and ragged, over any cut into batches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paddlecli.config.load import load_recipe
from paddlecli.config.registry import METRICS, Entry
from paddlecli.engine.evaluate import evaluate
from paddlecli.engine.fit import Options, fit
from paddlecli.engine.prepare import data_of
from paddlecli.engine.rundir import RunDir
from paddlecli.errors import ConfigError
from paddlecli.models.outside import PythonMetric

RAGGED = """
name: ragged
data:
  name: generated
  samples: 20
  test_samples: 23
  lengths: {words: [0, 4], letters: [0, 3]}
  fields:
    - {name: word, shape: [3], axes: [words]}
    - {name: letter, shape: [2], axes: [words, letters]}
    - {name: tag, shape: [1], axes: [words], role: label}
    - {name: mark, shape: [2], axes: [words, letters], role: label}
model:
  inputs:
    word: {shape: [3], ragged: words}
    letter: {shape: [2], ragged: letters}
    tag: {shape: [1], ragged: words, role: label}
    mark: {shape: [2], ragged: letters, role: label}
  layers:
    - {fc: {size: 1}, from: word, name: guess}
    - {fc: {size: 2}, from: letter, name: spelt}
  loss: {square_error_cost: {}, from: [guess, tag]}
  outputs: {guess: guess}
optimizer: {name: sgd, learning_rate: 0.01}
metrics:
  - {seen: {}, name: tokens, from: [guess, tag]}
  - {seen: {}, name: letters, from: [spelt, mark]}
train: {epochs: 1, batch_size: 7}
"""
SEEN: dict[str, list[list[Any]]] = {}


class Seen(PythonMetric):
    """Keeps what it is given."""

    values = ("samples", "rows")

    def __init__(self) -> None:
        self.given: list[Any] = []

    def add(self, scores: Any, label: Any) -> None:
        assert len(scores) == len(label)
        self.given += list(zip(scores, label, strict=True))

    def result(self) -> dict[str, float]:
        SEEN[str(len(SEEN))] = self.given
        return {"samples": len(self.given), "rows": sum(len(s) for s, _ in self.given)}


class Wrong(PythonMetric):
    """Gives what it does not say."""

    def add(self, scores: Any) -> None: ...

    def result(self) -> dict[str, float]:
        return {"a": 1.0, "b": 2.0}


class Words(PythonMetric):
    """Gives no number."""

    def add(self, scores: Any) -> None: ...

    def result(self) -> Any:
        return "good"


@pytest.fixture(autouse=True)
def metrics(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    SEEN.clear()
    for name, kind in (("seen", Seen), ("wrong", Wrong), ("words", Words)):
        monkeypatch.setitem(METRICS._entries, name, Entry(name, kind))
    yield


def test_ragged_tensors_come_a_sample_at_a_time(tmp_path: Path) -> None:
    """Outer and inner axis, samples without any token; batches of 7 and of 1 give the same arrays."""
    (tmp_path / "r.yaml").write_text(RAGGED)
    recipe = load_recipe(tmp_path / "r.yaml")
    found = fit(recipe, Options(tmp_path / "run")).metrics["test"]
    split = data_of(recipe)["test"]
    words, letters = split.columns["word"].offsets, split.columns["letter"].offsets
    assert len(letters) == 2 and min(np.diff(words[0])) == 0
    assert found["tokens_samples"] == found["letters_samples"] == 23
    assert found["tokens_rows"] == words[0][-1] and found["letters_rows"] == letters[1][-1]
    tokens, spelt = SEEN["0"], SEEN["1"]
    for i in range(23):
        np.testing.assert_array_equal(tokens[i][1], split.columns["tag"].row(i))
        inner = split.columns["mark"].row(i)
        flat = np.concatenate([np.zeros((0, 2), np.float32), *inner])
        np.testing.assert_array_equal(spelt[i][1], flat)
        assert tokens[i][0].shape == (words[0][i + 1] - words[0][i], 1)
    again = evaluate(RunDir(tmp_path / "run"), batch_size=1)
    assert again.metrics["letters_rows"] == found["letters_rows"]
    for one, seven in zip(SEEN["2"], tokens, strict=True):
        np.testing.assert_array_equal(one[0], seven[0])


def test_the_training_step_does_not_give_them(tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text(RAGGED)
    done = fit(load_recipe(tmp_path / "r.yaml"), Options(tmp_path / "run"))
    assert set(done.metrics["train"]) == {"loss"}
    wanted = ["checkpoint.monitor=train.tokens_rows"]
    with pytest.raises(ConfigError, match="not measured"):
        fit(load_recipe(tmp_path / "r.yaml", wanted), Options(tmp_path / "other"))
    wanted = ["checkpoint.monitor=test.tokens_rows"]
    with pytest.raises(ConfigError, match="nobody can tell whether more or less"):
        fit(load_recipe(tmp_path / "r.yaml", wanted), Options(tmp_path / "other"))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("wrong", "says that it gives one number; it gave a, b"),
        ("words", "gave 'good', not a number"),
    ],
)
def test_what_it_gives_is_compared_with_what_it_says(name: str, words: str, tmp_path: Path) -> None:
    text = RAGGED[: RAGGED.index("metrics:")] + f"metrics: [{{{name}: {{}}, from: guess}}]\n"
    (tmp_path / "r.yaml").write_text(text)
    with pytest.raises(ConfigError, match=words):
        fit(load_recipe(tmp_path / "r.yaml"), Options(tmp_path / "run"))


def test_it_reads_as_many_tensors_as_it_takes(tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text(
        RAGGED.replace("from: [guess, tag]}\n  - {seen", "from: guess}\n  - {seen")
    )
    with pytest.raises(
        ConfigError, match=r"\[seen\] reads 2 tensors \(scores, label\), `from` gives 1"
    ):
        fit(load_recipe(tmp_path / "r.yaml"), Options(tmp_path / "run"))
