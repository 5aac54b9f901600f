"""Layers, losses and networks of pictures: sizes, and what they refuse."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from null.world import draw, graph_of, recipe_of
from road import Road

from paddlecli.compiler.optimizer import optimizers
from paddlecli.errors import ConfigError
from paddlecli.graph.prune import values_read

ADAM = "optimizer: {name: adam, learning_rate: 0.02}\n"
HEAD = """
data:
  name: generated
  fields:
    - {name: i, shape: [4, 5, 7]}
    - {name: x, shape: [6]}
    - {name: m, shape: [5, 7], dtype: int64, classes: 3, role: label}
    - {name: y, shape: [1, 5, 7], role: label}
model:
  inputs:
    i: {shape: [4, 5, 7]}
    x: {shape: [6]}
    m: {shape: [5, 7], dtype: int64, below: 3, role: label}
    y: {shape: [1, 5, 7], role: label}
  layers:
"""


def shape(layer: str, tmp_path: Path, source: str = "i") -> str:
    text = f"{HEAD}    - {{{layer}, from: {source}}}\n"
    return str(graph_of(recipe_of(text, tmp_path)).entries["predict"].outputs["output"].spec)


@pytest.mark.parametrize(
    ("layer", "result"),
    [
        ("conv2d_transpose: {filters: 6, size: 3}", "[N, 6, 7, 9]"),
        ("conv2d_transpose: {filters: 2, size: [4, 2], stride: [2, 1], padding: [1, 0]}", "[N, 2, 10, 8]"),
        ("conv2d_transpose: {filters: 2, size: 3, stride: 3, output_padding: [2, 1]}", "[N, 2, 17, 22]"),
        ("conv2d_transpose: {filters: 2, size: 5, stride: 2, padding: 2, output_size: [10, 13]}", "[N, 2, 10, 13]"),
        ("conv2d_transpose: {filters: 2, size: 2, dilation: 3, groups: 2}", "[N, 2, 8, 10]"),
        ("adaptive_pool2d: {size: 3}", "[N, 4, 3, 3]"),
        ("pool2d: {kind: average, whole: true}", "[N, 4, 1, 1]"),
        ("interpolate: {size: 4}", "[N, 4, 4, 4]"),
        ("interpolate: {scale: 0.5, mode: bilinear}", "[N, 4, 2, 3]"),
        ("pad2d: {padding: 2}", "[N, 4, 9, 11]"),
        ("pad2d: {padding: [1, 2]}", "[N, 4, 7, 11]"),
        ("pad2d: {padding: [1, 0, 2, 3], mode: edge}", "[N, 4, 6, 12]"),
    ],
)  # fmt: skip
def test_sizes(layer: str, result: str, tmp_path: Path) -> None:
    assert shape(layer, tmp_path) == f"f32{result}"


@pytest.mark.parametrize(
    ("layer", "source", "says"),
    [
        ("conv2d_transpose: {filters: 2, size: 3}", "x", "must be [N, channels, height, width]"),
        ("conv2d_transpose: {filters: 3, size: 3, groups: 2}", "i", "do not divide into 2 groups"),
        ("conv2d_transpose: {filters: 3, size: 3, stride: 2, output_size: 13}", "i", "[11, 15] to [12, 16]"),
        ("conv2d_transpose: {filters: 3, size: 3, stride: 2, output_size: 12, output_padding: 1}", "i", "both say"),
        ("conv2d_transpose: {filters: 3, size: 3, stride: 2, output_padding: 2}", "i", "below the stride [2, 2]"),
        ("conv2d_transpose: {filters: 3, size: 1, padding: 3}", "i", "nothing is left"),
        ("interpolate: {mode: bilinear}", "i", "either `size` or `scale`"),
        ("interpolate: {size: 3, scale: 2}", "i", "either `size` or `scale`"),
        ("interpolate: {scale: 0.1}", "i", "nothing is left of 5x7"),
        ("pad2d: {padding: [1, 2, 3]}", "i", "one, two or four numbers"),
        ("pad2d: {padding: [5, 0], mode: reflect}", "i", "smaller than the image 5x7"),
    ],
)  # fmt: skip
def test_what_layers_refuse(layer: str, source: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        shape(layer, tmp_path, source)
    assert says in str(caught.value) and "recipe.yaml:" in str(caught.value)


@pytest.mark.parametrize(
    ("loss", "says"),
    [
        ("{pixel_cross_entropy: {}, from: [two, m]}", "the label has 3 classes"),
        ("{pixel_cross_entropy: {}, from: [three, y]}", "a class for each of 5x7 pixels"),
        ("{bce_dice: {}, from: [three, y]}", "both are [N, 1, H, W]"),
    ],
)
def test_what_losses_refuse(loss: str, says: str, tmp_path: Path) -> None:
    rows = "".join(
        f"    - {{conv2d: {{filters: {n}, size: 1}}, from: i, name: {name}}}\n"
        for n, name in ((2, "two"), (3, "three"))
    )
    with pytest.raises(ConfigError) as caught:
        graph_of(recipe_of(f"{HEAD}{rows}  loss: {loss}\n", tmp_path))
    assert says in str(caught.value)


def test_unet_wants_sizes_that_can_be_halved(tmp_path: Path) -> None:
    text = "data: {name: synthetic/shapes, size: [12, 16]}\nmodel: {name: unet, levels: 3}\n"
    with pytest.raises(ConfigError, match="12x16 pixels cannot be halved 3 times"):
        graph_of(recipe_of(text, tmp_path))


@pytest.mark.parametrize(
    "loss", ["pixel_cross_entropy: {}, from: [z, m]", "bce_dice: {}, from: [z, y]"]
)
def test_a_loss_falls(loss: str, tmp_path: Path) -> None:
    """With its default metric of areas, which for one class wants a probability above a half."""
    filters = 3 if "pixel" in loss else 1
    text = f"{HEAD}    - {{conv2d: {{filters: {filters}, size: 3, padding: 1}}, from: i, name: z}}\n  loss: {{{loss}}}\nmetrics: [mean_iou]\n{ADAM}"
    recipe = recipe_of(text, tmp_path)
    graph = graph_of(recipe)
    road = Road(graph, optimizers(recipe))
    batch = draw(graph, 6)
    ones = {n: (v > 0).astype(np.float32) for n, v in batch.columns.items() if n == "y"}
    batch = replace(batch, columns={**batch.columns, **ones})
    losses = [road.step("train_step", batch, rate=0.02).loss for _ in range(30)]
    assert losses[-1] < 0.9 * losses[0]


def test_whose_values_are_read(tmp_path: Path) -> None:
    """Noise wants rows only; what is added to it wants values."""
    rows = """    - {random_normal: {shape: [4, 5, 7]}, from: x, name: noise}
    - {add: {}, from: [noise, i], name: sum}
"""
    made = {}
    for name in ("noise", "sum"):
        text = f"{HEAD}{rows}  outputs: {{o: {name}}}\n"
        made[name] = values_read(graph_of(recipe_of(text, tmp_path)).entries["predict"])
    assert made == {"noise": set(), "sum": {"i"}}


def test_unet_on_photographs(tmp_path: Path) -> None:
    """Masks of bytes, and pixels that a loss leaves out."""
    text = """
data: {name: voc2012}
model: {name: unet, base: 2, ignore_index: 255}
metrics: [{mean_iou: {ignore_index: 255}}]
"""
    entries = graph_of(recipe_of(text, tmp_path)).entries
    assert str(entries["predict"].outputs["mask"].spec) == "i64[N, 256, 256]"
    assert "mean_iou" in entries["eval_step"].metrics


@pytest.mark.parametrize(("ignored", "among"), [(2, 0), (-100, 1)])
def test_pixels_that_do_not_count(ignored: int, among: int, tmp_path: Path) -> None:
    """A class that is ignored leaves the mean; other numbers would stay in it as zeros."""
    text = f"{HEAD}    - {{conv2d: {{filters: 3, size: 1}}, from: i, name: z}}\n"
    text += f"  loss: {{pixel_cross_entropy: {{ignore_index: {ignored}}}, from: [z, m]}}\n"
    recipe = recipe_of(text + "  outputs: {z: z}\n" + ADAM, tmp_path)
    graph = graph_of(recipe)
    road = Road(graph, optimizers(recipe))
    batch = draw(graph, 4)
    z = road.step("predict", batch, outputs=True).outputs["z"].astype(np.float64)
    label = np.asarray(batch.columns["m"])
    logarithms = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
    losses = -np.take_along_axis(logarithms, label[:, None], axis=1)[:, 0]
    wanted = losses.mean() if among else losses[label != ignored].mean()
    assert road.step("train_step", batch).loss == pytest.approx(wanted, rel=1e-5)
