"""Settings of parameters by patterns: what matches, who wins, and what the core then does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from null.world import draw, graph_of, recipe_of
from road import Road

from paddlecli.compiler.optimizer import optimizers
from paddlecli.config.load import load_recipe
from paddlecli.config.recipe import Recipe
from paddlecli.errors import ConfigError
from paddlecli.graph.ir import ParameterInfo
from paddlecli.graph.serialize import from_yaml, to_yaml

from .test_blocks import HEAD

LAYERS = """
  layers:
    - {fc: {size: 4}, from: x, name: a}
    - {fc: {size: 4}, name: b}
    - {fc: {size: 1}, name: p}
"""


def recipe(parameters: str, folder: Path, head: str = HEAD) -> Recipe:
    return recipe_of(f"{head}{LAYERS}\n  parameters: {{{parameters}}}\n", folder)


def infos(found: Recipe) -> dict[str, ParameterInfo]:
    return {n: t.info or ParameterInfo({}) for n, t in graph_of(found).parameters.items()}


def test_every_setting(tmp_path: Path) -> None:
    text = """a/w: {initializer: {normal: {std: 0.5}}, learning_rate_factor: 0.25},
      a/b: {initializer: xavier, regularizer: {l1: 0.5}}, b/*: {trainable: false}, p/w: {clip: false}"""
    found = infos(recipe(text, tmp_path))
    assert found["a/w"] == ParameterInfo({"name": "normal", "std": 0.5}, rate=0.25)
    assert found["a/b"] == ParameterInfo({"name": "xavier"}, regularizer={"l1": 0.5})
    assert not found["b/w"].trainable and not found["b/b"].trainable
    assert not found["p/w"].clip and found["p/b"] == ParameterInfo({"name": "constant"})


def test_the_last_pattern_that_says_something_wins(tmp_path: Path) -> None:
    text = '"*": {learning_rate_factor: 0.5, clip: false}, "*/b": {learning_rate_factor: 2}, a/b: {clip: true}'
    found = {n: (i.rate, i.clip) for n, i in infos(recipe(text, tmp_path)).items()}
    assert (
        found["a/w"] == (0.5, False)
        and found["b/b"] == (2.0, False)
        and found["a/b"] == (2.0, True)
    )


def test_a_pattern_of_nothing_names_what_is_near(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        graph_of(recipe('"*": {clip: true}, a/ww: {clip: true}, zzz: {clip: true}', tmp_path))
    first, second = caught.value.faults
    assert first.message == "no parameter matches `a/ww`" and first.nearest[0] == "a/w"
    assert second.message == "no parameter matches `zzz`" and "a/w, a/b, b/w" in second.expected
    assert first.where.line == second.where.line and "a/ww" in first.where.text


def test_a_running_statistic_is_no_parameter(tmp_path: Path) -> None:
    text = HEAD + LAYERS.replace("{fc: {size: 4}, name: b}", "{batch_norm: {}, name: b}")
    with pytest.raises(ConfigError, match="b/mean is a running statistic"):
        graph_of(recipe_of(text + '  parameters: {"b/mean": {trainable: false}}\n', tmp_path))


def test_named_networks_have_settings_too(tmp_path: Path) -> None:
    text = "extends: [recognize_digits/mlp]\nmodel: {parameters: {fc1/*: {trainable: false}}}\n"
    found = infos(recipe_of(text, tmp_path))
    assert {n for n, i in found.items() if not i.trainable} == {"fc1/w", "fc1/b"}
    override = 'model.parameters={"fc[23]/w": {regularizer: {l2: 0}}}'
    found = infos(load_recipe("recognize_digits/mlp", [override]))
    assert {n for n, i in found.items() if i.regularizer == {"l2": 0}} == {"fc2/w", "fc3/w"}


def test_extends_puts_patterns_in_order(tmp_path: Path) -> None:
    recipe('"*": {learning_rate_factor: 0.5}', tmp_path)
    text = "extends: [recipe.yaml]\nmodel: {parameters: {a/w: {learning_rate_factor: 3}}}\n"
    found = infos(recipe_of(text, tmp_path, "child.yaml"))
    assert (found["a/w"].rate, found["a/b"].rate) == (3.0, 0.5)


def test_all_frozen_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="every parameter is frozen"):
        graph_of(recipe('"*": {trainable: false}', tmp_path))


def test_first_values_that_do_not_fit_name_the_parameter(tmp_path: Path) -> None:
    graph = graph_of(recipe("a/w: {initializer: {assign: {values: [1, 2]}}}", tmp_path))
    with pytest.raises(ConfigError, match="a/w: initialiser `assign`: 2 values for shape"):
        dict(graph.starts(1))


def test_settings_are_stored_with_the_network(tmp_path: Path) -> None:
    text = "a/w: {learning_rate_factor: 0.25, regularizer: {l1: 0.5}, clip: false}, b/*: {trainable: false}"
    graph = graph_of(recipe(text, tmp_path))
    again = from_yaml(to_yaml(graph))
    assert {n: t.info for n, t in again.parameters.items()} == {
        n: t.info for n, t in graph.parameters.items()
    }


# -- on the core --------------------------------------------------------------------------------------
def moved(found: Recipe, steps: int = 1) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Parameters before and after some steps at rate 1."""
    graph = graph_of(found)
    road = Road(graph, optimizers(found))
    before = {n: road.read(n) for n in graph.parameters}
    for step in range(steps):
        road.step("train_step", draw(graph, 8, step), rate=1.0)
    return before, {n: road.read(n) for n in graph.parameters}


def test_frozen_parameters_keep_their_bits(tmp_path: Path) -> None:
    before, after = moved(recipe("a/*: {trainable: false}, p/w: {trainable: false}", tmp_path), 3)
    kept = {n for n in before if np.array_equal(before[n], after[n])}
    assert kept == {"a/w", "a/b", "p/w"}


def test_rates_are_multiplied(tmp_path: Path) -> None:
    before, plain = moved(recipe("a/w: {learning_rate_factor: 1}", tmp_path))
    start, slow = moved(
        recipe("a/w: {learning_rate_factor: 0.25}, b/w: {learning_rate_factor: 0}", tmp_path)
    )
    np.testing.assert_array_equal(before["a/w"], start["a/w"])
    np.testing.assert_allclose(
        slow["a/w"] - start["a/w"], 0.25 * (plain["a/w"] - before["a/w"]), atol=1e-7
    )
    np.testing.assert_array_equal(slow["b/w"], start["b/w"])
    np.testing.assert_array_equal(slow["p/w"], plain["p/w"])


def test_a_regulariser_of_its_own_replaces_the_optimizers(tmp_path: Path) -> None:
    decay = HEAD.replace("learning_rate: 0.1}", "learning_rate: 0.1, regularizer: {l2: 0.5}}")
    start, none = moved(recipe("a/w: {clip: true}", tmp_path))
    _, usual = moved(recipe("a/w: {clip: true}", tmp_path, decay))
    _, own = moved(
        recipe("a/w: {regularizer: {l2: 0}}, b/w: {regularizer: {l1: 0.5}}", tmp_path, decay)
    )
    np.testing.assert_allclose(usual["a/w"], none["a/w"] - 0.5 * start["a/w"], atol=1e-6)
    np.testing.assert_array_equal(own["a/w"], none["a/w"])
    np.testing.assert_allclose(own["b/w"], none["b/w"] - 0.5 * np.sign(start["b/w"]), atol=1e-6)


@pytest.mark.parametrize("kind", ["value", "norm", "global_norm"])
def test_clipping_leaves_out_what_says_so(kind: str, tmp_path: Path) -> None:
    clipped = HEAD.replace("learning_rate: 0.1}", f"learning_rate: 0.1, clip: {{{kind}: 1.0e-3}}}}")
    start, free = moved(recipe("a/w: {learning_rate_factor: 1}", tmp_path))
    _, found = moved(recipe("a/w: {clip: false}", tmp_path, clipped))
    np.testing.assert_array_equal(found["a/w"], free["a/w"])
    assert (
        0
        < np.abs(found["b/w"] - start["b/w"]).max()
        < 1.1e-3
        < np.abs(free["b/w"] - start["b/w"]).max()
    )


def test_first_values_by_pattern(tmp_path: Path) -> None:
    before, _ = moved(recipe('"*/b": {initializer: {constant: {value: 2}}}', tmp_path))
    assert all((before[n] == 2).all() == n.endswith("/b") for n in before)
