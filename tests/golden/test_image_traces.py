"""Trainings of networks that make pictures by another framework: two that train each other, and a U-Net."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from null.world import recipe_of
from road import Road
from test_traces import ids, pattern, set_weights

from paddlecli.compiler.optimizer import optimizers
from paddlecli.config.recipe import Recipe
from paddlecli.data.columns import Column, Split
from paddlecli.data.spec import DatasetSpec, FieldSpec
from paddlecli.engine.averages import by_iteration, keys_of
from paddlecli.models.build import build

TRACES = json.loads((Path(__file__).parent / "image_traces.json").read_text())
ADAM = "{name: adam, learning_rate: %s, scale_epsilon: true}"
DCGAN = """
model:
  inputs:
    z0: {shape: [6]}
    z1: {shape: [6]}
    z2: {shape: [6]}
    image: {shape: [1, 10, 10]}
  blocks:
    g:
      inputs: [noise]
      layers:
        - {fc: {size: 12}}
        - {batch_norm: {activation: relu}}
        - {fc: {size: 36}}
        - {batch_norm: {activation: relu}}
        - {reshape: {shape: [4, 3, 3]}}
        - {conv2d_transpose: {filters: 4, size: 5, stride: 2, padding: 2, activation: relu}}
        - {conv2d_transpose: {filters: 1, size: 5, stride: 2, padding: 2, output_size: 10, activation: tanh}}
    d:
      inputs: [picture]
      layers:
        - {conv2d: {filters: 3, size: 3, activation: leaky_relu}}
        - pool2d
        - {conv2d: {filters: 5, size: 3}}
        - pool2d
        - {batch_norm: {activation: leaky_relu}}
        - {fc: {size: 7}}
        - {batch_norm: {activation: leaky_relu}}
        - {fc: {size: 1, activation: END}}
  entries:
    fakes:
      layers: [{g: {}, from: z0}, {d: {}, name: score}, {full_like: {value: 0}, name: target}]
      loss: {sigmoid_cross_entropy: {}, from: [score, target]}
      update: {parameters: "d/*", optimizer: d}
    reals:
      layers: [{d: {}, from: image, name: score}, {full_like: {value: 1}, name: target}]
      loss: {sigmoid_cross_entropy: {}, from: [score, target]}
      update: {parameters: "d/*", optimizer: d}
    first:
      layers: [{g: {}, from: z1}, {d: {}, name: score}, {full_like: {value: 1}, name: target}]
      loss: {sigmoid_cross_entropy: {}, from: [score, target]}
      update: {parameters: "g/*", optimizer: g}
    second:
      layers: [{g: {}, from: z2}, {d: {}, name: score}, {full_like: {value: 1}, name: target}]
      loss: {sigmoid_cross_entropy: {}, from: [score, target]}
      update: {parameters: "g/*", optimizer: g}
optimizer: {d: ADAM, g: ADAM}
train: {loop: [fakes, reals, first, second]}
"""
UNET = """
model: {name: unet, base: 3, levels: 2, loss: bce_dice}
optimizer: ADAM
"""


def run(
    recipe: Recipe, fields: tuple[FieldSpec, ...], columns: dict[str, Any], batch: int, golden: Any
) -> tuple[Road, dict[str, np.ndarray[Any, Any]]]:
    """The whole trace in one request: losses by entry and iteration."""
    spec = DatasetSpec("trace", "", fields, {})
    split = Split("train", {k: Column(v) for k, v in columns.items()})
    road = Road(build(recipe, spec), optimizers(recipe))
    set_weights(road, golden["weights_in_creation_order"])
    for wanted in golden["final"]:
        if wanted.get("init"):
            name = parameter(road, wanted, golden)
            road.write({name: np.full(wanted["shape"], wanted["init"])})
    maker = road.maker(spec, split, batch, golden["learning_rate"])
    steps = len(split) // batch
    work = maker.make(np.arange(len(split)), 0, steps, 0)
    return road, by_iteration(keys_of(maker.calls), work, road.run(work, split), steps)


def parameter(road: Road, wanted: Any, golden: Any) -> str:
    """The parameter that a line of the trace's end is about; running statistics are none."""
    trained = [f for f in golden["final"] if not f.get("running")]
    names = list(road.graph.parameters)
    assert len(trained) == len(names)
    return names[trained.index(wanted)]


def check_end(road: Road, golden: Any) -> None:
    """Sums over all parameters."""
    for wanted in golden["final"]:
        if wanted.get("zero_grad") or wanted.get("running"):
            continue
        value = road.read(parameter(road, wanted, golden)).astype(np.float64)
        assert list(value.shape) == wanted["shape"], wanted["name"]
        size = np.sqrt(value.size * wanted["sumsq"])
        assert value.sum() == pytest.approx(wanted["sum"], abs=1e-4 * size), wanted["name"]
        assert (value**2).sum() == pytest.approx(wanted["sumsq"], rel=1e-4), wanted["name"]


@pytest.mark.parametrize("name", ["dcgan_correct", "dcgan_double_sigmoid"])
def test_dcgan(name: str, tmp_path: Path) -> None:
    """Discriminator on fakes, on reals, then the generator twice; each optimizer counts its own steps."""
    golden = TRACES[name]
    end = "sigmoid" if golden["cfg"]["double_sigmoid"] else "none"
    text = DCGAN.replace("END", end).replace("ADAM", ADAM % golden["learning_rate"])
    recipe = recipe_of("name: dcgan" + text, tmp_path)
    columns = {
        f"z{j}": np.concatenate([pattern((4, 6), 1.0 + 3 * t + j, 1.0) for t in range(3)])
        for j in range(3)
    }
    columns["image"] = np.concatenate([pattern((4, 1, 10, 10), 0.3 + t, 1.0) for t in range(3)])
    fields = tuple(FieldSpec(n, "input", v.shape[1:], "float32") for n, v in columns.items())
    road, found = run(recipe, fields, columns, 4, golden)
    losses = np.stack([found[f"{e}.loss"] for e in ("fakes", "reals", "first", "second")], axis=1)
    np.testing.assert_allclose(losses.reshape(-1), golden["loss_before_step"], rtol=2e-5)
    check_end(road, golden)


def test_unet(tmp_path: Path) -> None:
    golden = TRACES["unet_bce_dice"]
    recipe = recipe_of(
        "name: unet" + UNET.replace("ADAM", ADAM % golden["learning_rate"]), tmp_path
    )
    steps = len(golden["loss_before_step"])
    x = [pattern((2, 1, 8, 8), 0.3 + t, 1.0) for t in range(steps)]
    y = [(ids(128, 3, t) == 0).astype(np.float32).reshape(2, 1, 8, 8) for t in range(steps)]
    columns = {"image": np.concatenate(x), "mask": np.concatenate(y)}
    fields = (
        FieldSpec("image", "input", (1, 8, 8), "float32"),
        FieldSpec("mask", "label", (1, 8, 8), "float32"),
    )
    road, found = run(recipe, fields, columns, 2, golden)
    np.testing.assert_allclose(found["loss"], golden["loss_before_step"], rtol=2e-5)
    check_end(road, golden)
