"""Activations against the numbers of other implementations (``activations.json`` says whose)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paddlecli import ops
from paddlecli.ops._unary import Unary, activation, activation_names
from paddlecli.runtime.eager import Out, run_kernel

# Ours are nearer the exact values than float32 of others: mish at -7 is 4e-7 off there.
CASES = json.loads((Path(__file__).parent / "activations.json").read_text(encoding="utf-8"))


def op_of(case: dict[str, Any]) -> tuple[Unary, dict[str, Any]]:
    """The op and its full attributes."""
    name, attrs = activation(case["activation"], case["attrs"])
    op = ops.get(name)
    assert isinstance(op, Unary)
    return op, dict(attrs)


@pytest.mark.parametrize("case", CASES["forward"], ids=lambda c: c["case"])
def test_forward(case: dict[str, Any]) -> None:
    """Values at 14 points from -50 to 50."""
    op, attrs = op_of(case)
    x = np.array(case["x"], np.float32)
    y = run_kernel(op.forward, {"x": x}, attrs, {"y": Out(x.shape)})["y"]
    np.testing.assert_allclose(y, case["y"], 1e-5, 1e-6)


@pytest.mark.parametrize("case", CASES["gradients"], ids=lambda c: c["case"])
def test_gradients(case: dict[str, Any]) -> None:
    """Values and gradients at 11 points from -9 to 8."""
    op, attrs = op_of(case)
    x, dy = np.array(case["x"], np.float32), np.array(case["dy"], np.float32)
    y = run_kernel(op.forward, {"x": x}, attrs, {"y": Out(x.shape)})["y"]
    np.testing.assert_allclose(y, case["y"], 1e-5, 1e-6)
    saved = {"x": x, "y": y}[op.backward.inputs[0].name]
    dx = run_kernel(
        op.backward, {op.backward.inputs[0].name: saved, "dy": dy}, attrs, {"dx": Out(x.shape)}
    )["dx"]
    np.testing.assert_allclose(dx, case["dx"], 1e-5, 1e-6)


def test_names() -> None:
    """Every name that layers may use leads to an op, and an unknown one does not."""
    assert {"relu", "relu6", "brelu", "silu", "gelu_tanh", "hardtanh"} <= set(activation_names())
    for name in activation_names():
        op, attrs = activation(name)
        assert set(attrs) == {a for a, _ in ops.get(op).forward.attrs}
    with pytest.raises(KeyError):
        activation("fc")
    with pytest.raises(TypeError, match=r"no attribute \['beta'\]"):
        activation("relu", {"beta": 1.0})
