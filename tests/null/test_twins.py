"""A network written as a list of layers and the registered one are the same graph, down to layer
paths and first values."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddlecli.compiler.optimizer import optimizers
from paddlecli.compiler.pipeline import compile_graph
from paddlecli.config.load import load_recipe
from paddlecli.config.recipe import Recipe
from paddlecli.graph.ir import flat
from paddlecli.graph.serialize import to_yaml
from paddlecli.graph.show import show

from .test_plan import stored
from .world import graph_of, recipe_of

LINEAR = """
extends: [data/uci_housing, optimizer/sgd]
model:
  inputs: {x: {shape: [13]}, y: {shape: [1], role: label}}
  layers:
    - {fc: {size: 1}, from: x, name: prediction}
  loss: {square_error_cost: {}, from: [prediction, y]}
  outputs: {prediction: prediction}
"""
DIGITS = """
extends: [data/mnist, optimizer/adam, schedule/cosine]
metrics: [accuracy]
model:
  inputs: {image: {shape: [1, 28, 28]}, label: {dtype: int64, below: 10, role: label}}
  layers:
%s
    - {softmax: {}, name: softmax1}
  loss: {softmax_with_cross_entropy: {}, from: [%s, label]}
  outputs: {probability: softmax1}
"""
SOFTMAX = "    - {fc: {size: 10}, from: image, name: fc1}"
MLP = """    - {fc: {size: 200, activation: relu}, from: image}
    - {fc: {size: 200, activation: relu}}
    - {fc: {size: 10}, name: fc3}"""
PICTURES = """
extends: [optimizer/adam, %s]
data:
  name: generated
  samples: 8
  fields: [{name: image, shape: [3, 32, 32]}, {name: label, dtype: int64, classes: 10, role: label}]
"""
REGISTERED = "model: {name: %s}"
TWINS = {
    "fit_a_line": LINEAR,
    "recognize_digits/softmax": DIGITS % (SOFTMAX, "fc1"),
    "recognize_digits/mlp": DIGITS % (MLP, "fc3"),
    "recognize_digits/conv": "extends: [data/mnist, optimizer/adam, schedule/cosine, model/written/digits_conv]\nmetrics: [accuracy]",
    "vgg_bn_drop": PICTURES % "model/written/vgg_bn_drop",
    "resnet_cifar10": PICTURES % "model/written/resnet_cifar10",
}
SIZES = {
    "fit_a_line": 14,
    "recognize_digits/softmax": 7850,
    "recognize_digits/mlp": 199210,
    "recognize_digits/conv": 33620,
    "vgg_bn_drop": 15_254_602,
    "resnet_cifar10": 467_466,
}
"""Parameters that the book counts; batch norm's two running statistics are states."""


def registered(name: str, folder: Path) -> Recipe:
    """The recipe that names the network."""
    if "/" in name or name == "fit_a_line":
        return load_recipe(name)
    text = PICTURES.replace(", %s", "") + REGISTERED % name
    return recipe_of(text, folder, "registered.yaml")


@pytest.mark.parametrize("name", TWINS)
def test_twins_print_the_same_graph(name: str, tmp_path: Path) -> None:
    one, other = registered(name, tmp_path), recipe_of(TWINS[name], tmp_path)
    a, b = graph_of(one), graph_of(other)
    assert show(a) == show(b)
    assert to_yaml(a) == to_yaml(b)
    plans = {compile_graph(stored(g), optimizers(r)).plan for g, r in ((a, one), (b, other))}
    assert len(plans) == 1


@pytest.mark.parametrize("name", TWINS)
def test_sizes(name: str, tmp_path: Path) -> None:
    graph = graph_of(registered(name, tmp_path))
    total = 0
    for t in graph.parameters.values():
        assert all(d.known for d in t.spec.shape)
        total += t.spec.size.coefficient
    assert total == SIZES[name]


def test_origins_are_the_recipe_lines(tmp_path: Path) -> None:
    """The one thing in which twins differ: a written layer comes from its own line, a registered
    net from its name's."""
    written = graph_of(recipe_of(TWINS["recognize_digits/mlp"], tmp_path)).entries["train_step"]
    lines = TWINS["recognize_digits/mlp"].split("\n")
    for node in written.items:
        assert Path(node.origin.file).name == "recipe.yaml"
        assert node.origin.line > 0
    firsts = {
        n.origin.path: lines[n.origin.line - 1].strip()
        for n in flat(written.items)
        if n.kernel.op == "matmul"
    }
    assert firsts == {
        "fc1": "- {fc: {size: 200, activation: relu}, from: image}", "fc2": "- {fc: {size: 200, activation: relu}}",
        "fc3": "- {fc: {size: 10}, name: fc3}",
    }  # fmt: skip
    named = graph_of(load_recipe("fit_a_line")).entries["train_step"]
    assert {Path(n.origin.file).name for n in named.items} == {"linear.yaml"}


def test_layers_of_blocks_have_paths_of_their_own(tmp_path: Path) -> None:
    graph = graph_of(recipe_of(TWINS["resnet_cifar10"], tmp_path))
    assert "stage2/projection1/conv2d3/w" in graph.parameters
    assert "stage3/residual4/batch_norm2/b" in graph.parameters
    assert {n.partition("/")[0] for n in graph.parameters} == {
        "conv2d1", "batch_norm1", "stage1", "stage2", "stage3", "fc1"
    }  # fmt: skip
