"""Ops on packed sequences against the numbers of other implementations (``sequences.json`` says whose)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import op_cases as oc
import pytest
from op_bench import OpBench, check_close

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
    """How a case's op is called here: our op, its ports by slot, and its attributes from the case's.

    ``per_sequence``: ports with one row a sample. ``views``: results that the op has in another form.
    """

    op: str
    ports: Mapping[str, str]
    results: Mapping[str, str]
    attrs: Callable[[Attrs], dict[str, Attr]] = lambda a: {}
    per_sequence: tuple[str, ...] = ()
    views: Mapping[str, Callable[[Any, Attrs], Any]] = field(default_factory=dict)


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


PADDLE_ACTIVATIONS = ("identity", "sigmoid", "tanh", "relu")
"""What PaddlePaddle's gru_unit counts."""


def _gru_unit(a: Attrs) -> dict[str, Attr]:
    names = [a["gate_activation"], a["activation"]]
    found = [n if isinstance(n, str) else PADDLE_ACTIVATIONS[n] for n in names]
    gate, candidate = (ACTIVATIONS.index(n) for n in found)
    return {"gate": gate, "candidate": candidate, "origin_mode": a["origin_mode"]}


ADAPTERS = {
    "layer_norm": Adapter(
        "layer_norm",
        {"X": "x", "Scale": "w", "Bias": "b"},
        {"Y": "y", "Mean": "mean", "Variance": "rstd"},
        lambda a: {"begin": a["begin_norm_axis"], "epsilon": a["epsilon"]},
        ("x",),
        {"Variance": lambda rstd, a: rstd.astype(np.float64) ** -2 - a["epsilon"]},
    ),
    "sequence_reverse": Adapter("sequence_reverse", {"X": "x"}, {"Y": "y"}),
    "sequence_expand": Adapter(
        "repeat_rows", {"X": "x", "Y": "like"}, {"Out": "y"}, per_sequence=("x",)
    ),
    "sequence_expand_sequences": Adapter("sequence_expand", {"X": "x", "Y": "like"}, {"Out": "y"}),
    "row_conv": Adapter("row_conv", {"X": "x", "Filter": "w"}, {"Out": "y"}),
    "gru_unit": Adapter(
        "gru_unit",
        {"Input": "x", "HiddenPrev": "h", "Weight": "w", "Bias": "b"},
        {"Hidden": "y", "Gate": "gates", "ResetHiddenPrev": "kept"},
        _gru_unit,
        ("x", "h"),
    ),
    "warpctc": Adapter(
        "ctc",
        {"Logits": "logits", "Label": "label"},
        {"Loss": "nll"},
        lambda a: {"blank": a["blank"], "norm": int(a["norm_by_times"])},
    ),
    "ctc_loss_mean": Adapter(
        "ctc",
        {"Logits": "logits", "Label": "label"},
        {"Loss": "nll"},
        lambda a: {"blank": a["blank"], "norm": 2},
        (),
        {"Loss": lambda nll, a: nll.mean()},
    ),
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
        self.attrs = case["attrs"]
        lengths = {
            s: v["lens"] for s, v in case["in"].items() if isinstance(v, dict) and "lens" in v
        }
        named = {tuple(found): slot for slot, found in lengths.items()}
        self.axes = {s: Axis(named[tuple(v)], named[tuple(v)]) for s, v in lengths.items()}
        offsets = {
            slot: np.concatenate([[0], np.cumsum(found)]).astype(np.int64)
            for found, slot in named.items()
        }
        samples = [len(found) for found in lengths.values()] or [
            len(case["in"][s]) for s, p in self.how.ports.items() if p in self.how.per_sequence
        ]
        self.eager = oc.Eager(oc.Sizes(samples[0], offsets))
        self.op = ops.get(self.how.op)
        ports = {p.name: p.dtype for p in self.op.forward.inputs}
        self.args: dict[str, oc.Value | None] = dict.fromkeys(ports)
        for slot, data in case["in"].items():
            port = self.how.ports[slot]
            self.args[port] = self.value(data, slot, ports[port])
        self.eager.emit(self.op.forward, self.args, self.how.attrs(case["attrs"]))
        self.call = self.eager.calls[0]

    def value(self, data: Any, slot: str, dtype: str) -> oc.Value:
        """A tensor: packed rows where the case gives lengths, one row a sample where the adapter says so."""
        axis = self.axes.get(slot)
        array = np.array(data["v"] if axis is not None else data)
        array = array.astype(oc.NUMPY[dtype] if dtype != "any" else np.float32)
        first: Dim | int = len(array)
        if axis is not None:
            first = axis.total
        elif self.how.ports[slot] in self.how.per_sequence:
            first = BATCH
        name = "f32" if dtype == "any" else dtype
        return oc.Value(Spec.of(first, *array.shape[1:], dtype=name, axis=axis), array)

    def output(self, slot: str) -> np.ndarray:
        """What the op gave."""
        found: np.ndarray = self.call.results[self.how.results[slot]].array
        view = self.how.views.get(slot)
        return found if view is None else np.asarray(view(found, self.attrs))

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


def test_ctc_norm_by_times() -> None:
    """Losses stay, the gradient of each sequence is divided by its frames."""
    case = CASES["torch_ctc_blank0"]
    plain = Bench(case)
    normed = Bench({**case, "attrs": {**case["attrs"], "norm_by_times": True}})
    np.testing.assert_array_equal(normed.output("Loss"), plain.output("Loss"))
    frames = case["in"]["Logits"]["lens"]
    divided = plain.gradients(case["upstream"])["Logits"] / np.repeat(frames, frames)[:, None]
    np.testing.assert_allclose(normed.gradients(case["upstream"])["Logits"], divided, rtol=1e-6)


def test_beam_search() -> None:
    """A step over two samples: the original is given the best ids of each prefix with the sums so far, ours the scores of all
    ids, which are added to the sums."""
    case = CASES["paddle_beam_search_live"]
    given, beam = case["in"], case["attrs"]["beam_size"]
    before = np.array(given["pre_scores"], np.float64)
    scores = np.full((len(before), 1 + int(np.max(given["ids"]))), -np.inf, np.float32)
    rows = np.arange(len(before))[:, None]
    scores[rows, np.array(given["ids"])] = np.array(given["scores"]) - before
    args = {
        "scores": scores,
        "total": before.reshape(-1, beam).astype(np.float32),
        "finished": np.zeros(len(before), np.int32),
    }
    bench = OpBench("beam_step", args, {"end": case["attrs"]["end_id"]})
    assert bench["ids"].tolist() == [i for (i,) in case["out"]["selected_ids"]]
    assert bench["parents"].tolist() == [0, 1, 2, 3]
    check_close(bench["total_out"].reshape(-1, 1), case["out"]["selected_scores"])
