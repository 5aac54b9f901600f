"""Attention, one step of beam search and the training of a translation net against the numbers of other implementations
(``attention.json`` says whose)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from null.executor import Batch
from null.world import recipe_of
from road import Road

from paddlecli import ops
from paddlecli.compiler.groups import OptimizerSpec
from paddlecli.compiler.optimizer import optimizer_spec, optimizers
from paddlecli.config.schema import Optimizer
from paddlecli.data.spec import DatasetSpec, FieldSpec
from paddlecli.graph.ir import Graph, Tensor, Update
from paddlecli.models import attention, layers
from paddlecli.models.build import build
from paddlecli.models.network import Network
from paddlecli.ops.base import Ragged
from paddlecli.runtime.eager import Out, run_kernel

GOLDEN: dict[str, Any] = json.loads(
    (Path(__file__).parent / "attention.json").read_text(encoding="utf-8")
)
CASES = GOLDEN["cases"]

Array = np.ndarray[Any, np.dtype[Any]]


# -- layers -------------------------------------------------------------------------------------------------------------
SGD: Mapping[str, OptimizerSpec] = {
    "default": optimizer_spec(
        "default", Optimizer.model_validate({"name": "sgd", "learning_rate": 0.1})
    )
}


def gradients(
    case: Mapping[str, Any],
    slots: Mapping[str, str],
    write: Callable[[Network, list[Tensor]], Tensor],
) -> tuple[Array, dict[str, Array]]:
    """A layer's output and the gradients of its inputs and parameters: the inputs are rows of tables, whose gradients are theirs.
    ``slots``: a parameter's name -> the case's."""
    inputs = {k: v for k, v in case["in"].items() if k in ("X", "Memory", "State", "Enc")}
    out = next(iter(case["out"].values()))
    packed = "lens" in next(iter(inputs.values()))
    fields = [FieldSpec("up", "label", (len(out["v"][0]),), "float32", ("X",) if packed else ())]
    fields += [
        FieldSpec(k, "input", (), "int64", (k,) if "lens" in v else ()) for k, v in inputs.items()
    ]
    graph, spec = Graph(labels=("up",)), DatasetSpec("case", "", tuple(fields), {})
    net = Network(graph, "fit", True, spec)
    tables = [
        layers.embedding(net, net.feature(k), size=len(v["v"]), dim=len(v["v"][0]), table=k)
        for k, v in inputs.items()
    ]
    y = write(net, tables)
    net.output("y", y)
    net.loss(net.apply("reduce_sum", net.apply("mul", y, net.label("up")), dims=(1,)))
    net.entry.updates.append(Update("default", list(graph.parameters)))
    graph.roles = {"train": ["fit"]}
    road = Road(graph, SGD)
    names = {**slots, **{k: k for k in inputs}}
    assert set(names) == set(graph.parameters)
    road.write({n: np.reshape(case["in"][s]["v"], road.places[n].shape) for n, s in names.items()})
    lengths = {k: v["lens"][0] for k, v in inputs.items() if "lens" in v}
    columns: dict[str, Any] = {"up": np.array(case["upstream"], np.float32)}
    if packed:
        columns["up"] = Ragged(columns["up"], np.cumsum([0, *lengths["X"]]))
    for name, value in inputs.items():
        rows = np.arange(len(value["v"]))
        columns[name] = Ragged(rows, np.cumsum([0, *lengths[name]])) if name in lengths else rows
    samples = len(next(iter(lengths.values())))
    arguments = {a.name: 1.0 for a in road.artifact.arguments}
    found = road.step("fit", Batch(samples, columns, arguments), 0.0, outputs=True).outputs["y"]
    return found, {s: road.read(f"gradient:{n}") for n, s in names.items()}


def check(case: Mapping[str, Any], found: Array, grads: Mapping[str, Array]) -> None:
    expected = next(iter(case["out"].values()))["v"]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    for slot, gradient in grads.items():
        wanted = np.array(case["out"][f"grad:{slot}"]["v"])
        np.testing.assert_allclose(
            gradient, wanted.reshape(gradient.shape), rtol=2e-5, atol=2e-6, err_msg=slot
        )


@pytest.mark.parametrize("name", [n for n in CASES if n.startswith("additive")])
def test_additive_attention(name: str) -> None:
    case = CASES[name]

    def write(net: Network, tables: list[Tensor]) -> Tensor:
        state, enc = tables
        width = len(case["in"]["Wp"]["v"][0])
        with net.naming("keys"):
            keys = layers.fc(net, enc, size=width, bias=False)
        with net.naming("query"):
            query = layers.fc(net, state, size=width, bias=False)
        with net.naming("look"):
            return attention.additive_attention(net, query, keys, enc, tanh=case["attrs"]["tanh"])

    slots = {"keys/w": "Wp", "query/w": "Wh", "look/v": "V"}
    found, grads = gradients(case, slots, write)
    check(case, found, grads)
    if not case["attrs"]["tanh"]:
        assert not grads["State"].any() and not grads["Wh"].any()


@pytest.mark.parametrize("name", [n for n in CASES if n.startswith("multihead")])
def test_multi_head_attention(name: str) -> None:
    case = CASES[name]
    attrs = case["attrs"]

    def write(net: Network, tables: list[Tensor]) -> Tensor:
        with net.naming("mh"):
            return attention.multi_head_attention(
                net, *tables, heads=attrs["num_heads"], causal=attrs.get("causal", False)
            )

    parts = {"query": "q", "key": "k", "value": "v", "output": "o"}
    slots = {f"mh/{p}/{w.lower()}": f"{w}{s}" for p, s in parts.items() for w in "WB"}
    check(case, *gradients(case, slots, write))


@pytest.mark.parametrize("name", [n for n in CASES if n.startswith("scaled")])
def test_scaled_dot_product_attention(name: str) -> None:
    """The batch as packed sequences: masked keys are not there; heads lie side by side."""
    case = CASES[name]
    attrs = case["attrs"]
    lengths = attrs["key_lengths"] or [len(case["in"]["K"]["v"][0][0])] * len(case["in"]["K"]["v"])

    def pack(values: Sequence[Any], lens: Sequence[int]) -> Ragged:
        rows = [
            np.concatenate(np.array(v, np.float32), axis=-1)[:n]
            for v, n in zip(values, lens, strict=True)
        ]
        return Ragged(np.concatenate(rows), np.cumsum([0, *lens]))

    whole = [len(v[0]) for v in case["in"]["Q"]["v"]]
    query = pack(case["in"]["Q"]["v"], whole)
    keys, values = (pack(case["in"][k]["v"], lengths) for k in "KV")
    heads, width = len(case["in"]["Q"]["v"][0]), len(case["in"]["Q"]["v"][0][0][0])
    settings = {"heads": heads, "scale": width**-0.5, "causal": attrs["causal"]}
    op: Any = ops.get("dot_attention")
    args: dict[str, Any] = {"query": query, "keys": keys, "values": values}
    context = run_kernel(op.forward, args, settings, {"context": Out(query.values.shape)})[
        "context"
    ]
    wanted = pack(case["out"]["Out"]["v"], whole).values
    np.testing.assert_allclose(context, wanted, rtol=1e-5, atol=1e-6)
    args |= {"context": context, "dcontext": pack(case["upstream"], whole).values}
    dquery = run_kernel(op.backward_query, args, settings, {"dquery": Out(query.values.shape)})[
        "dquery"
    ]
    outs = {"dkeys": Out(keys.values.shape), "dvalues": Out(values.values.shape)}
    room = Out((len(query.values) + len(lengths) + 1,), "i64")
    source = run_kernel(op.backward_source, args, settings, {**outs, "work_rows": room})
    for slot, found, lens in (
        ("Q", dquery, whole),
        ("K", source["dkeys"], lengths),
        ("V", source["dvalues"], lengths),
    ):
        expected = pack(case["out"][f"grad:{slot}"]["v"], lens).values
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-6, err_msg=slot)


# -- beam search --------------------------------------------------------------------------------------------------------
def test_a_step_of_beam_search() -> None:
    """The candidates that the case offers, as a row of scores over all ids."""
    case = GOLDEN["beam_search"]
    given, (sources, beam) = case["in"], (2, case["attrs"]["beam_size"])
    ids, totals = np.array(given["ids"]["v"]), np.array(given["pre_scores"]["v"], np.float32)
    scores = np.full((len(ids), ids.max() + 1), -1e30, np.float32)
    np.put_along_axis(scores, ids, np.array(given["scores"]["v"], np.float32) - totals, axis=1)
    args = {
        "scores": scores,
        "total": totals.reshape(sources, beam),
        "finished": np.zeros(len(ids), np.int32),
    }
    rows = len(ids)
    outs = {
        "ids": Out((rows,), "i64"), "parents": Out((rows,), "i64"), "total_out": Out((sources, beam)),
        "finished_out": Out((rows,), "i32"), "done": Out((1,), "i32"),
    }  # fmt: skip
    found = run_kernel(ops.get("beam_step").forward, args, {"end": case["attrs"]["end_id"]}, outs)
    expected = case["out"]
    assert found["ids"].tolist() == [v[0] for v in expected["selected_ids"]["v"]]
    assert (
        found["parents"].tolist()
        == np.repeat(np.arange(rows), expected["selected_ids"]["lens"][1]).tolist()
    )
    wanted = [v[0] for v in expected["selected_scores"]["v"]]
    np.testing.assert_allclose(found["total_out"].reshape(-1), wanted, rtol=1e-6)


# -- the net ------------------------------------------------------------------------------------------------------------
NET = """
name: translation
model: {{name: translation_attention, dim: {emb}, hidden: {hidden}, tanh: {attention_tanh}, beam: 3, max_length: 6}}
optimizer: {{name: adam, learning_rate: 0.1, clip: {{global_norm: 5.0}}, regularizer: {{l2: 1.0e-4}}}}
"""


def pattern(weight: Mapping[str, Any]) -> Array:
    """The file's rule for weights."""
    i = np.arange(np.prod(weight["shape"]))
    return np.round(weight["amp"] * np.sin(0.9 * i + weight["k"]), 4).reshape(weight["shape"])


def cell(given: Mapping[str, Array], name: str, inputs: int, hidden: int) -> tuple[Array, Array]:
    """The case's weights [x; h] of reset and update, and of the candidate, as ours of x and of h."""
    (reset, update), candidate = np.split(given[f"{name}.wg"], 2, axis=1), given[f"{name}.wc"]
    x = np.concatenate([update[:inputs], reset[:inputs], candidate[:inputs]], axis=1)
    gates = np.concatenate([update[inputs:], reset[inputs:]], axis=1)
    return x, np.concatenate([gates.reshape(-1), candidate[inputs:].reshape(-1)]).reshape(
        hidden, 3 * hidden
    )


NAMES = {
    "source_words": "src_emb", "target_words": "trg_emb", "start/w": "start.w", "start/b": "start.b", "keys/w": "proj.w",
    "decoder/query/w": "att_h.w", "decoder/additive_attention1/v": "att_v.w", "output/fc1/w": "out.w", "output/fc1/b": "out.b",
}  # fmt: skip


def test_translation_net(tmp_path: Path) -> None:
    """Six steps of Adam: the loss and the norm of all gradients in each, the parameters behind them."""
    golden = GOLDEN["translation"]
    cfg = golden["cfg"]
    recipe = recipe_of(
        NET.format(**{**cfg, "attention_tanh": str(cfg["attention_tanh"]).lower()}), tmp_path
    )
    words = {
        "source": ("src", "src_vocab"),
        "target": ("trg", "trg_vocab"),
        "next": ("trg", "trg_vocab"),
    }
    fields = [
        FieldSpec(n, "label" if n == "next" else "input", (), "int64", (axis,), classes=cfg[size])
        for n, (axis, size) in words.items()
    ]
    road = Road(build(recipe, DatasetSpec("trace", "", tuple(fields), {})), optimizers(recipe))
    given = {w["name"]: pattern(w) for w in golden["weights_in_creation_order"]}
    values = {n: np.zeros(road.places[n].shape) for n in road.graph.parameters}
    values |= {ours: given[theirs] for ours, theirs in NAMES.items() if theirs in given}
    emb, hidden = cfg["emb"], cfg["hidden"]
    for ours, theirs in (("forwards", "enc_fw"), ("backwards", "enc_bw")):
        values[f"{ours}/fc1/w"], values[f"{ours}/dynamic_gru1/w"] = cell(given, theirs, emb, hidden)
    x, values["decoder/gru_unit1/w"] = cell(given, "dec", emb + 2 * hidden, hidden)
    values["decoder/fc1/w"], values["decoder/fc1/w1"] = x[:emb], x[emb:]
    road.write(values)
    for t, (rate, loss, norm) in enumerate(
        zip(golden["lr"], golden["loss_before_step"], golden["grad_norm"], strict=True)
    ):
        columns = {}
        for k, (name, (axis, size)) in enumerate(words.items()):
            lengths = cfg[f"{axis}_lens"]
            i = np.arange(sum(lengths))
            columns[name] = Ragged(
                (7 * i + 3 * (t + k) + i // 5) % cfg[size], np.cumsum([0, *lengths])
            )
        arguments = {a.name: float(sum(cfg["trg_lens"])) for a in road.artifact.arguments}
        numbers = road.step("train_step", Batch(3, columns, arguments, t), rate).numbers
        assert numbers["loss"] == pytest.approx(loss, rel=1e-5)
        assert numbers["gradient_norm"] == pytest.approx(norm, rel=1e-5)
    final = {f["name"]: f for f in golden["final"]}
    for ours, theirs in NAMES.items():
        value = road.read(ours).astype(np.float64)
        assert (value**2).sum() == pytest.approx(final[theirs]["sumsq"], rel=1e-5), ours
        assert value.sum() == pytest.approx(
            final[theirs]["sum"], abs=1e-5 * np.sqrt(value.size * (value**2).sum())
        ), ours


# -- long sequences -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("op", ["additive_attention", "dot_attention"])
def test_more_tokens_than_are_held_at_a_time(op: str) -> None:
    """A sequence of several chunks behind a short one, forwards and backwards, by the formulas."""
    rng = np.random.default_rng(3)
    lengths, width, depth = (3, 5000), 40, 5
    offsets = np.cumsum([0, *lengths])
    keys, values = (rng.normal(size=(offsets[-1], n)).astype(np.float32) for n in (width, depth))
    query, v = (
        rng.normal(size=(2, width)).astype(np.float32),
        rng.normal(size=width).astype(np.float32),
    )
    dy = rng.normal(size=(2, depth)).astype(np.float32)
    dot = op == "dot_attention"
    wanted = {
        k: np.zeros(a.shape)
        for k, a in (
            ("dquery", query),
            ("dkeys", keys),
            ("dvalues", values),
            ("dv", v),
            ("context", dy),
        )
    }
    for row in range(2):
        own = slice(offsets[row], offsets[row + 1])
        q, k, x = (
            query[row].astype(np.float64),
            keys[own].astype(np.float64),
            values[own].astype(np.float64),
        )
        y = np.tanh(q + k)
        scores = 0.3 * k @ q if dot else y @ v
        weights = np.exp(scores - scores.max())
        weights /= weights.sum()
        wanted["context"][row] = weights @ x
        ds = weights * (x @ dy[row] - wanted["context"][row] @ dy[row])
        inner = 0.3 * np.outer(ds, q) if dot else ds[:, None] * v * (1 - y * y)
        wanted["dkeys"][own], wanted["dvalues"][own] = inner, np.outer(weights, dy[row])
        wanted["dquery"][row] = 0.3 * ds @ k if dot else inner.sum(0)
        wanted["dv"] += ds @ y
    it: Any = ops.get(op)
    attrs: dict[str, Any] = {"heads": 1, "scale": 0.3, "causal": False} if dot else {"tanh": True}
    args: dict[str, Any] = {
        "query": query,
        "keys": Ragged(keys, offsets),
        "values": Ragged(values, offsets),
    }
    args |= {} if dot else {"v": v}
    found = run_kernel(it.forward, args, attrs, {"context": Out(dy.shape)})
    args |= {"context": found["context"], "dcontext": dy}
    found |= run_kernel(it.backward_query, args, attrs, {"dquery": Out(query.shape)})
    outs = {"dkeys": Out(keys.shape), "dvalues": Out(values.shape), "work_rows": Out((5,), "i64")}
    outs |= {} if dot else {"dv": Out(v.shape), "work_v": Out((2, width))}
    found |= run_kernel(it.backward_source, args, attrs, outs)
    for name, value in wanted.items():
        if name in found:
            np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=2e-6, err_msg=name)
