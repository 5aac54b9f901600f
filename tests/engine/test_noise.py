"""Noise in evaluations and predictions goes by the place of a sample and its rows, whatever the size of a batch."""

from __future__ import annotations

import json
from pathlib import Path

from paddlecli.compiler.optimizer import optimizers
from paddlecli.compiler.pipeline import run_passes
from paddlecli.config.load import load_recipe
from paddlecli.engine.api import evaluate, fit, predict
from paddlecli.engine.prepare import fields_of
from paddlecli.models.build import build

RECIPE = """
name: noisy
data:
  name: generated
  samples: 8
  test_samples: 23
  lengths: {t: [1, 6], u: [1, 4]}
  fields:
    - {name: x, shape: [3], axes: [t]}
    - {name: z, shape: [3], axes: [u]}
    - {name: y, shape: [1], role: label}
model:
  inputs:
    x: {shape: [3], ragged: t}
    z: {shape: [3], ragged: u}
    y: {shape: [1], role: label}
  layers:
    - {random_normal: {shape: [3]}, from: x, name: noise}
    - {add: {}, from: [x, noise], name: shaken}
    - {sequence_concat: {}, from: [shaken, z], name: both}
    - {random_uniform: {shape: [3]}, from: both, name: other}
    - {mul: {}, from: [both, other], name: product}
    - {sequence_pool: {kind: sum}, from: product, name: pooled}
    - {fc: {size: 1}, from: pooled, name: out}
  loss: {square_error_cost: {}, from: [out, y]}
  outputs: {out: out}
optimizer: {name: sgd, learning_rate: 0.01}
train: {epochs: 1, batch_size: 4}
"""


def test_noise_of_sequences_goes_by_their_place(tmp_path: Path) -> None:
    (tmp_path / "noisy.yaml").write_text(RECIPE)
    run = fit(load_recipe(str(tmp_path / "noisy.yaml")), run_dir=tmp_path / "run").run_dir
    measured = {evaluate(run, batch_size=size).metrics["loss"] for size in (1, 5, 7, 23)}
    assert len(measured) == 1
    rows = [
        {"x": [[0.5, i, -i]] * (1 + i % 4), "z": [[1.0, 2.0, 3.0]] * (1 + i % 3)} for i in range(11)
    ]
    lines = tmp_path / "rows.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    one, four, all_of_them = (
        [p.answer for p in predict(run, [str(lines)], batch_size=size)] for size in (1, 4, 64)
    )
    assert one == four == all_of_them


def test_noise_inside_a_scan_is_told(tmp_path: Path) -> None:
    """Its rows stand in the order of lengths, so it cannot go by place; who trains such a network is told."""
    text = RECIPE.replace("model:\n", """model:
  blocks:
    cell:
      inputs: [x_t]
      memories: {h: {shape: [3], next: h_next}}
      layers:
        - {random_normal: {shape: [3]}, from: x_t, name: noise}
        - {add: {}, from: [noise, h], name: more}
        - {add: {}, from: [more, x_t], name: h_next}
      outputs: {shaken: h_next}
""").replace("- {random_normal: {shape: [3]}, from: x, name: noise}\n    - {add: {}, from: [x, noise], name: shaken}",
             "- {scan: {block: cell}, from: x, name: shaken}")  # fmt: skip
    (tmp_path / "scan.yaml").write_text(text)
    recipe = load_recipe(str(tmp_path / "scan.yaml"))
    notes = run_passes(build(recipe, fields_of(recipe)), optimizers(recipe)).notes
    assert [n for n in notes if n.startswith("[random_normal] stands in a scan")]
    (tmp_path / "noisy.yaml").write_text(RECIPE)
    recipe = load_recipe(str(tmp_path / "noisy.yaml"))
    assert not run_passes(build(recipe, fields_of(recipe)), optimizers(recipe)).notes
