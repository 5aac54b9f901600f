"""Metrics of recipes, from the recipe's text to the reported numbers: against plain numpy, and the same over every cut into
batches and threads."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paddlecli.compiler.pipeline import compile_graph
from paddlecli.config.load import load_recipe
from paddlecli.data.columns import Column, Split, pack
from paddlecli.engine.evaluation import Evaluator
from paddlecli.engine.machine import Machine
from paddlecli.engine.prepare import fields_of
from paddlecli.errors import ConfigError, DataError
from paddlecli.graph.serialize import from_yaml, to_yaml
from paddlecli.models.build import build

ROWS, CLASSES, TYPES = 203, 4, 3
RECIPE = """
name: measured
model:
  inputs:
    scores: {shape: [4]}
    y: {shape: [1], dtype: int64, role: label}
    pair: {shape: [2]}
    one: {shape: [1]}
    b: {shape: [1], dtype: int64, role: label}
    p: {shape: [3]}
    t: {shape: [3], role: label}
    found: {dtype: int64, ragged: words}
    wanted: {dtype: int64, ragged: words, role: label}
    tag_scores: {shape: [7], ragged: words}
    hyp: {dtype: int64, ragged: true}
    ref: {dtype: int64, ragged: true, role: label}
  layers:
    - softmax: {}
      from: scores
      name: probability
    - scale: {a: 0.5}
      from: p
      name: half
  loss: {square_error_cost: {}, from: [p, t]}
metrics:
"""


@cache
def columns() -> dict[str, Column]:
    """Numbers drawn once: float32 and int64 columns, and three ragged axes with empty sequences."""
    rng = np.random.default_rng(8)

    def plain(*shape: int) -> np.ndarray:
        return rng.normal(size=(ROWS, *shape)).astype(np.float32)

    def ids(high: int, lengths: np.ndarray) -> list[np.ndarray]:
        return [rng.integers(0, high, n) for n in lengths]

    words = rng.integers(0, 9, ROWS)
    words[3] = 0
    wanted = ids(2 * TYPES + 1, words)
    found = [np.where(rng.random(len(w)) < 0.7, w, rng.permutation(w)) for w in wanted]
    scores, y = plain(4), rng.integers(0, CLASSES, (ROWS, 1))
    scores[np.arange(ROWS), y[:, 0]] += 1
    pair = rng.dirichlet([1, 1], ROWS).astype(np.float32)
    t = (rng.normal(size=(ROWS, 3)) * 10.0 ** rng.integers(-6, 9, (ROWS, 3))).astype(np.float32)
    return {
        "scores": Column(scores),
        "y": Column(np.where(rng.random((ROWS, 1)) < 0.1, -100, y)),
        "pair": Column(pair),
        "one": Column(plain(1)),
        "b": Column((rng.random((ROWS, 1)) < pair[:, 1:]).astype(np.int64)),
        "p": Column((t * (1 + 0.1 * plain(3))).astype(np.float32)),
        "t": Column(t),
        "found": pack(found, "int64"),
        "wanted": pack(wanted, "int64"),
        "tag_scores": pack([np.eye(7)[f] for f in found], "float32", (7,)),
        "hyp": pack(ids(3, rng.integers(0, 7, ROWS)), "int64"),
        "ref": pack(ids(3, rng.integers(1, 7, ROWS)), "int64"),
    }


def measure(
    folder: Path,
    metrics: str,
    batch: int = 64,
    threads: int = 1,
    stored: bool = False,
    **changed: Column,
) -> dict[str, float]:
    """What an evaluation reports for the metrics of a recipe."""
    (folder / "r.yaml").write_text(RECIPE + metrics)
    recipe = load_recipe(folder / "r.yaml")
    spec = fields_of(recipe)
    graph = build(recipe, spec)
    artifact = compile_graph(from_yaml(to_yaml(graph)) if stored else graph, {})
    entry = artifact.entries[artifact.roles["evaluate"]]
    split = Split("test", {**columns(), **changed})
    machine = Machine(artifact, threads=threads)
    evaluator = Evaluator(machine, entry, spec, split, batch)
    assert evaluator.measure(stopped=lambda: True) is None  # a signal between two requests
    found = evaluator.measure()
    assert found is not None
    return {k: v for k, v in found.metrics.items() if not k.startswith("loss")}


# -- the same numbers in plain numpy ---------------------------------------------------------------
def values(name: str) -> np.ndarray:
    return columns()[name].values


def kept() -> tuple[np.ndarray, np.ndarray]:
    """Scores and labels of the rows that count."""
    label = values("y")[:, 0]
    return values("scores")[label >= 0], label[label >= 0]


def top(k: int) -> float:
    scores, label = kept()
    return float(np.mean([y in np.argsort(-s)[:k] for s, y in zip(scores, label, strict=True)]))


def binary(probability: np.ndarray) -> tuple[float, float, float]:
    yes, one = probability >= 0.5, values("b")[:, 0] == 1
    right = (yes & one).sum()
    return right / yes.sum(), right / one.sum(), 2 * right / (yes.sum() + one.sum())


def by_class() -> np.ndarray:
    """Precision, recall and F1 of each class [classes, 3]."""
    scores, label = kept()
    best = scores.argmax(1)
    found = []
    for c in range(CLASSES):
        right = ((best == c) & (label == c)).sum()
        predicted, there = (best == c).sum(), (label == c).sum()
        found.append([right / predicted, right / there, 2 * right / (predicted + there)])
    return np.array(found)


def area(probability: np.ndarray) -> float:
    """Pairs in order, of scores in 4096 buckets; ties half."""
    bucket, one = (probability.astype(np.float64) * 4095).astype(int), values("b")[:, 0] == 1
    a, b = bucket[one][:, None], bucket[~one][None]
    return float(((a > b) + 0.5 * (a == b)).mean())


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x.astype(np.float64)))


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def perplexity() -> float:
    scores, label = kept()
    return float(np.exp(-np.log(softmax(scores)[np.arange(len(label)), label]).mean()))


def errors() -> tuple[np.ndarray, np.ndarray]:
    p, t = values("p").astype(np.float64).ravel(), values("t").astype(np.float64).ravel()
    return p - t, t


def exact(parts: np.ndarray) -> float:
    """The mean, rounded once."""
    return float(sum(map(Fraction, parts.tolist())) / parts.size)


def r2() -> float:
    error, t = errors()
    return 1 - math.fsum((error**2).tolist()) / math.fsum(((t - exact(t)) ** 2).tolist())


def sequences(name: str) -> list[list[int]]:
    column = columns()[name]
    return [column.row(i).tolist() for i in range(ROWS)]


def chunks(tags: list[int]) -> set[tuple[int, int, int]]:
    """(start, stop, type) of IOB tags: a chunk goes on while inside tags of its type follow."""
    found, t = set(), 0
    while t < len(tags):
        kind, stop = tags[t] // 2, t + 1
        while stop < len(tags) and tags[stop] == 2 * kind + 1:
            stop += 1
        if kind < TYPES:
            found.add((t, stop, kind))
            t = stop
        else:
            t += 1
    return found


def chunk_scores(excluded: tuple[int, ...] = ()) -> tuple[float, float, float]:
    inferred = labelled = correct = 0
    for a, b in zip(sequences("found"), sequences("wanted"), strict=True):
        x, y = ({c for c in chunks(s) if c[2] not in excluded} for s in (a, b))
        inferred, labelled, correct = inferred + len(x), labelled + len(y), correct + len(x & y)
    return correct / inferred, correct / labelled, 2 * correct / (inferred + labelled)


@cache
def levenshtein(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    if not a or not b:
        return len(a) + len(b)
    swapped = levenshtein(a[:-1], b[:-1]) + (a[-1] != b[-1])
    return min(swapped, levenshtein(a[:-1], b) + 1, levenshtein(a, b[:-1]) + 1)


def distances(ignored: tuple[int, ...] = ()) -> list[tuple[int, int]]:
    """Distance and length of each reference."""
    found = []
    for a, b in zip(sequences("hyp"), sequences("ref"), strict=True):
        x, y = (tuple(i for i in s if i not in ignored) for s in (a, b))
        found.append((levenshtein(x, y), len(y)))
    return found


def cells() -> dict[str, float]:
    scores, label = kept()
    counts = np.zeros((CLASSES, CLASSES))
    np.add.at(counts, (label, scores.argmax(1)), 1)
    return {f"m_{i}_{j}": counts[i, j] for i in range(CLASSES) for j in range(CLASSES)}


def three(name: str, found: tuple[float, float, float]) -> dict[str, float]:
    return dict(zip((f"{name}_precision", f"{name}_recall", f"{name}_f1"), found, strict=True))


METRICS: dict[str, Callable[[], dict[str, float]]] = {
    "- {accuracy: {}, from: [scores, y]}": lambda: {"accuracy": top(1)},
    "- {accuracy: {k: 2}, from: [scores, y], name: second}": lambda: {"second": top(2)},
    "- {top_k: {k: [1, 3]}, from: [scores, y]}": lambda: {"acc_top1": top(1), "acc_top3": top(3)},
    "- {precision_recall: {form: probabilities}, from: [pair, b]}": lambda: three(
        "precision_recall", binary(values("pair")[:, 1])
    ),
    "- {precision: {form: probabilities}, from: [pair, b]}": lambda: {
        "precision": binary(values("pair")[:, 1])[0]
    },
    "- {recall: {form: logits}, from: [one, b]}": lambda: {
        "recall": binary(sigmoid(values("one"))[:, 0])[1]
    },
    "- {f1: {form: logits}, from: [one, b]}": lambda: {
        "f1": binary(sigmoid(values("one"))[:, 0])[2]
    },
    "- {f1: {average: macro}, from: [scores, y], name: macro}": lambda: {
        "macro": by_class()[:, 2].mean()
    },
    "- {f1: {average: micro}, from: [scores, y], name: micro}": lambda: {"micro": top(1)},
    "- {auc: {form: probabilities}, from: [pair, b]}": lambda: {"auc": area(values("pair")[:, 1])},
    "- {auc: {form: logits}, from: [pair, b], name: of_logits}": lambda: {
        "of_logits": area(softmax(values("pair"))[:, 1].astype(np.float32))
    },
    "- {confusion_matrix: {cells: true}, from: [scores, y], name: m}": lambda: {
        "m_accuracy": top(1),
        **dict(
            zip(
                ("m_macro_precision", "m_macro_recall", "m_macro_f1"),
                by_class().mean(0),
                strict=True,
            )
        ),
        **cells(),
    },
    "- {mae: {}, from: [p, t]}": lambda: {"mae": exact(np.abs(errors()[0]))},
    "- {mse: {}, from: [p, t]}": lambda: {"mse": exact(errors()[0] ** 2)},
    "- {rmse: {}, from: [p, t]}": lambda: {"rmse": math.sqrt(exact(errors()[0] ** 2))},
    "- {r2: {}, from: [p, t]}": lambda: {"r2": r2()},
    "- {mean: {}, from: half}": lambda: {"mean": exact(0.5 * values("p").astype(np.float64).ravel())},
    "- {perplexity: {form: logits}, from: [scores, y]}": lambda: {"perplexity": perplexity()},
    "- {perplexity: {}, from: [probability, y], name: ppl}": lambda: {"ppl": perplexity()},
    "- {chunk_eval: {types: 3}, from: [found, wanted]}": lambda: three(
        "chunk_eval", chunk_scores()
    ),
    "- {chunk_eval: {types: 3, excluded: [0, 2]}, from: [tag_scores, wanted], name: c}": lambda: three(
        "c", chunk_scores((0, 2))
    ),
    "- {edit_distance: {}, from: [hyp, ref]}": lambda: {
        "edit_distance": float(np.mean([np.float32(d / n) for d, n in distances()], dtype=float)),
        "edit_distance_instance_error": np.mean([d > 0 for d, _ in distances()]),
    },
    "- {edit_distance: {normalized: false, ignored: [1]}, from: [hyp, ref], name: e}": lambda: {
        "e": np.mean([d for d, _ in distances((1,))]),
        "e_instance_error": np.mean([d > 0 for d, _ in distances((1,))]),
    },
    "- {composite: {of: [mae, rmse]}, from: [p, t]}": lambda: {
        "mae": exact(np.abs(errors()[0])),
        "rmse": math.sqrt(exact(errors()[0] ** 2)),
    },
}  # fmt: skip
GOOD = list(METRICS)
BAD = {
    "- {composite: {of: [accuracy, {accuracy: {k: 4}}]}, from: [scores, y], name: twice}": "two metrics are called 'twice_accuracy'",
    "- {mae: {}, from: p}": "[mae] reads 2 tensors (prediction, label), `from` gives 1",
    "- mean": "[mean] reads values: say `from: [values]`",
    "- {auc: {}, from: [one, b]}": "nothing tells whether 'one' is logits or probabilities: say `form: logits`",
    "- {mae: {}, from: [p, y]}": "[regression_metric] prediction is f32[N, 3], label is f32[N, 1]",
    "- {confusion_matrix: {classes: 5}, from: [scores, y]}": "[confusion_matrix] 5 classes, scores are f32[N, 4]",
    "- {chunk_eval: {types: 3}, from: [found, ref]}": "[chunk_eval] inference is i64[T(words)], label is i64[T(ref)]",
    "- {chunk_eval: {types: 3, excluded: [3]}, from: [found, wanted]}": "excluded is [3]; at most 32 types, each 0 .. 2",
    "- {edit_distance: {}, from: [hyp, y, b, b]}": "[edit_distance] reads 3 tensors",
    "- mae\n- mae": "two metrics are called 'mae'",
    "- {mae: {}, name: loss}": "two metrics are called 'loss'",
    "- {composite: {of: [nonsense]}, from: [p, t]}": "nonsense",
}


@pytest.mark.parametrize(
    "metric", GOOD, ids=[m[3:].partition(":")[0] + str(i) for i, m in enumerate(GOOD)]
)
def test_plain_numpy(metric: str, tmp_path: Path) -> None:
    wanted = METRICS[metric]()
    found = measure(tmp_path, metric)
    assert found.keys() == wanted.keys()
    assert found == pytest.approx(wanted, rel=1e-6, abs=1e-12)


def test_exact_sums(tmp_path: Path) -> None:
    """Values over fifteen orders of magnitude: the correctly rounded mean, not one near it."""
    found = measure(
        tmp_path, "- {mae: {}, from: [p, t]}\n- {mse: {}, from: [p, t]}\n- {r2: {}, from: [p, t]}"
    )
    assert found["mae"] == exact(np.abs(errors()[0]))
    assert found["mse"] == exact(errors()[0] ** 2)
    assert found["r2"] == pytest.approx(r2(), rel=1e-14)


def test_any_cut(tmp_path: Path) -> None:
    """All of them at once, over batches of 1, 7 and everything, on one thread and three: the same bits."""
    text, seen = "", set()
    for metric in GOOD:  # under names of their own
        text += metric.removesuffix("}").partition(", name:")[0] + f", name: n{len(seen)}}}\n"
        seen.add(metric)
    whole = measure(tmp_path, text, ROWS)
    for batch, threads in ((1, 1), (7, 3), (64, 1), (ROWS, 3)):
        assert measure(tmp_path, text, batch, threads) == whole
    assert measure(tmp_path, text, stored=True) == whole  # as a run keeps its network


@pytest.mark.parametrize("metric", BAD)
def test_refused(metric: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        measure(tmp_path, metric)
    assert BAD[metric] in str(caught.value)
    assert "r.yaml:" in str(caught.value)


def test_losses_tell_what_scores_are(tmp_path: Path) -> None:
    """Logits of a loss are not taken for probabilities, and metrics without `from` read what the loss reads."""
    text = "- f1\n- auc\n- perplexity\n"
    for loss, form, column in (
        (
            "{softmax_with_cross_entropy: {}, from: [pair, b]}",
            "logits",
            softmax(values("pair"))[:, 1],
        ),
        ("{cross_entropy: {}, from: [pair, b]}", "probabilities", values("pair")[:, 1]),
    ):
        recipe = RECIPE.replace("{square_error_cost: {}, from: [p, t]}", loss)
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(globals(), "RECIPE", recipe)
            found = measure(tmp_path, text)
            stated = measure(
                tmp_path, f"- {{f1: {{form: {form}}}}}\n- {{auc: {{form: {form}}}}}\n- perplexity"
            )
        assert found == stated
        assert found["f1"] == pytest.approx(binary(column)[2], rel=1e-6)
        assert found["auc"] == pytest.approx(area(column.astype(np.float32)), rel=1e-4)


def test_what_has_no_value(tmp_path: Path) -> None:
    """Constant labels have no variance to explain, labels that are all ignored no accuracy."""
    ones = Column(np.ones((ROWS, 3), np.float32))
    none = Column(np.full((ROWS, 1), -100))
    text = "- {r2: {}, from: [p, t]}\n- {accuracy: {}, from: [scores, y]}\n- {perplexity: {form: logits}, from: [scores, y]}"
    found = measure(tmp_path, text, t=ones, y=none)
    assert all(math.isnan(v) for v in found.values()), found


def test_what_is_not_finite(tmp_path: Path) -> None:
    """One infinite prediction makes a mean error NaN, it does not vanish in it."""
    p = values("p").copy()
    p[5, 1] = np.inf
    found = measure(tmp_path, "- {mae: {}, from: [p, t]}\n- {r2: {}, from: [p, t]}", p=Column(p))
    assert all(math.isnan(v) for v in found.values())


@pytest.mark.parametrize(
    ("metric", "changed", "text"),
    [
        ("- {edit_distance: {}, from: [hyp, ref]}", {"ref": 7}, "an empty reference has no normalized distance"),
        ("- {chunk_eval: {types: 2}, from: [found, wanted]}", {}, "tag 5 is not within 0 .. 4"),
    ],
    ids=["empty", "tag"],
)  # fmt: skip
def test_bad_data(metric: str, changed: dict[str, Any], text: str, tmp_path: Path) -> None:
    given = {}
    if changed:
        rows = sequences("ref")
        rows[changed["ref"]] = []
        given["ref"] = pack([np.array(r, np.int64) for r in rows], "int64")
    with pytest.raises(DataError, match="tag . is not within" if "tag" in text else text) as caught:
        measure(tmp_path, metric, **given)
    assert "row" in str(caught.value)
