"""Optimizers written as graph code: the numbers of the built-in ones, in every place that an optimizer stands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden.optimizer_bench import Bench
from null.world import TABLES, draw, graph_of, recipe_of
from road import Road, same

from paddlecli.compiler.composed import Update, Value
from paddlecli.compiler.groups import OptimizerSpec
from paddlecli.compiler.optimizer import optimizers, slots_of
from paddlecli.config.registry import OPTIMIZERS, Entry
from paddlecli.config.types import Fraction, Positive
from paddlecli.errors import ConfigError
from paddlecli.graph.ir import Graph

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "optimizers.json").read_text())


def my_sgd(o: Update, p: Value, g: Value) -> Value:
    o.lazy_rows()
    return p - o.rate * g


def my_momentum(
    o: Update, p: Value, g: Value, *, momentum: Fraction = 0.9, nesterov: bool = False
) -> Value:
    velocity = o.slot("velocity")
    new = momentum * velocity + g
    o.set(velocity, new)
    return p - o.rate * (g + momentum * new if nesterov else new)


def my_adam(
    o: Update,
    p: Value,
    g: Value,
    *,
    beta1: Fraction = 0.9,
    beta2: Fraction = 0.999,
    epsilon: Positive = 1e-8,
    scale_epsilon: bool = True,
    lazy: bool = False,
) -> Value:
    """As the built-in rule counts: both corrections in the rate."""
    if lazy:
        o.lazy_rows()
    moment1, moment2 = o.slot("moment1"), o.slot("moment2")
    m = beta1 * moment1 + (1 - beta1) * g
    v = beta2 * moment2 + (1 - beta2) * g**2
    o.set(moment1, m)
    o.set(moment2, v)
    root = o.sqrt(o.correction(beta2))
    small = epsilon * root if scale_epsilon else epsilon
    return p - o.rate * root / o.correction(beta1) * m / (o.sqrt(v) + small)


def my_lars(o: Update, p: Value, g: Value, *, coefficient: Positive = 0.001) -> Value:
    """The trust ratio of You et al. 2017, without momentum."""
    return p - o.rate * coefficient * o.norm(p) / o.norm(g) * g


def my_adagrad(o: Update, p: Value, g: Value, *, initial: Positive = 0.5) -> Value:
    """A slot that does not begin at 0."""
    o.lazy_rows()
    total = o.slot("total", initial)
    new = total + g * g
    o.set(total, new)
    return p - o.rate * g / (new**0.5 + 1e-6)


RULES = (my_sgd, my_momentum, my_adam, my_lars, my_adagrad)


@pytest.fixture(autouse=True)
def rules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The rules, registered for one test."""
    for rule in RULES:
        monkeypatch.setitem(OPTIMIZERS._entries, rule.__name__, Entry(rule.__name__, rule))
    yield


SETTINGS: dict[str, dict[str, Any]] = {
    "sgd": {"name": "my_sgd"},
    "sgd_l2_0.1": {"name": "my_sgd", "regularizer": {"l2": 0.1}},
    "sgd_l1_0.1": {"name": "my_sgd", "regularizer": {"l1": 0.1}},
    "sgd_clip_value_0.3": {"name": "my_sgd", "clip": {"value": 0.3}},
    "sgd_clip_norm_0.5": {"name": "my_sgd", "clip": {"norm": 0.5}},
    "momentum_0.9": {"name": "my_momentum"},
    "momentum_0.9_nesterov": {"name": "my_momentum", "nesterov": True},
    "momentum_0.9_l2_0.1": {"name": "my_momentum", "regularizer": {"l2": 0.1}},
    "adam": {"name": "my_adam"},
    "adam_l2_0.1": {"name": "my_adam", "regularizer": {"l2": 0.1}},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_golden(name: str) -> None:
    """Five steps as other frameworks count them; gaps of the range hold NaN gradients and are left alone."""
    bench = Bench(
        {**SETTINGS[name], "learning_rate": GOLDEN["learning_rate"]}, {"w": GOLDEN["param"]}
    )
    for gradient, after in zip(GOLDEN["grads"], GOLDEN["trajectories"][name], strict=True):
        bench.step({"w": gradient})
        np.testing.assert_allclose(bench.value("w"), after, rtol=1e-4, atol=1e-6)
    whole = bench.values[id(bench.group.parameters)]
    assert (whole[bench.places["w"].stop :] == 7.0).all()


@pytest.mark.parametrize("name", ["sgd", "adagrad", "adam"])
def test_golden_rows(name: str) -> None:
    """Row-sparse: sgd as other frameworks count it; the lazy rules as the built-in ones."""
    sparse = GOLDEN["sparse"]
    own: dict[str, Any] = {"sgd": {}, "adagrad": {"initial": 1e-9}, "adam": {"lazy": True}}[name]
    known = {"sgd": {}, "adagrad": {}, "adam": {"lazy": True}}[name]
    mine = Bench(
        {"name": f"my_{name}", "learning_rate": 0.1, **own}, {}, {"table": sparse["table"]}
    )
    theirs = Bench({"name": name, "learning_rate": 0.1, **known}, {}, {"table": sparse["table"]})
    for ids, gradients in zip(sparse["ids"], sparse["row_grads"], strict=True):
        for bench in (mine, theirs):
            bench.step({}, {"table": (ids, gradients)})
        np.testing.assert_allclose(mine.value("table"), theirs.value("table"), rtol=1e-6, atol=1e-7)
    if name == "sgd":
        np.testing.assert_allclose(mine.value("table"), sparse["sgd"][-1], rtol=1e-4, atol=1e-6)


def test_one_global_norm_over_parameters_with_multipliers() -> None:
    settings = {"learning_rate": 0.1, "clip": {"global_norm": 0.5}, "regularizer": {"l2": 0.1}}
    rng = np.random.default_rng(5)
    dense = {"a": rng.normal(size=(5, 3)), "b": rng.normal(size=17), "c": rng.normal(size=2)}
    how: dict[str, Any] = {"rates": {"a": 0.5, "c": 3.0}, "unclipped": ["b"]}
    pairs = [
        (Bench({"name": f"{own}{n}", **settings}, dense, **how))
        for n in ("momentum", "adam")
        for own in ("", "my_")
    ]
    for _ in range(4):
        gradients = {k: rng.normal(size=v.shape) for k, v in dense.items()}
        for bench in pairs:
            bench.step(gradients)
    for theirs, mine in (pairs[:2], pairs[2:]):
        assert mine.gradient_norm == theirs.gradient_norm
        for name in dense:
            np.testing.assert_allclose(mine.value(name), theirs.value(name), rtol=1e-6, atol=1e-8)


# ---- on the core ----
NETWORK = """
name: net
data:
  name: generated
  fields: [{name: x, shape: [4]}, {name: y, shape: [1], role: label}]
model:
  inputs: {x: {shape: [4]}, y: {shape: [1], role: label}}
  layers:
    - {fc: {size: 40, bias: false}, from: x}
    - {batch_norm: {activation: tanh}}
    - {dropout: {rate: 0.2}}
    - {fc: {size: 1}, name: prediction}
  loss: {square_error_cost: {}, from: [prediction, y]}
optimizer: OPTIMIZER
"""


def road(folder: Path, optimizer: str, text: str = NETWORK, **how: Any) -> Road:
    recipe = recipe_of(text.replace("OPTIMIZER", optimizer), folder)
    found = Road(graph_of(recipe), optimizers(recipe), **how)
    found.shake()
    return found


def train(where: Road, steps: int = 20) -> None:
    (entry,) = where.graph.roles["train"]
    for i in range(steps):
        assert where.step(entry, replace(draw(where.graph, 7, i), step=i), 0.02).status == "done"


@pytest.mark.parametrize("rule", ["momentum", "adam"])
@pytest.mark.parametrize(
    "more", ["", "clip: {norm: 0.1}", "clip: {value: 0.1}, regularizer: {l1: 0.01}"], ids=["plain", "norm", "value-l1"]
)  # fmt: skip
def test_as_the_built_in_rule(rule: str, more: str, tmp_path: Path) -> None:
    """Twenty steps of a network: parameters, slots and the count. Momentum has the same bits."""
    both = [
        road(tmp_path, f"{{name: {own}{rule}, learning_rate: 0.1, {more}}}") for own in ("", "my_")
    ]
    for each in both:
        train(each)
    theirs, mine = (each.everything(but=["metric"]) for each in both)
    if rule == "momentum":
        same(theirs, mine)
    assert theirs.keys() == mine.keys() and mine["updates.default"] == 20
    for name, value in theirs.items():
        np.testing.assert_allclose(
            mine[name], value, rtol=1e-6, atol=2e-6 * np.abs(value).max(), err_msg=name
        )


@pytest.mark.parametrize("rule", [r.__name__ for r in RULES])
def test_the_same_bits_on_any_threads(rule: str, tmp_path: Path) -> None:
    text = f"{{name: {rule}, learning_rate: 0.1, clip: {{global_norm: 0.3}}}}"
    one, two = (road(tmp_path, text, **how) for how in ({}, {"threads": 2, "grain": True}))
    for each in (one, two):
        train(each, 5)
    same(one.everything(), two.everything())


def test_parts_of_a_batch(tmp_path: Path) -> None:
    """train.accumulate: the update of the sum of the parts' gradients is the whole batch's."""
    text = NETWORK.replace("    - {batch_norm: {activation: tanh}}\n", "")
    whole = road(tmp_path, "{name: my_adam, learning_rate: 0.1}", text)
    parts = road(tmp_path, "{name: my_adam, learning_rate: 0.1}", text, accumulate=True)
    assert {"train_step.first", "train_step.more", "train_step.apply"} <= set(
        parts.artifact.entries
    )
    batch = draw(whole.graph, 7)
    whole.step("train_step", batch)
    parts.step("train_step.first", batch)
    parts.step("train_step.apply", batch)
    same(whole.everything(but=["metric"]), parts.everything(but=["metric"]))


@pytest.mark.parametrize("rule", [r.__name__ for r in RULES])
def test_a_bad_loss_changes_nothing(rule: str, tmp_path: Path) -> None:
    where = road(tmp_path, f"{{name: {rule}, learning_rate: 0.1}}")
    train(where, 2)
    before = where.everything(but=["metric"])
    bad = draw(where.graph, 7, 2)
    bad.columns["y"][3] = np.nan
    assert where.step("train_step", replace(bad, step=2)).status == "halted"
    same(before, where.everything(but=["metric"]))
    assert before["updates.default"] == 2


def test_norms_of_each_parameter(tmp_path: Path) -> None:
    """The trust ratio makes every parameter's step as long as its norm says."""
    rng = np.random.default_rng(1)
    dense = {"a": rng.normal(size=(30, 200)), "b": rng.normal(size=3)}
    bench = Bench({"name": "my_lars", "learning_rate": 0.5, "coefficient": 0.01}, dense)
    bench.step({k: rng.normal(size=v.shape) for k, v in dense.items()})
    for name, old in dense.items():
        moved = np.linalg.norm(bench.value(name) - old) / np.linalg.norm(old)
        assert moved == pytest.approx(0.005, rel=1e-4)


def test_slots_are_placed_and_begin_where_they_say(tmp_path: Path) -> None:
    where = road(tmp_path, "{name: my_adagrad, learning_rate: 0.1, initial: 2.5}")
    name = next(n for n in where.artifact.slots if n.endswith("@default.total"))
    assert (where.read(name) == 2.5).all() and where.artifact.slot_start[name] == 2.5
    train(where, 1)
    assert (where.read(name) > 2.5).any()


# ---- tables ----
def tables(folder: Path, optimizer: str) -> tuple[Graph, dict[str, OptimizerSpec]]:
    at = TABLES.index("optimizer:")
    recipe = recipe_of(f"{TABLES[:at]}optimizer: {optimizer}\n", folder)
    return graph_of(recipe), optimizers(recipe)


@pytest.mark.parametrize("rule", ["sgd", "adam"])
def test_tables_and_dense_parameters_together(rule: str, tmp_path: Path) -> None:
    """Dense parameters, shared and padded tables under one global norm: lazy rules as the built-in ones."""
    lazy = ", lazy: true" if rule == "adam" else ""
    both = []
    for own in ("", "my_"):
        found = tables(
            tmp_path, f"{{name: {own}{rule}, learning_rate: 0.1, clip: {{global_norm: 0.3}}{lazy}}}"
        )
        both.append(Road(*found))
        train(both[-1], 6)
    theirs, mine = (each.everything(but=["metric"]) for each in both)
    for name, value in theirs.items():
        np.testing.assert_allclose(mine[name], value, rtol=2e-6, atol=1e-6, err_msg=name)


@pytest.mark.parametrize(
    ("optimizer", "words"),
    [
        ("{name: my_momentum, learning_rate: 0.1}", "words has a row-sparse gradient, and the optimizer `my_momentum` does not"),
        ("{name: my_sgd, learning_rate: 0.1, regularizer: {l2: 0.1}}", "words has .* its regulariser moves all rows"),
        ("{name: my_lars, learning_rate: 0.1}", "words has a row-sparse gradient"),
    ],
    ids=["says-nothing", "regularised", "norm"],
)  # fmt: skip
def test_tables_are_refused_by_name(optimizer: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        Road(*tables(tmp_path, optimizer))
    assert "sparse: false" in str(caught.value)
    assert caught.value.where[0].file.endswith("recipe.yaml") and caught.value.where[0].line


# ---- rules that are none ----
def twice(o: Update, p: Value, g: Value) -> Value:
    return o.slot("a") + o.slot("a")


def unset(o: Update, p: Value, g: Value) -> Value:
    return p - o.slot("a")


def nothing(o: Update, p: Value, g: Value) -> None:
    o.set(o.slot("a"), g)


def number(o: Update, p: Value, g: Value) -> Any:
    return 1.0


def one_element(o: Update, p: Value, g: Value) -> Value:
    return o.rate


def no_slot(o: Update, p: Value, g: Value) -> Value:
    o.set(g, p)
    return p


def again(o: Update, p: Value, g: Value) -> Value:
    a = o.slot("a")
    o.set(a, g)
    o.set(a, p)
    return p


def taken(o: Update, p: Value, g: Value) -> Value:
    o.set(o.slot("gradients"), g)
    return p


def no_op(o: Update, p: Value, g: Value) -> Value:
    return o.apply("squrt", p)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (twice, "declares the slot `a` twice"),
        (unset, "declares the slot `a` and never sets it"),
        (nothing, "must return the new parameter"),
        (number, "must give a Value for the parameter, it gave float"),
        (one_element, "gives f32.* for the parameter, which is"),
        (no_slot, "sets something that is no slot"),
        (again, "sets the slot `a` twice"),
        (taken, "a slot cannot be called 'gradients'"),
        (no_op, "applies `squrt`, and there is no such op"),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_what_a_rule_must_keep_to(rule: Any, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OPTIMIZERS._entries, "wrong", Entry("wrong", rule))
    with pytest.raises(ConfigError, match=words):
        slots_of(OptimizerSpec("default", "wrong", {}))


def test_a_rule_cannot_ask_for_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is written once, before there are any: a branch would be decided for good, in silence."""

    def branching(o: Update, p: Value, g: Value) -> Value:
        return p - o.rate * g if g else p

    monkeypatch.setitem(OPTIMIZERS._entries, "wrong", Entry("wrong", branching))
    with pytest.raises(TypeError, match="has no truth"):
        slots_of(OptimizerSpec("default", "wrong", {}))


def test_slots_keep_what_was_before_the_update(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All new values are of the old ones, whatever is written first: a slot of the old parameter, also through a reshape,
    and two slots that change places."""

    def keeping(o: Update, p: Value, g: Value) -> Value:
        a, b, old, seen = o.slot("a", 1.0), o.slot("b", 2.0), o.slot("old"), o.slot("seen")
        for slot, value in ((a, b), (b, a), (old, p), (seen, o.apply("reshape", p, dims=(-1,)))):
            o.set(slot, value)
        return p - o.rate * g

    monkeypatch.setitem(OPTIMIZERS._entries, "keeping", Entry("keeping", keeping))
    where = road(tmp_path, "{name: keeping, learning_rate: 0.1}")
    before = where.everything()
    train(where, 1)
    after, moved = where.everything(), 0
    for name in (n.removesuffix("@default.old") for n in after if n.endswith("@default.old")):
        moved += int((after[name] != before[name]).any())
        for slot in ("old", "seen"):
            np.testing.assert_array_equal(after[f"{name}@default.{slot}"], before[name])
        assert (after[f"{name}@default.a"] == 2).all() and (after[f"{name}@default.b"] == 1).all()
    assert moved > 2
