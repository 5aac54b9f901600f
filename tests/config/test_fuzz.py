"""Mutated recipes and options end in a recipe or in a ConfigError that can be shown, never in
another exception. PADDLECLI_FUZZ=20 tries twenty times as many."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from paddlecli.errors import ConfigError

from .test_round_trip import FULL
from .test_schema_walk import tree
from .world import SMALL, load

OTHER = """\
model: {name: linear, size: 3}
optimizer: {name: sgd, learning_rate: 1, clip: {value: 1}, regularizer: {l1: 1}}
train: {epochs: 1, max_steps: 5, batch_size: 4, drop_last: true, seed: 1, shuffle: full,
  limit_batches: 3, accumulate: 2, eval_every: 1, eval_split: valid, log_every: 3}
checkpoint: {every_epochs: 1, every_steps: 2, keep_last: 1, keep_best: 1, monitor: test.loss,
  mode: max}
predict: {output: a, top: 2, labels: [a, b]}
"""
ENTRIES = """\
model:
  inputs: {x: {}}
  blocks:
    b:
      inputs: [i]
      statics: [s]
      memories: {h: {shape: [1], dtype: int64, next: n}}
      layers: [{fc: {size: 1}}]
      outputs: {o: n}
  entries: {e: {layers: [b], loss: {cross_entropy: {}, name: l, from: x}, outputs: {o: x}}}
optimizer: {a: {name: sgd, learning_rate: 1, clip: {norm: 1}}}
"""
EFFORT = int(os.environ.get("PADDLECLI_FUZZ", "1"))
PIECES = st.sampled_from(
    [
        "{",
        "}",
        "[",
        "]",
        ":",
        ": ",
        ",",
        "\n",
        "\n  ",
        "- ",
        "*a",
        "&a ",
        "!x ",
        "${",
        "}",
        "$${name}",
        "${train.epochs}",
        "${model}",
        "${env:X:1}",
        "null",
        "true",
        "-1",
        "1e400",
        ".nan",
        "'",
        '"',
        "#",
        "~",
        "<<",
        "? ",
        "| ",
        "> ",
        "\t",
        "%",
        "@",
        "`",
        "é",
        "\x00",
        "\u2028",
        "name: x",
        "extends: [r.yaml]",
        "{}",
        "[]",
        "[[]]",
        "0",
        "999999999999999999999",
    ]
)
TEXTS = st.sampled_from([FULL, OTHER, ENTRIES, SMALL])
EDITS = st.lists(
    st.tuples(st.integers(0, 2000), st.integers(0, 12), PIECES), min_size=1, max_size=4
)


def survives(text: str, *overrides: str) -> None:
    try:
        recipe = load(text.encode("utf-8", "surrogatepass"), *overrides)
    except ConfigError as error:
        assert error.faults
        assert str(error)
        json.dumps(error.as_dict(), allow_nan=False)
    else:
        assert load(recipe.to_yaml(), name="again.yaml") == recipe


@settings(max_examples=200 * EFFORT, deadline=None)
@given(TEXTS, EDITS)
def test_mutated_recipes(text: str, edits: list[tuple[int, int, str]]) -> None:
    for start, length, piece in edits:
        place = start % (len(text) + 1)
        text = text[:place] + piece + text[place + length :]
    survives(text)


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 40)
    | st.floats(allow_nan=False)
    | st.text(max_size=6)
)
VALUES_OF_ANY_KIND = st.recursive(
    SCALARS | st.sampled_from(["fc", "sgd", "${train.epochs}", "${model}", "${env:PK_NO:3}"]),
    lambda below: (
        st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=5), below, max_size=3)
    ),
    max_leaves=4,
)


def mutate(value: Any, draw: Callable[[st.SearchStrategy[Any]], Any]) -> Any:
    """One place below `value` replaced, removed or renamed."""
    if not isinstance(value, dict | list) or not value or draw(st.integers(0, 4)) == 0:
        return draw(VALUES_OF_ANY_KIND)
    if isinstance(value, list):
        index = draw(st.integers(0, len(value) - 1))
        return [*value[:index], mutate(value[index], draw), *value[index + 1 :]]
    key = draw(st.sampled_from(sorted(value)))
    kind = draw(st.sampled_from(["below", "below", "below", "remove", "rename"]))
    kept = {k: v for k, v in value.items() if k != key}
    if kind == "remove":
        return kept
    new = draw(st.text(max_size=5)) if kind == "rename" else key
    return {**kept, new: mutate(value[key], draw) if kind == "below" else value[key]}


@settings(max_examples=250 * EFFORT, deadline=None)
@given(TEXTS, st.data())
def test_mutated_settings(text: str, data: st.DataObject) -> None:
    value = tree(text).plain()
    for _ in range(data.draw(st.integers(1, 3))):
        value = mutate(value, data.draw)
    survives(yaml.safe_dump(value, allow_unicode=True))


KEYS = st.sampled_from(
    [
        "train",
        "epochs",
        "model",
        "layers",
        "0",
        "1",
        "fc",
        "size",
        "optimizer",
        "one",
        "expect",
        "test.loss",
        "test",
        "loss",
        "metrics",
        "name",
        "schedule",
        "blocks",
        "cell",
        "from",
        "data",
        "x",
    ]
)
VALUES = st.one_of(PIECES, st.text(max_size=8), st.lists(PIECES, max_size=4).map("".join))


@settings(max_examples=200 * EFFORT, deadline=None)
@given(
    TEXTS,
    st.lists(KEYS, min_size=1, max_size=4),
    VALUES,
    st.sampled_from(["{}={}", "~{}", "{}", "={}", "{}.={}"]),
)
def test_mutated_options(text: str, keys: list[str], value: str, form: str) -> None:
    survives(text, form.format(".".join(keys), value))


@settings(max_examples=60 * EFFORT, deadline=None)
@given(st.lists(st.tuples(st.lists(KEYS, min_size=1, max_size=4), VALUES), max_size=4))
def test_several_options(options: list[tuple[list[str], str]]) -> None:
    survives(FULL, *[f"{'.'.join(k)}={v}" for k, v in options])
