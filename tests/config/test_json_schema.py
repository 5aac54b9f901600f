"""The recipe language for editors: what loads fits it, what does not load mostly does not, and every
key is explained; and the reference page of keys."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddlecli import assets
from paddlecli.config import describe, reference
from paddlecli.config.describe import field_texts
from paddlecli.config.json_schema import DRAFT, FIRST_BRANCH, json_schema
from paddlecli.config.recipe import Recipe
from paddlecli.config.registry import LAYERS, OPTIMIZERS
from paddlecli.config.sections import ONE_OPTIMIZER, WRITTEN, pick_model, pick_optimizer
from paddlecli.config.yaml_text import Source, decode, parse

from .broken import CASES, Broken
from .test_round_trip import FULL, sections
from .test_schema_walk import CASES as WALK
from .test_schema_walk import beyond, placed
from .world import SMALL, load


@pytest.fixture
def validator() -> Any:
    """For the names of `world.py`, which are the same in every test."""
    return _validator()


@cache
def _validator() -> Any:
    return jsonschema.Draft7Validator(json_schema())


def plain(text: str | bytes) -> Any:
    """A text as editors see it; None for what is no YAML."""
    source = Source("r.yaml")
    decode(text.encode() if isinstance(text, str) else text, source)
    root = parse(source)
    return None if root is None or source.text_faults else root.plain()


def test_it_is_draft_7(validator: Any) -> None:
    schema = validator.schema
    assert schema["$schema"] == DRAFT
    jsonschema.Draft7Validator.check_schema(schema)
    text = json.dumps(schema)
    for newer in ("$defs", "prefixItems", "unevaluated", "dependentRequired", '"nullable"'):
        assert newer not in text
    for word in set(keywords(schema)):
        assert word in jsonschema.Draft7Validator.META_SCHEMA["properties"], word


def keywords(schema: Any) -> Iterator[str]:
    """All keywords of a schema but `enumDescriptions`, which editors know and others pass over."""
    if isinstance(schema, list):
        for below in schema:
            yield from keywords(below)
    elif isinstance(schema, dict):
        for word, value in schema.items():
            if word == "enumDescriptions":
                continue
            yield word
            if word in ("properties", "definitions"):
                yield from keywords(list(value.values()))
            elif word not in ("enum", "const", "default", "required"):
                yield from keywords(value)


def test_every_pointer_leads_somewhere(validator: Any) -> None:
    resolver = validator.schema["definitions"]
    found = list(pointers(validator.schema))
    assert len(found) > 50
    for pointer in found:
        assert re.fullmatch(r"#/definitions/[A-Za-z0-9_.-]+", pointer), "no escapes"
        assert pointer.removeprefix("#/definitions/") in resolver, pointer


def pointers(schema: Any) -> Iterator[str]:
    for below in schema if isinstance(schema, list) else (schema or {}).values():
        if isinstance(below, dict | list):
            yield from pointers(below)
    if isinstance(schema, dict) and isinstance(schema.get("$ref"), str):
        yield schema["$ref"]


def test_every_key_is_explained(validator: Any) -> None:
    missing = [k for k, v in described(validator.schema, "") if not v]
    assert missing == []


def described(schema: Any, path: str) -> Iterator[tuple[str, str]]:
    """All keys with what is said about them."""
    if isinstance(schema, list):
        for below in schema:
            yield from described(below, path)
    elif isinstance(schema, dict):
        for key, below in schema.get("properties", {}).items():
            if "description" in schema and below is not True:
                yield f"{path}.{key}", below.get("description", "")
        for word, below in schema.items():
            yield from described(below, f"{path}/{word}" if word != "properties" else path)


# what loads


@pytest.mark.parametrize("name", assets.names("recipes"))
def test_shipped_recipes(name: str) -> None:
    text = (assets.directory("recipes") / f"{name}.yaml").read_bytes()
    # tests/test_recipes.py holds them against all that is registered; this world has few names
    calls = ("model", "data", "optimizer", "metrics", "callbacks")
    rest = {k: v for k, v in plain(text).items() if k not in calls}
    found = jsonschema.Draft7Validator(json_schema(fragment=True)).iter_errors(rest)
    assert [e.message for e in found] == []


@pytest.mark.parametrize("text", [SMALL, FULL], ids=["small", "full"])
def test_what_loads_fits(text: str, validator: Any) -> None:
    assert [e.message for e in validator.iter_errors(plain(text))] == []
    assert [e.message for e in validator.iter_errors(load(text).as_dict())] == []


@pytest.mark.parametrize("name", WALK)
def test_whatever_loads_fits(name: str, validator: Any) -> None:
    recipe = WALK[name].recipe
    assert [e.message for e in validator.iter_errors(recipe)] == []


REFERENCES = """\
model: {name: linear, size: "${train.batch_size}", bias: "${env:BIAS:true}"}
optimizer:
  a: {name: sgd, learning_rate: "${env:RATE:1e-3}", schedule: {name: cosine}, clip: "${x}"}
  b: "${optimizer.a}"
train: {epochs: "${env:EPOCHS:3}", drop_last: "${x}", shuffle: "${x}", loop: "${x}"}
checkpoint: {monitor: "${x}"}
expect: {test.loss: ["${x}", 2], test.a: "${x}"}
metrics: ["${x}", {accuracy: "${x}"}]
"""


def test_references_may_stand_for_every_value(validator: Any) -> None:
    assert [e.message for e in validator.iter_errors(plain(REFERENCES))] == []


PARTS = [
    "extends: [x]",
    "extends: [x]\noptimizer: {schedule: {name: cosine}}",
    "extends: [x]\noptimizer: {clip: {norm: 1}, mu: 0.5}",
    "extends: [x]\noptimizer: {a: {learning_rate: 1}}",
    "extends: [x]\nmodel: {size: 3}",
    "extends: [x]\nmodel: {blocks: {b: {share: true}}, layers: [b, mine, {fc: {size: 1}}]}",
    "extends: [x]\nmodel: {entries: {e: {update: {optimizer: a}}}}",
    "extends: [x]\ndata: {path: x}",
]


@pytest.mark.parametrize("text", PARTS)
def test_a_part_may_lack_what_it_extends(text: str, validator: Any) -> None:
    assert [e.message for e in validator.iter_errors(plain(text))] == []
    alone = {k: v for k, v in plain(text).items() if k != "extends"}
    assert list(validator.iter_errors(alone)), "without `extends` it is not whole"
    fragment = jsonschema.Draft7Validator(json_schema(fragment=True))
    assert list(fragment.iter_errors(alone)) == []


@pytest.mark.parametrize(
    "text",
    [
        "extends: [x]\ntrain: {epocs: 1}",
        "extends: [x]\noptimizer: {name: sgd, mu: 1}",
        "extends: [x]\noptimizer: {name: sdg}",
        "extends: [x]\nmodel: {layers: [{fc: {}}]}",
        "extends: [x]\nmodel: {layers: [{fc: {size: 0}}]}",
        "extends: x",
        "extends: [x]\nmodel: {inputs: {x: {shap: [1]}}}",
    ],
)
def test_a_part_is_checked_all_the_same(text: str, validator: Any) -> None:
    assert list(validator.iter_errors(plain(text)))


# what does not


SEVERAL_KEYS = ("window without buffer", "best without monitor", "bounds upside down")
"""What no schema of single keys tells."""
ELSEWHERE = ("reference", "environment", "copy of", "option", "set-file", "extends nothing", "extends in",
             "a file that", "faults in three", "unknown entry", "key twice", "section twice", "merge", "beyond 64",
             "empty path", "two layers in one", "infinity", "exploding", "alias", "files together")  # fmt: skip
"""Faults of texts, options and other files, and those between sections."""


@pytest.mark.parametrize(
    "name", [n for n in CASES if n not in SEVERAL_KEYS and not any(e in n for e in ELSEWHERE)]
)
def test_broken_recipes(name: str, validator: Any) -> None:
    case: Broken = CASES[name]
    found = plain(case.text)
    if found is not None:  # else it is no YAML
        assert list(validator.iter_errors(found)), name


@pytest.mark.parametrize("name", WALK)
def test_misspelt_and_wrong(name: str, validator: Any) -> None:
    path, annotation, recipe, _ = WALK[name]
    if path[-1] != "layers" or len(path) < 4:
        # a block may have the misspelt name of the key that makes a group
        wrong = placed(recipe, (*path[:-1], f"{path[-1]}zz"), 1)
        assert list(validator.iter_errors(wrong)), "a misspelt key"
    value: Any = {"zz": {"zz": [[]]}} if path[-1] not in ("arguments",) else 3
    assert list(validator.iter_errors(placed(recipe, path, value))), "a wrong type"
    for outside in beyond(annotation):
        assert list(validator.iter_errors(placed(recipe, path, outside))), outside


# how a union picks its branch


VALUES = st.none() | st.integers(0, 2) | st.text(max_size=2) | st.just({}) | st.just({"name": "x"})
PICKERS = {
    pick_model: ("<named>", [*WRITTEN, "size"]),
    pick_optimizer: ("<one>", [*ONE_OPTIMIZER, "a"]),
}


def test_every_picker_has_its_condition() -> None:
    assert set(PICKERS) == set(FIRST_BRANCH)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_the_schema_picks_as_the_code_does(data: st.DataObject) -> None:
    for picker, (first, keys) in PICKERS.items():
        made = st.dictionaries(st.sampled_from(["name", *keys]), VALUES, max_size=3)
        value = data.draw(made | VALUES)
        condition = jsonschema.Draft7Validator(FIRST_BRANCH[picker])
        assert condition.is_valid(value) == (picker(value) == first), value


# words


def test_arguments_are_explained_by_the_docstring() -> None:
    def layer(
        net: Any, x: Any, *, size: int, rate: float = 0.5, kind: str = "max", zz: int = 1
    ) -> None:
        """First sentence. ``rate`` is the share that goes; it is below 1. Another one.

        Raises:
            ValueError: never.
        """

    LAYERS.register("mine")(layer)
    entry = LAYERS.get("mine")
    assert describe.summary(entry) == "First sentence."
    words = {p.name: describe.argument_text(entry, p) for p in entry.parameters.values()}
    assert words["rate"] == "`rate` is the share that goes; it is below 1."
    assert words["size"] == describe.COMMON["size"]
    assert words["zz"] == ""
    assert "Raises" not in describe.text_of(entry)


def test_arguments_of_the_form_name_text() -> None:
    def rule(*, rho: float = 0.9, epsilon: float = 1e-6, centered: bool = False) -> None:
        """rho, epsilon: shares that are kept. centered: take the mean off; costs a slot."""

    OPTIMIZERS.register("mine")(rule)
    entry = OPTIMIZERS.get("mine")
    words = {p.name: describe.argument_text(entry, p) for p in entry.parameters.values()}
    assert words == {
        "rho": "Shares that are kept.",
        "epsilon": "Shares that are kept.",
        "centered": "Take the mean off; costs a slot.",
    }


# the page


def test_the_reference_page_is_current() -> None:
    page = assets.root() / reference.PAGE
    if not page.is_file():
        pytest.skip("an installed package has no docs/")
    assert page.read_text(encoding="utf-8") == reference.reference(), (
        f"the keys have changed: python -m paddlecli.config.reference {reference.PAGE}"
    )


def test_the_page_lists_every_key() -> None:
    text = reference.reference()
    for model in sections(Recipe).values():
        for name, field in model.model_fields.items():
            told = " ".join(field_texts(model)[name].split()).replace("|", "\\|")
            row = rf"^\| `{field.alias or name}` \| .* \| {re.escape(told)} \|$"
            assert re.search(row, text, re.MULTILINE), (model, name)


def test_its_links_lead_to_headings() -> None:
    text = reference.reference()
    headings = {
        "".join(c for c in h.lower() if c.isalnum() or c in " -_").replace(" ", "-")
        for h in re.findall(r"^## (.*)$", text, re.MULTILINE)
    }
    links = set(re.findall(r"\]\(#([^)]*)\)", text))
    assert links and links <= headings, links - headings
