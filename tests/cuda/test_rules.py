"""Kernels that no sample reaches: optimizers on tables, norms of gradients, running statistics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import test_optimizer_kernels as tables

from paddlecli import ops
from paddlecli.ops._optimizer import OptimizerOp
from paddlecli.ops.base import Attr
from paddlecli.runtime.eager import Out, run_kernel

SHAPES = [(7, 3, 4), (7, 3, 0), (300, 5, 40), (9, 0, 2), (1, 1, 1)]


def same(
    op: str, kernel: str, backend: str, args: Mapping[str, Any], attrs: Any, outs: Any
) -> None:
    """Both backends give the same, to float accuracy."""
    it = next(k for k in ops.get(op).kernels if k.name == kernel)
    wanted = run_kernel(it, args, attrs, outs)
    found = run_kernel(it, args, attrs, outs, backend=backend)
    for name, value in wanted.items():
        if not name.startswith("work"):
            np.testing.assert_allclose(found[name], value, 1e-5, 1e-6, err_msg=name)


@pytest.mark.parametrize(("op", "attrs"), tables.cases())
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_tables(
    op: OptimizerOp, attrs: Mapping[str, Attr], shape: tuple[int, int, int], backend: str
) -> None:
    common: dict[str, Attr] = {"rate": 0.5, "l1": 0.0}
    for more in ({"l2": 0.0, "clip_value": 0.0}, {"l2": 0.1, "clip_value": 0.3}):
        args = tables.table_args(op, attrs, shape, scale=more["l2"] > 0)
        whole = {**attrs, **common, **more}
        kernel = op.kernel(attrs, rows=True)
        wanted = tables.run(op, kernel, args, whole)
        found = tables.run(op, kernel, args, whole, backend=backend)
        for name, value in wanted.items():
            # ftrl's powers differ in their last place, and it subtracts them from each other.
            size = max(1.0, float(np.abs(value).max(initial=0.0)))
            np.testing.assert_allclose(found[name], value, 2e-5, 1e-5 * size, err_msg=name)


def test_squares(backend: str) -> None:
    rng = np.random.default_rng(1)
    bounds, clips = np.array([[0, 30], [32, 5000]]), np.array([0, 1], np.int32)
    args = {"g": rng.normal(size=5040).astype(np.float32), "bounds": bounds, "clips": clips}
    outs = {"total": Out((1,), "f64"), "work": Out((2,), "f64")}
    same("global_norm", "squares", backend, args, {}, outs)
    rows = {"values": rng.normal(size=(9, 4)).astype(np.float32), "rows": np.array([5])}
    same("global_norm", "squares_rows", backend, rows, {}, outs)


@pytest.mark.parametrize("shape", [(5, 3), (9, 41), (3, 700), (0, 5)], ids=str)
def test_loss_with_its_gradient(shape: tuple[int, int], backend: str) -> None:
    """Weighted, some labels ignored, in the scores' place and beside them."""
    rng = np.random.default_rng(7)
    args = {
        "x": rng.normal(0, 4, shape).astype(np.float32),
        "label": rng.integers(0, shape[1], (shape[0], 1)),
        "weight": rng.uniform(0.5, 2, shape[1]).astype(np.float32),
        "dloss": rng.uniform(-1, 1, (shape[0], 1)).astype(np.float32),
    }
    outs = {"loss": Out((shape[0], 1)), "dx": Out(shape)}
    it: Any = ops.get("softmax_with_cross_entropy")
    wanted = run_kernel(it.forward_backward, args, {"ignore_index": 1}, outs)
    for inplace in (False, True):
        found = run_kernel(
            it.forward_backward, args, {"ignore_index": 1}, outs, backend=backend, inplace=inplace
        )
        for name, value in wanted.items():
            np.testing.assert_allclose(found[name], value, 1e-5, 1e-6, err_msg=name)


def test_batch_norm(backend: str) -> None:
    rng = np.random.default_rng(2)
    for shape in ((5, 3, 4, 2), (6, 17)):
        c = shape[1]
        each = {
            k: rng.uniform(0.5, 1, c).astype(np.float32) for k in ("w", "b", "mean", "variance")
        }
        x, dy = (rng.normal(size=shape).astype(np.float32) for _ in range(2))
        given = {"x": x, **each}
        same(
            "batch_norm",
            "inference",
            backend,
            given,
            {"epsilon": 1e-5, "activation": 1},
            {"y": Out(shape)},
        )
        given = {
            "x": x,
            "w": each["w"],
            "mean": each["mean"],
            "variance": each["variance"],
            "dy": dy,
            "y": None,
            "b": each["b"],
        }
        outs = {"dx": Out(shape), "dw": Out((c,)), "db": Out((c,))}
        same("batch_norm", "backward_inference", backend, given, {"epsilon": 1e-5}, outs)
        known = {**{k: each[k] for k in ("w", "b", "mean")}, "rstd": each["variance"]}
        for z in (None, dy):
            attrs = {"epsilon": 1e-5, "activation": 1}
            again = {"x": x, **known, "z": z}
            same("batch_norm", "again", backend, again, attrs, {"y": Out(shape)})
        for y, b in ((None, None), (dy[::-1].copy(), None), (None, each["b"])):
            back = {"x": x, **known, "dy": dy, "y": y, "b": b}
            same("batch_norm", "backward", backend, back, {"epsilon": 1e-5}, outs)
    state = {
        "mean": each["mean"],
        "variance": each["variance"],
        "batch_mean": each["b"],
        "batch_rstd": each["w"],
    }
    outs = {"mean_out": Out((17,)), "variance_out": Out((17,))}
    same("batch_norm", "update_running", backend, state, {"momentum": 0.9, "epsilon": 1e-5}, outs)
