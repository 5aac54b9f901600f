"""Metrics against numbers of other frameworks, and exactness over any cut of the data."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from op_bench import OpBench

from paddlecli import ops
from paddlecli.errors import PaddleCliError
from paddlecli.ops._metric import MetricOp
from paddlecli.ops.base import Ragged
from paddlecli.ops.chunk_eval import SCHEMES
from paddlecli.runtime.eager import Out, run_kernel

GOLDEN = json.loads((Path(__file__).parent / "metrics.json").read_text())
SEQUENCES = json.loads((Path(__file__).parent / "sequence_metrics.json").read_text())


def op_of(name: str) -> MetricOp:
    op = ops.get(name)
    assert isinstance(op, MetricOp)
    return op


def counted(name: str, attrs: dict[str, Any], *batches: dict[str, Any]) -> np.ndarray:
    """The state after batches."""
    state = np.zeros(op_of(name).state_shape(attrs), np.int64)
    for batch in batches:
        state = OpBench(name, {**batch, "state": state}, attrs)["state_out"]
    return state


def measured(name: str, attrs: dict[str, Any], *batches: dict[str, Any]) -> dict[str, float]:
    state = counted(name, attrs, *batches).reshape(-1).tolist()
    return op_of(name).finish(state, attrs)


@pytest.mark.parametrize("k", [1, 2])
def test_accuracy(k: int) -> None:
    batch = {"scores": GOLDEN["probs"], "label": {"i64": GOLDEN["labels"]}}
    attrs = {"k": k, "ignore_index": -100}
    assert measured("accuracy", attrs, batch) == {"accuracy": GOLDEN[f"acc_top{k}"]}


def test_precision_recall() -> None:
    batch = {"scores": GOLDEN["binary_probs"], "label": {"i64": GOLDEN["binary_labels"]}}
    found = measured("precision_recall", {}, batch)
    assert found["precision"] == pytest.approx(GOLDEN["precision"], abs=1e-12)
    assert found["recall"] == pytest.approx(GOLDEN["recall"], abs=1e-12)


def test_auc() -> None:
    batch = {"scores": GOLDEN["binary_probs"], "label": {"i64": GOLDEN["binary_labels"]}}
    assert measured("auc", {}, batch)["auc"] == pytest.approx(GOLDEN["auc"], abs=1e-12)


def data(rows: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(rows)
    scores = rng.random((rows, 2)).astype(np.float32)
    return {"scores": scores, "label": rng.integers(0, 2, rows)}


CALLS: dict[str, dict[str, Any]] = {
    "accuracy": {"k": 1, "ignore_index": -100},
    "auc": {},
    "precision_recall": {},
    "confusion_matrix": {"classes": 2, "ignore_index": -100},
}


@pytest.mark.parametrize("name", CALLS)
def test_any_cut(name: str) -> None:
    """Batches of any size, in any order, and the sum of the states of parts: the same integers."""
    attrs, whole = CALLS[name], data(1000)
    once = counted(name, attrs, whole)
    cuts = [(0, 1), (1, 8), (8, 300), (300, 1000)]
    parts = [{k: v[a:b] for k, v in whole.items()} for a, b in cuts]
    assert (counted(name, attrs, *parts[::-1]) == once).all()
    assert (sum(counted(name, attrs, p) for p in parts) == once).all()


def test_mean_is_exact() -> None:
    """Values that float sums would round: any order gives the same bits, equal to the exact mean."""
    rng = np.random.default_rng(3)
    values = (rng.integers(-(1 << 40), 1 << 40, 5001) / (1 << 30)).astype(np.float32)
    values[7] = 1e9
    exact = math.fsum(values.tolist()) / values.size
    a = measured("mean_metric", {}, {"values": values})
    b = measured(
        "mean_metric", {}, {"values": values[3000:][::-1].copy()}, {"values": values[:3000]}
    )
    assert a == b
    assert a["mean"] == pytest.approx(exact, rel=1e-15)


def test_mean_of_parts_adds_up() -> None:
    """States of ranks are added element by element: fractions above one whole are carried when read."""
    op = op_of("mean_metric")
    a = counted("mean_metric", {}, {"values": [0.75, -0.5]})
    b = counted("mean_metric", {}, {"values": [0.75, 2.75]})
    assert op.finish((a + b).tolist(), {})["mean"] == 0.9375


def test_mean_counts_what_is_marked() -> None:
    marks = np.array([1, 0, 1], np.int32)
    found = measured("mean_metric", {}, {"values": [1.0, 7.0, 4.0], "counted": marks})
    assert found["mean"] == 2.5


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e30])
def test_mean_of_what_is_not_a_number(bad: float) -> None:
    assert math.isnan(measured("mean_metric", {}, {"values": [1.0, bad]})["mean"])


def test_mean_of_large_values() -> None:
    """Squared errors of sums of money: far beyond 2^40, and still exact."""
    values = np.array([1e13, -3e15, 7e18, 0.5], np.float32)
    exact = math.fsum(values.tolist()) / values.size
    assert measured("mean_metric", {}, {"values": values})["mean"] == exact


def test_nothing_counted() -> None:
    assert math.isnan(measured("mean_metric", {})["mean"])
    assert math.isnan(measured("accuracy", {"k": 1, "ignore_index": -100})["accuracy"])
    assert math.isnan(measured("auc", {})["auc"])


def test_accuracy_of_nan_scores() -> None:
    """A NaN is never right, and never hides that a label's score is not the largest."""
    nan = math.nan
    batch = {"scores": [[nan, 1.0], [1.0, nan], [nan, nan]], "label": {"i64": [0, 0, 1]}}
    assert measured("accuracy", {"k": 1, "ignore_index": -100}, batch) == {"accuracy": 0.0}


@pytest.mark.parametrize(
    ("name", "batch", "text"),
    [
        ("accuracy", {"scores": [[0.0, 1.0]], "label": {"i64": [2]}}, "label 2"),
        ("auc", {"scores": [0.5], "label": {"i64": [2]}}, "label 2"),
        ("auc", {"scores": [1.5], "label": {"i64": [1]}}, "score 1.5"),
        ("precision_recall", {"scores": [0.5], "label": {"i64": [-1]}}, "label -1"),
    ],
)
def test_refused(name: str, batch: dict[str, Any], text: str) -> None:
    attrs = {"k": 1, "ignore_index": -100} if name == "accuracy" else {}
    with pytest.raises(PaddleCliError, match=text):
        counted(name, attrs, batch)


def test_reported_names() -> None:
    """One value goes by the metric's own name, several by name and value."""
    assert op_of("accuracy").report("top5", [3, 4], {"k": 5}) == {"top5": 0.75}
    pr = op_of("precision_recall")
    assert pr.report("pr", [1, 1, 1, 0], {}) == {
        "pr_precision": 0.5, "pr_recall": 1.0, "pr_f1": pytest.approx(2 / 3),
    }  # fmt: skip
    assert pr.report("pr", [1, 1, 1, 0], {}, ("recall",)) == {"pr": 1.0}
    assert op_of("mean_metric").report("loss", [0, 2, 0, 1, 0], {}) == {"loss": 2.0}


@pytest.mark.parametrize(
    ("counts", "f1"), [([0, 2, 0, 3], 0.0), ([0, 0, 0, 3], 0.0), ([0, 0, 0, 0], math.nan)]
)
def test_f1_of_nothing_right(counts: list[int], f1: float) -> None:
    found = op_of("precision_recall").finish(counts, {})["f1"]
    assert found == f1 or (math.isnan(found) and math.isnan(f1))


@pytest.mark.parametrize("case", SEQUENCES["chunk_eval"], ids=lambda case: str(case["scheme"]))
def test_chunk_eval(case: dict[str, Any]) -> None:
    """The chunks that the original counts."""
    attrs = {"chunk_types": 2, "scheme": list(SCHEMES).index(case["scheme"]), "excluded": ()}
    edges = np.array([0, *np.cumsum(case["lengths"])])
    tags = {k: Ragged(np.array(case[k]), edges) for k in ("inference", "label")}
    out = {"state_out": Out((3,), "i64")}
    state = run_kernel(
        ops.get("chunk_eval").forward, {**tags, "state": np.zeros(3, np.int64)}, attrs, out
    )
    counts = state["state_out"].tolist()
    assert counts == case["counts"]
    assert op_of("chunk_eval").finish(counts, attrs) == pytest.approx(case["values"], abs=1e-6)


def test_edit_distance() -> None:
    case = SEQUENCES["edit_distance"]
    hyps, refs = (
        Ragged(np.array(case[k]), np.array(case[f"{k}_offsets"])) for k in ("hyps", "refs")
    )
    out = {"y": Out((2, 1)), "work": Out((2 * 7 + 2,), "i64")}
    attrs = {"normalized": True, "ignored": ()}
    found = run_kernel(ops.get("edit_distance").forward, {"hyps": hyps, "refs": refs}, attrs, out)[
        "y"
    ]
    np.testing.assert_allclose(found.ravel(), case["y"], rtol=1e-6)
