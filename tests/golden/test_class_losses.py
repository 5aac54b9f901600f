"""Losses over some of many classes against figures of their formulas (``class_losses.json`` says whose)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import op_cases as oc
import pytest
from op_bench import check_close

from paddlecli import ops
from paddlecli.ops.class_samples import SAMPLERS
from paddlecli.ops.spec import BATCH, Spec

CASES: dict[str, Any] = json.loads(
    (Path(__file__).parent / "class_losses.json").read_text(encoding="utf-8")
)["cases"]


class Chain:
    """Ops run one after the other on the core; gradients go back the same way."""

    def __init__(self, case: Mapping[str, Any]) -> None:
        self.case, given = case, case["in"]
        self.n = len(given["Label"])
        self.eager = oc.Eager(oc.Sizes(self.n))
        self.label = self.value("Label", "i64", BATCH, 1)

    def value(self, slot: str, dtype: str, *first: Any) -> oc.Value:
        """A tensor of the case, of the shape ``first`` where it is given."""
        array: Any = np.array(self.case["in"][slot]).astype(oc.NUMPY[dtype])
        return oc.Value(Spec.of(*(first or array.shape), dtype=dtype), array)

    def run(self, op: str, **args: Any) -> Any:
        """The forward kernel of an op: attributes are what is no tensor."""
        attrs = {k: v for k, v in args.items() if not isinstance(v, oc.Value) and v is not None}
        tensors = {k: v for k, v in args.items() if isinstance(v, oc.Value)}
        return self.eager.emit(ops.get(op).forward, tensors, attrs)

    def back(self, op: str, dy: np.ndarray) -> dict[str, Any]:
        """Gradients of the inputs of that op's last call from that of its first output."""
        call = next(c for c in reversed(self.eager.calls) if c.kernel is ops.get(op).forward)
        first, *others = (p.name for p in call.kernel.outputs)
        spec = call.results[first].spec
        node = SimpleNamespace(args=call.args, results=call.results, attrs=call.attrs)
        given = {
            first: oc.Value(spec, dy.reshape(call.results[first].array.shape).astype(np.float32))
        }
        found = ops.get(op).grad(self.eager, node, given | dict.fromkeys(others))
        return {k: v.array for k, v in found.items()}

    def scores(self, ids: oc.Value, x: str, w: str) -> Any:
        """class_scores of the case's tensors."""
        width = len(self.case["in"][x][0])
        bias = np.array(self.case["in"]["Bias"], np.float32).reshape(-1)
        b = oc.Value(Spec.of(bias.size), bias)
        tensors = {"x": self.value(x, "f32", BATCH, width), "w": self.value(w, "f32"), "b": b}
        return self.run("class_scores", **tensors, ids=ids)

    def check(self, slot: str, found: np.ndarray) -> None:
        """Figures of a slot."""
        wanted = np.array(self.case["out"][slot], np.float64)
        check_close(found.reshape(wanted.shape), wanted, 2e-5, slot)

    def check_gradients(self, dz: np.ndarray, x: str, w: str) -> None:
        """Those of x, w and the bias, through the scores."""
        found = self.back("class_scores", dz)
        for slot, port in ((x, "x"), (w, "w"), ("Bias", "b")):
            self.check(f"grad:{slot}", found[port])

    @property
    def upstream(self) -> np.ndarray:
        """The gradient of the loss [N, 1]."""
        return np.array(self.case["upstream"], np.float32).reshape(self.n, 1)


def sampled(chain: Chain, given: list[Any], classes: int, sampler: str) -> Any:
    """ids, expected and hit with the case's own negatives."""
    negatives = np.array(given, np.int64)
    shape = (BATCH, negatives.shape[1]) if negatives.ndim > 1 else negatives.shape
    return chain.run(
        "class_samples", label=chain.label, given=oc.Value(Spec.of(*shape, dtype="i64"), negatives),
        classes=classes, count=negatives.shape[-1], sampler=SAMPLERS.index(sampler),
    )  # fmt: skip


@pytest.mark.parametrize("name", ["nce_uniform", "nce_log_uniform"])
def test_nce(name: str) -> None:
    chain = Chain(CASES[name])
    a = chain.case["attrs"]
    ids, expected, _ = sampled(chain, a["custom_neg_classes"], a["num_total_classes"], a["sampler"])
    z = chain.scores(ids, "Input", "Weight")
    chain.check("Cost", chain.run("nce_loss", z=z, expected=expected).array)
    chain.check_gradients(chain.back("nce_loss", chain.upstream)["z"], "Input", "Weight")


def test_negative_sampling() -> None:
    chain = Chain(CASES["negative_sampling"])
    ids, _, _ = sampled(chain, chain.case["in"]["Negatives"], 7, "uniform")
    z = chain.scores(ids, "Input", "Weight")
    truth = np.zeros(z.array.shape, np.float32)
    truth[:, 0] = 1.0
    turns = chain.run(
        "sigmoid_cross_entropy", x=z, label=oc.Value(z.spec, truth), ignore_index=-100
    )
    chain.check("Loss", turns.array.sum(axis=1))
    dz = chain.back("sigmoid_cross_entropy", chain.upstream * np.ones_like(truth))["x"]
    chain.check_gradients(dz, "Input", "Weight")


@pytest.mark.parametrize("name", ["hsigmoid_k6", "hsigmoid_k8_full"])
def test_hierarchical_sigmoid(name: str) -> None:
    chain = Chain(CASES[name])
    ids, bits = chain.run(
        "tree_path", label=chain.label, classes=chain.case["attrs"]["num_classes"]
    )
    z = chain.scores(ids, "X", "W")
    turns = chain.run("sigmoid_cross_entropy", x=z, label=bits, ignore_index=-100)
    chain.check("Out", turns.array.sum(axis=1))
    lacks = (ids.array < 0).sum(
        axis=1
    )  # PaddlePaddle adds ln 2 for each level that a short path lacks
    chain.check("OutWithPaddlesPadding", turns.array.sum(axis=1) + lacks * np.log(2))
    dz = chain.back("sigmoid_cross_entropy", chain.upstream * np.ones_like(turns.array))["x"]
    chain.check_gradients(dz, "X", "W")
    nodes = chain.case["attrs"]["num_classes"] - 1
    every = oc.Value(
        Spec.of(BATCH, nodes, dtype="i64"), np.tile(np.arange(nodes, dtype=np.int64), (chain.n, 1))
    )
    told = chain.run("tree_scores", z=chain.scores(every, "X", "W")).array
    np.testing.assert_allclose(np.exp(told).sum(axis=1), 1.0, rtol=1e-6)
    chain.check("Out", -np.take_along_axis(told, chain.label.array, axis=1))


def test_sampled_softmax() -> None:
    """Figures are of given scores and expected counts: the identity stands for the weights."""
    chain = Chain(CASES["sampled_softmax_remove_hits"])
    samples = np.array(chain.case["in"]["Samples"], np.int64)
    ids, _, hit = sampled(chain, chain.case["in"]["Samples"], 7, "log_uniform")
    x = chain.value("Logits", "f32", BATCH, 7)
    w = oc.Value(Spec.of(7, 7), np.eye(7, dtype=np.float32))
    z = chain.run("class_scores", x=x, w=w, ids=ids)
    assert (hit.array[:, 1:] == (samples == chain.label.array)).all()
    q = np.array(chain.case["in"]["Q"], np.float32)[ids.array]
    away = oc.Value(z.spec, np.log(q) + np.float32(1e20) * hit.array)
    less = chain.run("sub", x=z, y=away, axis=-1)
    zeros = oc.Value(Spec.of(BATCH, dtype="i64"), np.zeros(chain.n, np.int64))
    loss = chain.run(
        "softmax_with_cross_entropy", x=less, label=zeros, soft_label=False, axis=-1, ignore_index=-100
    )[0]  # fmt: skip
    chain.check("Loss", loss.array)
    dz = chain.back("softmax_with_cross_entropy", chain.upstream)["x"]
    chain.check("grad:Logits", chain.back("class_scores", dz)["x"])


def test_draws_follow_their_distribution() -> None:
    """Counts of 200,000 draws lie within five deviations of what the op itself expects."""
    rows, count, classes = 20_000, 10, 12
    label = oc.Value(Spec.of(BATCH, dtype="i64"), np.zeros(rows, np.int64))
    for sampler in SAMPLERS:
        chain = oc.Eager(oc.Sizes(rows))
        attrs = {"classes": classes, "count": count, "sampler": SAMPLERS.index(sampler)}
        ids, _, _ = chain.emit(ops.get("class_samples").forward, {"label": label}, attrs)
        all_of_them = oc.Value(Spec.of(BATCH, dtype="i64"), np.arange(classes))
        other = oc.Eager(oc.Sizes(classes))
        expected = other.emit(ops.get("class_samples").forward, {"label": all_of_them}, attrs)[1]
        share = expected.array[:, 0].astype(np.float64) / count
        if sampler == "log_uniform":
            share[-1] = 0.0  # as the original's: the last class is a label only
        found = np.bincount(ids.array[:, 1:].reshape(-1), minlength=classes)
        spread = np.sqrt(rows * count * share * (1 - share))
        assert share.sum() == pytest.approx(1.0, rel=1e-6)
        assert (np.abs(found - rows * count * share) <= 5 * spread).all()
