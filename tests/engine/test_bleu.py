"""BLEU against values of sacrebleu 2.6 (corpus_bleu, tokenize none, force, default smoothing)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from paddlecli.compiler.optimizer import optimizers
from paddlecli.compiler.pipeline import run_passes
from paddlecli.config.load import load_recipe
from paddlecli.data.opening import describe
from paddlecli.engine.api import evaluate, fit
from paddlecli.engine.bleu import Bleu, Counts, Words
from paddlecli.graph.ir import Loop
from paddlecli.models.build import build

REFERENCES = (
    "ein mann mit einem orangen hut starrt auf etwas .",
    "zwei hunde spielen im schnee .",
    "eine frau in einem roten kleid singt ein lied auf der bühne .",
    "kinder laufen über die wiese",
)
SAID = {
    "good": (
        "ein mann mit einem orangen hut starrt etwas an .",
        "zwei hunde spielen in dem schnee .",
        "eine frau in einem roten kleid singt auf der bühne .",
        "kinder laufen über eine wiese",
    ),
    "brief": (
        "ein mann mit hut .",
        "zwei hunde spielen",
        "eine frau in einem roten kleid",
        "kinder laufen",
    ),
    "no four": (
        "ein mann mit dem hut .",
        "hunde im schnee .",
        "eine frau in rot singt ein lied",
        "die wiese",
    ),
    "short": ("ein mann mit", "zwei hunde spielen", "eine frau", "kinder"),
    "none": ("a", "b c", "d e f g", "h i j k l"),
    "repeated": (
        "ein ein ein ein ein",
        "zwei zwei zwei .",
        "eine frau eine frau eine frau in einem",
        "kinder kinder laufen über die",
    ),
}
WANTED = {
    "good": 59.913044026611935,
    "brief": 25.405428527264974,
    "no four": 15.091569529128408,
    "short": 0.0,
    "none": 0.0,
    "repeated": 18.105677316673678,
}


def bleu(said: Iterable[Words], wanted: Iterable[Words]) -> float:
    counts = Counts()
    for one, other in zip(said, wanted, strict=True):
        counts.add(one, other)
    return counts.score()


@pytest.mark.parametrize("name", SAID)
def test_values(name: str) -> None:
    found = bleu([s.split() for s in SAID[name]], [s.split() for s in REFERENCES])
    assert found == pytest.approx(WANTED[name], abs=1e-9)


def test_of_nothing() -> None:
    assert math.isnan(bleu([], []))
    assert bleu([[]], [["a"]]) == 0.0


def test_the_metric_reads_ids_up_to_the_end() -> None:
    """The best of the beams; batch by batch as all at once; an unknown word of the reference equals nothing."""
    said = [[5, 6, 7, 8, 9], [5, 6, 7, 8], [4, 4]]
    wanted = [[5, 6, 7, 8, 9], [5, 6, 3, 8, 9], [4, 2]]
    ids = np.ones((3, 2, 8), np.int64)
    for row, sentence in zip(ids, said, strict=True):
        row[0, : len(sentence)] = sentence
    labels = [np.array([*s, 1]) for s in wanted]
    metric = Bleu()
    metric.add(ids[:2], labels[:2])
    metric.add(ids[2:], labels[2:])
    assert metric.result() == pytest.approx(bleu(said, [*wanted[:2], [4, -1]]))
    known = Bleu(unknown=99)
    known.add(ids[:, 0], labels)
    assert known.result() == pytest.approx(bleu(said, wanted))


TRANSLATION = """
name: pairs
data: {name: synthetic/pairs}
model: {name: translation_attention, dim: 8, hidden: 8, beam: 3, max_length: 12}
optimizer: {name: adam, learning_rate: 0.02}
train: {epochs: 1, batch_size: 16, max_steps: 60}
"""
BOTH = """metrics:
  - {bleu: {}, from: [ids, next]}
  - {bleu: {}, name: bleu_greedy, from: [greedy, next]}
"""


def test_greedy_beside_beams(tmp_path: Path) -> None:
    """What is found without beams is what the same model finds where its recipe has none."""
    (tmp_path / "both.yaml").write_text(TRANSLATION + BOTH)
    found = fit(tmp_path / "both.yaml", run_dir=tmp_path / "both").metrics["test"]
    text = TRANSLATION.replace("beam: 3", "beam: 1") + BOTH
    (tmp_path / "one.yaml").write_text(text)
    alone = fit(tmp_path / "one.yaml", run_dir=tmp_path / "one").metrics["test"]
    assert 0 < found["bleu_greedy"] == alone["bleu"] == alone["bleu_greedy"]
    assert found["bleu"] != found["bleu_greedy"] and found["loss"] == alone["loss"]
    assert evaluate(tmp_path / "both").metrics["bleu_greedy"] == found["bleu_greedy"]


@pytest.mark.parametrize(("metrics", "loops"), [("", 1), (BOTH, 3)])
def test_evaluations_search_only_what_a_metric_reads(
    tmp_path: Path, metrics: str, loops: int
) -> None:
    """One loop reads the target; prediction searches once."""
    (tmp_path / "r.yaml").write_text(TRANSLATION + metrics)
    recipe = load_recipe(tmp_path / "r.yaml")
    graph = build(recipe, describe("synthetic/pairs"))
    entries = run_passes(graph, optimizers(recipe)).fused.entries
    found = {n: sum(isinstance(i, Loop) for i in e.items) for n, e in entries.items()}
    assert found["eval_step"] == loops and found["predict"] == 1
