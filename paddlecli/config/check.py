"""The schema stage: a merged tree against the sections and the registries, all faults at once."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path as FilePath
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from paddlecli.config import shape
from paddlecli.config.calls import Call, calls_of
from paddlecli.config.nodes import DEFAULT, Node, Path, close_names, dotted, node_of
from paddlecli.config.recipe import Recipe
from paddlecli.config.registry import KINDS, Entry, call_in
from paddlecli.errors import Fault

_RANGES = {
    "greater_than": "above {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than": "below {lt:g}",
    "less_than_equal": "at most {le:g}",
}
_LISTED = 16


def check(root: Node, built: bool = False) -> tuple[Recipe | None, list[Fault]]:
    """The recipe (None with faults). Fills in the defaults of registered names' arguments and
    turns relative paths into absolute ones, in `root` itself. What makes the network is not looked
    up where that is `built`."""
    faults: list[Fault] = []
    for call in calls_of(root):
        if not built or call.path[0] not in ("model", "metrics"):
            faults.extend(_check_call(call, root))
    faults.extend(_check_names(root))
    try:
        recipe = Recipe.model_validate_json(json.dumps(root.plain()))
    except ValidationError as error:
        faults.extend(translate(error, Recipe, root, ()))
        return None, faults
    return (None, faults) if faults else (recipe, [])


def translate(
    error: ValidationError, schema: type[BaseModel] | shape.Arguments, node: Node, prefix: Path
) -> Iterator[Fault]:
    """pydantic's errors about `node`, which stands at `prefix`, in our words and at its places."""
    grouped: dict[tuple[Path, bool], list[dict[str, Any]]] = defaultdict(list)
    for item in error.errors(include_url=False):
        path, rest = _real_path(node, item["loc"])
        named = item["type"] == "extra_forbidden"
        named |= item["type"] == "missing" and isinstance(rest[-1], str)
        grouped[path, named].append({**item, "path": path, "rest": rest})
    deep = {p for p, _ in grouped}
    for (path, named), items in grouped.items():
        if (
            not named
            and any(p[: len(path)] == path and p != path for p in deep)
            and _is_union(items)
        ):
            continue
        for found in items if named else items[:1]:
            fault = _fault(found, schema, node, prefix)
            if fault is not None:
                yield fault


def _real_path(node: Node, loc: tuple[str | int, ...]) -> tuple[Path, list[str | int]]:
    """The part of pydantic's location that exists in the tree, and its last part if that does not.

    What lies between are tags and type names of unions.
    """
    path: list[str | int] = []
    here = node
    child: Node | None = node
    for part in loc:
        child = here.child(part)
        if child is not None:
            path.append(part)
            here = child
    tagged = not loc or child is not None or str(loc[-1]).startswith("<")
    return tuple(path), [] if tagged else [loc[-1]]


def _is_union(items: list[dict[str, Any]]) -> bool:
    return any(item["rest"] for item in items)


def _fault(
    item: dict[str, Any], schema: type[BaseModel] | shape.Arguments, root: Node, prefix: Path
) -> Fault | None:
    """One of pydantic's errors as a fault; None where one was reported at its place before."""
    path: Path = item["path"]
    node = root.at(path)
    if node is None or node.faulty:
        return None
    if item["type"] == "missing" and isinstance(item["rest"][-1], str):
        return _missing(item, schema, root, prefix)
    if item["type"] == "extra_forbidden":
        return _unknown_key(path, schema, root, prefix)
    key = (*prefix, *path)
    if item["type"] == "rule":
        return _broken_rule(item["ctx"], node, key)
    if item["rest"] == ["[key]"]:
        parents = shape.types_at(schema, path[:-1], root)
        expected = shape.describe([get_args(shape.bare(t))[0] for t in parents])
        where = (node.key or node.origin).where(key)
        return Fault(f"{_name_of(key)} is not a possible key here", where, expected)
    return _wrong_value(item, node, key, shape.types_at(schema, path, root))


def _broken_rule(context: dict[str, Any], node: Node, key: Path) -> Fault:
    """A sentence of the schema's own, at the key that it is about."""
    about = node.child(context["key"])
    if about is None:
        return Fault(context["text"], node.origin.where(key))
    return Fault(context["text"], (about.key or about.origin).where((*key, context["key"])))


def _wrong_value(item: dict[str, Any], node: Node, key: Path, types: list[Any]) -> Fault:
    name, kind, value = _name_of(key), item["type"], node.value
    expected = shape.describe(types)
    where = node.origin.where(key)
    if kind in _RANGES:
        limit = _RANGES[kind].format(**item["ctx"])
        return Fault(f"{name} must be {limit}, got {shown(value)}", where, expected)
    if kind == "literal_error":
        near = close_names(str(value), shape.literals(types))
        return Fault(f"{shown(value)} is not a value of {name}", where, expected, near)
    if kind == "value_error":
        return Fault(f"{name}: {item['ctx']['error']}", where)
    if kind in ("too_short", "string_too_short"):
        return Fault(f"{name} must not be empty", where, expected)
    if kind == "string_pattern_mismatch":
        return Fault(f"{shown(value)} does not have the form of {name}", where, expected)
    if not expected:
        return Fault(f"{name}: {item['msg']}", where)
    message = f"{name} must be {expected}, got {kind_of(value)}"
    return Fault(message, where, expected, hint=_type_hint(value, types))


def _name_of(key: Path) -> str:
    """What a message calls the value at `key`."""
    if not key:
        return "the recipe"
    if isinstance(key[-1], int):
        return f"item {key[-1]} of `{dotted(key[-2:-1])}`"
    return f"`{dotted(key[-1:])}`"


def _missing(
    item: dict[str, Any], schema: type[BaseModel] | shape.Arguments, root: Node, prefix: Path
) -> Fault:
    node = root.at(item["path"]) or root
    key = (*prefix, *item["path"])
    name = str(item["rest"][-1])
    types = shape.types_at(schema, (*item["path"], name), root)
    where = (node.key or node.origin).where((*key, name))
    inside = f"in `{dotted(key)}`" if key else "in the recipe"
    near = close_names(name, list(node.mapping))
    hint = f"is `{near[0]}` meant?" if near else ""
    message = f"the key `{name}` is missing {inside}"
    return Fault(message, where, shape.describe(types), hint=hint)


def _unknown_key(
    path: Path, schema: type[BaseModel] | shape.Arguments, root: Node, prefix: Path
) -> Fault:
    node = root.at(path)
    parent = root.at(path[:-1])
    name = str(path[-1])
    known: dict[str, Any] = {}
    for annotation in shape.types_at(schema, path[:-1], root):
        known.update(shape.keys_of(annotation, parent))
    key = (*prefix, *path)
    assert node is not None
    inside = f"in `{dotted(key[:-1])}`" if len(key) > 1 else "in the recipe"
    names = sorted(known)
    if isinstance(schema, shape.Arguments) and len(path) == 1:
        inside = f"of the {schema.kind} `{schema.name}`"
        names += schema.own
    near = close_names(name, names)
    where = (node.key or node.origin).where(key)
    hint = "" if near else _elsewhere(name)
    return Fault(f"unknown key `{name}` {inside}", where, _one_of(names), near, hint)


def _one_of(names: list[str]) -> str:
    if not names:
        return "no key here"
    listed = ", ".join(names[:_LISTED])
    return f"one of {listed}" + (", ..." if len(names) > _LISTED else "")


def _elsewhere(name: str) -> str:
    """A hint where the key is known in another section."""
    if name == "<<":
        return "merge keys are not read; compose with `extends`"
    for section, field in Recipe.model_fields.items():
        for annotation in shape.branches(shape.field_type(field), None):
            if name in shape.keys_of(annotation, None):
                return f"`{name}` belongs to `{section}`"
    return ""


def kind_of(value: Any) -> str:
    """A value in words, for `got ...`."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "nothing"
    words = {bool: "", int: "the number ", float: "the number ", str: "the text "}
    return words[type(value)] + shown(value)


def shown(value: Any) -> str:
    """A value as it would be written, shortened."""
    text = json.dumps(value, ensure_ascii=False) if not isinstance(value, dict | list) else "..."
    return text if len(text) <= 60 else text[:57] + "..."


def _type_hint(value: Any, types: list[Any]) -> str:
    wanted = [shape.bare(t) for t in types]
    if isinstance(value, str) and bool in wanted and value.lower() in ("yes", "no", "on", "off"):
        return "write true or false"
    if isinstance(value, int | float) and not isinstance(value, bool) and str in wanted:
        return f'quote it: "{shown(value)}"'
    if isinstance(value, str) and (int in wanted or float in wanted):
        return "write the number without quotes, blanks or `_`" if value[:1].isdigit() else ""
    if isinstance(value, str) and any(get_origin(w) in (list, tuple) for w in wanted):
        return f"a list of one: [{value}]"
    return ""


def _check_call(call: Call, root: Node) -> Iterator[Fault]:
    """The name and the arguments of one registered call."""
    if call.name in call.local:
        if call.arguments.mapping:
            yield Fault(
                f"the block `{call.name}` takes no arguments", call.place.where(call.path), "{}"
            )
        return
    registry = KINDS[call.kind]
    entry = registry.find(call.name)
    if entry is None:
        names = [*registry.names(), *call.local]
        yield Fault(
            f"unknown {call.kind} `{call.name}`",
            call.place.where(call.name_path),
            f"a registered {call.kind}",
            close_names(call.name, names),
            registry.hint(call.name),
        )
        return
    if not isinstance(call.arguments.value, dict):
        where = call.arguments.origin.where(call.path)
        got = kind_of(call.arguments.value)
        yield Fault(
            f"the arguments of `{call.name}` must be a mapping, got {got}", where, "a mapping"
        )
        return
    schema = shape.Arguments(call.kind, call.name, call.own)
    try:
        entry.model.model_validate_json(json.dumps(call.arguments.plain()))
    except ValidationError as error:
        yield from translate(error, schema, call.arguments, call.path)
        return
    for nested in _nested(call, entry):
        yield from [nested] if isinstance(nested, Fault) else _check_call(nested, root)
    yield from _resolve_paths(call)
    if call.own:
        _fill_defaults(call, root)


def _nested(call: Call, entry: Entry) -> Iterator[Call | Fault]:
    """Calls among the arguments: `init: {constant: {value: 1}}`."""
    for key, node in call.arguments.mapping.items():
        marker = call_in(entry.parameters[key].annotation)
        if marker is None or node.value is None:
            continue
        path = (*call.path, key)
        if isinstance(node.value, str):
            empty = Node({}, node.origin, node.key, node.base)
            yield Call(marker.kind, node.value, path, empty, node.origin, path)
            continue
        if len(node.mapping) != 1:
            message = f"expected exactly one {marker.kind} here, found {_listed(node.mapping)}"
            yield Fault(message, node.origin.where(path), "a name, or a mapping with one key")
            continue
        for name, below in node.mapping.items():
            given = Node({}, below.origin, below.key) if below.value is None else below
            place = below.key or below.origin
            yield Call(marker.kind, name, (*path, name), given, place, (*path, name))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{n}`" for n in names) or "none"


def _resolve_paths(call: Call) -> Iterator[Fault]:
    """Paths start at their file's folder, those of the command line at the working directory."""
    entry = KINDS[call.kind].get(call.name)
    for name, node in call.arguments.mapping.items():
        if not shape.holds_path(entry.parameters[name].annotation):
            continue
        for path, leaf in node.walk((*call.path, name)):
            if leaf.value == "":
                yield Fault("a path must not be empty", leaf.origin.where(path), "a path")
            elif isinstance(leaf.value, str):
                base = FilePath(leaf.base) if leaf.base else FilePath.cwd()
                leaf.value = os.path.normpath(base / FilePath(leaf.value).expanduser())


def _fill_defaults(call: Call, root: Node) -> None:
    section = root.at(call.path)
    entry = KINDS[call.kind].get(call.name)
    assert section is not None
    assert isinstance(section.value, dict)
    for parameter in entry.parameters.values():
        if not parameter.required and parameter.name not in section.value:
            section.value[parameter.name] = node_of(_writable(parameter.default), DEFAULT)


def _writable(value: Any) -> Any:
    """A default as YAML can hold it. Raises TypeError for one that it cannot."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_writable(v) for v in value]
    if isinstance(value, dict):
        return {str(k): _writable(v) for k, v in value.items()}
    if isinstance(value, FilePath):
        return str(value)
    raise TypeError(f"the default {value!r} of a registered function cannot be written as YAML")


def _check_names(root: Node) -> Iterator[Fault]:
    """Names that one section uses and another defines."""
    entries = root.at(("model", "entries"))
    known = list(entries.mapping) if entries is not None else []
    loop = root.at(("train", "loop"))
    for index, node in enumerate(loop.items if loop is not None else []):
        if isinstance(node.value, str) and node.value not in known:
            yield _undefined("entry", node, ("train", "loop", index), known)
    optimizer = root.child("optimizer")
    named = optimizer is not None and "name" not in optimizer.mapping
    several = list(optimizer.mapping) if optimizer is not None and named else []
    for name, entry in (entries.mapping if entries is not None else {}).items():
        used = entry.at(("update", "optimizer"))
        if used is not None and isinstance(used.value, str) and used.value not in several:
            path = ("model", "entries", name, "update", "optimizer")
            yield _undefined("optimizer", used, path, several)


def _undefined(what: str, node: Node, path: Path, known: list[str]) -> Fault:
    defined = f"one of {', '.join(known)}" if known else f"the recipe defines no named {what}"
    return Fault(
        f"there is no {what} `{node.value}`",
        node.origin.where(path),
        defined,
        close_names(str(node.value), known),
    )
