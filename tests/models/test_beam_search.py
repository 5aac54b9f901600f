"""Beam search against a plain one in numpy, and against the scan that scores what was found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from null.executor import Batch
from null.world import TRACERS, draw, graph_of, recipe_of
from road import Road

from paddlecli.compiler.optimizer import optimizers
from paddlecli.config.load import load_recipe
from paddlecli.errors import ConfigError
from paddlecli.ops.base import Ragged

Array = np.ndarray[Any, np.dtype[Any]]
LIMIT, END = 6, 1

NET = """
name: beams
data: {{name: generated, fields: [{{name: context, shape: [4]}}]}}
model:
  inputs: {{context: {{shape: [4]}}}}
  blocks:
    step:
      inputs: [word]
      memories: {{h: {{shape: [5], next: g, start: first}}, c: {{shape: [5], next: k, start: 0.1}}}}
      statics: [context]
      layers:
        - {{embedding: {{size: {words}, dim: 3}}, from: word, name: e}}
        - {{fc: {{size: 5, activation: tanh}}, from: [e, h, c, context], name: g}}
        - {{fc: {{size: 5, activation: sigmoid}}, from: [h, c], name: k}}
        - {{fc: {{size: {words}}}, from: g, name: s}}
        - {{{last}: {{}}, name: p}}
      outputs: {{p: p}}
  layers:
    - {{fc: {{size: 5}}, from: context, name: first}}
    - {{decode: {{block: step, beam: {beam}, max_length: 6, logarithms: {logarithms}}}, name: d}}
  outputs: {{ids: d, length: d.length, score: d.score}}
"""


def network(
    tmp_path: Path, words: int, beam: int, logarithms: bool, seed: int, pull: float
) -> Road:
    last = "log_softmax" if logarithms else "softmax"
    text = NET.format(words=words, beam=beam, logarithms=str(logarithms).lower(), last=last)
    road = Road(graph_of(recipe_of(text, tmp_path)))
    rng = np.random.default_rng(seed)
    road.write({n: rng.normal(0, 1, road.places[n].shape) for n in road.graph.parameters})
    bias = road.read("step/s/b")
    bias[END] += pull
    road.write({"step/s/b": bias})
    return road


def stepper(road: Road, context: Array) -> Callable[[Array, Any], tuple[Array, Any]]:
    """The block for one sample: last ids and memories of its prefixes -> log-probabilities and memories."""
    p = {n: road.read(n).astype(np.float64) for n in road.graph.parameters}

    def step(ids: Array, memory: Any) -> tuple[Array, Any]:
        h, c = memory
        parts = (
            p["step/e/w"][ids],
            h,
            c,
            np.tile(context, (len(ids), 1)),
        )
        g = np.tanh(sum(x @ p[f"step/g/w{i or ''}"] for i, x in enumerate(parts)) + p["step/g/b"])
        k = 1 / (1 + np.exp(-(h @ p["step/k/w"] + c @ p["step/k/w1"] + p["step/k/b"])))
        s = g @ p["step/s/w"] + p["step/s/b"]
        s -= s.max(1, keepdims=True)
        return s - np.log(np.exp(s).sum(1, keepdims=True)), (g, k)

    return step


def search(road: Road, context: Array, beam: int) -> list[tuple[float, list[int]]]:
    """Plain beam search of one sample: (score, ids) with the end mark, best first."""
    step = stepper(road, context)
    first = context @ road.read("first/w").astype(np.float64) + road.read("first/b")
    prefixes: list[tuple[float, list[int], Any]] = [(0.0, [], (first, np.full(5, 0.1)))]
    for _ in range(LIMIT):
        offers = []
        for k, (score, ids, memory) in enumerate(prefixes):
            if ids and ids[-1] == END:
                offers.append((score, -k, END, ids, memory))
                continue
            last = np.array([ids[-1] if ids else 0])
            logs, after = step(last, tuple(m[None] for m in memory))
            kept = tuple(m[0] for m in after)
            offers += [(score + x, -k, i, [*ids, i], kept) for i, x in enumerate(logs[0])]
        best = sorted(offers, key=lambda o: (-o[0], o[1], o[2]))[:beam]
        prefixes = [(o[0], o[3], o[4]) for o in sorted(best, key=lambda o: -o[1])]
        if all(ids[-1] == END for _, ids, _ in prefixes):
            break
    return sorted(((s, ids) for s, ids, _ in prefixes), key=lambda x: -x[0])


@pytest.mark.parametrize("logarithms", [False, True], ids=["probabilities", "logarithms"])
@pytest.mark.parametrize(("words", "beam"), [(7, 2), (7, 4), (2, 4), (19, 3)])
@pytest.mark.parametrize("pull", [-2.0, 1.0, 6.0])
def test_beams_are_those_of_a_plain_search(
    words: int, beam: int, logarithms: bool, pull: float, tmp_path: Path
) -> None:
    """Ended early, late or never; a vocabulary smaller than the beam."""
    for seed in range(3):
        road = network(tmp_path, words, beam, logarithms, seed, pull)
        batch = draw(road.graph, 4, seed=seed)
        found = road.step("predict", batch, outputs=True).outputs
        for i, context in enumerate(batch.columns["context"]):
            wanted = search(road, context, beam)
            for k, (score, ids) in enumerate(wanted):
                said = ids[: ids.index(END)] if END in ids else ids
                assert found["length"][i, k] == len(said)
                assert found["ids"][i, k].tolist() == said + [END] * (LIMIT - len(said))
                assert found["score"][i, k] == pytest.approx(score, abs=2e-5)
            assert (found["score"][i, len(wanted) :] < -1e8).all()


def test_no_samples(tmp_path: Path) -> None:
    road = network(tmp_path, 7, 3, True, 0, 0.0)
    found = road.step("predict", draw(road.graph, 0), outputs=True).outputs
    assert found["ids"].shape == (0, 3, LIMIT)


def test_a_sample_has_its_own_beams(tmp_path: Path) -> None:
    """The same bits alone and in a batch."""
    road = network(tmp_path, 9, 3, True, 1, 0.5)
    batch = draw(road.graph, 7)
    together = road.step("predict", batch, outputs=True).outputs
    for i in range(7):
        alone = Batch(1, {"context": batch.columns["context"][i : i + 1]}, batch.arguments)
        found = road.step("predict", alone, outputs=True).outputs
        assert all(np.array_equal(found[k][0], together[k][i]) for k in together)


def test_scores_are_those_of_the_scan() -> None:
    """What a decode with beams and attention finds has in the scan over the given words the probability that it says: memories
    went along with their prefixes, and rows asked their own source."""
    recipe = load_recipe(TRACERS / "attention.yaml", [])
    road = Road(graph_of(recipe), optimizers(recipe))
    rng = np.random.default_rng(5)
    road.write({n: rng.normal(0, 0.8, road.places[n].shape) for n in road.graph.parameters})
    lengths = (3, 0, 5, 1)
    batch = draw(road.graph, 4, lengths={"src": lengths, "trg": (1, 1, 1, 1)})
    found = road.step("write", batch, outputs=True).outputs
    source = batch.columns["source"]
    assert isinstance(source, Ragged)
    checked = 0
    for i, n in enumerate(lengths):
        own = Ragged(source.values[source.offsets[i] : source.offsets[i + 1]], np.array([0, n]))
        for k in range(3):
            size = int(found["length"][i, k])
            said = found["ids"][i, k, :size].tolist()
            after = [*said, 1][:6]
            words = {"before": [0, *said][: len(after)], "after": after}
            rows = {key: Ragged(np.array(v), np.array([0, len(v)])) for key, v in words.items()}
            arguments = dict.fromkeys(batch.arguments, 1.0)
            loss = road.step("learn", Batch(1, {"source": own, **rows}, arguments), 0.0).loss
            assert loss == pytest.approx(-found["score"][i, k], abs=2e-5)
            checked += 1
    assert checked == 12


def test_a_memory_must_be_computed(tmp_path: Path) -> None:
    text = NET.format(words=5, beam=2, logarithms="true", last="log_softmax").replace(
        "next: k", "next: h"
    )
    with pytest.raises(
        ConfigError, match=r"\[decode\] the step gives no next value of memory 'c' that it computes"
    ):
        graph_of(recipe_of(text, tmp_path))
