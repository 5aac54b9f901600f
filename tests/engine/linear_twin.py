"""Small networks whose training numpy can follow: an output of a row, with a batch norm before it or without."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from paddlecli.config.load import load_recipe
from paddlecli.config.recipe import Recipe
from paddlecli.data.opening import open_dataset
from paddlecli.engine.fit import Options, fit
from paddlecli.engine.prepare import fields_of

Arrays = Mapping[str, NDArray[Any]]
DATA = """
  name: generated
  samples: 48
  test_samples: 16
  fields:
    - {name: x, shape: [2, 3, 3]}
    - {name: y, shape: [1], dtype: int64, classes: 3, role: label}
"""
NORMS = f"""
name: norms
description: a batch norm before an output
data: {DATA}
model:
  inputs: {{x: {{shape: [2, 3, 3]}}, y: {{shape: [1], dtype: int64, below: 3, role: label}}}}
  layers:
    - {{batch_norm: {{activation: relu}}, name: norm}}
    - {{flatten: {{}}}}
    - {{fc: {{size: 3}}, name: head}}
  loss: {{softmax_with_cross_entropy: {{}}, from: [head, y]}}
optimizer: {{name: sgd, learning_rate: 0.5}}
train: {{epochs: 1, batch_size: 16, seed: 3, max_steps: 1, shuffle: none}}
"""
LINEAR = f"""
name: linear
description: an output of a row
data: {DATA}
model:
  inputs: {{x: {{shape: [2, 3, 3]}}, y: {{shape: [1], dtype: int64, below: 3, role: label}}}}
  layers:
    - {{flatten: {{}}}}
    - {{fc: {{size: 3}}, name: head}}
  loss: {{softmax_with_cross_entropy: {{}}, from: [head, y]}}
optimizer: {{name: sgd, learning_rate: 0.5}}
train: {{epochs: 1, batch_size: 16, seed: 3, max_steps: 1, shuffle: none, log_every: 1}}
"""


def recipe_of(text: str, tmp_path: Path, *overrides: str) -> Recipe:
    path = tmp_path / "recipe.yaml"
    path.write_text(text)
    return load_recipe(path, overrides)


def first_batch() -> tuple[NDArray[Any], NDArray[Any]]:
    arguments = {
        "samples": 48,
        "test_samples": 16,
        "fields": [
            {"name": "x", "shape": [2, 3, 3]},
            {"name": "y", "shape": [1], "dtype": "int64", "classes": 3, "role": "label"},
        ],
    }
    columns = open_dataset("generated", arguments)["train"].columns
    return columns["x"].values[:16].astype(np.float64), columns["y"].values[:16, 0]


def started(recipe: Recipe, path: Path, **more: Any) -> tuple[Arrays, Arrays]:
    """Weights before and after a training."""
    from paddlecli.engine.prepare import prepare

    graph = prepare(recipe, fields_of(recipe)).graph
    before = dict(graph.starts(recipe.train.seed))
    fit(recipe, Options(run_dir=path, **more))
    return before, load_file(path / "model" / "model.safetensors")


def softmax(z: NDArray[Any]) -> NDArray[Any]:
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True))


def head_after(
    before: Arrays, x: NDArray[Any], target: NDArray[Any], rate: float = 0.5
) -> tuple[NDArray[Any], NDArray[Any], float]:
    """Weights of the output after one step on rows x, and the loss before it."""
    w, b = before["head/w"].astype(np.float64), before["head/b"].astype(np.float64)
    p = softmax(x @ w + b)
    loss = -(target * np.log(p)).sum(axis=1).mean()
    dz = (p * target.sum(axis=1, keepdims=True) - target) / len(x)
    return w - rate * x.T @ dz, b - rate * dz.sum(axis=0), float(loss)
