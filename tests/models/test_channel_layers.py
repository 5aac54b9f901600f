"""Norms, slopes, dropped channels and moved pixels: what a single step cannot show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from null.executor import Batch
from null.world import graph_of, recipe_of
from road import Road

from paddlecli import ops
from paddlecli.compiler.optimizer import optimizers
from paddlecli.errors import ConfigError
from paddlecli.ops.base import RandomKey
from paddlecli.runtime.eager import Out, run_kernel

HEAD = """
data:
  name: generated
  fields: [{name: x, shape: [4, 3, 2]}, {name: y, shape: [1], role: label}]
optimizer: {name: sgd, learning_rate: 0.01}
model:
  inputs: {x: {shape: [4, 3, 2]}, y: {shape: [1], role: label}}
  layers:
    - LAYER
    - {fc: {size: 1, bias: false}, name: p}
  loss: {square_error_cost: {}, from: [p, y]}
  outputs: {f: f, p: p}
"""


def road_of(layer: str, folder: Path) -> Road:
    """A network of that layer, called f, and a linear one."""
    recipe = recipe_of(HEAD.replace("LAYER", layer), folder)
    return Road(graph_of(recipe), optimizers(recipe))


def batch_of(road: Road, rows: int, seed: int = 0) -> Batch:
    rng = np.random.default_rng(seed)
    columns = {"x": rng.normal(2, 3, (rows, 4, 3, 2)), "y": rng.normal(size=(rows, 1))}
    weights = {a.name: float(rows) for a in road.artifact.arguments}
    return Batch(rows, columns, weights)


# ---- batch norm's running statistics ---------------------------------------------------------------
def moments(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return x.mean(axis=(0, 2, 3)), x.var(axis=(0, 2, 3))


def test_running_statistics_follow_at_their_momentum(tmp_path: Path) -> None:
    """Through two steps; evaluation does not move them and normalises by them."""
    road = road_of("{batch_norm: {momentum: 0.75}, from: x, name: f}", tmp_path)
    mean, variance = np.zeros(4), np.ones(4)
    for seed in (1, 2):
        batch = batch_of(road, 5, seed)
        road.step("train_step", batch, rate=0.0)
        m, v = moments(batch.columns["x"])
        mean, variance = 0.75 * mean + 0.25 * m, 0.75 * variance + 0.25 * v
    np.testing.assert_allclose(road.read("f/mean"), mean, rtol=1e-5)
    np.testing.assert_allclose(road.read("f/variance"), variance, rtol=1e-5)
    batch = batch_of(road, 3, 3)
    y = road.step("predict", batch, outputs=True).outputs["f"]
    wide = (1, 4, 1, 1)
    wanted = (batch.columns["x"] - mean.reshape(wide)) / np.sqrt(variance.reshape(wide) + 1e-5)
    np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(road.read("f/mean"), mean, rtol=1e-5)


def test_global_statistics_are_taken_and_stay(tmp_path: Path) -> None:
    """In training too: then a batch's own mean has no part in its loss or gradients."""
    road = road_of("{batch_norm: {use_global_stats: true}, from: x, name: f}", tmp_path)
    mean, variance = np.array([1.0, 2.0, -1.0, 0.5]), np.array([4.0, 1.0, 9.0, 2.0])
    road.write({"f/mean": mean, "f/variance": variance})
    batch, w = batch_of(road, 5), road.read("p/w").astype(np.float64)
    wide = (1, 4, 1, 1)
    normal = (batch.columns["x"] - mean.reshape(wide)) / np.sqrt(variance.reshape(wide) + 1e-5)
    residual = normal.reshape(5, -1) @ w - batch.columns["y"]
    step = road.step("train_step", batch, rate=1.0)
    assert step.loss == pytest.approx(np.mean(residual**2), rel=1e-4)
    back = (2 / 5 * residual @ w.T).reshape(normal.shape)
    np.testing.assert_allclose(
        1 - road.read("f/w"), (back * normal).sum(axis=(0, 2, 3)), rtol=1e-4, atol=1e-4
    )
    np.testing.assert_array_equal(road.read("f/mean"), mean.astype(np.float32))
    np.testing.assert_array_equal(road.read("f/variance"), variance.astype(np.float32))


# ---- dropout2d ---------------------------------------------------------------------------------------
def dropped(x: np.ndarray, first: int = 0, threads: int = 1) -> np.ndarray:
    kernel = ops.get("dropout2d").forward
    attrs: dict[str, Any] = {"rate": 0.4, "upscale": True}
    key = RandomKey(7, 3, 11, first)
    found = run_kernel(
        kernel, {"x": x}, attrs, {"y": Out(x.shape)}, random=key, threads=threads,
        smallest_grain=threads > 1,
    )  # fmt: skip
    y: np.ndarray = found["y"]
    return y


def test_channels_are_dropped_as_a_whole() -> None:
    x = np.random.default_rng(0).uniform(1, 2, (200, 8, 3, 3)).astype(np.float32)
    y = dropped(x)
    kept = y[:, :, 0, 0] != 0
    assert abs(kept.mean() - 0.6) < 0.03
    np.testing.assert_allclose(y, np.where(kept[:, :, None, None], x / 0.6, 0), rtol=1e-6)
    assert {tuple(row) for row in kept.tolist()} != {tuple(kept[0].tolist())}


def test_masks_do_not_depend_on_cuts_threads_or_pixels() -> None:
    """The mask belongs to the sample of the whole batch and the channel."""
    x = np.random.default_rng(1).uniform(1, 2, (13, 6, 5, 7)).astype(np.float32)
    whole = dropped(x)
    parts = [dropped(x[a:b], first=a) for a, b in ((0, 4), (4, 6), (6, 13))]
    assert np.concatenate(parts).tobytes() == whole.tobytes()
    assert dropped(x, threads=3).tobytes() == whole.tobytes()
    pixels = dropped(np.ascontiguousarray(x[:, :, :1, :1]))
    np.testing.assert_array_equal(pixels[:, :, 0, 0], whole[:, :, 0, 0])


def test_evaluation_drops_nothing(tmp_path: Path) -> None:
    for mode, factor in (("upscale_in_train", 1.0), ("downgrade_in_infer", 0.7)):
        road = road_of(f"{{dropout2d: {{rate: 0.3, mode: {mode}}}, from: x, name: f}}", tmp_path)
        batch = batch_of(road, 3)
        found = road.step("predict", batch, outputs=True).outputs
        np.testing.assert_allclose(found["f"], factor * batch.columns["x"], rtol=1e-5)


# ---- the others --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("mode", "shape"), [("all", (1,)), ("channel", (4,)), ("element", (4, 3, 2))]
)
def test_prelu_modes(mode: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    road = road_of(f"{{prelu: {{mode: {mode}, alpha: 0.5}}, from: x, name: f}}", tmp_path)
    assert road.read("f/alpha").shape == shape and (road.read("f/alpha") == 0.5).all()
    slopes = np.random.default_rng(2).uniform(-1, 1, shape)
    road.write({"f/alpha": slopes})
    batch = batch_of(road, 3)
    y = road.step("predict", batch, outputs=True).outputs["f"]
    x = batch.columns["x"]
    wide = slopes.reshape((4, 1, 1)) if mode == "channel" else slopes
    np.testing.assert_allclose(y, np.where(x > 0, x, wide * x), rtol=1e-5)


def test_instance_norm_is_group_norm_by_channels(tmp_path: Path) -> None:
    found = []
    for layer in ("instance_norm: {}", "group_norm: {groups: 4}"):
        road = road_of(f"{{{layer}, from: x, name: f}}", tmp_path)
        found.append(road.step("predict", batch_of(road, 3), outputs=True).outputs["f"])
    assert found[0].tobytes() == found[1].tobytes()


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        ("group_norm: {groups: 3}", "4 channels do not divide into 3 groups"),
        ("channel_shuffle: {groups: 3}", "4 channels do not divide into 3 groups"),
        ("pixel_shuffle: {factor: 3}", "4 channels do not divide by the square of the factor 3"),
    ],
)
def test_what_does_not_divide(layer: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        road_of(f"{{{layer}, from: x, name: f}}", tmp_path)
    assert message in str(caught.value)
