"""Faults of blocks and of parameters' settings that are found before anything is built: all at once, each at its own place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from null.world import recipe_of

from paddlecli.config.blocks import filled
from paddlecli.config.load import load_recipe
from paddlecli.errors import ConfigError

TEXT = """\
data:
  name: generated
  fields: [{name: x, shape: [4]}, {name: y, shape: [1], role: label}]
model:
  inputs: {x: {shape: [4]}, y: {shape: [1], role: label}}
  blocks:
    ~fc: {inputs: [a], layers: [tanh]}  # `fc` is a layer: a block needs a name of its own
    inner:
      inputs: [a]
      arguments: {n: , act: relu, bad: ~0.5}  # `size` must be a whole number, at least 1, got the number 0.5
      layers:
        - {fc: {size: $n, activation: $act}}
        - {fc: {size: ~$m}, repeat: $n}  # the block `inner` has no argument `m`
        - {fc: {size: $bad}}
        - {tanh: {~sze: 3}}  # unknown key `sze` of the layer `tanh`
        - {layers: [{relu: {~sze: 3}}], repeat: 2}  # unknown key `sze` of the layer `relu`
    pair:
      inputs: [a]
      share: false
      arguments: {size: , wide: 4}
      memories: {h: {shape: [~$sise], next: u}}  # the block `pair` has no argument `sise`
      layers:
        - {inner: {n: $size}}
        - {inner: {n: $wide, act: ~rellu}}  # "rellu" is not a value of `activation`
        - {inner: {~m: 3}}  # the block `inner` has no argument `m`
  layers:
    - {pair: {size: ~three}, from: x}  # `size` must be a whole number, at least 1, got the text "three"
    - {pair: {size: 3, ~wid: 4}}  # the block `pair` has no argument `wid`
    - {pair: {size: 3}, name: ~a/b}  # "a/b" does not have the form of `name`
    - {~pair: {}, name: ok}  # the block `pair` needs `size`
    - ~pair  # the block `pair` needs `size`
    - {scan: {block: ~pear}}  # there is no block `pear`
    - {scan: {block: {pair: {~sice: 1}}}}  # the block `pair` has no argument `sice`
    - {dropout: {rate: ~$size}}  # `$size` stands for an argument, but this is no layer of a block
    - {layers: [{fc: {size: 4, ~act: relu}}], repeat: 2}  # unknown key `act` of the layer `fc`
    - {layers: [tanh], repeat: ~0}  # `repeat` must be at least 1, got 0
    - ~{layers: [tanh], fc: {size: 3}}  # a group of `layers` cannot be `fc` too
    - {fc: {size: 1}, repeat: ~many}  # `repeat` must be a whole number
  parameters:
    "*": {initializer: {normal: {~sd: 1}}}  # unknown key `sd` of the initializer `normal`
    "*/b": {initializer: ~nomal}  # unknown initializer `nomal`
    p: {~learning_rate: 0.1}  # unknown key `learning_rate` in `model.parameters.p`
    q: {trainable: ~frozen}  # `trainable` must be true or false
"""


def test_all_faults_at_their_places(tmp_path: Path) -> None:
    expected = {}
    for number, line in enumerate(TEXT.split("\n"), 1):
        if "~" in line:
            expected[number, line.index("~") + 1] = line.partition("  # ")[2]
    with pytest.raises(ConfigError) as caught:
        recipe_of(TEXT.replace("~", ""), tmp_path)
    found = {(f.where.line, f.where.column): f.message for f in caught.value.faults}
    wrong = {}
    for place, message in expected.items():
        column = place[1]
        if not found.get((place[0], column), "").startswith(message):
            wrong[place] = (message, {p: m for p, m in found.items() if p[0] == place[0]})
    assert not wrong
    more = {p: m for p, m in found.items() if p not in expected}
    assert set(more.values()) <= {"the block `inner` needs `n`", "the block `pair` needs `size`"}
    near = {f.message: f.nearest for f in caught.value.faults}
    assert near["the block `pair` has no argument `wid`"] == ("wide",)
    assert near["there is no block `pear`"] == ("pair",)
    assert near["unknown key `learning_rate` in `model.parameters.p`"] == ("learning_rate_factor",)


def test_one_fault_of_two_uses_is_told_at_both(tmp_path: Path) -> None:
    text = """\
model:
  inputs: {x: {shape: [4]}}
  blocks: {b: {inputs: [a], arguments: {n: }, layers: [{fc: {size: $n}}, {fc: {size: $n}}]}}
  layers:
    - {b: {n: 0}, from: x}
    - {b: {n: 0}}
"""
    with pytest.raises(ConfigError) as caught:
        recipe_of(text, tmp_path)
    assert {f.where.line for f in caught.value.faults} == {5, 6}


def test_overrides_reach_blocks(tmp_path: Path) -> None:
    text = """\
model:
  inputs: {x: {shape: [4]}}
  blocks: {b: {inputs: [a], arguments: {n: 3}, layers: [{fc: {size: $n}}]}}
  layers: [{b: {}, from: x}]
"""
    recipe_of(text, tmp_path)
    path = tmp_path / "recipe.yaml"
    assert load_recipe(path, ["model.blocks.b.arguments.n=5"]).as_dict()["model"]["blocks"]["b"][
        "arguments"
    ] == {"n": 5}
    with pytest.raises(ConfigError, match=r"-o:1:.*`size` must be at least 1, got -1"):
        load_recipe(path, ["model.layers.0.b.n=-1"])


def test_filled_leaves_everything_else() -> None:
    value = {"a": ["$n", 1, {"b": "$m"}], "c": "$n and more", "d": None}
    assert filled(value, {"n": 2}) == {"a": [2, 1, {"b": "$m"}], "c": "$n and more", "d": None}


def test_the_editors_schema_knows_arguments() -> None:
    from paddlecli.config.json_schema import REFERENCE

    assert re.search(REFERENCE, "$size") and re.search(REFERENCE, "${train.seed}")
    assert not re.search(REFERENCE, "relu")
