"""Losses against numbers of other frameworks: values, gradients, means."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from op_bench import OpBench, check_case, check_close

GOLDEN = json.loads((Path(__file__).parent / "losses.json").read_text())
CASES: dict[str, dict[str, Any]] = GOLDEN["cases"]
MEANS: dict[str, Any] = GOLDEN["means"]
HARD = {"soft_label": False, "axis": -1, "ignore_index": -100}


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    # Scores near 300 have 1.5e-5 of rounding in float32, which their exponentials keep.
    check_case(CASES[name], rtol=1e-4 if name == "softmax_with_cross_entropy_large" else 1e-5)


def mean(values: np.ndarray, weight: float) -> float:
    """Through the op that ends every loss."""
    return float(OpBench("weighted_mean", {"values": values, "weight": [weight]}, {})["y"][0])


def inputs() -> dict[str, np.ndarray]:
    found = {k: np.array(v, np.float32) for k, v in MEANS["inputs"].items()}
    return {**found, "labels": found["labels"].astype(np.int64)}


def cross_entropy(logits: np.ndarray, labels: np.ndarray, weight: Any = None) -> np.ndarray:
    args = {"x": logits, "label": labels, "weight": weight}
    return OpBench("softmax_with_cross_entropy", args, HARD)["loss"]


def test_mean_divides_by_all_rows() -> None:
    given = inputs()
    values = cross_entropy(given["logits"], given["labels"])
    check_close(np.array(mean(values, 4)), MEANS["expected"]["ce_mean_ignore-100"])


def test_class_weights() -> None:
    """The numbers were made with the ignored label replaced by class 1."""
    given, weight = inputs(), np.array(MEANS["class_weight"], np.float32)
    labels = np.where(given["labels"] < 0, 1, given["labels"])
    values = cross_entropy(given["logits"], labels, weight)
    check_close(
        np.array(mean(values, float(weight[labels].sum()))), MEANS["expected"]["ce_class_weight"]
    )


def test_nll_of_log_softmax() -> None:
    given = inputs()
    logs = OpBench("log_softmax", {"x": given["logits"]}, {"axis": -1})["y"]
    labels = np.where(given["labels"] < 0, 1, given["labels"])
    values = -np.take_along_axis(logs, labels[:, None], axis=1)
    check_close(np.array(mean(values, 4)), MEANS["expected"]["nll_mean"])
    probability = OpBench("softmax", {"x": given["logits"]}, {"axis": -1})["y"]
    args = {"x": probability, "label": labels}
    attrs = {"soft_label": False, "ignore_index": -100}
    check_close(OpBench("cross_entropy", args, attrs)["loss"], values[:, 0])


def test_mse() -> None:
    given = inputs()
    values = OpBench("square_error_cost", {"x": given["logits"], "label": given["other"]}, {})
    check_close(np.array(mean(values["loss"], 12)), MEANS["expected"]["mse"])


def test_kl_div_mean() -> None:
    given = inputs()
    logs = OpBench("log_softmax", {"x": given["logits"]}, {"axis": -1})["y"]
    values = OpBench("kl_div", {"x": logs, "label": given["soft"]}, {})["loss"]
    check_close(np.array(mean(values, 12)), MEANS["expected"]["kl_div_mean"])


def test_log_loss() -> None:
    given = inputs()
    probability = OpBench("sigmoid", {"x": given["logits"][:, :1]}, {})["y"]
    args = {"x": probability, "label": np.ascontiguousarray(given["binary"][:, :1])}
    check_close(OpBench("log_loss", args, {"epsilon": 1e-4})["loss"], MEANS["expected"]["log_loss"])


@pytest.mark.parametrize(
    ("name", "weight", "classes"),
    [
        ("cross_entropy_mean_counted", 3.0, None),
        ("cross_entropy_mean_all", 4.0, None),
        ("cross_entropy_class_weight_mean", 3.0, [0.5, 1.0, 2.0]),
    ],
)
def test_mean_gradient(name: str, weight: float, classes: list[float] | None) -> None:
    """Loss and mean chained. Counted labels 0, 2, 0 of weights 0.5, 2, 0.5 weigh 3 as well."""
    case = MEANS[name]
    args = {"x": case["in"]["Logits"], "label": {"i64": case["in"]["Label"]}, "weight": classes}
    loss = OpBench("softmax_with_cross_entropy", args, HARD)
    last = OpBench("weighted_mean", {"values": loss["loss"], "weight": [weight]}, {})
    check_close(last["y"], case["out"]["Loss"])
    dloss = last.gradients(y=case["upstream"])["values"]
    check_close(loss.gradients(loss=dloss)["x"], case["out"]["grad:Logits"])


def test_kl_div_batch_mean() -> None:
    case = MEANS["kldiv_loss_batchmean"]
    loss = OpBench("kl_div", {"x": case["in"]["X"], "label": case["in"]["Target"]}, {})
    rows = float(len(case["in"]["X"]))
    last = OpBench("weighted_mean", {"values": loss["loss"], "weight": [rows]}, {})
    check_close(last["y"], case["out"]["Loss"])
    dloss = last.gradients(y=case["upstream"])["values"]
    check_close(loss.gradients(loss=dloss)["x"], case["out"]["grad:X"])


def test_smoothed_labels() -> None:
    case = MEANS["softmax_with_cross_entropy_label_smooth"]
    logits = case["in"]["Logits"]
    one_hot = np.eye(len(logits[0]), dtype=np.float32)[np.array(case["in"]["Label"])[:, 0]]
    soft = OpBench("label_smooth", {"label": one_hot}, {"epsilon": 0.1})["y"]
    args = {"x": logits, "label": soft}
    loss = OpBench("softmax_with_cross_entropy", args, {**HARD, "soft_label": True})
    check_close(loss["loss"], case["out"]["Loss"])
    check_close(loss.gradients(loss=case["upstream"])["x"], case["out"]["grad:Logits"])


def test_confident_row_keeps_its_digits() -> None:
    """A loss of 1e-9 and its gradient, which a difference of probabilities would lose."""
    loss = cross_entropy(np.array([[0.0, -20.7]], np.float32), np.array([0]))
    check_close(loss, [np.log1p(np.exp(-np.float64(np.float32(20.7))))])
    bench = OpBench(
        "softmax_with_cross_entropy",
        {"x": np.array([[0.0, -20.7]], np.float32), "label": {"i64": [0]}},
        HARD,
    )
    grad = bench.gradients(loss=[1.0])["x"]
    check_close(grad[:, 0], -loss)


def test_probability_zero() -> None:
    """A logarithm that is infinite is held at 1e20 and gives no gradient."""
    args = {"x": [[0.0, 1.0]], "label": {"i64": [0]}}
    bench = OpBench("cross_entropy", args, {"soft_label": False, "ignore_index": -100})
    check_close(bench["loss"], [1e20])
    assert bench.gradients(loss=[1.0])["x"].tolist() == [[0.0, 0.0]]


def test_nothing_counts() -> None:
    """Weight 0: the mean of nothing is 0, and so is its gradient."""
    bench = OpBench("weighted_mean", {"values": [[3.0]], "weight": [0.0]}, {})
    assert bench["y"].tolist() == [0.0]
    assert bench.gradients(y=[1.0])["values"].tolist() == [[0.0]]


@pytest.mark.parametrize("label", [-1, 3, 1 << 40])
@pytest.mark.parametrize("op", ["softmax_with_cross_entropy", "cross_entropy"])
def test_label_out_of_range(op: str, label: int) -> None:
    from paddlecli.errors import PaddleCliError

    attrs = HARD if op.startswith("softmax") else {"soft_label": False, "ignore_index": -100}
    args = {"x": [[0.2, 0.3, 0.5]] * 2, "label": {"i64": [0, label]}}
    with pytest.raises(PaddleCliError, match=f"label {label} is not one of 3 classes"):
        OpBench(op, args, attrs)
