"""Long short-term memory with a projection against the numbers of another framework (``lstmp.json`` says how they were made)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from null.executor import Batch
from op_bench import check_close
from road import Road

from paddlecli.compiler.optimizer import optimizer_spec
from paddlecli.config.schema import Optimizer
from paddlecli.data.spec import DatasetSpec, FieldSpec
from paddlecli.graph.ir import Graph, Update
from paddlecli.models.network import Network
from paddlecli.models.recurrent_layers import dynamic_lstmp
from paddlecli.ops.base import Ragged

CASES: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "lstmp.json").read_text())[
    "cases"
]
SGD = optimizer_spec("default", Optimizer(name="sgd", learning_rate=0.1))


def graph_of(case: dict[str, Any]) -> Graph:
    """The loss is the sum of both outputs times their upstream gradients."""
    width, projected = len(case["in"]["b"]), len(case["in"]["w"])
    sizes = {"x": width, "up_y": projected, "up_cells": width // 4}
    fields = [FieldSpec(n, "input", (size,), "float32", ("s",)) for n, size in sizes.items()]
    graph = Graph()
    net = Network(graph, "fit", True, DatasetSpec("case", "", tuple(fields), {}))
    found = dynamic_lstmp(net, net.feature("x"), size=width, projection=projected, **case["attrs"])
    net.output("y", found[""])
    net.output("cells", found["cells"])
    parts = [
        net.apply("reduce_sum", net.apply("mul", net.feature(up), value, axis=-1), dims=(1,))
        for up, value in (("up_y", found[""]), ("up_cells", found["cells"]))
    ]
    net.loss(net.apply("sum", parts), "loss", "")
    graph.roles = {"train": ["fit"]}
    net.entry.updates.append(Update("default", list(graph.parameters)))
    return graph


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    case = CASES[name]
    road = Road(graph_of(case), {"default": SGD})
    own = {n.rpartition("/")[2]: n for n in road.graph.parameters}
    assert set(own) == set(case["in"]) - {"x"}
    road.write({path: np.array(case["in"][n]) for n, path in own.items()})
    edges = np.cumsum([0, *case["lens"]]).astype(np.int64)
    given = {
        "x": case["in"]["x"],
        "up_y": case["upstream"]["y"],
        "up_cells": case["upstream"]["cells"],
    }
    columns = {n: Ragged(np.array(v, np.float32), edges) for n, v in given.items()}
    # A total weight of 1 makes the loss a sum.
    weights = {a.name: 1.0 for a in road.artifact.arguments}
    step = road.step("fit", Batch(len(case["lens"]), columns, weights), outputs=True)
    for output in ("y", "cells"):
        check_close(step.outputs[output], case["out"][output], 2e-5, output)
    for parameter, path in own.items():
        found = road.read(f"gradient:{path}")
        check_close(found, case["out"][f"grad:{parameter}"], 5e-5, parameter)
