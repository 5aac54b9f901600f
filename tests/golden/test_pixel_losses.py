"""pixel_cross_entropy with class weights and smoothed labels, against torch in float64.

torch.nn.functional.cross_entropy(conv2d(x, w), y, weight, label_smoothing, ignore_index, reduction="none"),
summed and divided by the pixels that count.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from null.world import draw, graph_of, recipe_of
from road import Road

from paddlecli.compiler.optimizer import optimizers

X = np.array([(i * 7919 + 13) % 101 / 50.5 - 1 for i in range(36)]).reshape(2, 3, 2, 3)
W = np.array([(i * 31 + 7) % 11 / 5.5 - 1 for i in range(9)]).reshape(3, 3, 1, 1)
Y = np.array([(i * 5 + i // 3) % 3 for i in range(12)]).reshape(2, 2, 3)
RECIPE = """
data:
  name: generated
  fields:
    - {name: x, shape: [3, 2, 3]}
    - {name: y, shape: [2, 3], dtype: int64, classes: 3, role: label}
model:
  inputs: {x: {shape: [3, 2, 3]}, y: {shape: [2, 3], dtype: int64, below: 3, role: label}}
  layers: [{conv2d: {filters: 3, size: 1, bias: false}, from: x, name: z}]
  loss: {pixel_cross_entropy: {ignore_index: IGNORED}, from: [z, y]}
optimizer: {name: sgd, learning_rate: 1.0}
train: {TRAIN}
"""
WEIGHTS = "class_weights: [0.5, 2.0, 1.25]"
SMOOTH = "label_smoothing: 0.1"
CASES = {
    "plain": ("", -100, 1.225511082, [
        0.052255438, 0.092377222, 0.077774586, -0.180857051, 0.048048968, -0.06358878,
        0.128601613, -0.14042619, -0.014185806]),
    "weights": (WEIGHTS, -100, 1.56727931, [
        0.075132379, 0.089979998, 0.042670838, -0.27178971, 0.049887209, -0.065981464,
        0.19665733, -0.139867207, 0.023310626]),
    "smoothed": (SMOOTH, -100, 1.219320463, [
        0.051045317, 0.08005599, 0.071008909, -0.168535819, 0.049259089, -0.056823103,
        0.117490502, -0.129315079, -0.014185806]),
    "both": (f"{WEIGHTS}, {SMOOTH}", -100, 1.554734363, [
        0.070823239, 0.080427941, 0.035584323, -0.250001148, 0.049116931, -0.054790661,
        0.17917791, -0.129544872, 0.019206338]),
    "both without class 1": (f"{WEIGHTS}, {SMOOTH}", 1, 1.18846823, [
        -0.02599413, 0.100081626, 0.007053871, -0.141659219, 0.121516791, -0.008824071,
        0.167653349, -0.221598417, 0.001770199]),
    "weights without class 1": (WEIGHTS, 1, 1.160624401, [
        -0.027253883, 0.112151373, 0.015535975, -0.156249894, 0.12963667, -0.021551898,
        0.183503778, -0.241788043, 0.006015924]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_as_torch(name: str, tmp_path: Path) -> None:
    asked, ignored, loss, gradient = CASES[name]
    text = RECIPE.replace("IGNORED", str(ignored)).replace("TRAIN", asked)
    recipe = recipe_of(text, tmp_path)
    road = Road(graph_of(recipe), optimizers(recipe))
    road.write({"z/w": W})
    batch = draw(road.graph, 2)
    counted = 12 if ignored < 0 else int((ignored != Y).sum())
    given = road.graph.arguments.items()
    weights = {k: float(counted) for k, a in given if a.count.startswith("labels:")}
    batch = replace(
        batch, columns={"x": X.astype(np.float32), "y": Y}, arguments={**batch.arguments, **weights}
    )
    step = road.step("train_step", batch, rate=1.0)
    assert step.loss == pytest.approx(loss, abs=2e-6)
    found = W.astype(np.float64) - road.read("z/w")
    np.testing.assert_allclose(found.reshape(-1), gradient, rtol=0, atol=1e-6)
