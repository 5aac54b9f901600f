"""A resolved recipe is complete: read again it is the same, and nothing depends on defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecli import assets
from paddlecli.config import shape
from paddlecli.config.describe import field_texts
from paddlecli.config.load import Recipe, load_recipe
from paddlecli.config.registry import METRICS
from paddlecli.config.sections import Section

from .world import SMALL, load

FULL = """\
name: full
description: "yes: # ${train.epochs} $${kept} é"
model:
  inputs:
    x: {shape: [4], ragged: words}
    y: {shape: [1], dtype: int64, below: 3, role: label}
  blocks:
    cell:
      inputs: [i]
      memories: {h: {shape: [8], next: n, start: 0.5}}
      layers: [{fc: {size: 8, activation: null}, from: [i, h], name: n}]
  layers:
    - scan: {block: cell}
      from: x
    - cell
    - fc: {size: 3, init: {constant: {value: 1e-5}}}
      repeat: 2
  loss: {cross_entropy: {}, from: [fc, y]}
  outputs: {p: fc}
  entries:
    e: {update: {parameters: ["a/*", b], optimizer: one}}
data: {name: table, path: t.csv}
optimizer:
  one: {name: momentum, learning_rate: 1, schedule: {name: cosine, epochs: 3, warmup: {steps: 2}}}
  two: {name: adam, learning_rate: 1, clip: {global_norm: 5}, regularizer: {l2: 1e-4}}
train: {epochs: 7, loop: [e], shuffle: window, shuffle_buffer: 3}
metrics: [accuracy, {accuracy: {k: 2}, name: top2}]
expect: {test.loss: [1, 2], test.top2: {max: 1}}
"""


def again(recipe: Recipe) -> Recipe:
    Path("saved.yaml").write_text(recipe.to_yaml(), encoding="utf-8")
    return load_recipe("./saved.yaml")


@pytest.mark.parametrize("text", [SMALL, FULL])
def test_saved_recipes_are_equal(text: str) -> None:
    recipe = load(text)
    assert again(recipe) == recipe
    assert again(recipe).to_yaml() == recipe.to_yaml()
    assert hash(again(recipe)) == hash(recipe)


def test_different_recipes_are_not_equal() -> None:
    assert load(SMALL) != load(SMALL, "train.seed=1")


def test_a_saved_recipe_moves() -> None:
    recipe = load(FULL)
    Path("elsewhere").mkdir()
    Path("elsewhere/config.yaml").write_text(recipe.to_yaml(), encoding="utf-8")
    assert load_recipe("elsewhere/config.yaml") == recipe


def test_defaults_of_arguments_are_written() -> None:
    text = load(FULL).to_yaml()
    assert "mu: 0.9" in text and "nesterov: false" in text and "epsilon: 1e-08" in text


def test_shipped_recipes_are_equal_when_saved() -> None:
    for name in ("fit_a_line", "recognize_digits", "recognize_digits/book_mlp"):
        recipe = load_recipe(name)
        assert again(recipe) == recipe


TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=40)


@given(TEXT)
def test_any_description_survives(text: str) -> None:
    recipe = load(SMALL).model_copy(update={"description": text})
    assert again(recipe).description == text


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_any_rate_survives(rate: float) -> None:
    found = again(load(SMALL, f"optimizer.learning_rate={rate!r}")).optimizers()[""]
    assert found.learning_rate == rate


def test_every_value_has_an_origin() -> None:
    recipe = load(FULL, "train.seed=3")
    found = {".".join(map(str, path)): str(origin) for path, _, origin in recipe.origins()}
    assert found["train.seed"] == "-o train.seed=3"
    assert found["train.batch_size"] == "default"
    assert found["optimizer.one.mu"] == "default"
    assert found["model.layers.2.fc.init.constant.value"] == "r.yaml:16:46"
    assert found["expect.test.loss.min"] == "r.yaml:28:21"
    assert set(found.values()) - {"default", "-o train.seed=3"}
    assert all(v == "default" or v.startswith(("-o", "r.yaml:")) for v in found.values())


def test_recipes_are_frozen() -> None:
    recipe = load(SMALL)
    with pytest.raises(ValueError, match="frozen"):
        recipe.train.epochs = 3


def sections(model: type[Section]) -> dict[str, type[Section]]:
    """All sections reachable from one."""
    found = {model.__name__: model}
    todo: list[Any] = [shape.field_type(f) for f in model.model_fields.values()]
    while todo:
        annotation = shape.bare(todo.pop())
        todo.extend(get_args(annotation))
        known = not isinstance(annotation, type) or annotation.__name__ in found
        if not known and issubclass(annotation, Section):
            found[annotation.__name__] = annotation
            todo += [shape.field_type(f) for f in annotation.model_fields.values()]
    return found


def test_every_field_is_described() -> None:
    found = sections(Recipe)
    assert len(found) >= 20
    for section in found.values():
        for name in section.model_fields:
            assert field_texts(section)[name], f"{section.__name__}.{name}"


def test_shipped_recipes_open_with_their_command() -> None:
    for name in assets.names("recipes"):
        lines = (assets.directory("recipes") / f"{name}.yaml").read_text().splitlines()
        assert len(lines) <= 40, name
        assert lines[0].startswith("# yaml-language-server: $schema="), name
        shown = name.removesuffix("/default")
        assert lines[1].startswith("# paddlecli ") and f" {shown}" in lines[1], name
        assert lines[2].startswith("# Expect "), name


def test_metrics_have_call_and_arguments() -> None:
    metric = load(FULL).metrics[1]
    assert (metric.call, metric.arguments, metric.name) == ("accuracy", {"k": 2}, "top2")
    assert METRICS.bind(metric.call, metric.arguments) == {"k": 2}
