"""Small networks and batches for tests that need no kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from paddlecli.compiler.groups import OptimizerSpec
from paddlecli.compiler.optimizer import optimizers
from paddlecli.compiler.pipeline import Stages
from paddlecli.config.load import load_recipe
from paddlecli.config.recipe import Recipe
from paddlecli.data.opening import describe
from paddlecli.data.spec import DatasetSpec, FieldSpec, Preprocess
from paddlecli.graph.ir import Entry, Graph, Rows
from paddlecli.models.build import build
from paddlecli.ops.base import Ragged

from .executor import Batch, Params, Run

TRACERS = Path(__file__).parent.parent / "tracers"
SMALL = ("fit_a_line", "scan", "memories", "two_axes", "two_networks", "decode", "softmax", "mlp", "conv", "twice", "shared",
         "idle", "mixed", "tables", "masked")  # fmt: skip
"""Networks that most tests here run over."""

DIGITS = DatasetSpec(
    "digits", "small pictures",
    (FieldSpec("image", "input", (1, 16, 16), "uint8", preprocess=Preprocess("float32", 1 / 127.5, -1.0)),
     FieldSpec("label", "label", (1,), "int64", classes=3)),
    {"train": 10},
)  # fmt: skip
HOUSES = DatasetSpec(
    "houses", "rows of numbers", (FieldSpec("x", "input", (13,), "float32"), FieldSpec("y", "label", (1,), "float32")),
    {"train": 10},
)  # fmt: skip

MEMORIES = """
name: memories
data:
  name: generated
  lengths: {steps: [0, 5]}
  fields:
    - {name: x, shape: [3], axes: [steps]}
    - {name: context, shape: [4]}
    - {name: y, shape: [1], role: label}
model:
  inputs:
    x: {shape: [3], ragged: steps}
    context: {shape: [4]}
    y: {shape: [1], role: label}
  blocks:
    cell:
      inputs: [x_t]
      memories:
        h: {shape: [3], next: h_next, start: first}
        c: {shape: [2], next: c_next, start: 0.5}
      statics: [given]
      layers:
        - {fc: {size: 3, activation: tanh}, from: [x_t, h, c, given], name: h_next}
        - {fc: {size: 2, activation: sigmoid}, from: [h_next, c], name: c_next}
        - {fc: {size: 2, activation: tanh}, from: [h_next, c_next, h], name: u}
        - {mul: {}, from: [u, c_next], name: v}
        - {add: {}, from: [u, v], name: seen}
      outputs: {seen: seen, hidden: h_next}
  layers:
    - {fc: {size: 3, activation: tanh}, from: context, name: first}
    - {fc: {size: 2}, from: context, name: given}
    - {fc: {size: 3, activation: tanh}, from: x, name: inner}
    - {scan: {block: cell}, from: inner, name: forwards}
    - {scan: {block: cell, reverse: true}, from: inner, name: backwards}
    - {sequence_pool: {kind: average}, from: forwards.hidden, name: a}
    - {sequence_pool: {kind: sum}, from: backwards, name: b}
    - {sequence_pool: {kind: max}, from: inner, name: m}
    - {fc: {size: 1}, from: [a, b, m], name: prediction}
  loss: {square_error_cost: {}, from: [prediction, y]}
  outputs: {prediction: prediction}
optimizer: {name: adam, learning_rate: 0.01}
"""
"""Two scans over one axis that share a block; memories with starts of both kinds, a static input,
two outputs."""


TWICE = """
name: twice
data:
  name: generated
  fields: [{name: a, shape: [3]}, {name: b, shape: [3]}, {name: y, shape: [2], role: label}]
model:
  inputs: {a: {shape: [3]}, b: {shape: [3]}, y: {shape: [2], role: label}}
  blocks:
    branch:
      inputs: [v]
      layers: [{fc: {size: 3, activation: tanh}}, {fc: {size: 2}}]
  layers:
    - {branch: {}, from: a, name: left}
    - {branch: {}, from: b, name: right}
    - {branch: {}, from: a, name: again}
    - {mul: {}, from: [left, right], name: both}
    - {add: {}, from: [both, again], name: prediction}
  loss: {square_error_cost: {}, from: [prediction, y]}
optimizer: {name: sgd, learning_rate: 0.1, clip: {global_norm: 0.5}}
"""
"""One block three times, its parameters shared."""

SHARED = """
name: shared
data:
  name: generated
  fields: [{name: x, shape: [4]}, {name: y, shape: [4], role: label}]
model:
  inputs: {x: {shape: [4]}, y: {shape: [4], role: label}}
  layers:
    - {fc: {size: 4}, from: x, name: raw}
    - {tanh: {}, from: raw, name: h}
    - {fc: {size: 4}, from: h, name: read}
    - {relu: {}, from: read, name: part}
    - {reshape: {shape: [2, 2]}, from: h, name: square}
    - {reshape: {shape: [4]}, from: square, name: line}
    - {mul: {}, from: [h, h], name: power}
    - {mul: {}, from: [power, part], name: five}
    - {add: {}, from: [power, line], name: one}
    - {add: {}, from: [five, power], name: six}
    - {add: {}, from: [h, h], name: two}
    - {add: {}, from: [one, two], name: three}
    - {mul: {}, from: [three, three], name: four}
    - {fc: {size: 4}, from: [four, h, line, six, read], name: prediction}
  loss: {square_error_cost: {}, from: [prediction, y]}
  outputs: {prediction: prediction, square: square, raw: raw}
optimizer: {name: sgd, learning_rate: 0.1, clip: {norm: 0.5}, regularizer: {l2: 0.01}}
"""
"""One value through itself, reshapes and products with itself: gradients that several nodes
share."""

IDLE = """
name: idle
data: {name: generated, fields: [{name: x, shape: [3]}, {name: y, shape: [1], role: label}]}
model:
  inputs: {x: {shape: [3]}, y: {shape: [1], role: label}}
  layers:
    - {fc: {size: 2}, from: x, name: idle}
    - {fc: {size: 1}, from: x, name: prediction}
  loss: {square_error_cost: {}, from: [prediction, y]}
  outputs: {idle: idle}
optimizer: {name: sgd, learning_rate: 0.1}
"""
"""A layer that the loss does not read."""

MIXED = """
name: mixed
data:
  name: generated
  fields: [{name: x, shape: [4]}, {name: label, dtype: int64, classes: 3, role: label}]
metrics:
  - {accuracy: {k: 2}, name: top2}
  - {accuracy: {}, from: [share, label]}
model:
  inputs: {x: {shape: [4]}, label: {dtype: int64, below: 3, role: label}}
  layers:
    - {fc: {size: 6, activation: gelu}, from: x}
    - {dropout: {rate: 0.4, mode: upscale_in_train}, name: kept}
    - {dropout: {rate: 0.3}, name: less}
    - {concat: {axis: 1}, from: [kept, x, less], name: both}
    - {batch_norm: {epsilon: 0.01, activation: relu}}
    - {fc: {size: 5, activation: leaky_relu}, repeat: 2}
    - {fc: {size: 3}, name: logits}
    - {softmax: {}, name: share}
  loss: {cross_entropy: {ignore_index: 0}, from: [share, label], name: surprise}
  outputs: {share: share}
optimizer: {name: adam, learning_rate: 0.1, clip: {value: 0.3}, regularizer: {l1: 0.001}}
"""
"""Random masks, batch statistics, labels that do not count, metrics and a loss with names."""

MASKED = """
name: masked
data: {name: generated, fields: [{name: x, shape: [4]}, {name: y, shape: [2], role: label}]}
model:
  inputs: {x: {shape: [4]}, y: {shape: [2], role: label}}
  layers: [{dropout: {rate: 0.3}, from: x}, {fc: {size: 5}}, {dropout: {rate: 0.5}}, {fc: {size: 2}, name: p}]
  loss: {square_error_cost: {}, from: [p, y]}
optimizer: {name: sgd, learning_rate: 0.1}
"""
"""Random masks alone: parts of a batch draw what the whole batch draws."""

TABLES = """
name: tables
data:
  name: generated
  fields:
    - {name: a, dtype: int64, classes: 3, shape: [4]}
    - {name: b, dtype: int64, classes: 3}
    - {name: y, shape: [1], role: label}
model:
  inputs: {a: {shape: [4], dtype: int64, below: 3}, b: {dtype: int64, below: 3}, y: {shape: [1], role: label}}
  layers:
    - {embedding: {size: 3, dim: 2, sparse: true, table: words}, from: a, name: many}
    - {embedding: {size: 3, dim: 2, sparse: true, table: words, padding_idx: 1}, from: b, name: one}
    - {embedding: {size: 5, dim: 2, sparse: true}, from: b, name: unread}
    - {embedding: {size: 3, dim: 2, padding_idx: 2}, from: b, name: dense}
    - {fc: {size: 1}, from: [many, one, dense], name: prediction}
  loss: {square_error_cost: {}, from: [prediction, y]}
  outputs: {unread: unread, prediction: prediction}
optimizer: {name: adagrad, learning_rate: 0.1, clip: {global_norm: 0.3}, regularizer: {l2: 0.01}}
"""
"""Dense and row-sparse tables: shared ones, padding, several ids a row, one that the loss does not
read."""

WRITTEN = {
    "memories": MEMORIES, "twice": TWICE, "shared": SHARED, "idle": IDLE, "mixed": MIXED, "tables": TABLES,
    "masked": MASKED,
}  # fmt: skip


def recipe_of(
    text: str, tmp_path: Path, name: str = "recipe.yaml", overrides: Sequence[str] = ()
) -> Recipe:
    """A recipe from its text."""
    path = tmp_path / name
    path.write_text(text)
    return load_recipe(path, overrides)


def graph_of(recipe: Recipe, data: DatasetSpec | None = None) -> Graph:
    """The forward graph over the recipe's data set, or another."""
    if data is None:
        assert recipe.data is not None
        data = describe(recipe.data.name, recipe.data.arguments)
    return build(recipe, data)


def digits_recipe(model: str, tmp_path: Path, optimizer: str = "adam") -> Recipe:
    """A registered digit net of three classes."""
    arguments = {
        "digits_softmax": "",
        "digits_mlp": ", hidden: 5, hidden_act: tanh",
        "digits_conv": "",
    }[model]
    text = f"""
name: {model}
model: {{name: {model}, classes: 3{arguments}}}
optimizer: {{name: {optimizer}, learning_rate: 0.01}}
metrics: [accuracy]
"""
    return recipe_of(text, tmp_path)


def network(name: str, tmp_path: Path) -> tuple[Graph, dict[str, OptimizerSpec]]:
    """One of :data:`SMALL`."""
    data = None
    if name == "fit_a_line":
        recipe, data = load_recipe("fit_a_line"), HOUSES
    elif name in ("softmax", "mlp", "conv"):
        recipe, data = digits_recipe(f"digits_{name}", tmp_path), DIGITS
    elif name in WRITTEN:
        recipe = recipe_of(WRITTEN[name], tmp_path)
    else:
        recipe = load_recipe(TRACERS / f"{name}.yaml")
    return graph_of(recipe, data), optimizers(recipe)


LENGTHS = (3, 0, 5, 1, 3, 2, 0)
"""Lengths of sequences: equal ones, empty ones, not sorted."""


def draw(
    graph: Graph, size: int, seed: int = 0, lengths: Mapping[str, Sequence[int]] | None = None
) -> Batch:
    """A batch of random inputs; integers are 0 or 1. Loss weights are those of the whole batch,
    rates 0.1."""
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {}
    offsets: dict[str, Any] = {}
    for name, t in graph.inputs.items():
        rows, axis = size, t.spec.axis
        if axis is not None:
            if axis.name not in offsets:
                shift = len(offsets)
                found = (lengths or {}).get(axis.name) or [
                    LENGTHS[(i + shift) % len(LENGTHS)] for i in range(size)
                ]
                offsets[axis.name] = np.concatenate([[0], np.cumsum(found)]).astype(np.int64)
            rows = int(offsets[axis.name][-1])
        shape = (rows, *(d.coefficient for d in t.spec.shape[1:]))
        high = 256 if t.spec.dtype == "u8" else 2
        values = (
            rng.standard_normal(shape) if t.spec.dtype[0] == "f" else rng.integers(0, high, shape)
        )
        columns[name] = values if axis is None else Ragged(values, offsets[axis.name])
    arguments = {
        n: weight_of(a.count, size, columns) if a.kind == "weight" else 0.1
        for n, a in graph.arguments.items()
    }
    return Batch(size, columns, arguments)


def weight_of(count: str, size: int, columns: Mapping[str, Any]) -> float:
    """Total weight of a loss over a batch."""
    kind, _, rest = count.partition(":")
    if kind == "batch":
        return float(size)
    if kind == "axis":
        axis = next(c for c in columns.values() if isinstance(c, Ragged))
        return float(axis.offsets[-1])
    name, _, ignored = rest.rpartition(":")
    column = columns[name]
    return float(
        (np.asarray(column.values if isinstance(column, Ragged) else column) != int(ignored)).sum()
    )


def with_rates(graph: Graph, batch: Batch) -> Batch:
    """The batch with the arguments that the passes added (learning rates)."""
    more = {n: 0.1 for n in graph.arguments if n not in batch.arguments}
    return Batch(batch.size, batch.columns, {**batch.arguments, **more}, batch.step)


def fresh(stages: Stages, seed: int = 1) -> Params:
    """Parameters and states before training; biases are drawn too, so that nothing is 0 by
    chance."""
    params = Params(stages.storage)
    rng = np.random.default_rng(seed)
    params.fill(dict(stages.graph.starts(seed)))
    for name, t in stages.graph.parameters.items():
        if t.spec.ndim == 1:
            params.array(name)[...] += rng.uniform(-0.3, 0.3, params.array(name).shape)
    for key, start in stages.storage.slot_start.items():
        params.array(key)[...] = start
    return params


def gradients_of(entry: Entry, run: Run) -> dict[str, np.ndarray[Any, Any]]:
    """Dense gradients of an entry's parameters after a run."""
    found = {}
    for name, g in entry.gradients.items():
        if isinstance(g, Rows):
            ids, values, count = run.array(g.ids), run.array(g.values), int(run.array(g.count)[0])
            dense = np.zeros(run.params.array(name).shape)
            dense[ids[:count]] = values[:count]
            found[name] = dense
        else:
            found[name] = np.array(run.array(g))
    return found
