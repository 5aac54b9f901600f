"""A recipe small enough to train in a moment, and what a finished run is compared by."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from paddlecli.config.recipe import Recipe

MLP = """
name: tiny
description: a small network on generated data
data:
  name: generated
  samples: 150
  test_samples: 37
  fields:
    - {name: x, shape: [6]}
    - {name: y, shape: [1], dtype: int64, classes: 4, role: label}
model:
  inputs:
    x: {shape: [6]}
    y: {shape: [1], dtype: int64, below: 4, role: label}
  layers:
    - fc: {size: 16, activation: relu}
    - dropout: {rate: 0.2}
    - fc: {size: 4}
      name: logits
  loss:
    softmax_with_cross_entropy: {}
    from: [logits, y]
  outputs: {logits: logits}
optimizer: {name: adam, learning_rate: 0.01}
metrics: [accuracy]
train: {epochs: 4, batch_size: 16, seed: 5, log_every: 3}
checkpoint: {keep_last: 3}
"""

MakeRecipe = Callable[..., Recipe]


def checkpoint_files(run: Path) -> dict[str, bytes]:
    """Every file of the newest checkpoint: equal bytes are an equal state."""
    folder = run / "checkpoints" / (run / "checkpoints" / "last").read_text().strip()
    return {p.name: p.read_bytes() for p in folder.iterdir()}


def same_results(a: Path, b: Path) -> None:
    """Two runs ended with the same bits and told the same."""
    first, second = checkpoint_files(a), checkpoint_files(b)
    assert first.keys() == second.keys()
    for name, data in first.items():
        assert second[name] == data, f"{name} differs"
    assert (a / "metrics.jsonl").read_text() == (b / "metrics.jsonl").read_text()


def events(run: Path, event: str) -> list[dict[str, Any]]:
    """The events of one kind."""
    from paddlecli.engine.eventlog import read

    return [e for e in read(run / "metrics.jsonl") if e["event"] == event]
