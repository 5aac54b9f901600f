"""The optimizers' kernels for tables, and their other forms, against the float64 references."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from paddlecli import ops
from paddlecli.errors import ConfigError, DataError
from paddlecli.ops._optimizer import OptimizerOp
from paddlecli.ops.base import Attr, Kernel, RandomKey
from paddlecli.runtime.eager import Out, run_kernel

OPTIMIZERS = [op for op in map(ops.get, ops.names()) if isinstance(op, OptimizerOp)]
SHAPES = [(7, 3, 4), (7, 3, 0), (3000, 5, 40), (5, 5000, 3), (1, 1, 1), (9, 0, 2), (6000, 1, 6000)]
"""Rows and columns of the table, rows with a gradient."""


def cases() -> list[Any]:
    found = []
    for op in OPTIMIZERS:
        forms = list(op.variants())
        forms += [op.arguments(lazy=True)] if op.name in ("adam", "adamw") else []
        forms += [op.arguments(centered=True, momentum=0.5)] if op.name == "rmsprop" else []
        found += [pytest.param(op, attrs, id=f"{op.name}-{i}") for i, attrs in enumerate(forms)]
    return found


def table_args(
    op: OptimizerOp, attrs: Mapping[str, Attr], shape: tuple[int, int, int], scale: bool
) -> dict[str, Any]:
    rows, columns, touched = shape
    rng = np.random.default_rng(rows + columns)
    room = touched + 3
    ids = np.full(room, -1, np.int64)
    ids[:touched] = np.sort(rng.permutation(rows)[:touched])

    def draw(low: float, high: float, *size: int) -> Any:
        return rng.uniform(low, high, size).astype(np.float32)

    args = {"p": draw(-1, 1, rows, columns), "ids": ids, "values": draw(-1, 1, room, columns)}
    args["rows"] = np.array([touched], np.int64)
    args |= {s.name: draw(s.low, s.high, rows, columns) for s in op.slots(attrs)}
    args["lr"] = np.array([0.05], np.float32)
    if op.counted:
        args["count"] = np.array([4], np.int64)
    if scale:
        args["scale"] = np.array([0.5], np.float32)
    return args


def run(
    op: OptimizerOp, kernel: Kernel, args: Mapping[str, Any], attrs: Mapping[str, Attr], **how: Any
) -> dict[str, Any]:
    known = {k for k, _ in kernel.attrs}
    shape = args["p"].shape
    outs = {p.name: Out(shape) for p in kernel.outputs}
    if op.norms:
        segments = len(args["bounds"]) if "bounds" in args else 0
        flat = op.work(args["p"].size, segments) if segments else None
        outs["work"] = Out((flat.shape[0].coefficient if flat else 2 * shape[0] + 1,), "f64")
    found = run_kernel(kernel, args, {k: v for k, v in attrs.items() if k in known}, outs, **how)
    return {k: v for k, v in found.items() if k != "work"}


@pytest.mark.parametrize(("op", "attrs"), cases())
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_tables(op: OptimizerOp, attrs: Mapping[str, Attr], shape: tuple[int, int, int]) -> None:
    common: dict[str, Attr] = {"rate": 0.5, "l1": 0.0}
    for more in ({"l2": 0.0, "clip_value": 0.0}, {"l2": 0.1, "clip_value": 0.3}):
        args = table_args(op, attrs, shape, scale=more["l2"] > 0)
        whole = {**attrs, **common, **more}
        kernel = op.kernel(attrs, rows=True)
        found = run(op, kernel, args, whole)
        for name, expected in op.reference_rows(args, whole).items():
            size = max(1.0, float(np.abs(expected).max(initial=0.0)))
            np.testing.assert_allclose(found[name], expected, 1e-5, 2e-6 * size, err_msg=name)
        split = run(op, kernel, args, whole, threads=2, smallest_grain=True)
        for name, value in found.items():
            assert value.tobytes() == split[name].tobytes(), f"{name} changes with the threads"


def test_the_centred_form_of_a_flat_range() -> None:
    op = ops.get("rmsprop")
    assert isinstance(op, OptimizerOp)
    attrs = op.arguments(centered=True, momentum=0.5)
    rng = np.random.default_rng(1)
    args: dict[str, Any] = {"p": rng.normal(size=40), "g": rng.normal(size=40)}
    args |= {s.name: rng.uniform(s.low, s.high, 40) for s in op.slots(attrs)}
    args |= {"lr": [0.05], "rates": [1.0, 2.0], "l2": [0.1, 0.0], "l1": [0.0, 0.1]}
    args = {k: np.asarray(v, np.float32) for k, v in args.items()}
    args |= {"bounds": np.array([[0, 7], [16, 20]]), "clips": np.array([1, 0], np.int32)}
    whole = {**attrs, "clip_value": 0.2}
    found = run(op, op.kernel(attrs, rows=False), args, whole)
    names = ("p", *(s.name for s in op.slots(attrs)))
    assert set(found) == {f"{n}_out" for n in names}
    expected = {n: np.array(args[n], np.float64) for n in names}
    for s, (a, n) in enumerate(args["bounds"]):
        part = slice(a, a + n)
        p, g = (args[k][part].astype(np.float64) for k in ("p", "g"))
        g = np.clip(g, -0.2, 0.2) if args["clips"][s] else g
        d = g + args["l2"][s] * p + args["l1"][s] * np.sign(p)
        slots = {k: expected[k][part].copy() for k in names[1:]}
        moved, new = op.rule(p, d, slots, 0.05 * float(args["rates"][s]), 1, attrs)
        for name, value in {"p": moved, **new}.items():
            expected[name][part] = value
    for name in names:
        np.testing.assert_allclose(found[f"{name}_out"], expected[name], rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("op", OPTIMIZERS, ids=lambda op: op.name)
def test_flat_ranges_do_not_change_with_the_threads(op: OptimizerOp) -> None:
    attrs = op.arguments()
    rng = np.random.default_rng(2)
    n = 70_000
    args: dict[str, Any] = {k: rng.normal(size=n).astype(np.float32) for k in ("p", "g")}
    args |= {s.name: rng.uniform(s.low, s.high, n).astype(np.float32) for s in op.slots(attrs)}
    args |= {k: np.full(2, v, np.float32) for k, v in (("rates", 1.0), ("l2", 0.01), ("l1", 0.0))}
    args |= {"lr": np.array([0.1], np.float32), "clips": np.ones(2, np.int32)}
    args["bounds"] = np.array([[0, 33_333], [33_344, 36_000]])
    if op.counted:
        args["count"] = np.array([2], np.int64)
    whole = {**attrs, "clip_value": 0.0}
    one = run(op, op.forward, args, whole)
    two = run(op, op.forward, args, whole, threads=2, smallest_grain=True)
    assert {k: v.tobytes() for k, v in one.items()} == {k: v.tobytes() for k, v in two.items()}
    assert np.array_equal(one["p_out"][33_333:33_344], args["p"][33_333:33_344])


def test_reference_of_a_flat_range_needs_no_random_numbers() -> None:
    op = ops.get("sgd")
    one = np.ones(1)
    args = {"p": one, "g": one, "lr": one, "bounds": np.array([[0, 1]])}
    args |= {"rates": one, "l2": one * 0, "l1": one * 0, "clips": one}
    found = op.reference(args, {"clip_value": 0.0}, RandomKey(0, 0, 0))
    assert found["p_out"].tolist() == [0.0]


@pytest.mark.parametrize(("ids", "rows", "words"), [
    ([0, 9], 2, "row id 9"), ([-1, 2], 2, "row id -1"), ([2, 2], 2, "without repeats"),
    ([3, 1], 2, "must ascend"), ([0, 1], 3, "room for 2"), ([0, 1], -1, "rows says -1"),
])  # fmt: skip
def test_bad_rows_are_refused_before_anything_moves(ids: list[int], rows: int, words: str) -> None:
    op = ops.get("sgd")
    assert isinstance(op, OptimizerOp)
    args = table_args(op, {}, (5, 2, 0), scale=False)
    args |= {"ids": np.array(ids), "values": np.ones((2, 2), np.float32), "rows": np.array([rows])}
    with pytest.raises(DataError, match=words):
        run(op, op.update_rows, args, {"rate": 1.0, "l2": 0.0, "l1": 0.0, "clip_value": 0.0})


@pytest.mark.parametrize("bounds", [[[0, 5], [4, 2]], [[0, 11]], [[-1, 3]], [[3, -1]], [[11, 0]]])
def test_bad_segments_are_refused(bounds: list[list[int]]) -> None:
    op = ops.get("sgd")
    assert isinstance(op, OptimizerOp)
    ten, each = np.ones(10, np.float32), np.ones(len(bounds), np.float32)
    args = {"p": ten, "g": ten, "lr": np.ones(1, np.float32), "bounds": np.array(bounds)}
    args |= {"rates": each, "l2": each, "l1": each, "clips": each.astype(np.int32)}
    with pytest.raises(ConfigError, match="segment"):
        run(op, op.forward, args, {"clip_value": 0.0})
