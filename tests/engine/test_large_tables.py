"""A table of 10 million rows of 64: a step touches the pages of its batch's rows and no others."""

from __future__ import annotations

import gc
import re
from pathlib import Path

import numpy as np
import pytest

from paddlecli.config.load import load_recipe
from paddlecli.engine.bench import generated
from paddlecli.engine.machine import Machine
from paddlecli.engine.prepare import fields_of, prepare
from paddlecli.engine.rates import LearningRates
from paddlecli.engine.requests import Maker
from paddlecli.errors import PaddleCliError

ROWS, BATCH, STEPS = 10_000_000, 64, 4
LARGE = 1 << 30  # bytes of a mapping that can only be a table's or its slots'
RECIPE = """
name: large-table
data:
  name: generated
  fields:
    - {name: word, dtype: int64, classes: ROWS}
    - {name: y, shape: [1], role: label}
model:
  inputs: {word: {dtype: int64, below: ROWS}, y: {shape: [1], role: label}}
  layers:
    - {embedding: {size: ROWS, dim: 64, init: constant, sparse: true}, from: word}
    - {fc: {size: 1}, name: prediction}
  loss: {square_error_cost: {}, from: [prediction, y]}
optimizer: OPTIMIZER
train: {batch_size: 64, shuffle: none}
"""
RULES = {
    "sgd": ("{name: sgd, learning_rate: 0.1}", 1),
    "adagrad": ("{name: adagrad, learning_rate: 0.1}", 2),
    "lazy adam": ("{name: adam, lazy: true, learning_rate: 0.1}", 3),
}
"""The optimizer's section, and arrays of the table's size: itself and its slots."""


def resident() -> int:
    """Pages in use of all mappings that are large enough."""
    pages, size = 0, 0
    for line in Path("/proc/self/smaps").read_text().splitlines():
        found = re.match(r"(Size|Rss):\s+(\d+) kB", line)
        if found and found[1] == "Size":
            size = int(found[2]) * 1024
        elif found and size >= LARGE:
            pages += int(found[2]) * 1024 // 4096
    return pages


@pytest.mark.skipif(not Path("/proc/self/smaps").is_file(), reason="pages are counted in /proc")
@pytest.mark.parametrize("rule", RULES)
def test_a_step_touches_the_rows_of_its_batch(rule: str, tmp_path: Path) -> None:
    section, arrays = RULES[rule]
    path = tmp_path / "large.yaml"
    path.write_text(RECIPE.replace("ROWS", str(ROWS)).replace("OPTIMIZER", section))
    recipe = load_recipe(str(path), ())
    gc.collect()
    others = resident()
    spec = fields_of(recipe)
    prepared, split = prepare(recipe, spec), generated(recipe, spec)["train"]
    try:
        machine = Machine(prepared.artifact, threads=2)
    except PaddleCliError as error:
        pytest.skip(f"no room for {arrays * ROWS * 256 / 1e9:.1f} GB of addresses: {error.message}")
    machine.write(prepared.graph.starts(1, zeros=False))
    before = resident()
    rates = LearningRates(recipe, STEPS, STEPS)
    maker = Maker(prepared.artifact, prepared.calls, spec, split, BATCH, rates)
    order = np.arange(BATCH * STEPS, dtype=np.int64)
    assert machine.run(maker.make(order, 0, STEPS, 0), split).done == STEPS
    touched = resident() - before
    rows = len(np.unique(split.columns["word"].values[: BATCH * STEPS]))
    # a row of 256 bytes lies on one page or on two; two rows may share one
    assert 0.9 * arrays * rows <= touched <= 2 * arrays * rows
    assert before - others <= 64 * arrays, "what is new is zero without being written"
