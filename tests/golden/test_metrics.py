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
from paddlecli.config.registry import METRICS
from paddlecli.engine import metrics
from paddlecli.errors import PaddleCliError
from paddlecli.ops._metric import MetricOp

GOLDEN = json.loads((Path(__file__).parent / "metrics.json").read_text())


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


CALLS = {"accuracy": {}, "auc": {}, "precision_recall": {}, "confusion_matrix": {"classes": 2}}


@pytest.mark.parametrize("name", CALLS)
def test_any_cut(name: str) -> None:
    """Batches of any size, in any order, and the sum of the states of parts: the same integers."""
    definition = METRICS.get(name).function(**METRICS.bind(name, CALLS[name]))
    attrs, whole = dict(definition.attrs), data(1000)
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
    assert op.finish((a + b).tolist(), {}) == {"mean": 0.9375}


def test_mean_counts_what_is_marked() -> None:
    marks = np.array([1, 0, 1], np.int32)
    found = measured("mean_metric", {}, {"values": [1.0, 7.0, 4.0], "counted": marks})
    assert found == {"mean": 2.5}


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


def test_registered() -> None:
    """Every metric that recipes may name is an op with scores, a label and a state."""
    assert METRICS.names() == sorted(CALLS)
    for name in METRICS.names():
        op = op_of(METRICS.get(name).function(**METRICS.bind(name, CALLS[name])).op)
        assert [p.name for p in op.forward.inputs] == ["scores", "label", "state"]


def test_reported_names() -> None:
    """One value goes by the metric's own name, several by name and value."""
    assert metrics.report("accuracy", "top5", [3, 4], {"k": 5}) == {"top5": 0.75}
    assert metrics.report("precision_recall", "pr", [1, 1, 1, 0], {}) == {
        "pr_precision": 0.5, "pr_recall": 1.0, "pr_f1": pytest.approx(2 / 3),
    }  # fmt: skip
