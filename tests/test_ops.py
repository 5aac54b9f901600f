"""Generated tests of every op: nothing here names an op but the exceptions, each with its reason.

Each sample of each op is run against its float64 reference and central differences; every kernel that runs on the way is then
run again in place, adding, cut finely over two threads, and at other instruction-set levels.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import op_cases as oc
import op_gradients as og
import pytest

from paddlecli import ops
from paddlecli.ops.base import Op
from paddlecli.runtime import native

ALL = oc.cases()
SMOOTH = [case for case in ALL if og.trainable(case)]
RAGGED = [case for case in ALL if case.sample.axes]
FUSED = [case for case in ALL if type(case.it).decompose is not Op.decompose]
IN_PLACE = [case for case in ALL if any(k.inplace for k in case.it.kernels)]
APART = [
    case
    for case in ALL
    if (case.it.forward.rowwise or case.sample.axes)
    and not (case.it.forward.random or case.it.forward.updates)
]
every, smooth, ragged, fused, in_place, apart = (
    pytest.mark.parametrize("case", some, ids=str)
    for some in (ALL, SMOOTH, RAGGED, FUSED, IN_PLACE, APART)
)
N = 5


def bits_equal(a: Any, b: Any) -> bool:
    """Equal bytes of all arrays."""
    pairs = zip(oc.flat(a), oc.flat(b), strict=True)
    return all(x.shape == y.shape and x.tobytes() == y.tobytes() for x, y in pairs)


def check_close(found: Any, wanted: Any, tolerance: float, what: str) -> None:
    """Every element within the tolerance of its own size and of the largest one's."""
    for y, r in zip(oc.flat(found), oc.flat(wanted), strict=True):
        if y.dtype.kind in "iub":
            np.testing.assert_array_equal(y, np.broadcast_to(r, y.shape), what)
            continue
        finite = np.abs(r[np.isfinite(r)])
        scale = float(finite.max(initial=0.0)) or 1.0
        np.testing.assert_allclose(
            y, np.broadcast_to(r, y.shape), tolerance, tolerance * scale, err_msg=what
        )


def check_forward(run: oc.Run) -> None:
    """Shapes of the shape rule are those of the reference, and values agree."""
    wanted = oc.reference(run)
    for port in run.case.it.forward.outputs:
        if port.name.startswith("work") or port.name not in wanted:
            continue
        found = [oc.numbers(v) for v in oc.flat(run.results[port.name])]
        if run.case.it.forward.inputs:
            shapes = [r.shape for r in oc.flat(wanted[port.name])]
            assert [y.shape for y in found] == shapes, f"shape rule of {port.name}"
        check_close(found, list(oc.flat(wanted[port.name])), run.case.sample.tolerance, port.name)


# ---- values ---------------------------------------------------------------------------------------------------------
@every
@pytest.mark.parametrize("n", [N, 67])
def test_forward(case: oc.Case, n: int) -> None:
    """The kernel against the reference."""
    run = oc.forward_of(case, n)
    check_forward(run)
    missing = [
        p.name
        for p in case.it.forward.outputs
        if not p.name.startswith("work") and p.name not in oc.reference(run)
    ]
    assert not missing, f"the reference does not give {missing}"


@every
def test_one_sample(case: oc.Case) -> None:
    """A batch of one."""
    check_forward(oc.forward_of(case, 1))


@every
def test_no_samples(case: oc.Case) -> None:
    """A batch of none, forwards and backwards."""
    check_nothing(oc.forward_of(case, 0))


@ragged
def test_empty_sequences(case: oc.Case) -> None:
    """Samples without a single token, forwards and backwards."""
    check_nothing(oc.forward_of(case, 3, True))


def check_nothing(run: oc.Run) -> None:
    """Values are those of the reference, gradients are finite."""
    with np.errstate(all="ignore"):
        check_forward(run)
    if not og.trainable(run.case):
        return
    grads, _ = og.gradient(run, og.upstream(run))
    for g in (a for value in grads.values() for a in oc.flat(value)):
        assert np.isfinite(g).all()


@smooth
def test_gradient(case: oc.Case) -> None:
    """The op's gradient against central differences of the reference, in random directions and single elements."""
    run = oc.forward_of(case, N)
    members = (
        len(run.results[case.it.forward.outputs[0].name])
        if case.it.forward.outputs[0].variadic
        else 0
    )
    check_gradient(run, og.upstream(run))
    if members > 1:
        check_gradient(run, og.upstream(run, only=1))


def check_gradient(run: oc.Run, dy: dict[str, Any]) -> None:
    grads, _ = og.gradient(run, dy)
    rng = np.random.default_rng(5)
    for port in og.trainable(run.case):
        if port not in grads:
            assert port in og.DATA_PORTS, f"no gradient of {port}"
            continue
        for member, g in enumerate(oc.flat(grads[port])):
            target = list(oc.flat(run.args[port]))[member]
            assert g.dtype == np.float32 and g.shape == target.array.shape
            for direction in directions(g, rng):
                found, size = (
                    float((g.astype(np.float64) * direction).sum()),
                    float(np.abs(g * direction).sum()),
                )
                wanted = og.slope(run, dy, port, member, direction)
                limit = run.case.sample.grad_tolerance * max(
                    size, abs(wanted), np.abs(g).max() * 0.01, 1e-6
                )
                assert abs(found - wanted) <= limit, (
                    f"{port}[{member}]: {found} instead of {wanted}"
                )


def directions(g: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Three dense ones and up to six of one element each."""
    if g.size == 0:
        return []
    dense = [rng.uniform(-1, 1, g.shape) for _ in range(3)]
    single = []
    for at in rng.choice(g.size, min(6, g.size), replace=False):
        single.append(np.zeros(g.shape))
        single[-1].flat[at] = 1.0
    return dense + single


@smooth
def test_wanted_gradients_only(case: oc.Case) -> None:
    """Asking for one gradient gives the bits it has among all, and never more kernels."""
    run = oc.forward_of(case, N)
    dy = og.upstream(run)
    everything, calls = og.gradient(run, dy)
    for port in og.trainable(case):
        alone, fewer = og.gradient(run, dy, [port])
        assert len(fewer) <= len(calls)
        assert bits_equal(alone.get(port), everything.get(port)), port


# ---- the same bits --------------------------------------------------------------------------------------------------
def calls_of(case: oc.Case, n: int = N) -> list[oc.Call]:
    """Every kernel that a case runs, forwards and backwards."""
    run = oc.forward_of(case, n)
    calls = list(run.calls)
    if og.trainable(case):
        calls += og.gradient(run, og.upstream(run))[1]
    return calls


def arrays(results: Any) -> Any:
    """Arrays of the results of a call."""
    return {k: oc.each(v, lambda t: t.array) for k, v in results.items()}


def same(call: oc.Call, found: dict[str, Any], how: str) -> None:
    """The outputs of a call have the bits they had."""
    wanted = arrays(call.results)
    for port, value in found.items():
        assert bits_equal(value, wanted[port]), f"{call.kernel.full_name}: {port} differs {how}"


@every
def test_threads(case: oc.Case) -> None:
    """Two threads with the smallest pieces give the bits of one thread, twice."""
    for call in calls_of(case):
        for _ in range(2):
            same(call, call.run(threads=2, smallest_grain=True), "with 2 threads")


@in_place
def test_in_place(case: oc.Case) -> None:
    """In place where the kernel allows it."""
    for call in calls_of(case):
        fits = all(
            call.args[i] is not None and call.args[i].spec.shape == call.out[o].shape
            for o, i in call.kernel.inplace.items()
        )
        if call.kernel.inplace and fits:
            same(call, call.run(inplace=True), "in place")


@smooth
def test_accumulate(case: oc.Case) -> None:
    """Told to add, a kernel adds to each float output what it would have assigned."""
    rng = np.random.default_rng(3)
    for call in calls_of(case):
        public = {
            k: v
            for k, v in arrays(call.results).items()
            if all(a.dtype == np.float32 for a in oc.flat(v))
        }
        if call.kernel.updates or not ops.get(call.kernel.op).differentiable or not public:
            continue
        start = {
            k: oc.each(v, lambda a: rng.uniform(-1, 1, a.shape).astype(np.float32))
            for k, v in public.items()
        }
        found = call.run(accumulate=start)
        for port, value in public.items():
            trio = zip(oc.flat(found[port]), oc.flat(start[port]), oc.flat(value), strict=True)
            for total, first, added in trio:
                wanted = first.astype(np.float64) + added
                limit = 1e-6 * (1 + np.abs(added).max(initial=0))
                np.testing.assert_allclose(
                    total, wanted, 0, limit, err_msg=f"{call.kernel.full_name}: {port}"
                )


@apart
def test_sample_alone(case: oc.Case) -> None:
    """A sample by itself gives the bits that it has in its batch (kernels whose rows stand alone)."""
    run = oc.forward_of(case, N)
    if stacks_batches(run):
        return
    for i in range(N):
        args = {
            k: oc.each(v, lambda t, i=i: oc.Value(t.spec, part(t, run.sizes, i)))
            for k, v in run.args.items()
        }
        alone = oc.forward(case, run.sizes.alone(i), args)
        for port, value in run.results.items():
            for whole, one in zip(oc.flat(value), oc.flat(alone.results[port]), strict=True):
                if any(run.sizes.rows(d, i) is not None for d in whole.spec.shape):
                    assert bits_equal(one.array, part(whole, run.sizes, i)), f"{port} of sample {i}"


def part(value: oc.Value, sizes: oc.Sizes, i: int) -> np.ndarray:
    """Sample i of a tensor, along whichever dimension is the batch."""
    cut = tuple(sizes.rows(d, i) or slice(None) for d in value.spec.shape)
    return np.ascontiguousarray(value.array[cut])


def stacks_batches(run: oc.Run) -> bool:
    """True where samples lie apart in the result: whole batches put one behind the other."""
    return run.case.op == "concat" and run.attrs["axis"] == 0


@fused
def test_fused(case: oc.Case) -> None:
    """A fused op equals what it decomposes into."""
    run = oc.forward_of(case, N)
    e = oc.Eager(run.sizes)
    parts = case.it.decompose(e, og.Node(run.args, run.results, run.attrs))
    for port, value in (parts or {}).items():
        for a, b in zip(oc.flat(value), oc.flat(run.results[port]), strict=True):
            check_close(a.array, b.array, max(1e-5, case.sample.tolerance), port)


def digests() -> dict[str, str]:
    """A hash of every number of every case, for the level in use."""
    found = {}
    for case in ALL:
        h = hashlib.sha1(usedforsecurity=False)
        for call in calls_of(case, 3):
            for value in arrays(call.results).values():
                for a in oc.flat(value):
                    h.update(a.tobytes())
        found[str(case)] = h.hexdigest()
    return found


def at_level(level: str, expression: str) -> Any:
    """What an expression of this module gives at another instruction-set level, in a process of its own."""
    here = str(Path(__file__).parent)
    code = f"import sys; sys.path.insert(0, {here!r}); import json, test_ops as t; print(json.dumps({expression}))"
    env = {**os.environ, "PADDLECLI_ISA": level}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_levels() -> None:
    """AVX2 and AVX-512 give the same bits."""
    if native.info().level != "avx512":
        pytest.skip(f"the level is {native.info().level}; the comparison needs avx512")
    wide, narrow = digests(), at_level("avx2", "t.digests()")
    assert [k for k in wide if wide[k] != narrow[k]] == []


def values_and_gradients() -> list[str]:
    """Cases that fail against the reference or the differences."""
    failed = []
    for case in ALL:
        try:
            check_forward(oc.forward_of(case, N))
            if case in SMOOTH:
                check_gradient(oc.forward_of(case, N), og.upstream(oc.forward_of(case, N)))
        except AssertionError as error:
            failed.append(f"{case}: {error}")
    return failed


def test_baseline() -> None:
    """The level without fma has the same values, to the tolerance."""
    if native.info().level not in ("avx2", "avx512"):
        pytest.skip(f"level {native.info().level} has no other level to compare")
    assert at_level("baseline", "t.values_and_gradients()") == []


# ---- both sides -----------------------------------------------------------------------------------------------------
def test_signatures() -> None:
    """Python and C have the same kernels, to the letter."""
    assert native.mismatches() == []


ELSEWHERE = {
    "batch_norm.again": "golden/test_conv_pool_norm.py",
    "batch_norm.inference": "golden/test_conv_pool_norm.py",
    "batch_norm.backward_inference": "golden/test_conv_pool_norm.py",
    "batch_norm.fold": "golden/test_conv_pool_norm.py",
    "global_norm.squares": "test_op_edges.py",
    "global_norm.squares_rows": "test_op_edges.py",
    "softmax_with_cross_entropy.forward_backward": "compiler/test_loss_fusion.py",
}
"""Kernels that no sample reaches, and the test that runs them. State updates beside ``forward`` have their builders' tests."""


def test_every_kernel_runs() -> None:
    """No kernel goes untested."""
    ran = {call.kernel.full_name for case in ALL for call in calls_of(case)}
    known = {k.full_name: k for name in ops.names() for k in ops.get(name).kernels}
    assert (
        sorted(k for k, v in known.items() if k not in ran and k not in ELSEWHERE and not v.updates)
        == []
    )
    assert not set(ELSEWHERE) - set(known)
    for name, file in ELSEWHERE.items():
        text = (Path(__file__).parent / file).read_text(encoding="utf-8")
        assert known[name].name in text, f"{file} does not run {name}"


@pytest.mark.parametrize("name", ops.names())
def test_op_file(name: str) -> None:
    """File name, op name, samples and docstring of an op."""
    op = ops.get(name)
    assert op.name == name and op.samples()
    assert type(op).__doc__ and (sys.modules[type(op).__module__].__doc__ or "").strip()
    assert all(k.op == name for k in op.kernels)
