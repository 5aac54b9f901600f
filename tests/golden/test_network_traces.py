"""Whole trainings of networks written with layer functions against another framework: loss and norm of the gradient at every
step, then every parameter and running statistic behind the last one."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from road import Road
from test_traces import ids, pattern

from paddlecli.compiler.optimizer import optimizer_spec
from paddlecli.config.schema import Optimizer
from paddlecli.data.columns import Column, Split
from paddlecli.data.spec import DatasetSpec, FieldSpec
from paddlecli.engine.averages import by_iteration, keys_of
from paddlecli.graph.ir import Graph, Tensor, Update
from paddlecli.models import layers, losses
from paddlecli.models.attention import multi_head_attention
from paddlecli.models.network import Network
from paddlecli.models.sequence_layers import ctc, dynamic_gru, layer_norm

TRACES: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent / "network_traces.json").read_text()
)["traces"]
Config = Mapping[str, Any]
Columns = dict[str, Column]
Parameters = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """A network that ends in a loss, the fields it reads, and the columns of step t."""

    write: Callable[[Network, Config], object]
    fields: Callable[[Config], tuple[FieldSpec, ...]]
    columns: Callable[[Config, int], Columns]


# ---- pictures ----------------------------------------------------------------------------------
def picture_fields(c: Config) -> tuple[FieldSpec, ...]:
    return (
        FieldSpec("x", "input", (c["channels"], c["side"], c["side"]), "float32"),
        FieldSpec("y", "label", (1,), "int64", classes=c["classes"]),
    )


def picture_columns(c: Config, t: int) -> Columns:
    shape = (c["batch"], c["channels"], c["side"], c["side"])
    y = ids(c["batch"], c["classes"], t)[:, None]
    return {"x": Column(pattern(shape, 0.3 + t, 1.0)), "y": Column(y)}


def norm(net: Network, x: Tensor, activation: Any = "none") -> Tensor:
    return layers.batch_norm(net, x, activation=activation)


def conv(net: Network, x: Tensor, filters: int, size: int = 3, stride: int = 1, **more: Any) -> Tensor:  # fmt: skip
    return layers.conv2d(
        net, x, filters=filters, size=size, stride=stride, padding=size // 2, **{"bias": False, **more}
    )  # fmt: skip


def classified(net: Network, x: Tensor, classes: int) -> Tensor:
    x = layers.pool2d(net, x, kind="average", whole=True)
    logits = layers.fc(net, x, size=classes)
    return losses.softmax_with_cross_entropy(net, logits, net.label())


def vgg_bn(net: Network, c: Config) -> None:
    x = net.feature()
    for filters, count in c["groups"]:
        for _ in range(count):
            x = norm(net, conv(net, x, filters, bias=True), "relu")
        x = layers.pool2d(net, x, size=2)
    x = norm(net, layers.fc(net, x, size=c["fc"]), "relu")
    x = layers.fc(net, x, size=c["fc"])
    logits = layers.fc(net, x, size=c["classes"])
    losses.softmax_with_cross_entropy(net, logits, net.label())


def mobilenet_v2(net: Network, c: Config) -> None:
    x = norm(net, conv(net, net.feature(), c["stem"], stride=2), "relu6")
    for expansion, filters, stride in c["blocks"]:
        before = x.spec.shape[1].coefficient
        y = x
        if expansion != 1:
            y = norm(net, conv(net, y, before * expansion, 1), "relu6")
        inner = before * expansion
        y = norm(net, conv(net, y, inner, 3, stride, groups=inner), "relu6")
        y = norm(net, conv(net, y, filters, 1))
        x = net.apply("add", x, y) if stride == 1 and filters == before else y
    classified(net, norm(net, conv(net, x, c["head"], 1), "relu6"), c["classes"])


def resnet_basic(net: Network, c: Config) -> None:
    x = norm(net, conv(net, net.feature(), c["stem"]), "relu")
    for filters, stride in c["stages"]:
        y = norm(net, conv(net, x, filters, 3, stride), "relu")
        y = norm(net, conv(net, y, filters))
        if stride != 1 or x.spec.shape[1].coefficient != filters:
            x = norm(net, conv(net, x, filters, 1, stride))
        x = layers.activate(net, net.apply("add", y, x), "relu")
    x = layers.pool2d(net, x, kind="average", whole=True)
    logits = layers.fc(net, x, size=c["classes"])
    smooth = net.apply("label_smooth", net.label(), None, epsilon=c["smooth"])
    losses.softmax_with_cross_entropy(net, logits, smooth, soft_label=True)


def one_hot_fields(c: Config) -> tuple[FieldSpec, ...]:
    return picture_fields(c)[0], FieldSpec("y", "label", (c["classes"],), "float32")


def one_hot_columns(c: Config, t: int) -> Columns:
    columns = picture_columns(c, t)
    classes = columns["y"].values.reshape(-1)
    columns["y"] = Column(np.eye(c["classes"], dtype=np.float32)[classes])
    return columns


# ---- sequences ---------------------------------------------------------------------------------
def edges(lengths: list[int]) -> Any:
    return np.cumsum([0, *lengths]).astype(np.int64)


def crnn_ctc(net: Network, c: Config) -> None:
    x = conv(net, net.feature("x"), c["ch"][0], bias=True, activation="relu")
    x = conv(net, layers.pool2d(net, x, size=2), c["ch"][1])
    x = layers.pool2d(net, norm(net, x, "relu"), size=(2, 1))
    x = net.apply("transpose", x, perm=(0, 3, 1, 2))
    x = net.apply("reshape", x, dims=(0, c["frames"][0], -1))
    frames = net.apply("sequence_unpad", x, net.feature("frames"))
    sides = [
        dynamic_gru(
            net, layers.fc(net, frames, size=3 * c["hidden"], bias=False), size=c["hidden"], reverse=reverse
        ) for reverse in (False, True)
    ]  # fmt: skip
    logits = layers.fc(net, layers.concat(net, *sides), size=c["classes"])
    ctc(net, logits, net.label())


def crnn_fields(c: Config) -> tuple[FieldSpec, ...]:
    return (
        FieldSpec("x", "input", (1, c["height"], c["width"]), "float32"),
        FieldSpec("frames", "input", (), "int64", ("frames",)),
        FieldSpec("y", "label", (), "int64", ("y",), c["classes"]),
    )


def crnn_columns(c: Config, t: int) -> Columns:
    x = pattern((c["batch"], 1, c["height"], c["width"]), 0.3 + t, 1.0)
    labels = 1 + ids(sum(c["label_lens"]), c["classes"] - 1, t)
    frames = np.zeros(sum(c["frames"]), np.int64)
    return {
        "x": Column(x),
        "frames": Column(frames, (edges(c["frames"]),)),
        "y": Column(labels, (edges(c["label_lens"]),)),
    }


def transformer_mlm(net: Network, c: Config) -> None:
    """The table of the tokens is the output's weight too; tokens that are not masked have a
    label behind all ids."""
    d = c["d"]
    token = layers.embedding(net, net.feature("token"), size=c["vocab"], dim=d, table="tok")
    place = layers.embedding(net, net.feature("place"), size=c["positions"], dim=d)
    x = layer_norm(net, net.apply("add", token, place))
    for _ in range(c["layers"]):
        x = layer_norm(net, net.apply("add", x, multi_head_attention(net, x, heads=c["heads"])))
        y = layers.fc(net, x, size=c["ffn"], activation="gelu")
        x = layer_norm(net, net.apply("add", x, layers.fc(net, y, size=d)))
    x = layer_norm(net, layers.fc(net, x, size=d, activation="gelu"))
    table = net.parameter("tok", (c["vocab"], d), "xavier", path="tok")
    logits = net.apply("matmul", x, table, transpose_y=True)
    logits = net.apply("bias", logits, net.parameter("out_bias", (c["vocab"],), "constant"), axis=-1)  # fmt: skip
    losses.softmax_with_cross_entropy(net, logits, net.label(), ignore_index=c["vocab"])


def mlm_fields(c: Config) -> tuple[FieldSpec, ...]:
    return (
        FieldSpec("token", "input", (), "int64", ("words",), c["vocab"]),
        FieldSpec("place", "input", (), "int64", ("words",), c["positions"]),
        FieldSpec("y", "label", (), "int64", ("words",), c["vocab"] + 1),
    )


def mlm_columns(c: Config, t: int) -> Columns:
    lengths, masked = c["lens"], np.isin(np.arange(sum(c["lens"])), c["masked"])
    token = ids(sum(lengths), c["vocab"], t)
    found = {
        "token": np.where(masked, c["vocab"] - 1, token),
        "place": np.concatenate([np.arange(n) for n in lengths]),
        "y": np.where(masked, token, c["vocab"]),
    }
    return {name: Column(values, (edges(lengths),)) for name, values in found.items()}


CASES = {
    "vgg_bn": Case(vgg_bn, picture_fields, picture_columns),
    "mobilenet_v2": Case(mobilenet_v2, picture_fields, picture_columns),
    "resnet_basic": Case(resnet_basic, one_hot_fields, one_hot_columns),
    "crnn_ctc": Case(crnn_ctc, crnn_fields, crnn_columns),
    "transformer_mlm": Case(transformer_mlm, mlm_fields, mlm_columns),
}


# ---- the trace ---------------------------------------------------------------------------------
def optimizer_of(given: Mapping[str, Any], rate: float) -> Optimizer:
    """The file's settings as a recipe's section."""
    own = {{"mu": "momentum"}.get(k, k): v for k, v in given.items() if k not in ("kind", "l2")}
    decay = {"regularizer": {"l2": given["l2"]}} if "l2" in given else {}
    # A clip that is never reached, for the norm that it reports.
    clip = {"clip": {"global_norm": 1e6}}
    section = {"name": given["kind"], "learning_rate": rate, **own, **decay, **clip}
    return Optimizer.model_validate(section)


def begin(road: Road, golden: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Every parameter as the file begins; gives the file's last values by our names."""
    rules = {name: (k, amplitude) for name, k, amplitude in golden["weights"]}
    wanted = [f for f in golden["final"] if "running" not in f]
    assert len(wanted) == len(road.graph.parameters)
    for ours, final in zip(road.graph.parameters, wanted, strict=True):
        shape = road.places[ours].shape
        assert math.prod(shape) == math.prod(final["shape"]), f"{ours} is no {final}"
        if final["name"] in rules:
            assert "init" not in final
            road.write({ours: pattern(tuple(shape), *rules[final["name"]])})
        else:
            road.write({ours: np.full(shape, final["init"])})
    states = [f for f in golden["final"] if "running" in f]
    running = [n for n in road.graph.states if n.rpartition("/")[2] in ("mean", "variance")]
    return dict(zip([*road.graph.parameters, *running], [*wanted, *states], strict=True))


@pytest.mark.parametrize("name", TRACES)
def test_trace(name: str) -> None:
    golden, case = TRACES[name], CASES[name]
    config, rates = golden["cfg"], golden["rates"]
    spec = DatasetSpec("trace", "", case.fields(config), {})
    graph = Graph(labels=("y",))
    net = Network(graph, "fit", True, spec)
    case.write(net, config)
    graph.roles = {"train": ["fit"]}
    net.entry.updates.append(Update("default", list(graph.parameters)))
    optimizer = optimizer_of(golden["optimizer"], rates[0])
    road = Road(graph, {"default": optimizer_spec("default", optimizer)})
    finals = begin(road, golden)
    for step, rate in enumerate(rates):
        split = Split("train", case.columns(config, step))
        maker = road.maker(spec, split, len(split), rate)
        work = maker.make(np.arange(len(split)), 0, 1, step)
        found = by_iteration(keys_of(maker.calls), work, road.run(work, split), 1)
        assert found["loss"][0] == pytest.approx(golden["loss_before_step"][step], rel=1e-5), step
        gradient = next(float(v[0]) for k, v in found.items() if "gradient_norm" in k)
        assert gradient == pytest.approx(golden["grad_norm"][step], rel=2e-4), step
    for ours, final in finals.items():
        if "zero_grad" not in final:
            value = road.read(ours).astype(np.float64)
            assert (value**2).sum() == pytest.approx(final["sumsq"], rel=2e-4, abs=1e-9), ours
            size = math.sqrt(value.size * max(final["sumsq"], 1e-6))
            assert value.sum() == pytest.approx(final["sum"], abs=1e-4 * size), ours
