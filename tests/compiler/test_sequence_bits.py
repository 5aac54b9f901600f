"""Networks over sequences: what they find for a sample, their losses and metrics are the same bits whatever shares its batch,
however large the batch is and in whatever order it comes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from null.world import recipe_of

from paddlecli.data.axes import levels
from paddlecli.data.columns import Column, Split
from paddlecli.data.opening import open_dataset
from paddlecli.engine.evaluation import Evaluator
from paddlecli.engine.machine import Machine
from paddlecli.engine.prepare import Prepared, fields_of, prepare
from paddlecli.engine.requests import Call, Maker

ROWS = 64
WORDS = """
  lengths: {words: [0, 23]}
  fields:
    - {name: words, dtype: int64, classes: 50, axes: [words]}
    - {name: label, dtype: int64, classes: 3, role: label}
"""
ROLES = "".join(
    f"    - {{name: {name}, dtype: int64, classes: {size}, axes: [words]}}\n"
    for name, size in (
        *((f"{n}", 40) for n in ("word", "ctx_n2", "ctx_n1", "ctx_0", "ctx_p1", "ctx_p2")),
        ("verb", 20),
        ("mark", 2),
    )
)
PAIRS = """
  lengths: {source: [1, 19], target: [1, 17]}
  fields:
    - {name: source, dtype: int64, classes: 40, axes: [source]}
    - {name: target, dtype: int64, classes: 40, axes: [target]}
    - {name: next, dtype: int64, classes: 40, role: label, axes: [target]}
"""
CELLS = """
model:
  inputs: {words: {dtype: int64, below: 50, ragged: words}, label: {dtype: int64, below: 3, role: label}}
  layers:
    - {embedding: {size: 50, dim: 20}, from: words, name: e}
    - {bidirectional_gru: {size: 12}, from: e, name: gru}
    - {bidirectional_lstm: {size: 9}, from: gru, name: lstm}
    - {fc: {size: 32}, from: lstm, name: wide}
    - {dynamic_lstmp: {size: 32, projection: 5, reverse: true}, from: wide, name: narrow}
    - {fc: {size: 11}, from: [narrow, gru], name: plain}
    - {simple_rnn: {size: 11}, from: plain, name: rnn}
    - {row_conv: {future: 2}, from: rnn, name: ahead}
    - {sequence_pool: {kind: average}, from: ahead, name: pooled}
    - {fc: {size: 3}, from: pooled, name: scores}
  loss: {softmax_with_cross_entropy: {}, from: [scores, label]}
  outputs: {scores: scores, states: rnn}
metrics: [{accuracy: {}, from: [scores, label]}]
"""
ATTENTION = """
model:
  inputs: {words: {dtype: int64, below: 50, ragged: words}, label: {dtype: int64, below: 3, role: label}}
  layers:
    - {embedding: {size: 50, dim: 300}, from: words, name: e}
    - {multi_head_attention: {heads: 3, size: 36, causal: true}, from: e, name: before}
    - {multi_head_attention: {heads: 2, size: 20}, from: before, name: all}
    - {layer_norm: {}, from: all, name: norm}
    - {fc: {size: 1}, from: norm, name: weight}
    - {sequence_softmax: {}, from: weight, name: share}
    - {mul: {}, from: [norm, share], name: shared}
    - {sequence_pool: {kind: sum}, from: shared, name: pooled}
    - {fc: {size: 3}, from: pooled, name: scores}
  loss: {softmax_with_cross_entropy: {}, from: [scores, label]}
  outputs: {scores: scores, tokens: norm}
metrics: [{accuracy: {}, from: [scores, label]}]
"""
TOKENS = """
  lengths: {sound: [8, 30], letters: [0, 4]}
  fields:
    - {name: sound, shape: [6], axes: [sound]}
    - {name: letters, dtype: int64, classes: 9, role: label, axes: [letters]}
model:
  inputs: {sound: {shape: [6], ragged: sound}, letters: {dtype: int64, below: 9, ragged: letters, role: label}}
  layers:
    - {bidirectional_lstm: {size: 10}, from: sound, name: heard}
    - {fc: {size: 10}, from: heard, name: scores}
    - {ctc_greedy_decode: {blank: 9}, from: scores, name: said}
  loss: {ctc: {blank: 9}, from: [scores, letters]}
  outputs: {scores: scores, said: said}
"""
NETWORKS = {
    "stacked_lstm": f"{WORDS}\nmodel: {{name: sentiment_stacked_lstm, dim: 20, hidden: 48, classes: 3}}\nmetrics: [accuracy]",
    "dyn_rnn": f"{WORDS}\nmodel: {{name: sentiment_dyn_rnn, dim: 20, hidden: 48, classes: 3}}\nmetrics: [accuracy]",
    "conv": f"{WORDS}\nmodel: {{name: sentiment_conv, dim: 20, filters: 40, classes: 3}}\nmetrics: [accuracy]",
    "db_lstm": (
        f"\n  lengths: {{words: [0, 20]}}\n  fields:\n{ROLES}"
        "    - {name: label, dtype: int64, classes: 7, role: label, axes: [words]}\n"
        "model: {name: db_lstm, word_dim: 8, hidden: 40, depth: 3}\n"
        "metrics: [{chunk_eval: {}, from: [tags, label]}]"
    ),
    "attention": f"{PAIRS}\nmodel: {{name: translation_attention, dim: 20, hidden: 24, tanh: true, beam: 3, max_length: 9}}",
    "attention_as_the_book": f"{PAIRS}\nmodel: {{name: translation_attention, dim: 20, hidden: 24, beam: 2, max_length: 9}}",
    "plain": f"{PAIRS}\nmodel: {{name: translation_plain, max_length: 9}}",
    "cells": WORDS + CELLS,
    "heads": WORDS + ATTENTION,
    "ctc": TOKENS,
}
"""What stands behind `data:` in a recipe; all on generated data, most with empty sequences among them."""


class World:
    """A network with shaken parameters, its data, and what it finds."""

    def __init__(self, name: str, folder: Path) -> None:
        text = f"name: {name}\ndata:\n  name: generated\n  samples: {ROWS}\n  test_samples: 0{NETWORKS[name]}\n"
        recipe = recipe_of(text + "optimizer: {name: sgd, learning_rate: 0.1}\n", folder)
        assert recipe.data is not None
        self.prepared: Prepared = prepare(recipe, fields_of(recipe))
        self.split = open_dataset(recipe.data.name, recipe.data.arguments)["train"]
        self.machine = Machine(self.prepared.artifact, threads=2)
        rng = np.random.default_rng(1)
        for key, value in self.prepared.graph.starts(3):
            self.machine.write(
                {key: value + rng.uniform(-0.3, 0.3, value.shape).astype(value.dtype)}
            )

    def found(self, entry: str, split: Split, size: int) -> list[dict[str, bytes]]:
        """The outputs of every sample, batch by batch."""
        info = self.prepared.artifact.entries[entry]
        maker = Maker(self.prepared.artifact, [Call(info)], self.prepared.spec, split, size)
        rows = np.arange(len(split))
        work = maker.make(rows, 0, -(-len(split) // size), 0)
        samples: list[dict[str, bytes]] = []
        for first, outputs in zip(
            range(0, len(split), size), self.machine.run(work, split, True).outputs, strict=True
        ):
            part = Split("part", split.take(rows[first : first + size]))
            samples += self._samples(entry, outputs, part)
        return samples

    def _samples(
        self, entry: str, outputs: Mapping[str, Any], part: Split
    ) -> list[dict[str, bytes]]:
        info = self.prepared.artifact.entries[entry]
        pieces: dict[str, list[Any]] = {}
        for name, value in outputs.items():
            axis = info.outputs[name].axis
            pieces[name] = (
                list(value) if axis is None else np.split(value, levels(part, axis)[-1][1:-1])
            )
        if "length" in pieces:  # sentences are as wide as the longest of their batch
            pieces["ids"] = [
                _sentences(i, n) for i, n in zip(pieces["ids"], pieces["length"], strict=True)
            ]
        rows = zip(*pieces.values(), strict=True)
        return [{k: v.tobytes() for k, v in zip(pieces, row, strict=True)} for row in rows]

    def measured(self, split: Split, size: int) -> dict[str, float]:
        """Losses and metrics; the book's mean over batches depends on them by definition."""
        entry = self.prepared.artifact.entries["eval_step"]
        measured = Evaluator(self.machine, entry, self.prepared.spec, split, size).measure()
        assert measured is not None
        return {k: v for k, v in measured.metrics.items() if not k.endswith("_batch_mean")}


def _sentences(ids: Any, length: Any) -> Any:
    rows = zip(ids.reshape(-1, ids.shape[-1]), length.reshape(-1).tolist(), strict=True)
    return np.concatenate([row[:n] for row, n in rows])


@pytest.fixture(scope="module", params=[*NETWORKS])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> World:
    """One network."""
    return World(request.param, tmp_path_factory.mktemp(request.param))


def test_outputs(world: World) -> None:
    """Every output of a sample, alone, among 7 and among 64, and with the batch turned around."""
    entries = [n for n, e in world.prepared.graph.entries.items() if not e.training and e.outputs]
    assert "predict" in entries
    order = np.random.default_rng(7).permutation(ROWS)
    mixed = Split("mixed", world.split.take(order))
    for entry in entries:
        alone = world.found(entry, world.split, 1)
        assert len(alone) == ROWS and len({repr(sample) for sample in alone}) > ROWS // 4
        for size in (7, ROWS):
            assert world.found(entry, world.split, size) == alone, (entry, size)
            assert world.found(entry, mixed, size) == [alone[i] for i in order], (entry, size)


def test_losses_and_metrics(world: World) -> None:
    """The evaluation's numbers at every batch size and in every order."""
    expected = world.measured(world.split, 1)
    assert expected["loss"] > 0
    order = np.random.default_rng(8).permutation(ROWS)
    for size in (7, ROWS):
        assert world.measured(world.split, size) == expected
        assert world.measured(Split("mixed", world.split.take(order)), size) == expected


def _dealt(world: World, lengths: list[int]) -> Split:
    """The data's first tokens, dealt out to sequences of these lengths; two letters to each where there are letters."""
    columns = {}
    for name, column in world.split.columns.items():
        offsets = np.append(0, np.cumsum([2] * len(lengths) if name == "letters" else lengths))
        ragged = bool(column.offsets)
        values = column.values[: offsets[-1] if ragged else len(lengths)]
        columns[name] = Column(np.ascontiguousarray(values), (offsets,) if ragged else ())
    return Split("dealt", columns)


def test_memory_follows_tokens(world: World) -> None:
    """A training step holds as much for one long sequence among short ones as for even ones with as many tokens, but for
    the few bytes in which a loop keeps its steps."""
    prepared, found = world.prepared, []
    owners = {a.of for a in prepared.artifact.arguments if a.kind == "learning_rate"}
    rates = {name: np.full(1, 0.01) for name in owners}
    even, skewed = [12] * 9, [5] * 8 + [68]
    for lengths in (even, skewed):
        machine, split = Machine(prepared.artifact, threads=1), _dealt(world, lengths)
        machine.write(prepared.graph.starts(3))
        maker = Maker(
            prepared.artifact, prepared.calls, prepared.spec, split, 9, lambda first, count: rates
        )
        assert machine.run(maker.make(np.arange(9), 0, 1, 0), split).done == 1
        found.append(machine._session.bytes)
    assert 0 <= found[1] - found[0] <= 2 * 16 * 68 < found[0] // 20
