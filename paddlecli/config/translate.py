"""pydantic's errors in our words, at our places: what is wrong, what was expected, what was meant."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from paddlecli.config import shape
from paddlecli.config.moved import key_meant
from paddlecli.config.nodes import Node, Path, close_names, dotted, kind_of, shown
from paddlecli.config.recipe import Recipe
from paddlecli.config.yaml_text import scalar_of
from paddlecli.errors import Fault

_RANGES = {
    "greater_than": "above {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than": "below {lt:g}",
    "less_than_equal": "at most {le:g}",
}
_LISTED = 40


def translate(
    error: ValidationError,
    schema: type[BaseModel] | shape.Arguments,
    node: Node,
    prefix: Path,
    free: frozenset[str] = frozenset(),
) -> Iterator[Fault]:
    """pydantic's errors about `node`, which stands at `prefix`, in our words and at its places.

    free: keys of the mapping that only look as if they were missing.
    """
    grouped: dict[tuple[Path, bool], list[dict[str, Any]]] = defaultdict(list)
    for item in error.errors(include_url=False):
        if item["type"] == "missing" and item["loc"][-1] in free:
            continue
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
    if item["type"] == "too_short" and len(node.items) >= item["ctx"]["min_length"]:
        return None  # items that are wrong in themselves were not counted
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
        return Fault(context["text"], node.origin.where(key), context["expected"])
    where = (about.key or about.origin).where((*key, context["key"]))
    return Fault(context["text"], where, context["expected"])


def _wrong_value(item: dict[str, Any], node: Node, key: Path, types: list[Any]) -> Fault:
    name, kind, value = _name_of(key), item["type"], node.value
    expected = shape.describe(types)
    where = node.origin.where(key)
    if kind in _RANGES:
        limit = _RANGES[kind].format(**item["ctx"])
        return Fault(f"{name} must be {limit}, got {shown(value)}", where, expected)
    if kind == "literal_error" and not isinstance(value, dict | list):
        near = close_names(str(value), shape.literals(types))
        return Fault(f"{shown(value)} is not a value of {name}", where, expected, near)
    if kind == "value_error":
        return Fault(f"{name}: {item['ctx']['error']}", where)
    if kind in ("too_short", "string_too_short"):
        return Fault(f"{name} must not be empty", where, expected)
    if kind == "string_pattern_mismatch":
        return Fault(f"{shown(value)} does not have the form of {name}", where, expected)
    if kind in ("too_long", "missing") and isinstance(value, list):
        many = "1 item" if len(value) == 1 else f"{len(value)} items"
        return Fault(f"{name} must be {expected}, got {many}", where, expected)
    if not expected:
        return Fault(f"{name}: {item['msg']}", where)
    message = f"{name} must be {expected}, got {kind_of(value)}"
    return Fault(message, where, expected, hint=_type_hint(node, types))


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
    section = _section_name(shape.types_at(schema, item["path"], root))
    near = [k for k in node.mapping if key_meant(section, k, (name,))[0]]
    near += close_names(name, list(node.mapping))
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
    sections = shape.types_at(schema, path[:-1], root)
    for annotation in sections:
        known.update(shape.keys_of(annotation, parent))
    key = (*prefix, *path)
    assert node is not None
    inside = f"in `{dotted(key[:-1])}`" if len(key) > 1 else "in the recipe"
    names = sorted(known)
    if isinstance(schema, shape.Arguments) and len(path) == 1:
        inside = f"of the {schema.kind} `{schema.name}`"
        names += schema.own
    meant, hint = key_meant(_section_name(sections), name, names)
    near = (meant,) if meant else () if hint else close_names(name, names)
    where = (node.key or node.origin).where(key)
    hint = hint or ("" if near else _elsewhere(name))
    return Fault(f"unknown key `{name}` {inside}", where, _one_of(names), near, hint)


def _section_name(sections: list[Any]) -> str:
    """What `moved.py` calls the section: what it calls, or its own name."""
    found = shape.bare(sections[0]) if sections else None
    return str(getattr(found, "kind", None) or getattr(found, "__name__", "")).lower()


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


def _as_written(node: Node) -> str:
    """A number as it stands in the text: `1.10` and `1.1` are one number, but two names."""
    found = re.match(r"[^\s,\]}]+", node.origin.text[node.origin.column - 1 :])
    written = found[0] if found else ""
    return written if scalar_of(written) == node.value else shown(node.value)


def _type_hint(node: Node, types: list[Any]) -> str:
    value, wanted = node.value, [shape.bare(t) for t in types]
    if isinstance(value, str) and bool in wanted and value.lower() in ("yes", "no", "on", "off"):
        return "write true or false"
    if isinstance(value, int | float) and not isinstance(value, bool) and str in wanted:
        return f'quote it: "{_as_written(node)}"'
    if isinstance(value, str) and (int in wanted or float in wanted):
        return "write the number without quotes, blanks or `_`" if value[:1].isdigit() else ""
    if isinstance(value, str) and any(get_origin(w) in (list, tuple) for w in wanted):
        return f"a list of one: [{value}]"
    return ""
