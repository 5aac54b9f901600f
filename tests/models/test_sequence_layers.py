"""Layers and losses on packed sequences, and losses over many classes, from recipes: built with the shape they promise,
trained a step on the core."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from null.world import draw, graph_of, recipe_of
from road import Road

from paddlecli.compiler.optimizer import optimizers
from paddlecli.config.registry import LAYERS, LOSSES
from paddlecli.errors import ConfigError

HEAD = """
data:
  name: generated
  lengths: {s: [0, 5], l: [0, 2]}
  fields:
    - {name: x, shape: [6]}
    - {name: q, shape: [6], axes: [s]}
    - {name: k, dtype: int64, axes: [s], classes: 3}
    - {name: t, dtype: int64, axes: [l], classes: 2}
    - {name: c, dtype: int64, classes: 9}
    - {name: y, shape: [1], role: label}
optimizer: {name: sgd, learning_rate: 0.01}
model:
  inputs:
    x: {shape: [6]}
    q: {shape: [6], ragged: s}
    k: {dtype: int64, ragged: s, below: 3}
    t: {dtype: int64, ragged: l, below: 2}
    c: {dtype: int64, below: 9}
    y: {shape: [1], role: label}
  blocks:
    gru:
      inputs: [a]
      memories: {h: {shape: [4], next: next}}
      layers: [{fc: {size: 12}, from: a, name: wide}, {gru_unit: {size: 4}, from: [wide, h], name: next}]
    lstm:
      inputs: [a]
      memories: {h: {shape: [4], next: next}, cells: {shape: [4], next: next.cells}}
      layers:
        - {fc: {size: 16}, from: a, name: wide}
        - {lstm_unit: {size: 4, peepholes: true}, from: [wide, h, cells], name: next}
  layers:
    - {fc: {size: 6}, from: x, name: u}
    - {fc: {size: 12}, from: q, name: v}
"""
POOL = "{sequence_pool: {kind: average}}"
BEHIND = """
    - {flatten: {}, from: f, name: flat}
    - {fc: {size: 1}, from: [flat, u], name: p}
  loss: {square_error_cost: {}, from: [p, y]}
  outputs: {f: f, p: p}
"""
USES = {
    "layer_norm": (["{layer_norm: {activation: tanh}, from: u}"], "f32[N, 6]"),
    "sequence_conv": (["{sequence_conv: {filters: 4}, from: q}", POOL], "f32[N, 4]"),
    "sequence_softmax": (["{sequence_softmax: {}, from: v}", "{sequence_pool: {kind: max}}"], "f32[N, 12]"),
    "sequence_reverse": (["{sequence_reverse: {}, from: v}", "{sequence_pool: {kind: last}}"], "f32[N, 12]"),
    "row_conv": (["{row_conv: {future: 1, activation: relu}, from: v}", POOL], "f32[N, 12]"),
    "sequence_expand": (["{sequence_expand: {}, from: [u, k]}", POOL], "f32[N, 6]"),
    "sequence_concat": (["{sequence_concat: {}, from: [v, v, v]}", "{sequence_pool: {kind: sqrt}}"], "f32[N, 12]"),
    "sequence_slice": (["{sequence_slice: {start: -2, size: 1}, from: v}", POOL], "f32[N, 12]"),
    "sequence_slice_at": (
        ["{cast: {dtype: int64}, from: c, name: n}", "{sequence_slice_at: {}, from: [v, n, n], name: cut}", "{sequence_pool: {}, from: cut}"],
        "f32[N, 12]",
    ),
    "sequence_reshape": (["{sequence_reshape: {size: 4}, from: v}", "{sequence_pool: {kind: max}}"], "f32[N, 4]"),
    "sequence_pad": (["{sequence_pad: {size: 3, value: -1}, from: v}"], "f32[N, 3, 12]"),
    "sequence_unpad": (
        ["{sequence_pad: {}, from: v}", "{sequence_unpad: {}, from: [pad, k]}", POOL],
        "f32[N, 12]",
    ),
    "sequence_mask": (["{sequence_mask: {size: 4}, from: v}"], "f32[N, 4]"),
    "sequence_enumerate": (
        ["{sequence_enumerate: {size: 2, pad: 3}, from: k}", "{embedding: {size: 4, dim: 2}}", POOL],
        "f32[N, 2, 2]",
    ),
    "sequence_erase": (
        ["{sequence_erase: {ids: [0]}, from: k, name: left}", "{sequence_mask: {size: 5}, from: left.count}"],
        "f32[N, 5]",
    ),
    "sequence_scatter": (
        ["{fc: {size: 1}, from: q, name: one}", "{sequence_scatter: {}, from: [u, k, one]}"],
        "f32[N, 6]",
    ),
    "dynamic_lstm": (["{dynamic_lstm: {size: 12}, from: v}", POOL], "f32[N, 3]"),
    "dynamic_gru": (["{dynamic_gru: {size: 4}, from: v}", POOL], "f32[N, 4]"),
    "simple_rnn": (["{simple_rnn: {size: 12, reverse: true}, from: v}", POOL], "f32[N, 12]"),
    "dynamic_lstmp": (
        ["{dynamic_lstmp: {size: 12, projection: 2}, from: v, name: r}", "{sequence_pool: {}, from: r}"],
        "f32[N, 2]",
    ),
    "bidirectional_lstm": (["{bidirectional_lstm: {size: 4}, from: q}", POOL], "f32[N, 8]"),
    "bidirectional_gru": (["{bidirectional_gru: {size: 4}, from: q}", POOL], "f32[N, 8]"),
    "gru_unit": (["{scan: {block: gru}, from: q}", POOL], "f32[N, 4]"),
    "lstm_unit": (["{scan: {block: lstm}, from: q}", POOL], "f32[N, 4]"),
    "ctc_greedy_decode": (
        ["{ctc_greedy_decode: {}, from: q, name: best}", "{sequence_mask: {size: 5}, from: best.count}"],
        "f32[N, 5]",
    ),
}  # fmt: skip
"""Layers by name; the last one of a list is looked at."""
LOSS_USES = {
    "linear_chain_crf": "{linear_chain_crf: {parameter: chain}, from: [s, k]}",
    "ctc": "{ctc: {blank: 2}, from: [s, t]}",
    "nce": "{nce: {classes: 9, negatives: 3, sampler: log_uniform, parameter: table, sparse: true}, from: [u, c]}",
    "sampled_softmax": "{sampled_softmax: {classes: 9, negatives: 3, parameter: table}, from: [u, c]}",
    "hierarchical_sigmoid": "{hierarchical_sigmoid: {classes: 9, parameter: table}, from: [u, c]}",
}
READERS = {
    "linear_chain_crf": "crf_decoding",
    "nce": "class_scores",
    "sampled_softmax": "class_scores",
    "hierarchical_sigmoid": "tree_scores",
}
"""Layers that use a loss's weights."""
MODULES = tuple(
    f"paddlecli.models.{m}"
    for m in (
        "sequence_layers",
        "sequence_shape_layers",
        "recurrent_layers",
        "unit_layers",
        "class_losses",
    )
)


def test_every_layer_is_tried() -> None:
    ours = {n for n in LAYERS.names() if LAYERS.get(n).module in MODULES}
    assert ours == {*USES, *READERS.values()}
    assert {n for n in LOSSES.names() if LOSSES.get(n).module in MODULES} == set(LOSS_USES)


@pytest.mark.parametrize("name", USES)
def test_a_layer_trains_a_step(name: str, tmp_path: Path) -> None:
    rows, shape = USES[name]
    rows = [row[:-1] + ", name: pad}" if "sequence_pad: {}" in row else row for row in rows]
    rows[-1] = rows[-1][:-1] + ", name: f}"
    recipe = recipe_of(HEAD + "\n".join(f"    - {row}" for row in rows) + BEHIND, tmp_path)
    graph = graph_of(recipe)
    assert str(graph.entries["predict"].outputs["f"].spec) == shape
    road = Road(graph, optimizers(recipe))
    before = {n: road.read(n) for n in graph.parameters}
    step = road.step("train_step", draw(graph, 5), rate=0.1)
    assert np.isfinite(step.loss)
    still = {n for n in before if np.array_equal(before[n], road.read(n))}
    apart = not any("v," in row or "v}" in row for row in rows)
    apart = apart or name == "sequence_mask"  # lengths alone are read
    assert still == ({"v/w", "v/b"} & set(before) if apart else set())
    values = road.step("predict", draw(graph, 3), outputs=True).outputs["f"]
    assert np.isfinite(values).all() and values.shape[0] == 3


@pytest.mark.parametrize("name", LOSS_USES)
def test_a_loss_falls(name: str, tmp_path: Path) -> None:
    """Training on one batch lowers the loss, with new draws in every step, and every weight moves."""
    scores = "    - {fc: {size: 3}, from: q, name: s}\n"
    tail = f"{scores}  loss: {LOSS_USES[name]}\n  outputs: {{u: u, v: v}}\n"
    recipe = recipe_of(HEAD + tail, tmp_path)
    graph = graph_of(recipe)
    road = Road(graph, optimizers(recipe))
    batch = draw(graph, 6, lengths={"s": [5, 3, 4, 5, 3, 4], "l": [2, 1, 0, 2, 1, 2]})
    before = {n: road.read(n) for n in graph.parameters}
    losses = [road.step("train_step", replace(batch, step=i), rate=0.1).loss for i in range(40)]
    assert np.isfinite(losses).all() and np.mean(losses[-5:]) < 0.9 * np.mean(losses[:5])
    unread = {"v/w", "v/b"} | ({"s/w", "s/b"} if "from: [u" in LOSS_USES[name] else {"u/w", "u/b"})
    moved = {n for n in before if not np.array_equal(before[n], road.read(n))}
    assert moved == set(before) - unread


@pytest.mark.parametrize("loss", ["nce", "sampled_softmax", "hierarchical_sigmoid"])
def test_scores_share_the_losses_weights(loss: str, tmp_path: Path) -> None:
    """The layer gives what an accuracy metric reads, and training makes them right."""
    tail = f"    - {{{READERS[loss]}: {{classes: 9, parameter: table}}, from: u, name: all}}\n  loss: {LOSS_USES[loss]}\n"
    recipe = recipe_of(HEAD + tail + "  outputs: {all: all}\nmetrics: [accuracy]\n", tmp_path)
    graph = graph_of(recipe)
    assert {"table", "table.bias"} <= set(graph.parameters)
    road = Road(graph, optimizers(recipe))
    batch = draw(graph, 4)
    for i in range(300):
        road.step("train_step", replace(batch, step=i), rate=0.5)
    found = road.step("predict", batch, outputs=True).outputs["all"]
    assert (found.argmax(axis=1) == batch.columns["c"].reshape(-1)).all()


def test_labels_that_do_not_fit_name_their_sequence(tmp_path: Path) -> None:
    tail = "    - {fc: {size: 3}, from: q, name: s}\n  loss: {ctc: {blank: 2}, from: [s, t]}\n  outputs: {u: u, v: v}\n"
    recipe = recipe_of(HEAD + tail, tmp_path)
    graph = graph_of(recipe)
    road = Road(graph, optimizers(recipe))
    batch = draw(graph, 3, lengths={"s": [5, 1, 4], "l": [2, 2, 0]})
    with pytest.raises(Exception, match=r"the label of sequence 1 needs \d frames, there are 1"):
        road.step("train_step", batch, rate=0.1)


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ("{sequence_reverse: {}, from: u}", r"\[sequence_reverse\] .* lies on no ragged axis"),
        ("{sequence_expand: {ref_level: 1}, from: [u, k]}", "has 1 levels"),
        ("{simple_rnn: {size: 5}, from: v}", "expected 5 columns"),
        ("{dynamic_lstmp: {size: 10, projection: 2}, from: v}", "four blocks of one width"),
        ("{layer_norm: {begin: 3}, from: u}", "must be there and fixed"),
    ],
)
def test_what_does_not_fit_is_named(row: str, text: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=text):
        graph_of(recipe_of(HEAD + f"    - {row[:-1]}, name: f}}" + BEHIND, tmp_path))
