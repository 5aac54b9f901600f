"""Deconvolutions, adaptive pools and resized images against numbers of other frameworks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from op_bench import OpBench, check_case, check_close

CASES: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent / "image_sizes.json").read_text()
)["cases"]


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    """Two of them have seven decimals only. A deconvolution's bias is an op of its own."""
    case = CASES[name]
    args, grads = dict(case["args"]), dict(case.get("grads", {}))
    out = np.array(case["out"]["y"])
    bias, found = args.pop("b", None), grads.pop("b", None)
    if bias is not None:
        check_close(np.array(case["upstream"], np.float32).sum(axis=(0, 2, 3)), found)
        out = out - np.array(bias)[:, None, None]
    rtol = 1e-4 if name.startswith("deconv") else 1e-5
    check_case({**case, "args": args, "grads": grads, "out": {"y": out}}, rtol)


def test_mirrored_padding() -> None:
    """The outer pixel is not repeated; its gradient is counted once for each place that shows it."""
    x = np.arange(6, dtype=np.float32).reshape(1, 1, 2, 3)
    bench = OpBench("pad2d", {"x": x}, {"padding": (1, 0, 2, 1), "mode": 1, "value": 0.0})
    assert bench["y"][0, 0].tolist() == [
        [5, 4, 3, 4, 5, 4],
        [2, 1, 0, 1, 2, 1],
        [5, 4, 3, 4, 5, 4],
    ]
    found = bench.gradients(y=np.ones_like(bench["y"]))["x"]
    assert found[0, 0].tolist() == [[1, 3, 2], [2, 6, 4]]
