"""Convolutions, pools and batch norm against numbers of other frameworks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from op_bench import OpBench, check_case, check_close

from paddlecli import ops
from paddlecli.runtime.eager import Out, run_kernel

GOLDEN = json.loads((Path(__file__).parent / "conv_pool_norm.json").read_text())
CASES: dict[str, dict[str, Any]] = GOLDEN["cases"]
NORMS: dict[str, Any] = GOLDEN["batch_norm"]
EPSILON = 1e-5


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    check_case(CASES[name])


def update(mean: Any, variance: Any, bench: OpBench) -> tuple[np.ndarray, np.ndarray]:
    """Running statistics after a batch."""
    args = {"mean": mean, "variance": variance, "batch_mean": bench["mean"], "batch_rstd": bench["rstd"]}  # fmt: skip
    done = OpBench(
        "batch_norm", args, {"momentum": 0.9, "epsilon": EPSILON}, kernel="update_running"
    )
    return done["mean_out"], done["variance_out"]


@pytest.mark.parametrize("name", ["batch_norm_train_nchw", "batch_norm_train_nc"])
def test_batch_norm_training(name: str) -> None:
    given, out = NORMS[name]["in"], NORMS[name]["out"]
    args = {"x": given["X"], "w": given["Scale"], "b": given["Bias"]}
    bench = OpBench("batch_norm", args, {"epsilon": EPSILON, "activation": 0})
    check_close(bench["y"], out["Y"])
    check_close(bench["mean"], out["BatchMean"])
    check_close(bench["rstd"], 1 / np.sqrt(np.array(out["BatchVariance"]) + EPSILON))
    mean, variance = update(given["Mean"], given["Variance"], bench)
    check_close(mean, out["MeanOut"])
    check_close(variance, out["VarianceOut"])
    found = bench.gradients(y=NORMS[name]["upstream"])
    for port, slot in (("x", "X"), ("w", "Scale"), ("b", "Bias")):
        check_close(found[port], out[f"grad:{slot}"], what=port)


@pytest.mark.parametrize("activation", [0, 1])
def test_batch_norm_given_statistics(activation: int) -> None:
    """The kernels ``inference`` and ``backward_inference``."""
    case = NORMS["batch_norm_global_stats"]
    given, out = case["in"], case["out"]
    args = {"x": given["X"], "w": given["Scale"], "b": given["Bias"], "mean": given["Mean"],
            "variance": given["Variance"]}  # fmt: skip
    attrs = {"epsilon": EPSILON, "activation": activation}
    bench = OpBench("batch_norm", args, attrs, kernel="inference")
    y, upstream = np.array(out["Y"]), np.array(case["upstream"], np.float32)
    found = bench.gradients(y=upstream)
    if not activation:
        check_close(bench["y"], y)
        for port, slot in (("x", "X"), ("w", "Scale"), ("b", "Bias")):
            check_close(found[port], out[f"grad:{slot}"], what=port)
        return
    check_close(bench["y"], np.maximum(y, 0))
    plain = OpBench("batch_norm", args, {**attrs, "activation": 0}, kernel="inference")
    masked = plain.gradients(y=np.where(y > 0, upstream, 0).astype(np.float32))
    for port in ("x", "w", "b"):
        assert found[port].tolist() == masked[port].tolist()


@pytest.mark.parametrize("shape", [(5, 3, 4, 7), (70, 19)], ids=["planes", "columns"])
@pytest.mark.parametrize("activation", [0, 1])
def test_batch_norm_a_second_time(activation: int, shape: tuple[int, ...]) -> None:
    """The kernel ``again`` gives the bits of ``forward``, with and without a summand, in place too; and what a relu
    let pass is seen in x as in y."""
    op, c = ops.get("batch_norm"), shape[1]
    rng = np.random.default_rng(3)
    x, z, dy = (rng.normal(size=shape).astype(np.float32) for _ in range(3))
    w, b = (rng.uniform(-1, 2, c).astype(np.float32) for _ in range(2))
    attrs = {"epsilon": EPSILON, "activation": activation}
    each = {"mean": Out((c,)), "rstd": Out((c,))}
    kernels = {k.name: k for k in op.kernels}
    for summand in (None, z):
        args = {"x": x, "w": w, "b": b, "z": summand}
        first = run_kernel(op.forward, args, attrs, {"y": Out(shape), **each})
        known = {"mean": first["mean"], "rstd": first["rstd"]}
        for inplace in (False, True):
            found = run_kernel(
                kernels["again"], {**args, **known}, attrs, {"y": Out(shape)}, inplace=inplace
            )
            assert found["y"].tobytes() == first["y"].tobytes()
    if not activation:
        return
    y = run_kernel(
        op.forward, {"x": x, "w": w, "b": b, "z": None}, attrs, {"y": Out(shape), **each}
    )
    args = {"x": x, "w": w, "mean": y["mean"], "rstd": y["rstd"], "dy": dy}
    outs = {"dx": Out(shape), "dw": Out((c,)), "db": Out((c,))}
    masks = ({"y": y["y"], "b": None}, {"y": None, "b": b})
    seen, computed = (
        run_kernel(kernels["backward"], {**args, **m}, {"epsilon": EPSILON}, outs) for m in masks
    )
    assert all(seen[k].tobytes() == computed[k].tobytes() for k in outs)
    plain = run_kernel(
        kernels["backward"], {**args, "y": None, "b": None}, {"epsilon": EPSILON}, outs
    )
    assert plain["dx"].tobytes() != seen["dx"].tobytes()


def test_batch_norm_columns_given_statistics() -> None:
    """One value a channel: the kernel of columns agrees with the one of planes."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(9, 21)).astype(np.float32)
    args = {k: rng.uniform(0.5, 2, 21).astype(np.float32) for k in ("w", "b", "mean", "variance")}
    attrs = {"epsilon": EPSILON, "activation": 0}
    columns = OpBench("batch_norm", {"x": x, **args}, attrs, kernel="inference")
    wide = np.repeat(x[:, :, None], 2, axis=2)
    planes = OpBench("batch_norm", {"x": wide, **args}, attrs, kernel="inference")
    check_close(columns["y"], planes["y"][:, :, 0])
    upstream = rng.normal(size=x.shape).astype(np.float32)
    one = columns.gradients(y=upstream)
    both = planes.gradients(y=np.repeat(upstream[:, :, None], 2, axis=2) / 2)
    check_close(one["x"], both["x"].sum(axis=2))
    check_close(one["w"], both["w"])
    check_close(one["b"], both["b"])


def test_batch_norm_two_steps() -> None:
    """Running mean 0 and variance 1 through two batches, then the first batch in evaluation."""
    case = GOLDEN["batch_norm_two_steps"]
    w, b = [1.0, 1.0], [0.0, 0.0]
    mean, variance = np.zeros(2, np.float32), np.ones(2, np.float32)
    for x, step in zip(case["x"], case["train"], strict=True):
        bench = OpBench("batch_norm", {"x": x, "w": w, "b": b}, {"epsilon": EPSILON})
        check_close(bench["y"], step["y"])
        mean, variance = update(mean, variance, bench)
        check_close(mean, step["mean"])
        check_close(variance, step["var"])
    args = {"x": case["x"][0], "w": w, "b": b, "mean": mean, "variance": variance}
    check_close(
        OpBench("batch_norm", args, {"epsilon": EPSILON}, kernel="inference")["y"],
        case["eval_y_of_x0"],
    )


def test_batch_norm_far_from_zero() -> None:
    """A spread of 0.5 around 1000: a variance from the mean of squares would have no digit left."""
    rng = np.random.default_rng(2)
    x = (1000 + rng.integers(-512, 512, (6, 3, 5, 5)) / 1024).astype(np.float32)
    bench = OpBench("batch_norm", {"x": x, "w": [1.0] * 3, "b": [0.0] * 3}, {"epsilon": EPSILON})
    exact = x.astype(np.float64)
    spread = exact.var(axis=(0, 2, 3), keepdims=True)
    wanted = (exact - exact.mean(axis=(0, 2, 3), keepdims=True)) / np.sqrt(spread + EPSILON)
    np.testing.assert_allclose(bench["y"], wanted, atol=2e-4)


@pytest.mark.parametrize("window", [(2, 2), (3, 3)])
def test_pool_keeps_a_nan(window: tuple[int, int]) -> None:
    """A NaN must reach the loss, wherever it lies in its window."""
    for place in range(16):
        x = np.zeros((1, 1, 4, 4), np.float32)
        x.reshape(-1)[place] = np.nan
        attrs = {"window": window, "stride": (1, 1)}
        found = np.isnan(OpBench("pool2d", {"x": x}, attrs)["y"])
        windows = np.lib.stride_tricks.sliding_window_view(x, window, axis=(2, 3))
        assert (found == np.isnan(windows).any(axis=(4, 5))).all()


def test_pool_ties() -> None:
    """The first of equal values, row by row, gets the whole gradient."""
    x = np.ones((1, 1, 4, 4), np.float32)
    for stride, wanted in (((2, 2), [1, 0, 1, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0]),
                           ((1, 1), [1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 0, 0, 0, 0, 0])):  # fmt: skip
        bench = OpBench("pool2d", {"x": x}, {"window": (2, 2), "stride": stride})
        found = bench.gradients(y=np.ones_like(bench["y"]))["x"]
        assert found.reshape(-1).tolist() == wanted


@pytest.mark.parametrize("biased", [False, True])
def test_fold_is_inference_as_scale_and_shift(biased: bool) -> None:
    """The kernel ``fold``: with what a convolution adds of its own, or without."""
    rng = np.random.default_rng(3)
    w, b, mean, bias = (rng.normal(size=37).astype(np.float32) for _ in range(4))
    variance = rng.uniform(0.1, 2.0, 37).astype(np.float32)
    args = {"w": w, "b": b, "mean": mean, "variance": variance}
    out = run_kernel(
        ops.get("batch_norm").fold, args | ({"bias": bias} if biased else {}), {"epsilon": EPSILON},
        {"scale": Out((37,)), "shift": Out((37,))},
    )  # fmt: skip
    scale = w.astype(np.float64) / np.sqrt(variance.astype(np.float64) + EPSILON)
    shift = b + ((bias if biased else 0.0) - mean.astype(np.float64)) * scale
    np.testing.assert_allclose(out["scale"], scale, rtol=2e-6)
    np.testing.assert_allclose(out["shift"], shift, rtol=2e-5, atol=2e-6)
