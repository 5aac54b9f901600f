"""Embedding, sequence pooling and repeated rows against the numbers of other implementations (``rows.json`` says whose)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paddlecli import ops
from paddlecli.ops.base import Ragged
from paddlecli.ops.sequence_pool import MODES
from paddlecli.runtime.eager import Out, run_kernel

CASES = json.loads((Path(__file__).parent / "rows.json").read_text(encoding="utf-8"))["cases"]


def some(op: str) -> Any:
    """Parametrisation over the cases of one op."""
    return pytest.mark.parametrize(
        "case", [c for c in CASES if c["op"] == op], ids=lambda c: c["case"]
    )


def offsets_of(case: dict[str, Any]) -> np.ndarray:
    """Offsets from lengths."""
    return np.concatenate([[0], np.cumsum(case["lens"])]).astype(np.int64)


def f32(values: Any) -> np.ndarray:
    """Numbers as the kernels take them."""
    return np.array(values, np.float32)


@some("embedding")
def test_embedding(case: dict[str, Any]) -> None:
    """Rows and the dense gradient of the table."""
    op: Any = ops.get("embedding")
    w, ids, dy = f32(case["w"]), np.array(case["ids"], np.int64), f32(case["dy"])
    padding = -1 if case["padding_idx"] is None else case["padding_idx"]
    attrs = {"padding_idx": padding, "sparse": False}
    y = run_kernel(op.forward, {"ids": ids, "w": w}, attrs, {"y": Out(dy.shape)})["y"]
    np.testing.assert_array_equal(y, f32(case["y"]))
    dw = run_kernel(
        op.backward_w, {"ids": ids, "dy": dy}, {"padding_idx": padding}, {"dw": Out(w.shape)}
    )["dw"]
    np.testing.assert_allclose(dw, case["dw"], 1e-5, 1e-7)


@some("sequence_pool")
def test_sequence_pool(case: dict[str, Any]) -> None:
    """Every mode, an empty sequence included, with the gradient where the case has it."""
    op: Any = ops.get("sequence_pool")
    x, mode, offsets = f32(case["x"]), MODES.index(case["mode"]), offsets_of(case)
    shape = (len(case["lens"]), x.shape[1])
    attrs = {"mode": mode, "pad_value": case["pad_value"]}
    y = run_kernel(op.forward, {"x": Ragged(x, offsets)}, attrs, {"y": Out(shape)})["y"]
    np.testing.assert_allclose(y, case["y"], 1e-5, 1e-6)
    if "dy" not in case:
        return
    dy, out = f32(case["dy"]), {"dx": Out(x.shape, axis="s")}
    if case["mode"] == "max":
        dx = run_kernel(
            op.backward_max,
            {"x": Ragged(x, offsets), "y": y, "dy": dy},
            {},
            out,
            axes={"s": offsets},
        )["dx"]
    else:
        dx = run_kernel(op.backward, {"dy": dy}, {"mode": mode}, out, axes={"s": offsets})["dx"]
    np.testing.assert_allclose(dx, case["dx"], 1e-5, 1e-7)


@some("sequence_expand")
def test_repeat_rows(case: dict[str, Any]) -> None:
    """Row i as often as sequence i is long."""
    op: Any = ops.get("repeat_rows")
    x, dy, offsets = f32(case["x"]), f32(case["dy"]), offsets_of(case)
    like = Ragged(np.zeros((len(dy), 1), np.float32), offsets)
    y = run_kernel(
        op.forward, {"x": x, "like": like}, {}, {"y": Out(dy.shape, axis="s")}, axes={"s": offsets}
    )["y"]
    np.testing.assert_array_equal(y, f32(case["y"]))
    dx = run_kernel(op.backward, {"dy": Ragged(dy, offsets)}, {}, {"dx": Out(x.shape)})["dx"]
    np.testing.assert_allclose(dx, case["dx"], 1e-5, 1e-7)
