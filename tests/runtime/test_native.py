"""The library as Python sees it: signatures, levels, counters, devices, random numbers, one kernel alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import plans
import pytest

from paddlecli import settings
from paddlecli.errors import ResourceError, UsageError
from paddlecli.ops import _random
from paddlecli.ops.base import Ragged, RandomKey
from paddlecli.ops.spec import Axis, Spec
from paddlecli.runtime import native
from paddlecli.runtime.device import device
from paddlecli.runtime.eager import Out, run_kernel

ROOT = Path(__file__).resolve().parents[2]


def test_python_and_the_library_have_the_same_kernels() -> None:
    assert native.mismatches() == []
    assert native.info().kernels == len(native.signatures()) > 100


def test_the_header_is_what_the_library_was_built_from() -> None:
    assert native.info().backend == "cpu"
    assert native.ffi().sizeof("pk_step") == native.STEP_BYTES


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False
    )


def test_the_level_is_the_settings() -> None:
    show = "from paddlecli.runtime import native; print(native.info().level)"
    levels = ("baseline", "avx2", "avx512", "neon")
    results = {level: run_python(show, PADDLECLI_ISA=level) for level in levels}
    found = [level for level, done in results.items() if done.returncode == 0]
    assert found and all(results[level].stdout.strip() == level for level in found)
    refused = [results[level].stderr for level in levels if level not in found]
    assert refused and all("has no level" in text and "PADDLECLI_ISA" in text for text in refused)
    assert run_python(show).stdout.strip() == found[-1]


def test_a_missing_library_is_named(tmp_path: Path) -> None:
    done = run_python(
        "from paddlecli.runtime import native; native.info()", PADDLECLI_CORE=str(tmp_path)
    )
    assert done.returncode != 0 and f"{tmp_path}" in done.stderr and "PADDLECLI_CORE" in done.stderr


def test_devices() -> None:
    assert str(device("cpu", 3)) == "cpu" and device("cpu", 3).threads == 3
    assert device("auto").threads == settings.threads()
    with pytest.raises(UsageError, match="gpu0"):
        device("gpu0")


def test_random_numbers_are_those_of_numpy() -> None:
    like = np.zeros(1, np.float32)
    for key in (
        RandomKey(1, 2, 3),
        RandomKey(2**63 + 5, 2**40, 2**64 - 1),
        RandomKey(0, 0, 9, first=1001),
    ):
        attrs = {"shape": (7, 3), "low": 0.0, "high": 1.0}
        found = run_kernel(
            plans.kernel("random_uniform.forward"),
            {"like": like},
            attrs,
            {"y": Out((7, 3))},
            random=key,
        )
        np.testing.assert_array_equal(found["y"].ravel(), _random.uniform(key, 3 * key.first, 21))


def test_known_answers_of_philox() -> None:
    """The generator's published vectors: counter and key all zeros, and all ones."""
    from unittest import mock

    zero = RandomKey(0, 0, 0)
    with mock.patch.object(_random, "key", return_value=0):
        words = [f"{w:08x}" for w in _random.blocks(zero, 0, 1)[0]]
    assert words == ["6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8"]
    ones = RandomKey(0, 2**64 - 1, 0)
    with mock.patch.object(_random, "key", return_value=2**64 - 1):
        words = [f"{w:08x}" for w in _random.blocks(ones, 2**64 - 1, 1)[0]]
    assert words == ["408f276d", "41c83b0e", "a20bc7c6", "6d5451fd"]


def test_numbers_do_not_depend_on_the_cut() -> None:
    key = RandomKey(5, 6, 7)
    whole = _random.bits(key, 0, 1000)
    for first, count in ((0, 1), (3, 5), (4, 4), (997, 3), (17, 0)):
        np.testing.assert_array_equal(_random.bits(key, first, count), whole[first : first + count])
    normal = _random.normal(key, 0, 200_000)
    np.testing.assert_array_equal(_random.normal(key, 7, 10), normal[7:17])
    assert abs(normal.mean()) < 0.01 and abs(normal.std() - 1) < 0.01


def test_one_kernel_alone() -> None:
    x = np.array([[-1, 2], [3, -4]], np.float32)
    relu, total = plans.kernel("relu.forward"), plans.kernel("sum.forward")
    for inplace in (False, True):
        y = run_kernel(relu, {"x": x}, {}, {"y": Out((2, 2))}, inplace=inplace)["y"]
        np.testing.assert_array_equal(y, np.maximum(x, 0))
    added = run_kernel(
        total, {"xs": [x, x, x]}, {}, {"y": Out((2, 2))}, accumulate={"y": np.ones((2, 2))}
    )["y"]
    np.testing.assert_array_equal(added, 3 * x + 1)


def test_ragged_inputs_and_outputs_of_one_kernel() -> None:
    offsets = np.array([0, 2, 2, 5])
    values = np.arange(5, dtype=np.float32)[:, None]
    pooled = run_kernel(
        plans.kernel("sequence_pool.forward"),
        {"x": Ragged(values, offsets)},
        {"mode": 0, "pad_value": 0.0},
        {"y": Out((3, 1))},
    )
    np.testing.assert_array_equal(pooled["y"][:, 0], [1, 0, 9])
    axis = Axis("t", "like")
    spec = Spec.of(axis.total, 1, axis=axis)
    args = {"x": np.array([[1], [2], [3]], np.float32), "like": Ragged(values, offsets)}
    repeated = run_kernel(
        plans.kernel("repeat_rows.forward"), args, {}, {"y": spec}, axes={"t": offsets}
    )
    np.testing.assert_array_equal(repeated["y"][:, 0], [1, 1, 3, 3, 3])
    with pytest.raises(ValueError, match="axes="):
        run_kernel(plans.kernel("repeat_rows.forward"), args, {}, {"y": spec})


def test_no_memory_is_an_error_and_the_session_lives_on() -> None:
    from paddlecli.runtime.request import Request
    from paddlecli.runtime.session import Params, Plan, Session

    plan = Plan(plans.dense())
    session = Session(plan, Params(plan), device("cpu", 1))
    with pytest.raises(ResourceError, match="no memory"):
        session.reserve({"N": 2**40})
    request = Request(plan, 0, [3], [0.0]).from_columns([{"x": np.zeros((3, 4), np.float32)}])
    assert session.run(request).done == 1
