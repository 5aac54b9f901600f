"""Scans and decoding against plain loops over sequences."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from paddlecli.compiler.pipeline import run_passes
from paddlecli.ops.base import Ragged

from .conftest import Compiled
from .executor import Params, Run
from .kernels import Array
from .world import draw, fresh, graph_of, recipe_of

CELLS = """
name: cells
data: {name: generated, lengths: {steps: [0, 5]}, fields: [{name: x, shape: [3], axes: [steps]}, {name: s, shape: [2]}]}
model:
  inputs: {x: {shape: [3], ragged: steps}, s: {shape: [2]}}
  blocks:
    cell:
      inputs: [x_t]
      memories:
        h: {shape: [2], next: h_next, start: s}
        c: {shape: [2], next: c_next, start: 0.25}
      statics: [s]
      layers:
        - {fc: {size: 2, activation: tanh}, from: [x_t, h, s], name: h_next}
        - {add: {}, from: [h_next, c], name: c_next}
      outputs: {h: h_next, c: c_next}
  layers:
    - {scan: {block: cell}, from: x, name: forwards}
    - {scan: {block: cell, reverse: true}, from: x, name: backwards}
  outputs: {h: forwards.h, c: forwards.c, rh: backwards.h, rc: backwards.c}
"""
LENGTHS = ((3, 0, 5, 1, 3, 2, 0), (0, 0), (4,), (1, 2, 3), (2, 2))


def cell(params: Params, x: Array, start: Array, rows: range) -> tuple[Array, Array]:
    """One sequence, row by row in the given order; results stay at their rows."""
    w, w1, w2, b = (params.array(f"cell/h_next/{n}") for n in ("w", "w1", "w2", "b"))
    h, c = start, np.full(2, 0.25)
    hs, cs = np.zeros((len(x), 2)), np.zeros((len(x), 2))
    for t in rows:
        h = np.tanh(x[t] @ w + h @ w1 + start @ w2 + b)
        c = h + c
        hs[t], cs[t] = h, c
    return hs, cs


@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
def test_a_scan_is_a_loop_over_each_sequence(lengths: tuple[int, ...], tmp_path: Path) -> None:
    stages = run_passes(graph_of(recipe_of(CELLS, tmp_path)), {})
    batch = draw(stages.graph, len(lengths), lengths={"steps": lengths})
    params = fresh(stages)
    found = (
        Run(stages.fused.entries["predict"], batch, params, stages.memory["predict"]).go().results()
    )
    x, starts = batch.columns["x"], batch.columns["s"]
    assert isinstance(x, Ragged)
    orders: dict[str, Callable[[int], range]] = {"": range, "r": lambda n: range(n - 1, -1, -1)}
    for prefix, order in orders.items():
        for i, n in enumerate(lengths):
            span = slice(x.offsets[i], x.offsets[i + 1])
            h, c = cell(params, x.values[span], starts[i], order(n))
            np.testing.assert_allclose(found[f"{prefix}h"][span], h, rtol=1e-12)
            np.testing.assert_allclose(found[f"{prefix}c"][span], c, rtol=1e-12)


@pytest.mark.parametrize("size", [0, 1, 6, 40])
@pytest.mark.parametrize("pull", [0.0, 0.9, 9.0])
def test_decoding_takes_the_best_until_the_end(size: int, pull: float, compiled: Compiled) -> None:
    """Greedy, row by row; ``pull`` favours the end mark, so that rows end early, late or never."""
    stages = compiled("decode")
    batch, params = draw(stages.graph, size), fresh(stages, 4)
    params.array("step/probability/b")[1] += pull
    name = stages.fused.roles["predict"]
    run = Run(stages.fused.entries[name], batch, params, stages.memory[name])
    found = run.go().results()
    ids, lengths = found["ids"], found["length"]
    assert (ids.shape, lengths.shape) == ((size, 12), (size,))

    def layer(name: str, *xs: Array) -> Array:
        weights = [params.array(f"{name}/w{i or ''}") for i in range(len(xs))]
        total: Array = sum(x @ w for x, w in zip(xs, weights, strict=True)) + params.array(
            f"{name}/b"
        )
        return total

    for i in range(size):
        h, token = np.tanh(layer("state", batch.columns["context"][i])), 0
        expected: list[int] = []
        while len(expected) < 12 and token != 1:
            h = np.tanh(layer("step/h_next", params.array("step/word/w")[token], h))
            token = int(layer("step/probability", h).argmax())
            expected.append(token)
        assert ids[i].tolist() == expected + [1] * (12 - len(expected))
        assert lengths[i] == len(expected) - (1 in expected)
    if pull == 9.0:
        assert run.kernels < 30, "the loop ends when every row has ended"
