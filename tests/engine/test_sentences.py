"""Answers of networks that write sentences."""

from __future__ import annotations

import numpy as np
from null.world import TRACERS, graph_of

from paddlecli.cli.predict import _line
from paddlecli.config.load import load_recipe
from paddlecli.engine.sentences import Sentences

WORDS = ("<s>", "<e>", "<unk>", "zwei", "hunde", "spielen")


def test_the_best_and_all_with_their_scores() -> None:
    """One that was cut has not ended; beams that found nothing are left out; one may be empty."""
    ids = np.array([[[3, 4, 5, 1], [3, 4, 5, 5], [1, 1, 1, 1], [2, 1, 1, 1]]])
    outputs = {
        "ids": ids,
        "length": np.array([[3, 4, 0, 1]]),
        "score": np.array([[-0.5, -1.0, -2.0, -1e9]]),
    }
    (found,) = Sentences("ids", "length", "score", WORDS).answers(outputs)
    assert found["text"] == "zwei hunde spielen" and found["score"] == -0.5 and found["ended"]
    assert [(s["text"], s["ended"]) for s in found["sentences"]] == [
        ("zwei hunde spielen", True), ("zwei hunde spielen spielen", False), ("", True)
    ]  # fmt: skip
    assert _line({"input": "two dogs play", **found}).split("\n") == [
        "two dogs play", "    -0.500  zwei hunde spielen", "    -1.000  zwei hunde spielen spielen", "    -2.000  (nothing)"
    ]  # fmt: skip


def test_without_beams() -> None:
    outputs = {"ids": np.array([[4, 1, 1]]), "length": np.array([1])}
    (found,) = Sentences("ids", "length", None, WORDS).answers(outputs)
    assert found == {"text": "hunde", "ended": True}
    assert _line({"input": "dogs", **found}) == "dogs\n  hunde"


def test_which_outputs_hold_sentences() -> None:
    entry = graph_of(load_recipe(TRACERS / "attention.yaml", [])).entries["write"]
    assert Sentences.of(entry, "ids", WORDS) == Sentences("ids", "length", "score", WORDS)
    assert Sentences.of(entry, "length", WORDS) is None
    assert Sentences.of(entry, "ids", ()) is None
    greedy = graph_of(load_recipe(TRACERS / "decode.yaml", [])).entries["write"]
    assert Sentences.of(greedy, "ids", WORDS) == Sentences("ids", "length", None, WORDS)
