"""The networks for pictures: published numbers of parameters, names that stay, and for each family three
steps, a picture's prediction and its weights out of the file again.

What is trained here: each kind of block once. Deeper nets of the same blocks (ResNet-152 and so on) are
built and counted, and run no step.
"""

from __future__ import annotations

import json
import re
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paddlecli import evaluate, fit, ops, predict
from paddlecli.compiler.optimizer import optimizers
from paddlecli.compiler.pipeline import stages
from paddlecli.config.load import load_recipe
from paddlecli.config.recipe import Recipe
from paddlecli.config.registry import MODELS
from paddlecli.data.formats.images import png
from paddlecli.data.opening import describe
from paddlecli.engine.modeldir import open_model
from paddlecli.engine.summary import Sizes
from paddlecli.errors import ConfigError
from paddlecli.graph.ir import Graph, Tensor, flat
from paddlecli.models.build import build
from paddlecli.models.initializers import initialise

COUNTS = {
    "alexnet": 61_100_840,
    "densenet121": 7_978_856,
    "densenet169": 14_149_480,
    "densenet201": 20_013_928,
    "mobilenet_v1": 4_231_976,
    "mobilenet_v2": 3_504_872,
    "mobilenet_v3_large": 5_483_032,
    "mobilenet_v3_small": 2_542_856,
    "resnet18": 11_689_512,
    "resnet34": 21_797_672,
    "resnet50": 25_557_032,
    "resnet101": 44_549_160,
    "resnet152": 60_192_808,
    "shufflenet_v2_x0_5": 1_366_792,
    "shufflenet_v2_x1_0": 2_278_604,
    "shufflenet_v2_x1_5": 3_503_624,
    "shufflenet_v2_x2_0": 7_393_996,
    "squeezenet1_0": 1_248_424,
    "squeezenet1_1": 1_235_496,
    "vgg11": 132_863_336,
    "vgg11_bn": 132_868_840,
    "vgg13": 133_047_848,
    "vgg13_bn": 133_053_736,
    "vgg16": 138_357_544,
    "vgg16_bn": 138_365_992,
    "vgg19": 143_667_240,
    "vgg19_bn": 143_678_248,
}
"""Of the papers, as torchvision has them, at 1,000 classes."""
PRODUCTS = {
    "alexnet": 0.71,
    "densenet121": 2.83,
    "mobilenet_v1": 0.57,
    "mobilenet_v2": 0.30,
    "mobilenet_v3_large": 0.22,
    "mobilenet_v3_small": 0.06,
    "resnet18": 1.81,
    "resnet50": 4.09,
    "shufflenet_v2_x1_0": 0.14,
    "squeezenet1_0": 0.82,
    "squeezenet1_1": 0.35,
    "vgg16": 15.47,
}
"""Published thousand millions of multiply-adds for a picture 3 x 224 x 224."""
EVEN = "weight_init: {uniform: {low: -0.05, high: 0.05}}"
"""Drawn faster than normal numbers; what the networks begin with is tested by itself."""
TRAINED = {
    "lenet5": (16, "{}"),
    "alexnet": (63, "{hidden: 8}"),
    "densenet121": (29, "{growth: 8}"),
    "mobilenet_v1": (8, "{width: 0.25}"),
    "mobilenet_v2": (8, "{width: 0.25}"),
    "mobilenet_v3_small": (8, "{width: 0.25}"),
    "resnet18": (8, f"{{{EVEN}}}"),
    "resnet50": (8, f"{{small_pictures: true, {EVEN}}}"),
    "shufflenet_v2_x0_5": (8, "{}"),
    "squeezenet1_1": (17, "{}"),
    "vgg11": (32, f"{{hidden: 8, pool: 2, {EVEN}}}"),
    "vgg11_bn": (32, f"{{hidden: 8, pool: 1, {EVEN}}}"),
}
"""A small picture's side, and arguments that make the step small."""
NAMES = json.loads((Path(__file__).parent / "backbones.json").read_text())


def network(name: str, side: int, channels: int = 3, **arguments: object) -> Graph:
    recipe = asked(name, side, channels, **arguments)
    assert recipe.data is not None
    return build(recipe, describe(recipe.data.name, recipe.data.arguments))


def asked(name: str, side: int, channels: int = 3, **arguments: object) -> Recipe:
    fields = [
        {"name": "image", "shape": [channels, side, side]},
        {"name": "label", "dtype": "int64", "classes": 10, "role": "label"},
    ]
    model = json.dumps({"name": name, **arguments})
    return load_recipe(
        "bench/cifar_resnet32", [f"data.fields={json.dumps(fields)}", "~model", f"model={model}"]
    )


def count(graph: Graph) -> int:
    return sum(prod(d.coefficient for d in t.spec.shape) for t in graph.parameters.values())


def test_every_backbone_is_counted() -> None:
    modules = {n: MODELS.get(n).module for n in MODELS.names()}
    found = {n for n, m in modules.items() if m.startswith("paddlecli.models.backbones")}
    assert found == COUNTS.keys() | {"lenet5"}


@pytest.mark.parametrize("name", COUNTS)
def test_parameters_at_1000_classes(name: str) -> None:
    assert count(network(name, 224, classes=1000)) == COUNTS[name]
    assert f"{COUNTS[name]:,} parameters" in (MODELS.get(name).function.__doc__ or "")


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_of_a_picture_of_224_pixels(name: str) -> None:
    """A multiply-add counts as two operations."""
    entry = network(name, 224, classes=1000).entries["predict"]
    one = Sizes(1, 1)
    found = 0
    for node in flat(entry.items):
        ports = {**node.args, **node.results}
        shapes = {k: one.shape(t.spec) for k, t in ports.items() if isinstance(t, Tensor)}
        found += ops.get(node.kernel.op).flops(node.kernel, shapes, node.attrs)
    assert found / 2e9 == pytest.approx(PRODUCTS[name], abs=0.006)


TABLE = {
    name: (int(count.replace(",", "")), float(products), int(least))
    for name, count, products, least in re.findall(
        r"^\| `(\w+)` \| ([\d,]+) \| ([\d.]+) \| (\d+) \|$",
        (Path(__file__).parents[2] / "docs" / "pictures.md").read_text(encoding="utf-8"),
        re.M,
    )
}
"""The table of docs/pictures.md."""


def test_the_page_has_the_same_numbers() -> None:
    assert {n: row[0] for n, row in TABLE.items()} == COUNTS
    assert {n: TABLE[n][1] for n in PRODUCTS} == PRODUCTS


@pytest.mark.parametrize("name", [n for n in TRAINED if n in COUNTS])
def test_the_smallest_picture(name: str) -> None:
    least = TABLE[name][2]
    network(name, least)
    if least > 1:
        with pytest.raises(ConfigError, match="does not fit"):
            network(name, least - 1)


@pytest.mark.parametrize("side", [28, 32])
def test_lenet_has_its_own_number(side: int) -> None:
    assert count(network("lenet5", side, channels=1)) == 61_706


def test_other_widths() -> None:
    """Sandler et al. 2018 and Howard et al. 2017 give millions."""
    assert count(network("mobilenet_v2", 224, width=1.4, classes=1000)) == pytest.approx(
        6.9e6, rel=0.15
    )
    assert count(network("mobilenet_v1", 224, width=0.5, classes=1000)) == pytest.approx(
        1.3e6, rel=0.05
    )


@pytest.mark.parametrize("name", NAMES)
def test_names_of_parameters_stay(name: str) -> None:
    """Weights of others are imported by these names, and saved ones are found by them."""
    graph = network(name, 64)
    found = {n: [d.coefficient for d in t.spec.shape] for n, t in graph.parameters.items()}
    assert {**found, **dict.fromkeys(graph.states, "state")} == NAMES[name]


def first_value(graph: Graph, name: str) -> np.ndarray[Any, np.dtype[Any]]:
    tensor = graph.parameters[name]
    assert tensor.info is not None
    shape = [d.coefficient for d in tensor.spec.shape]
    found: np.ndarray[Any, np.dtype[Any]] = initialise(tensor.info.initializer, shape, 0, name)
    return found


def test_first_values() -> None:
    """He normal by a unit's outputs; classifiers as the papers have them; norms begin as no change."""
    graph = network("resnet18", 64)
    filters = first_value(graph, "layer2/0/conv2/w")
    assert filters.std() == pytest.approx((2 / (128 * 9)) ** 0.5, rel=0.02)
    assert abs(filters.mean()) < 1e-3 and np.abs(filters).max() > 3 * filters.std()
    half = first_value(graph, "layer2/0/conv1/w")  # 64 channels to 128: the outputs count
    assert half.std() == pytest.approx((2 / (128 * 9)) ** 0.5, rel=0.02)
    assert np.abs(first_value(graph, "fc/w")).max() == pytest.approx(512**-0.5, rel=0.01)
    assert not first_value(graph, "fc/b").any()
    assert (first_value(graph, "bn1/w") == 1).all() and not first_value(graph, "bn1/b").any()
    graph = network("mobilenet_v2", 64, classes=100)
    assert first_value(graph, "classifier/1/w").std() == pytest.approx(0.01, rel=0.02)


@pytest.mark.parametrize("name", [*COUNTS, "lenet5"])
def test_no_tensor_is_brought_into_another_layout(name: str) -> None:
    """What `plan` prints: convolutions turn channels into lanes inside of their kernels."""
    side = 32 if name == "lenet5" else 64
    text = stages(network(name, side), optimizers(asked(name, side)))["fused"]
    assert "conv2d" in text and ".backward_w" in text
    assert re.findall(r"^layouts: (\d+) reorder nodes$", text, re.M) == ["0"]


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two folders of noise, one darker."""
    folder = tmp_path_factory.mktemp("pictures")
    rng = np.random.default_rng(5)
    for number in range(12):
        path = folder / ("bright", "dark")[number % 2] / f"{number}.png"
        path.parent.mkdir(exist_ok=True)
        pixels = rng.integers(0, 255 - 100 * (number % 2), (3, 40, 40))
        path.write_bytes(png(pixels.astype(np.uint8)))
    return folder


@pytest.mark.parametrize("name", TRAINED)
def test_three_steps_a_prediction_and_the_weights_again(
    name: str, pictures: Path, tmp_path: Path
) -> None:
    """Every parameter moves, what was measured in memory is measured with the file's weights too, to the
    bit, and a picture gets an answer."""
    side, arguments = TRAINED[name]
    settings = [
        f"data.train={pictures}", f"data.size=[{side}, {side}]", "data.transforms=[]", "data.split.test=0.34",
        "~model", f"model={arguments}", f"model.name={name}", "train.epochs=2", "train.batch_size=4",
        "train.max_steps=3", "checkpoint.every_epochs=0", "~optimizer", "optimizer={name: adam, learning_rate: 0.001}",
    ]  # fmt: skip
    result = fit("own_data/pictures", settings, run_dir=tmp_path / "run")
    assert result.steps == 3
    model = open_model(tmp_path / "run" / "model")
    first = dict(model.graph.starts(0))
    still = [n for n in model.graph.parameters if np.array_equal(first[n], model.values[n])]
    assert still == []
    again = evaluate(tmp_path / "run")
    assert {k: result.metrics["test"][k] for k in again.metrics} == dict(again.metrics)
    (answer,) = predict(tmp_path / "run", [str(pictures / "dark" / "1.png")])
    found = answer.as_dict()
    assert found["label"] in ("bright", "dark") and 0.0 <= found["probability"] <= 1.0
