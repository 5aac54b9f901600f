"""Every layer from a recipe: described, built with the shape it promises, trained a step on the core."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from null.world import draw, graph_of, recipe_of
from road import Road

from paddlecli.compiler.optimizer import optimizers
from paddlecli.config.describe import argument_text, summary
from paddlecli.config.registry import LAYERS, LOSSES
from paddlecli.models.plain_layers import BINARY, plain_layer

HEAD = """
data:
  name: generated
  lengths: {s: [0, 4]}
  fields:
    - {name: x, shape: [6]}
    - {name: m, shape: [2, 3]}
    - {name: i, shape: [2, 6, 6]}
    - {name: k, dtype: int64, classes: 3}
    - {name: q, shape: [6], axes: [s]}
    - {name: y, shape: [1], role: label}
optimizer: {name: sgd, learning_rate: 0.01}
model:
  inputs:
    x: {shape: [6]}
    m: {shape: [2, 3]}
    i: {shape: [2, 6, 6]}
    k: {dtype: int64, below: 3}
    q: {shape: [6], ragged: s}
    y: {shape: [1], role: label}
  blocks:
    cell: {inputs: [a], memories: {h: {shape: [2], next: g}}, layers: [{fc: {size: 2}, from: [a, h], name: g}]}
  layers:
    - {fc: {size: 6}, from: x, name: u}
    - {sigmoid: {}, name: w}
"""
TAIL = """
    - {flatten: {}, from: f, name: flat}
    - {fc: {size: 1}, from: [flat, u], name: p}
  loss: {square_error_cost: {}, from: [p, y]}
  outputs: {f: f, p: p}
"""
USES = {
    "fc": ("{fc: {size: 4, flatten: 2, activation: relu}, from: m}", "f32[N, 2, 4]"),
    "embedding": ("{embedding: {size: 3, dim: 4, padding_idx: 0}, from: k}", "f32[N, 4]"),
    "conv2d": ("{conv2d: {filters: 4, size: [3, 1], stride: 2, padding: 1, groups: 2}, from: i}", "f32[N, 4, 3, 4]"),
    "pool2d": ("{pool2d: {size: 3, stride: 2, kind: average, padding: 1}, from: i}", "f32[N, 2, 3, 3]"),
    "batch_norm": ("{batch_norm: {activation: relu}, from: i}", "f32[N, 2, 6, 6]"),
    "dropout": ("{dropout: {rate: 0.3}, from: u}", "f32[N, 6]"),
    "concat": ("{concat: {axis: 1}, from: [u, w, u]}", "f32[N, 18]"),
    "reshape": ("{reshape: {shape: [3, -1]}, from: u}", "f32[N, 3, 2]"),
    "flatten": ("{flatten: {}, from: i}", "f32[N, 72]"),
    "split": ("{split: {sizes: [1, 5]}, from: u}", "f32[N, 1]"),
    "slice": ("{slice: {start: 1, end: -1}, from: u}", "f32[N, 4]"),
    "transpose": ("{transpose: {perm: [0, 2, 1]}, from: m}", "f32[N, 3, 2]"),
    "reduce_sum": ("{reduce_sum: {axis: [1, 2]}, from: i}", "f32[N, 6]"),
    "reduce_mean": ("{reduce_mean: {axis: 1, keep: true}, from: m}", "f32[N, 1, 3]"),
    "sum": ("{sum: {}, from: [u, w, u]}", "f32[N, 6]"),
    "matmul": ("{matmul: {transpose_y: true}, from: [m, m]}", "f32[N, 2, 2]"),
    "cos_sim": ("{cos_sim: {scale: 5}, from: [u, w]}", "f32[N, 1]"),
    "argmax": ("{argmax: {}, from: m}, {cast: {dtype: float32}}", "f32[N, 2]"),
    "cast": ("{cast: {dtype: float32, scale: 0.5, shift: 1}, from: k}, {reshape: {shape: [1]}}", "f32[N, 1]"),
    "random_normal": ("{random_normal: {shape: [3, 2]}, from: k}", "f32[N, 3, 2]"),
    "random_uniform": ("{random_uniform: {shape: [5], low: 0}, from: q}, {sequence_pool: {}}", "f32[N, 5]"),
    "parameter": ("{parameter: {shape: [6]}, name: bias}, {mul: {}, from: [u, bias]}", "f32[N, 6]"),
    "sequence_pool": ("{sequence_pool: {kind: max}, from: q}", "f32[N, 6]"),
    "scan": ("{scan: {block: cell}, from: q}, {sequence_pool: {kind: last}}", "f32[N, 2]"),
    "group_norm": ("{group_norm: {groups: 2, activation: relu}, from: i}", "f32[N, 2, 6, 6]"),
    "instance_norm": ("{instance_norm: {shift: false}, from: m}", "f32[N, 2, 3]"),
    "prelu": ("{prelu: {mode: channel}, from: i}", "f32[N, 2, 6, 6]"),
    "dropout2d": ("{dropout2d: {rate: 0.3, mode: downgrade_in_infer}, from: i}", "f32[N, 2, 6, 6]"),
    "channel_shuffle": ("{channel_shuffle: {groups: 2}, from: i}", "f32[N, 2, 6, 6]"),
    "pixel_shuffle": ("{reshape: {shape: [8, 3, 3]}, from: i}, {pixel_shuffle: {factor: 2}}", "f32[N, 2, 6, 6]"),
    "conv2d_transpose": ("{conv2d_transpose: {filters: 4, size: 3, stride: 2, padding: 1, output_size: [12, 11], groups: 2}, from: i}", "f32[N, 4, 12, 11]"),
    "adaptive_pool2d": ("{adaptive_pool2d: {size: [4, 1], kind: max}, from: i}", "f32[N, 2, 4, 1]"),
    "interpolate": ("{interpolate: {scale: 1.5, mode: bilinear, align_mode: 1}, from: i}", "f32[N, 2, 9, 9]"),
    "pad2d": ("{pad2d: {padding: [1, 0, 2, 0], mode: reflect}, from: i}", "f32[N, 2, 7, 8]"),
    "full_like": ("{full_like: {value: 2}, from: k}, {reshape: {shape: [1]}}", "f32[N, 1]"),
}  # fmt: skip
"""Layers with a form of their own; the last one of a list is looked at."""
OTHERS = ("decode",)
"""Layers that no training step can have; tests/tracers runs them."""
OWN = [
    n
    for n in LAYERS.names()
    if LAYERS.get(n).module.startswith("paddlecli.models") or plain_layer(n)
]
PLAIN = [n for n in OWN if plain_layer(n) is not None]


def test_every_layer_is_tried() -> None:
    ours = {
        n
        for n in OWN
        if LAYERS.get(n).module.removeprefix("paddlecli.models.")
        in ("layers", "shape_layers", "channel_layers", "image_layers", "generative")
    }
    assert ours - set(PLAIN) == {*USES, *OTHERS}


@pytest.mark.parametrize("name", [*USES, *PLAIN])
def test_a_layer_trains_a_step(name: str, tmp_path: Path) -> None:
    reads = "[w, w]" if name == "pow" else "[u, w]" if name in BINARY else "w"
    text, shape = USES.get(name, (f"{{{name}: {{}}, from: {reads}}}", "f32[N, 6]"))
    rows = [f"    - {row}" for row in text.replace("}, {", "}\n{").split("\n")]
    rows[-1] = rows[-1][:-1] + ", name: f}"
    recipe = recipe_of(HEAD + "\n".join(rows) + TAIL, tmp_path)
    graph = graph_of(recipe)
    found = graph.entries["predict"].outputs["f"]
    assert str(found.spec) == shape
    road = Road(graph, optimizers(recipe))
    before = {n: road.read(n) for n in graph.parameters}
    step = road.step("train_step", draw(graph, 5), rate=0.1)
    assert np.isfinite(step.loss)
    moved = {n for n in before if not np.array_equal(before[n], road.read(n))}
    assert {"u/w", "p/b"} <= moved
    inside = {n for n in graph.parameters if n.startswith(("f/", "bias/", "cell/"))}
    assert inside <= moved
    values = road.step("predict", draw(graph, 3), outputs=True).outputs["f"]
    assert np.isfinite(values).all() and values.shape[0] == 3


@pytest.mark.parametrize("registry", [LAYERS, LOSSES], ids=["layers", "losses"])
def test_every_name_and_argument_is_described(registry: object) -> None:
    silent = []
    for name in registry.names():  # type: ignore[attr-defined]
        entry = registry.get(name)  # type: ignore[attr-defined]
        if len(summary(entry)) < 8:
            silent.append(name)
        silent += [
            f"{name}.{p.name}" for p in entry.parameters.values() if not argument_text(entry, p)
        ]
    assert silent == []


def test_every_layer_of_a_recipe_can_name_its_activation() -> None:
    """What a layer can end with is a layer too."""
    from typing import get_args

    from paddlecli.models.layers import Activation

    assert set(get_args(Activation)) - {"none"} <= set(LAYERS.names())
