"""Ragged axes that ops make: named by how, trained from tables, in parts, stored and read again."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from null.world import draw, graph_of, recipe_of
from road import Road

from paddlecli.compiler.optimizer import optimizers
from paddlecli.config.load import load_recipe
from paddlecli.data.axes import levels
from paddlecli.data.columns import Column, Split
from paddlecli.engine.fit import Options, fit
from paddlecli.graph import serialize
from paddlecli.ops import _made
from paddlecli.ops.spec import Axis
from paddlecli.runtime.errors import CoreError

RECIPE = """
name: made
data:
  name: generated
  samples: 64
  test_samples: 16
  lengths: {s: [0, 5], l: [1, 3]}
  fields:
    - {name: q, shape: [4], axes: [s]}
    - {name: r, shape: [4], axes: [l]}
    - {name: y, shape: [1], role: label}
optimizer: {name: sgd, learning_rate: 0.05}
model:
  inputs:
    q: {shape: [4], ragged: s}
    r: {shape: [4], ragged: l}
    y: {shape: [1], role: label}
  blocks:
    cell: {inputs: [a], memories: {h: {shape: [3], next: g}}, layers: [{fc: {size: 3, activation: tanh}, from: [a, h], name: g}]}
  layers:
    - {fc: {size: 4}, from: q, name: u}
    - {sequence_concat: {}, from: [u, r, u], name: all}
    - {sequence_expand: {}, from: [all, r], name: copies}
    - {sequence_pool: {kind: average}, name: copy}
    - {sequence_pool: {kind: max}, name: most}
    - {dropout: {rate: 0.3}, from: all, name: some}
    - {scan: {block: cell}, name: seen}
    - {sequence_slice: {start: -3, size: 2}, name: last}
    - {fc: {size: 4}, name: wide}
    - {sequence_reshape: {size: 2}, name: narrow}
    - {sequence_pool: {kind: sum}, name: one}
    - {dropout: {rate: 0.2}, from: copies, name: dropped}
    - {sequence_pool: {kind: last}, name: inner}
    - {sequence_pool: {kind: first}, name: outer}
    - {fc: {size: 1}, from: [one, most, outer], name: p}
  loss: {square_error_cost: {}, from: [p, y]}
  outputs: {narrow: narrow, copies: copies, p: p}
train: {epochs: 2, batch_size: 16}
"""
S, L = Axis("s", "q"), Axis("l", "r")
LENGTHS = {"s": np.array([0, 3, 5]), "l": np.array([1, 2, 0])}


def known(name: str) -> np.ndarray:
    return LENGTHS[name]


def test_names_say_how() -> None:
    both = _made.make("concat", [S, L, S])
    some = _made.make("slice", [both], -4, 2)
    wide = _made.make("reshape", [some], 6, 3)
    assert wide.name == "reshape(slice(concat(s,l,s),-4,2),6,3)"
    assert _made.sources(wide.name) == ["s", "l"] and wide.input == "q"
    assert _made.lengths(both.name, known).tolist() == [1, 8, 10]
    assert _made.lengths(some.name, known).tolist() == [1, 2, 2]
    assert _made.offsets(wide.name, known).tolist() == [0, 2, 6, 10]
    axes = _made.Axes({"s": S, "l": L})
    assert axes[wide.name] == wide
    with pytest.raises(KeyError):
        axes["other"]


@pytest.mark.parametrize(
    ("start", "size", "wanted"), [(0, 2, [0, 2, 2]), (2, 9, [0, 1, 3]), (-2, 1, [0, 1, 1]), (-9, 4, [0, 3, 4])]
)  # fmt: skip
def test_lengths_of_slices(start: int, size: int, wanted: list[int]) -> None:
    axis = _made.make("slice", [S], start, size)
    assert _made.lengths(axis.name, known).tolist() == wanted


def test_rows_that_do_not_fit_name_their_sequence() -> None:
    axis = _made.make("reshape", [S], 4, 6)
    with pytest.raises(ValueError, match="sequence 2 has 5 rows of 4 numbers: no whole rows of 6"):
        _made.lengths(axis.name, known)


def test_levels_of_a_split() -> None:
    offsets = {k: np.concatenate([[0], np.cumsum(v)]).astype(np.int64) for k, v in LENGTHS.items()}
    columns = {
        axis.input: Column(np.zeros((int(offsets[axis.name][-1]), 4), np.float32), (offsets[axis.name],))
        for axis in (S, L)
    }  # fmt: skip
    split = Split("train", columns)
    assert [o.tolist() for o in levels(split, _made.make("concat", [L, S]))] == [[0, 1, 6, 11]]
    nested = levels(split, _made.make("expand", [S, L]))
    assert [o.tolist() for o in nested] == [[0, 1, 3, 3], [0, 0, 3, 6]]
    assert _made.per_sample("expand(s,l)", known).tolist() == [0, 6, 0]
    assert [o.tolist() for o in levels(split, S)] == [[0, 0, 3, 8]]


def test_parts_of_a_batch_train_as_the_whole_does(tmp_path: Path) -> None:
    """Masks of dropout on a made axis are those of the whole batch."""
    path = tmp_path / "recipe.yaml"
    path.write_text(RECIPE)
    losses = []
    for parts in (1, 3):
        recipe = load_recipe(path, [f"train.accumulate={parts}"])
        run = tmp_path / str(parts)
        assert fit(recipe, Options(run_dir=run)).status == "completed"
        rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        losses.append([v for row in rows for k, v in sorted(row.items()) if "loss" in k])
    assert losses[0] and np.allclose(losses[0], losses[1], rtol=1e-5)


def test_a_stored_graph_has_them(tmp_path: Path) -> None:
    graph = graph_of(recipe_of(RECIPE, tmp_path))
    again = serialize.from_yaml(serialize.to_yaml(graph), "graph.yaml")
    for name in ("narrow", "p"):
        wanted = graph.entries["predict"].outputs[name].spec
        assert again.entries["predict"].outputs[name].spec == wanted
    assert wanted.axis is None
    axis = again.entries["predict"].outputs["narrow"].spec.axis
    assert axis is not None and axis.name == "reshape(slice(concat(s,l,s),-3,2),4,2)"
    inner = again.entries["predict"].outputs["copies"].spec.axis
    assert inner is not None and inner.name == "expand(concat(s,l,s),l)"
    assert inner.parent is not None and inner.parent.name == "l"


def test_rows_of_a_batch(tmp_path: Path) -> None:
    """Lengths on the core are those that numpy finds, empty sequences included."""
    recipe = recipe_of(RECIPE, tmp_path)
    graph = graph_of(recipe)
    batch = draw(graph, 3, lengths={"s": [0, 3, 1], "l": [1, 0, 0]})
    found = Road(graph, optimizers(recipe)).step("predict", batch, outputs=True).outputs
    assert found["copies"].shape == (1 * 1, 4)
    assert found["narrow"].shape == (2 * (1 + 2 + 2), 2) and found["p"].shape == (3, 1)


def test_a_bad_batch_is_told(tmp_path: Path) -> None:
    text = RECIPE.replace("size: 2}, name: narrow", "size: 3}, name: narrow")
    recipe = recipe_of(text, tmp_path)
    graph = graph_of(recipe)
    batch = draw(graph, 2, lengths={"s": [0, 3], "l": [1, 1]})
    with pytest.raises(CoreError, match="sequence 0 has 1 rows of 4 numbers: no whole rows of 3"):
        Road(graph, optimizers(recipe)).step("predict", batch, outputs=True)
