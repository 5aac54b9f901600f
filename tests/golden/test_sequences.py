"""Ops on packed sequences against the numbers of other implementations (``sequences.json`` says whose)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import op_cases as oc
import pytest
from op_bench import check_close

from paddlecli import ops
from paddlecli.ops._recurrent import ACTIVATIONS
from paddlecli.ops.base import Attr
from paddlecli.ops.spec import BATCH, Axis, Dim, Spec

CASES: dict[str, Any] = json.loads(
    (Path(__file__).parent / "sequences.json").read_text(encoding="utf-8")
)["cases"]
Attrs = Mapping[str, Any]


@dataclass(frozen=True)
class Adapter:
    """How a case's op is called here: our op, its ports by slot, and its attributes from the case's."""

    op: str
    ports: Mapping[str, str]
    results: Mapping[str, str]
    attrs: Callable[[Attrs], dict[str, Attr]] = lambda a: {}
    per_sequence: tuple[str, ...] = ()


def _lstm(a: Attrs) -> dict[str, Attr]:
    found: dict[str, Attr] = {"peephole": a["use_peepholes"], "reverse": a["is_reverse"]}
    for name in ("gate", "cell", "candidate"):
        found[name] = ACTIVATIONS.index(a[f"{name}_activation"])
    return found


def _gru(a: Attrs) -> dict[str, Attr]:
    return {
        "reverse": a["is_reverse"],
        "origin_mode": a["origin_mode"],
        "gate": ACTIVATIONS.index(a["gate_activation"]),
        "candidate": ACTIVATIONS.index(a["activation"]),
    }


ADAPTERS = {
    "gru": Adapter(
        "dynamic_gru",
        {"Input": "x", "Weight": "w", "Bias": "b", "H0": "h0"},
        {"Hidden": "y"},
        _gru,
        ("h0",),
    ),
    "lstm": Adapter(
        "dynamic_lstm",
        {"Input": "x", "Weight": "w", "Bias": "b", "H0": "h0", "C0": "c0"},
        {"Hidden": "y", "Cell": "cells"},
        _lstm,
        ("h0", "c0"),
    ),
    "linear_chain_crf": Adapter(
        "linear_chain_crf",
        {"Emission": "emission", "Transition": "transition", "Label": "label"},
        {"nll": "nll"},
    ),
    "crf_decoding": Adapter(
        "crf_decoding",
        {"Emission": "emission", "Transition": "transition"},
        {"ViterbiPath": "path"},
    ),
    "sequence_softmax": Adapter("sequence_softmax", {"X": "x"}, {"Out": "y"}),
    "sequence_conv": Adapter(
        "sequence_conv",
        {"X": "x", "Filter": "w"},
        {"Out": "y"},
        lambda a: {"size": a["contextLength"], "start": a["contextStart"]},
    ),
}
COVERED = [name for name, case in CASES.items() if case["op"] in ADAPTERS]


class Bench:
    """One case on the core: outputs by slot, and gradients by slot."""

    def __init__(self, case: Mapping[str, Any]) -> None:
        self.how = ADAPTERS[case["op"]]
        lengths = next(v["lens"] for v in case["in"].values() if isinstance(v, dict))
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        self.axis = Axis("x", "x")
        self.eager = oc.Eager(oc.Sizes(len(lengths), {"x": offsets}))
        self.op = ops.get(self.how.op)
        ports = {p.name: p.dtype for p in self.op.forward.inputs}
        self.args: dict[str, oc.Value | None] = dict.fromkeys(ports)
        for slot, data in case["in"].items():
            port = self.how.ports[slot]
            self.args[port] = self.value(data, port, ports[port])
        self.eager.emit(self.op.forward, self.args, self.how.attrs(case["attrs"]))
        self.call = self.eager.calls[0]

    def value(self, data: Any, port: str, dtype: str) -> oc.Value:
        """A tensor: packed rows where the case gives lengths, one row a sequence where the adapter says so."""
        packed = isinstance(data, Mapping)
        array = np.array(data["v"] if packed else data, oc.NUMPY[dtype])
        first: Dim | int = len(array)
        if packed:
            first = self.axis.total
        elif port in self.how.per_sequence:
            first = BATCH
        axis = self.axis if packed else None
        return oc.Value(Spec.of(first, *array.shape[1:], dtype=dtype, axis=axis), array)

    def output(self, slot: str) -> np.ndarray:
        """What the op gave."""
        found: np.ndarray = self.call.results[self.how.results[slot]].array
        return found

    def gradients(self, upstream: Any) -> dict[str, np.ndarray]:
        """Gradients of the inputs by slot, from that of the first output or of each by slot."""
        by_slot = upstream
        if not isinstance(upstream, Mapping):
            by_slot = {next(iter(self.how.results)): upstream}
        dy: dict[str, Any] = {p.name: None for p in self.op.forward.outputs}
        for slot, data in by_slot.items():
            result = self.call.results[self.how.results[slot]]
            dy[self.how.results[slot]] = oc.Value(result.spec, np.array(data, np.float32))
        node = SimpleNamespace(args=self.args, results=self.call.results, attrs=self.call.attrs)
        found = self.op.grad(self.eager, node, dy)
        return {s: found[p].array for s, p in self.how.ports.items() if p in found}


@pytest.mark.parametrize("name", COVERED)
def test_case(name: str) -> None:
    case = CASES[name]
    bench = Bench(case)
    gradients = bench.gradients(case["upstream"]) if "upstream" in case else {}
    for slot, data in case["out"].items():
        values = data["v"] if isinstance(data, Mapping) else data
        port = slot.removeprefix("grad:")
        found = gradients[port] if slot.startswith("grad:") else bench.output(slot)
        wanted = np.array(values, np.float64)
        rtol = 2e-5 if name.startswith("torch") else 2e-4
        check_close(found.reshape(wanted.shape), wanted, rtol, slot)
