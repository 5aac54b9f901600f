"""Optimizers, clipping and row-sparse updates against numbers of other frameworks, through the pass
and the kernels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from optimizer_bench import Bench

GOLDEN = json.loads((Path(__file__).parent / "optimizers.json").read_text())
RTOL = 1e-4

SETTINGS: dict[str, dict[str, Any]] = {
    "sgd": {"name": "sgd"},
    "sgd_l2_0.1": {"name": "sgd", "regularizer": {"l2": 0.1}},
    "sgd_l1_0.1": {"name": "sgd", "regularizer": {"l1": 0.1}},
    "momentum_0.9": {"name": "momentum", "momentum": 0.9},
    "momentum_0.9_nesterov": {"name": "momentum", "momentum": 0.9, "nesterov": True},
    "momentum_0.9_l2_0.1": {"name": "momentum", "regularizer": {"l2": 0.1}},
    "adagrad": {"name": "adagrad"},
    "adagrad_l2_8e-4": {"name": "adagrad", "regularizer": {"l2": 8e-4}},
    "adam": {"name": "adam"},
    "adam_l2_0.1": {"name": "adam", "regularizer": {"l2": 0.1}},
    "adamw_0.01": {"name": "adamw"},
    "adamw_0.1": {"name": "adamw", "weight_decay": 0.1},
    "adamax": {"name": "adamax"},
    "adadelta_rho0.95": {"name": "adadelta"},
    "rmsprop": {"name": "rmsprop"},
    "rmsprop_mom0.9": {"name": "rmsprop", "momentum": 0.9},
    "rmsprop_centered": {"name": "rmsprop", "centered": True},
    "lamb_0.01": {"name": "lamb"},
    "sgd_clip_value_0.3": {"name": "sgd", "clip": {"value": 0.3}},
    "sgd_clip_norm_0.5": {"name": "sgd", "clip": {"norm": 0.5}},
    "ftrl": {"name": "ftrl"},
    "ftrl_l1_0.1_l2_0.2": {"name": "ftrl", "l1": 0.1, "l2": 0.2},
    "decayed_adagrad": {"name": "decayed_adagrad"},
}

TWO = {"clip": {"global_norm": 0.5}, "regularizer": {"l2": 0.1}}
"""What the two-parameter cases were made with; it can be solved for from their first step."""


def test_no_trajectory_is_left_out() -> None:
    assert set(SETTINGS) == set(GOLDEN["trajectories"])


@pytest.mark.parametrize("name", GOLDEN["trajectories"])
def test_five_steps(name: str) -> None:
    bench = Bench(
        {**SETTINGS[name], "learning_rate": GOLDEN["learning_rate"]}, {"w": GOLDEN["param"]}
    )
    for gradient, after in zip(GOLDEN["grads"], GOLDEN["trajectories"][name], strict=True):
        bench.step({"w": gradient})
        np.testing.assert_allclose(bench.value("w"), after, rtol=RTOL, atol=1e-6)


def test_adadelta_as_up_to_2_0_leaves_the_rate_out() -> None:
    old = Bench(
        {"name": "adadelta", "uses_rate": False, "learning_rate": 0.001}, {"w": GOLDEN["param"]}
    )
    new = Bench({"name": "adadelta", "learning_rate": 1.0}, {"w": GOLDEN["param"]})
    for gradient in GOLDEN["grads"]:
        old.step({"w": gradient})
        new.step({"w": gradient})
    np.testing.assert_array_equal(old.value("w"), new.value("w"))


@pytest.mark.parametrize(
    ("case", "rates"),
    [("global_clip_two_params", {}), ("global_clip_two_params_a_lr_mult_0.5", {"a": 0.5})],
)
def test_global_clip_over_two_parameters(case: str, rates: dict[str, float]) -> None:
    two = GOLDEN["two_parameters"]
    settings = {"name": "sgd", "learning_rate": GOLDEN["learning_rate"], **TWO}
    bench = Bench(settings, {"a": GOLDEN["param"], "b": two["b"]}, rates=rates)
    for a, b, after in zip(GOLDEN["grads"], two["b_grads"], two[case], strict=False):
        bench.step({"a": a, "b": b})
        np.testing.assert_allclose(bench.value("a"), after[0], rtol=RTOL, atol=1e-6)
        np.testing.assert_allclose(bench.value("b"), after[1], rtol=RTOL, atol=1e-6)


@pytest.mark.parametrize("name", ["sgd", "adagrad", "adam", "rmsprop"])
def test_row_sparse(name: str) -> None:
    """Two of the original's numbers come from faults of its row-sparse kernels, which are not
    imitated: its Adam corrects the bias as if one update had gone before, and its RMSProp looks
    rows up by bisection in the order of their first use, so that row 0 of the third step's [1, 4,
    0] loses its gradient. Here the count starts one ahead, and that gradient is left out."""
    sparse = GOLDEN["sparse"]
    bench = Bench({"name": name, "learning_rate": 0.1}, {}, {"table": sparse["table"]})
    bench.values[id(bench.group.count)][:] = 1 if name == "adam" else 0
    for step, (ids, gradients, after) in enumerate(
        zip(sparse["ids"], sparse["row_grads"], sparse[name], strict=True)
    ):
        kept = 2 if name == "rmsprop" and step == 2 else 3
        bench.step({}, {"table": (ids[:kept], gradients[:kept])})
        np.testing.assert_allclose(bench.value("table"), after, rtol=RTOL, atol=1e-6)


@pytest.mark.parametrize(
    "name",
    [
        "momentum",
        "adam",
        "adamw",
        "adamax",
        "adadelta",
        "rmsprop",
        "decayed_adagrad",
        "lamb",
        "lars_momentum",
    ],
)
def test_rules_that_move_untouched_rows_equal_their_dense_form(name: str) -> None:
    sparse = GOLDEN["sparse"]
    settings = {
        "name": name,
        "learning_rate": 0.1,
        "regularizer": {"l1": 0.01},
        "clip": {"value": 0.4},
    }
    rows = Bench(settings, {}, {"table": sparse["table"]})
    dense = Bench(settings, {"table": sparse["table"]})
    for ids, gradients in zip(sparse["ids"], sparse["row_grads"], strict=True):
        whole = np.zeros(np.shape(sparse["table"]), np.float32)
        np.add.at(whole, ids, np.array(gradients, np.float32))
        rows.step({}, {"table": (ids, gradients)})
        dense.step({"table": whole})
        np.testing.assert_allclose(rows.value("table"), dense.value("table"), rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("name", GOLDEN["accumulate3"]["cases"])
def test_clipped_gradients_of_a_linear_layer(name: str) -> None:
    """The three micro-batches' sum of gradients is the whole batch's, made here; then clip, decay,
    update."""
    case, data = GOLDEN["accumulate3"]["cases"][name], GOLDEN["accumulate3"]
    bench = Bench(_recipe(dict(case["attrs"])), {"W": data["W"], "b": data["b"]})
    for step, (x, y) in enumerate(zip(np.array(data["X"]), np.array(data["Y"]), strict=True)):
        error = x @ bench.value("W").astype(np.float64) + bench.value("b") - y
        assert np.mean(np.sum(error**2, axis=1)) == pytest.approx(case["loss"][step], rel=RTOL)
        slope = 2.0 * error / len(x)
        bench.step({"W": x.T @ slope, "b": slope.sum(axis=0)})
        assert bench.gradient_norm == pytest.approx(case["grad_norm"][step], rel=RTOL)
        np.testing.assert_allclose(bench.value("W"), case["W"][step], rtol=RTOL, atol=1e-6)
        np.testing.assert_allclose(bench.value("b"), case["b"][step], rtol=RTOL, atol=1e-6)


def _recipe(attrs: dict[str, Any]) -> dict[str, Any]:
    """The case's attributes as a recipe's section."""
    settings = {"name": attrs.pop("kind"), "learning_rate": attrs.pop("learning_rate")}
    settings["clip"] = {"global_norm": attrs.pop("global_norm_clip")}
    if "l2" in attrs:
        settings["regularizer"] = {"l2": attrs.pop("l2")}
    if "mu" in attrs:
        settings["momentum"] = attrs.pop("mu")
    return {**settings, **attrs}


# ---- what the numbers above do not show ----


def test_a_table_and_a_matrix_are_clipped_by_one_norm() -> None:
    """The same gradients, once all dense, once with a row-sparse table, give the same
    parameters."""
    rng = np.random.default_rng(3)
    w, table, g, rows = (
        rng.normal(size=s).astype(np.float32) for s in ((4, 3), (6, 5), (4, 3), (2, 5))
    )
    settings = {"name": "sgd", "learning_rate": 0.3, "clip": {"global_norm": 0.7}}
    dense = Bench(settings, {"w": w, "table": table})
    mixed = Bench(settings, {"w": w}, {"table": table})
    whole = np.zeros_like(table)
    whole[[1, 4]] = rows
    dense.step({"w": g, "table": whole})
    mixed.step({"w": g}, {"table": ([1, 4], rows)})
    assert mixed.gradient_norm == pytest.approx(dense.gradient_norm, rel=1e-6)
    assert mixed.gradient_norm == pytest.approx(np.sqrt(np.sum(g**2) + np.sum(rows**2)), rel=1e-6)
    for name in ("w", "table"):
        np.testing.assert_allclose(mixed.value(name), dense.value(name), rtol=1e-6)


def test_an_unclipped_parameter_counts_in_no_norm() -> None:
    g = np.full(3, 2.0, np.float32)
    settings = {"name": "sgd", "learning_rate": 1.0, "clip": {"global_norm": 1.0}}
    bench = Bench(settings, {"a": [0.0] * 3, "b": [0.0] * 3}, unclipped=("b",))
    bench.step({"a": g, "b": g})
    assert bench.gradient_norm == pytest.approx(np.sqrt(12.0), rel=1e-6)
    np.testing.assert_allclose(bench.value("a"), -g / np.sqrt(12.0), rtol=1e-6)
    np.testing.assert_array_equal(bench.value("b"), -g)


def test_lazy_adam_moves_only_rows_with_a_gradient() -> None:
    sparse = GOLDEN["sparse"]
    bench = Bench(
        {"name": "adam", "lazy": True, "learning_rate": 0.1}, {}, {"table": sparse["table"]}
    )
    for ids, gradients in zip(sparse["ids"], sparse["row_grads"], strict=True):
        before = bench.value("table").copy()
        bench.step({}, {"table": (ids, gradients)})
        moved = np.any(bench.value("table") != before, axis=1)
        assert set(np.flatnonzero(moved)) == set(ids)


def test_a_regulariser_moves_the_whole_table() -> None:
    sparse = GOLDEN["sparse"]
    bench = Bench(
        {"name": "sgd", "learning_rate": 0.1, "regularizer": {"l2": 0.5}},
        {},
        {"table": sparse["table"]},
    )
    bench.step({}, {"table": (sparse["ids"][0], sparse["row_grads"][0])})
    np.testing.assert_allclose(
        bench.value("table")[2], 0.95 * np.array(sparse["table"][2]), rtol=1e-6
    )


def test_a_gradient_that_is_not_finite_is_seen_in_the_norm() -> None:
    bench = Bench(
        {"name": "sgd", "learning_rate": 0.1, "clip": {"global_norm": 1.0}}, {"w": [1.0, 2.0]}
    )
    bench.step({"w": [np.inf, 0.0]})
    assert not np.isfinite(bench.gradient_norm)


def test_gaps_between_parameters_are_left_alone() -> None:
    bench = Bench(
        {"name": "adam", "learning_rate": 0.1, "clip": {"norm": 1.0}}, {"a": [1.0, 2.0], "b": [3.0]}
    )
    bench.step({"a": [0.1, 0.2], "b": [0.3]})
    assert bench.group.parameters is not None
    flat = bench.values[id(bench.group.parameters)]
    np.testing.assert_array_equal(flat[2:16], 7.0)


def test_the_count_is_raised_once_for_all() -> None:
    bench = Bench({"name": "adam", "learning_rate": 0.1}, {"a": [1.0]}, {"t": [[1.0], [2.0]]})
    for _ in range(3):
        bench.step({"a": [0.1]}, {"t": ([1], [[0.5]])})
    assert bench.values[id(bench.group.count)][0] == 3
