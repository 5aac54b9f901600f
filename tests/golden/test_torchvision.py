"""Weights under torchvision's names give torchvision's logits; `torchvision.json` says how both were made."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from null.executor import Batch
from road import Road
from safetensors.numpy import save_file

from paddlecli.config.import_map import for_network
from paddlecli.config.registry import MODELS
from paddlecli.data.spec import DatasetSpec, FieldSpec
from paddlecli.engine import convert, fitting, foreign
from paddlecli.graph.ir import Graph
from paddlecli.models.network import Network

NETWORKS: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent / "torchvision.json").read_text()
)["networks"]
SIDE = 64
SMALL = "vgg16_small"
"""VGG-16 with few hidden units: the whole net is 550 MB."""
LARGE = ("resnet50", "vgg11_bn", "alexnet", "vgg16")
CASES = [pytest.param(n, marks=pytest.mark.slow) if n in LARGE else n for n in NETWORKS]


def noise(n: int, k: int) -> np.ndarray:
    """n numbers in [-1, 1) that only integers decide."""
    mask = np.uint64(0xFFFFFFFF)
    x = (np.arange(n, dtype=np.uint64) + np.uint64(k) * np.uint64(0x9E3779B1)) & mask
    for _ in range(2):
        x = ((x >> np.uint64(16)) ^ x) * np.uint64(0x45D9F3B) & mask
    return ((x >> np.uint64(16)) ^ x).astype(np.float64) / 2.0**31 - 1.0


def weights(arrays: dict[str, list[int]]) -> dict[str, np.ndarray]:
    """The file's rule."""
    found: dict[str, np.ndarray] = {}
    k = 0
    for name, shape in arrays.items():
        if name.endswith("num_batches_tracked"):
            found[name] = np.zeros(shape, np.int64)
            continue
        k += 1
        last, u = name.rpartition(".")[2], noise(math.prod(shape), k).reshape(shape)
        if len(shape) > 1:
            u *= math.sqrt(6 / math.prod(shape[1:])) / (16 if name.startswith("fc.") else 1)
        elif last in ("weight", "running_var"):
            u = 1 + (0.2 if last == "weight" else 0.5) * u
        else:
            u *= 0.1
        found[name] = u.astype(np.float32)
    return found


def ours(name: str) -> str:
    """The network's name here."""
    return "vgg16" if name == SMALL else name


def graph_of(name: str, classes: int) -> Graph:
    """The network's prediction with its logits as an output."""
    image = FieldSpec("image", "input", (3, SIDE, SIDE), "float32")
    label = FieldSpec("label", "label", (), "int64", classes=classes)
    graph = Graph(labels=("label",))
    net = Network(graph, "predict", False, DatasetSpec("pictures", "", (image, label), {}))
    MODELS.get(ours(name)).function(net, **({"hidden": 64} if name == SMALL else {}))
    assert net.prediction is not None
    net.output("logits", net.prediction)
    return graph


@pytest.mark.parametrize("name", CASES)
def test_logits(name: str, tmp_path: Path) -> None:
    golden = NETWORKS[name]
    path = tmp_path / "weights.safetensors"
    save_file(weights(golden["arrays"]), path)
    shipped = for_network(ours(name))
    assert shipped is not None and shipped[0] == "torchvision"
    graph = graph_of(name, golden["classes"])
    found = convert.convert(foreign.read(path), shipped[1], fitting.shapes_of(graph))
    assert len(found.arrays) + len(found.left) == len(golden["arrays"])
    road = Road(graph)
    road.write(found.arrays)
    x = noise(2 * 3 * SIDE * SIDE, 7).reshape(2, 3, SIDE, SIDE).astype(np.float32)
    weight = dict.fromkeys((a.name for a in road.artifact.arguments), 2.0)
    batch = Batch(2, {"image": x, "label": np.zeros(2, np.int64)}, weight)
    logits = road.step("predict", batch, outputs=True).outputs["logits"].astype(np.float64)
    assert logits.shape == (2, golden["classes"])
    # Logits of ResNet-50 go up to 240 with these weights; all others stay near 10.
    near, size = 1e-4 * max(1.0, np.abs(logits).max() / 20), math.sqrt(golden["classes"])
    np.testing.assert_allclose(logits[:, :8], golden["logits"], rtol=0, atol=near)
    np.testing.assert_allclose(logits.sum(axis=1), golden["sums"], rtol=0, atol=near * size)
    np.testing.assert_allclose((logits**2).sum(axis=1), golden["squares"], rtol=1e-4)
