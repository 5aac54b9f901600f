"""Walks the schema: every field of every section at every depth, and every argument of what is
registered, misspelt, of the wrong type and out of range; in the file, through `extends` and through
`-o`; file, line, column and key of each fault are checked.

Nothing here lists fields: a recipe around each one is made from the types.
"""

from __future__ import annotations

import copy
import json
import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from paddlecli.config import nodes, shape
from paddlecli.config.dump import to_yaml
from paddlecli.config.load import Recipe
from paddlecli.config.registry import KINDS, Parameter, Registry, call_in
from paddlecli.config.schema_network import WrittenModel
from paddlecli.config.sections import Called, Named, OneOf
from paddlecli.config.yaml_text import Source, parse
from paddlecli.errors import ConfigError, Fault

from .world import WORLD, faults, load

NAMES = {"schedule": "cosine", "layer": "fc", "data set": "mnist", "model": "linear"}
TEXTS = ("a", "test.loss", "test.loss >= 1", "$a")
"""One of them has the form that a text setting asks for."""


class Case(NamedTuple):
    """A field: its keys from the root, its type, and a recipe that sets it. names: it says which
    registered name the section calls."""

    path: nodes.Path
    annotation: Any
    recipe: dict[str, Any]
    names: bool = False


# samples


def sample(annotation: Any) -> Any:
    """A value of a type, as small as it can be."""
    target, limits = shape.bare(annotation), shape.metadata(annotation)
    origin, inside = get_origin(target), get_args(target)
    call = call_in(annotation)
    if call is not None:
        return name_in(call.kind)
    if origin in (Union, types.UnionType):
        return sample(next(a for a in inside if a is not type(None)))
    if origin is Literal:
        return inside[0]
    if origin is dict:
        return {sample(inside[0]): sample(inside[1])}
    if origin in (list, tuple):
        return [sample(a) for a in (inside if Ellipsis not in inside else inside[:1])]
    if isinstance(target, type) and issubclass(target, BaseModel):
        return section(target)
    if target is str:
        patterns = [p for p in map(pattern_of, limits) if p]
        return next(t for t in TEXTS if all(re.search(p, t) for p in patterns))
    return {int: 1, float: 0.5, bool: True, Path: "x", Any: 1}[target]


def pattern_of(item: Any) -> str | None:
    inner = item.metadata if isinstance(item, FieldInfo) else [item]
    return next((i.pattern for i in inner if getattr(i, "pattern", None)), None)


def section(model: type[BaseModel]) -> dict[str, Any]:
    """A section with what it needs."""
    found = {
        f.alias or n: sample(shape.field_type(f))
        for n, f in model.model_fields.items()
        if f.is_required()
    }
    if issubclass(model, Named):
        found["name"] = name_in(model.kind)
        found.update(arguments(model.kind, found["name"]))
    if issubclass(model, Called):
        name = name_in(model.kind)
        return {name: arguments(model.kind, name)}
    if issubclass(model, OneOf):
        first = next(iter(model.model_fields))
        found[first] = sample(shape.field_type(model.model_fields[first]))
    if model is WrittenModel:
        found["layers"] = [{"fc": {"size": 1}}]
    return found


def name_in(kind: str) -> str:
    return NAMES.get(kind) or sorted(f for f in world_of(kind))[0]


def world_of(kind: str) -> dict[str, Any]:
    found = [names for registry, names in WORLD.items() if registry.kind == kind]
    assert found, f"world.py registers no {kind}"
    return found[0]


def parameters(kind: str, name: str) -> dict[str, Parameter]:
    """The arguments of a name of the world, without registering it."""
    registry = Registry(kind + " of the walk")
    KINDS.pop(registry.kind)
    registry.register(name)(world_of(kind)[name])
    return registry.get(name).parameters


def arguments(kind: str, name: str) -> dict[str, Any]:
    return {p.name: sample(p.annotation) for p in parameters(kind, name).values() if p.required}


# the walk


def walk() -> Iterator[Case]:
    """All fields of all sections, and all arguments of what is registered."""
    root = {"model": {"name": "linear"}}
    yield from fields(Recipe, (), root, (Recipe,))
    for registry, names in WORLD.items():
        for name in names:
            yield from registered(registry.kind, name)


def fields(
    model: type[BaseModel], path: nodes.Path, recipe: dict[str, Any], above: tuple[type, ...]
) -> Iterator[Case]:
    for name, field in model.model_fields.items():
        key = field.alias or name
        annotation = shape.field_type(field)
        if key == "extends":
            continue  # read before all others: test_compose.py
        if issubclass(model, Named) and key == "name":
            yield Case((*path, key), annotation, recipe, names=True)
            continue
        if issubclass(model, OneOf):
            recipe = placed(recipe, path, {})
        for branch in branches(annotation):
            whole = placed(recipe, (*path, key), sample(branch))
            yield Case((*path, key), annotation, whole)
            for below, rest in sections(branch):
                if below not in above:
                    yield from fields(below, (*path, key, *rest), whole, (*above, below))


def branches(annotation: Any) -> list[Any]:
    target = shape.bare(annotation)
    if get_origin(target) in (Union, types.UnionType):
        return [b for a in get_args(target) if a is not type(None) for b in branches(a)]
    return [annotation]


def sections(annotation: Any) -> Iterator[tuple[type[BaseModel], nodes.Path]]:
    """Sections in a sample of a type, and where they stand in it."""
    target = shape.bare(annotation)
    origin, inside = get_origin(target), get_args(target)
    if isinstance(target, type) and issubclass(target, BaseModel):
        yield target, ()
    elif origin is dict:
        yield from ((m, (sample(inside[0]), *p)) for m, p in sections(inside[1]))
    elif origin in (list, tuple):
        yield from ((m, (0, *p)) for m, p in sections(inside[0]))


def placed(recipe: dict[str, Any], path: nodes.Path, value: Any) -> dict[str, Any]:
    """The recipe with another value at a path."""
    found: Any = copy.deepcopy(recipe)
    node = found
    for part in path[:-1]:
        node = node[part] if isinstance(part, int) else node.setdefault(part, {})
    node[path[-1]] = value
    return found  # type: ignore[no-any-return]


HOLDERS: dict[str, tuple[nodes.Path, bool]] = {
    # where a name of a kind may stand, and whether it stands beside its arguments
    "model": (("model",), True),
    "optimizer": (("optimizer",), True),
    "schedule": (("optimizer", "schedule"), True),
    "data set": (("data",), True),
    "layer": (("model", "layers", 0), False),
    "loss": (("model", "loss"), False),
    "metric": (("metrics", 0), False),
    "callback": (("callbacks", 0), False),
    "initializer": (("model", "layers", 0, "fc", "init"), False),
}


def registered(kind: str, name: str) -> Iterator[Case]:
    """The arguments of one registered name."""
    holder, beside = HOLDERS[kind]
    written = section(WrittenModel)
    recipe: dict[str, Any] = {"model": written if holder[0] == "model" else {"name": "linear"}}
    recipe |= {"metrics": [{"accuracy": {}}], "optimizer": {"name": "sgd", "learning_rate": 1.0}}
    given = arguments(kind, name)
    if not beside:
        recipe = placed(recipe, holder, {name: given})
    elif kind == "optimizer":
        recipe = placed(recipe, holder, {"name": name, "learning_rate": 1.0, **given})
    else:
        recipe = placed(recipe, holder, {"name": name, **given})
    path = holder if beside else (*holder, name)
    for parameter in parameters(kind, name).values():
        whole = placed(recipe, (*path, parameter.name), sample(parameter.annotation))
        yield Case((*path, parameter.name), parameter.annotation, whole)


CASES: dict[str, Case] = {}
for case in walk():
    where = nodes.dotted(case.path)
    CASES[f"{where}-{sum(known.startswith(f'{where}-') for known in CASES)}"] = case


def test_the_walk_reaches_every_section() -> None:
    reached = {c.path for c in CASES.values()}
    for path in (("train", "epochs"), ("model", "blocks", "a", "memories", "a", "next"),
                 ("optimizer", "a", "schedule", "warmup", "steps"), ("expect", "test.loss", "min"),
                 ("model", "entries", "a", "update", "optimizer"), ("predict", "labels")):  # fmt: skip
        assert path in reached, nodes.dotted(path)
    assert len(reached) > 150


# what is done to a recipe, and what must come of it


def tree(text: str) -> nodes.Node:
    source = Source("r.yaml")
    source.set_text(text)
    root = parse(source)
    assert root is not None
    return root


def found_at(found: list[Fault], file: str, line: int, column: int, key: nodes.Path) -> Fault:
    """The fault at a place about a key; there must be one."""
    place = (file, line, column, nodes.dotted(key))
    here = [f for f in found if (f.where.file, f.where.line, f.where.column, f.where.key) == place]
    assert here, f"nothing at {place}:\n" + "\n".join(map(str, found))
    return here[0]


def in_files(recipe: dict[str, Any], path: nodes.Path, at_key: bool, token: str) -> Iterator[Fault]:
    """The fault of a recipe at a path, once in the file itself and once in one that it extends."""
    text = to_yaml(recipe)
    node = tree(text).at(path)
    assert node is not None
    origin = node.key if at_key else node.origin
    assert origin is not None
    assert origin.text[origin.column - 1 :].startswith(token), (origin, token)
    yield found_at(faults(text), "r.yaml", origin.line, origin.column, path)
    if path[0] != "name":  # names are not inherited
        Path("base.yaml").write_text(text, encoding="utf-8")
        found = faults("extends: [base.yaml]\n")
        yield found_at(found, "base.yaml", origin.line, origin.column, path)


def written(value: Any) -> str:
    """A value as it stands after `-o key=`."""
    return value if isinstance(value, str) else json.dumps(value)


@pytest.mark.parametrize("name", CASES)
def test_misspelt(name: str) -> None:
    path, _, recipe, names = CASES[name]
    key, wrong = str(path[-1]), (*path[:-1], f"{path[-1]}zz")
    value = tree(to_yaml(recipe)).at(path)
    assert value is not None
    option = f"{nodes.dotted(wrong)}={written(value.plain())}"
    found = found_at(faults(to_yaml(recipe), option), "-o", 1, 1, wrong)
    assert key in found.nearest or len(key) < 3, found
    assert found.where.text == option
    renamed = placed(recipe, wrong, value.plain())
    del at(renamed, path[:-1])[key]
    if names:  # then nobody knows what is called, and the key that says so is missing
        (found, *_) = faults(to_yaml(renamed))
        assert f"`{key}zz`" in found.message + found.hint, found
        return
    for found in in_files(renamed, wrong, True, f"{key}zz"):
        assert found.message.startswith("unknown"), found
        assert key in found.nearest or path[-1] == "layers" or len(key) < 3, found


def at(recipe: Any, path: nodes.Path) -> Any:
    for part in path:
        recipe = recipe[part]
    return recipe


@pytest.mark.parametrize("name", CASES)
def test_wrong_type(name: str) -> None:
    path, annotation, recipe, _ = CASES[name]
    kinds = [shape.bare(b) for b in branches(annotation)]
    mapping = any(get_origin(k) is dict or is_section(k) for k in kinds)
    value: Any = 3 if mapping else {"zz": {}}
    for found in in_files(placed(recipe, path, value), path, False, "3" if mapping else "zz"):
        assert found.expected, found
        assert found.message.endswith("got the number 3" if mapping else "got a mapping"), found
    root = tree(to_yaml(recipe))
    if shape.form_of(Recipe, path, root).takes == "text":
        return  # any text is text there
    option = f"{nodes.dotted(path)}={json.dumps(value)}"
    found = faults(to_yaml(recipe), option)
    found_at(found, "-o", 1, option.index("=") + 2, path)


def is_section(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


RANGES = {"ge": -1, "gt": 0, "le": 1, "lt": 0}
"""How far a value lies beyond a limit."""


def beyond(annotation: Any) -> Iterator[Any]:
    """Values just outside the range of a type."""
    for branch in branches(annotation):
        target = shape.bare(branch)
        if get_origin(target) is Literal:
            yield "zz"
        if target not in (int, float, str):
            continue
        for item in shape.metadata(branch):
            for inner in item.metadata if isinstance(item, FieldInfo) else [item]:
                for name, step in RANGES.items():
                    limit = getattr(inner, name, None)
                    if limit is not None:
                        yield target(limit + step)
                if getattr(inner, "min_length", None) == 1 and target is str:
                    yield ""
                if getattr(inner, "pattern", None):
                    yield "?"


OUTSIDE = [
    (name, value) for name, c in CASES.items() for value in dict.fromkeys(beyond(c.annotation))
]


@pytest.mark.parametrize(("name", "value"), OUTSIDE, ids=[f"{n}-{v!r}" for n, v in OUTSIDE])
def test_out_of_range(name: str, value: Any) -> None:
    path, _, recipe, _ = CASES[name]
    token = to_yaml(value).split("\n")[0]
    for found in in_files(placed(recipe, path, value), path, False, token):
        assert found.expected, found
    option = f"{nodes.dotted(path)}={written(value)}"
    if value == "" and shape.form_of(Recipe, path, tree(to_yaml(recipe))).takes == "value":
        return  # nothing behind the sign is null there
    found = found_at(faults(to_yaml(recipe), option), "-o", 1, option.index("=") + 2, path)
    assert found.where.text == option


@pytest.mark.parametrize("name", CASES)
def test_the_samples_are_sound(name: str) -> None:
    """But for what needs another key beside it."""
    recipe = CASES[name].recipe
    try:
        load(to_yaml(recipe))
    except ConfigError as error:
        for fault in error.faults:
            assert any(word in fault.message for word in RULES), fault


RULES = ("there is no", "needs", "has a meaning", "both say", "cannot be", "stands for an argument",
         "has no argument", "expected `min`")  # fmt: skip
