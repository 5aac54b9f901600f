"""CUDA kernels, emulated and on a GPU where there is one, against the kernels of the CPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import op_cases as oc
import op_gradients as og
import pytest

from paddlecli import ops
from paddlecli.runtime import native

CASES = oc.cases()
WITHOUT = frozenset(f"conv2d_tiled.{k}" for k in ("forward", "backward_x", "backward_w"))
"""Kernels of the CPU alone: the compiler makes none of them for CUDA."""
BATCHES = (5, 67, 1, 0)


def calls_of(case: oc.Case, n: int, empty: bool = False) -> list[oc.Call]:
    """Every kernel that a case runs on the CPU, forwards and backwards."""
    run = oc.forward_of(case, n, empty)
    calls = list(run.calls)
    if og.trainable(case):
        calls += og.gradient(run, og.upstream(run))[1]
    return calls


def arrays(results: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays of the results of a call."""
    return {k: oc.each(v, lambda t: t.array) for k, v in results.items()}


def check(call: oc.Call, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Floats to a few units in the last place of the largest, everything else exactly."""
    for port, value in found.items():
        for y, r in zip(oc.flat(value), oc.flat(wanted[port]), strict=True):
            what = f"{call.kernel.full_name}: {port}"
            if y.dtype.kind != "f":
                np.testing.assert_array_equal(y, r, what)
                continue
            scale = float(np.abs(r[np.isfinite(r)]).max(initial=0.0)) or 1.0
            np.testing.assert_allclose(y, r, 2e-5, 2e-6 * scale, err_msg=what)


def start_of(call: oc.Call) -> dict[str, Any]:
    """Where an accumulating run starts: random numbers for outputs that are floats."""
    rng = np.random.default_rng(3)
    public = {
        k: v
        for k, v in arrays(call.results).items()
        if all(a.dtype == np.float32 for a in oc.flat(v))
    }
    return {
        k: oc.each(v, lambda a: rng.uniform(-1, 1, a.shape).astype(np.float32))
        for k, v in public.items()
    }


@pytest.fixture(scope="module")
def catalogue(backend: str) -> frozenset[str]:
    """Names of the kernels that the library has."""
    return frozenset(s.partition("(")[0] for s in native.signatures(backend))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_sample(case: oc.Case, backend: str, catalogue: frozenset[str]) -> None:
    """Each kernel of a case, on several batches: assigned, added and in place."""
    for n in BATCHES:
        with np.errstate(all="ignore"):
            calls = calls_of(case, n)
        lacking = sorted({c.kernel.full_name for c in calls} - catalogue)
        if lacking:
            pytest.skip(f"CUDA has no {', '.join(lacking)}")
        for call in calls:
            check(call, call.run(backend=backend), arrays(call.results))
            if n != BATCHES[0] or call.kernel.updates:
                continue
            start = start_of(call)
            if start and ops.get(call.kernel.op).differentiable:
                check(call, call.run(backend=backend, accumulate=start), call.run(accumulate=start))
            fits = all(
                call.args[i] is not None and call.args[i].spec.shape == call.out[o].shape
                for o, i in call.kernel.inplace.items()
            )
            if call.kernel.inplace and fits:
                check(call, call.run(backend=backend, inplace=True), arrays(call.results))


@pytest.mark.parametrize("case", [c for c in CASES if c.sample.axes], ids=str)
def test_empty_sequences(case: oc.Case, backend: str, catalogue: frozenset[str]) -> None:
    """Samples without a single token."""
    with np.errstate(all="ignore"):
        calls = calls_of(case, 3, True)
    for call in calls:
        if call.kernel.full_name not in catalogue:
            pytest.skip(f"CUDA has no {call.kernel.full_name}")
        check(call, call.run(backend=backend), arrays(call.results))


def test_catalogue(backend: str, catalogue: frozenset[str]) -> None:
    """Every kernel is either there, with the signature of the CPU, or known to be missing."""
    known = {k.full_name for name in ops.names() for k in ops.get(name).kernels}
    assert set(native.signatures(backend)) <= set(native.signatures())
    assert known - catalogue == WITHOUT
