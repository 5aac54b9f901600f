"""Group and instance norm against the numbers of another framework (``norms.json`` says whose), and what their layers make."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from op_bench import OpBench, check_close

CASES: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "norms.json").read_text())[
    "cases"
]


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    """Instance norm is group norm with a channel a group."""
    case = CASES[name]
    given, out, epsilon = case["in"], case["out"], case["attrs"]["epsilon"]
    groups = case["attrs"].get("groups", len(given["Scale"]))
    args = {"x": given["X"], "w": given["Scale"], "b": given["Bias"]}
    bench = OpBench("group_norm", args, {"groups": groups, "epsilon": epsilon})
    check_close(bench["y"], out["Y"])
    check_close(bench["mean"], np.reshape(out["Mean"], (-1, groups)))
    rstd = 1 / np.sqrt(np.reshape(out["Variance"], (-1, groups)) + epsilon)
    check_close(bench["rstd"], rstd)
    found = bench.gradients(y=case["upstream"])
    for port, slot in (("x", "X"), ("w", "Scale"), ("b", "Bias")):
        check_close(found[port], out[f"grad:{slot}"], what=port)


def test_far_from_zero() -> None:
    """A spread of 0.5 around 1000 keeps its digits."""
    rng = np.random.default_rng(3)
    x = (1000 + rng.integers(-512, 512, (3, 4, 5, 5)) / 1024).astype(np.float32)
    y = OpBench("group_norm", {"x": x}, {"groups": 2, "epsilon": 1e-5})["y"]
    rows = x.astype(np.float64).reshape(3, 2, -1)
    wanted = (rows - rows.mean(2, keepdims=True)) / np.sqrt(rows.var(2, keepdims=True) + 1e-5)
    np.testing.assert_allclose(y.reshape(rows.shape), wanted, atol=2e-5)
