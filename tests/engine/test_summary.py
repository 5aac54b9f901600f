"""The numbers of `model summary` against hand-computed ones."""

from __future__ import annotations

import ast
import inspect
import re
from math import prod
from pathlib import Path

import pytest

from paddlecli import ops
from paddlecli.config.load import load_recipe
from paddlecli.engine.machine import Machine
from paddlecli.engine.prepare import fields_of, prepare
from paddlecli.engine.summary import Sizes, Summary, summarize
from paddlecli.models.build import build
from paddlecli.ops.base import Op
from paddlecli.ops.spec import BATCH, Axis


def summary(name: str, *overrides: str, batch_size: int | None = None) -> Summary:
    recipe = load_recipe(name, overrides)
    return summarize(recipe, build(recipe, fields_of(recipe)), batch_size)


def conv(out: int, into: int, size: int, side: int) -> int:
    """Multiply-adds of a convolution whose result is side x side."""
    return out * into * size * size * side * side


def test_one_linear_layer() -> None:
    found = summary("bench/fit_a_line")
    layer = found.layers[0]
    assert (layer.path, layer.kind, layer.output) == ("prediction", "fc", "f32[N, 1]")
    assert (layer.parameters, layer.flops) == (14, 2 * 13)
    # forward and the weight's gradient; the input needs none
    assert layer.step_flops == 20 * 2 * 2 * 13
    assert found.memory.weights == 4 * 14
    assert found.totals["trainable"] == 14 and found.totals["frozen"] == 0


def test_lenet() -> None:
    found = summary("bench/mnist_lenet")
    products = [conv(20, 1, 5, 24), conv(50, 20, 5, 8), 800 * 500, 500 * 10]
    assert [row.flops for row in found.layers if row.flops] == [2 * p for p in products]
    assert found.totals["flops"] == 2 * sum(products) == 4_586_000
    assert found.totals["step_flops"] == 64 * 2 * (3 * sum(products) - products[0])
    assert found.totals["parameters"] == 520 + 25_050 + 400_500 + 5_010 == 431_080
    assert found.memory.weights == 4 * 431_080
    by_path = {row.path: row for row in found.layers}
    assert by_path["conv2d1"].output == "f32[N, 20, 24, 24]"
    # relu needs its own result, pooling and products need what they read
    assert by_path["conv2d1"].activation_bytes == 64 * 20 * 24 * 24 * 4
    assert by_path["pool2d2"].activation_bytes == 64 * 800 * 4
    assert by_path["fc1"].activation_bytes == 64 * 500 * 4


def test_resnet32() -> None:
    found = summary("bench/cifar_resnet32", batch_size=8)
    first = conv(16, 3, 3, 32)
    products = [first, 10 * conv(16, 16, 3, 32)]
    products += [conv(32, 16, 3, 16), conv(32, 16, 1, 16), 9 * conv(32, 32, 3, 16)]
    products += [conv(64, 32, 3, 8), conv(64, 32, 1, 8), 9 * conv(64, 64, 3, 8), 64 * 10]
    assert found.totals["flops"] == 2 * sum(products) == 138_249_472
    assert found.totals["step_flops"] == 8 * 2 * (3 * sum(products) - first)
    assert found.totals["parameters"] == 466_906
    # running mean and variance beside every scale and shift
    channels = sum(row.parameters // 2 for row in found.layers if row.kind == "batch_norm")
    assert found.memory.weights == 4 * (466_906 + 2 * channels)


def test_vgg16() -> None:
    found = summary("bench/cifar_vgg16_bn", batch_size=2)
    sizes = [(64, 3, 32), (64, 64, 32), (128, 64, 16), (128, 128, 16)]
    for filters, into, side, count in ((256, 128, 8, 3), (512, 256, 4, 3), (512, 512, 2, 3)):
        sizes += [(filters, into if i == 0 else filters, side) for i in range(count)]
    products = [conv(out, into, 3, side) for out, into, side in sizes]
    products += [512 * 512, 512 * 512, 512 * 10]
    assert found.totals["flops"] == 2 * sum(products) == 627_451_904
    assert found.totals["parameters"] == 15_254_602


def test_a_shared_table_is_counted_once_and_costs_no_product() -> None:
    found = summary("bench/word2vec")
    tables = [row for row in found.layers if row.kind == "embedding"]
    assert [row.parameters for row in tables] == [2073 * 32, 0, 0, 0]
    assert not any(row.flops for row in tables)
    assert found.totals["flops"] == 2 * (128 * 256 + 256 * 2073)


@pytest.mark.parametrize("batch", [3, 64])
def test_plan_memory_is_what_the_core_reserves(batch: int) -> None:
    """The numbers of a session that has run a step of this size."""
    recipe = load_recipe("bench/mnist_mlp", [f"train.batch_size={batch}"])
    found = summary("bench/mnist_mlp", batch_size=batch)
    prepared = prepare(recipe, fields_of(recipe))
    machine = Machine(prepared.artifact)
    machine._session.reserve({"N": batch})
    assert found.memory.plan == machine._session.bytes
    assert found.memory.state == machine.state_bytes


def test_memory_grows_with_the_batch_and_shrinks_with_parts() -> None:
    whole = summary("bench/mnist_lenet", "train.batch_size=64")
    parts = summary("bench/mnist_lenet", "train.batch_size=64", "train.accumulate=4")
    assert parts.memory.plan < whole.memory.plan / 3
    assert parts.totals["step_flops"] == whole.totals["step_flops"]
    assert parts.memory.weights == whole.memory.weights


def test_a_network_without_training() -> None:
    found = summary("bench/mnist_lenet", "~optimizer")
    assert not found.trained
    assert found.totals["frozen"] == found.totals["parameters"] == 431_080
    assert found.totals["step_flops"] == found.totals["activation_bytes"] == 0
    assert found.totals["flops"] == 4_586_000


def test_sizes_of_ragged_dimensions() -> None:
    outer = Axis("paragraph", "x")
    inner = Axis("word", "x", outer)
    sizes = Sizes(3, 5)
    assert sizes.of(BATCH * 4) == 12
    assert sizes.of(outer.total) == 15
    assert sizes.of(inner.total) == 75
    assert sizes.of(inner.longest) == 5
    assert sizes.of(outer.step_rows) == 3
    assert Sizes(3, 5, whole=True).of(outer.step_rows) == 15
    assert sizes.of(outer.total + 7) == 22


PRODUCTS = ("einsum", "tensordot", "matmul", "dot", "inner")


def multiplies(op: Op) -> bool:
    """Whether an op's file has a product in it: of its numpy meaning, since Python holds no other."""
    tree = ast.parse(Path(inspect.getfile(type(op))).read_text(encoding="utf-8"))
    return any(
        (isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult))
        or (isinstance(node, ast.Attribute) and node.attr in PRODUCTS)
        for node in ast.walk(tree)
    )


def test_ops_with_products_count_them() -> None:
    """An op that multiplies and says nothing would cost nothing in `model summary`."""
    having = [name for name in ops.names() if multiplies(ops.get(name))]
    assert {"fc", "conv2d", "matmul"} <= set(having)
    free = {
        "interpolate"
    }  # two neighbours a side, written as a product with a matrix of mostly zeros
    assert {n for n in having if type(ops.get(n)).flops is Op.flops} == free


@pytest.mark.parametrize("name", ["fc", "conv2d", "matmul"])
def test_gradients_of_a_product_cost_as_much_as_the_product(name: str) -> None:
    """Each of the three products of a layer has as many multiply-adds as the others."""
    shapes = {
        "fc": {"x": (7, 12), "w": (12, 5), "y": (7, 5)},
        "conv2d": {"x": (2, 6, 8, 8), "w": (4, 3, 3, 3), "y": (2, 4, 8, 8)},
        "matmul": {"x": (7, 12), "y": (12, 5), "z": (7, 5)},
    }[name]
    attrs = {"groups": 2, "num_flatten_dims": 1, "transpose_x": False, "transpose_y": False}
    macs = {"fc": 7 * 12 * 5, "conv2d": prod((2, 4, 8, 8)) * 27, "matmul": 7 * 12 * 5}[name]
    op = ops.get(name)
    for kernel in op.kernels:
        if re.search("bias|_b$", kernel.name):
            continue
        ports = [p.name for p in (*kernel.inputs, *kernel.outputs)]
        known = {p: shapes[p.removeprefix("d")] for p in ports if p.removeprefix("d") in shapes}
        assert op.flops(kernel, known, attrs) == 2 * macs, kernel.name
