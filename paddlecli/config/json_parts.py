"""Small pieces of JSON schema: texts that may be references, null, ranges and lengths."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from pydantic.fields import FieldInfo

Json = dict[str, Any]
REFERENCE = r"\$[{A-Za-z_]"
"""Any value may be text that refers to another one: `${train.seed}`, `${env:SEED:0}`, and in a block
to one of its arguments: `$size`."""
A_REFERENCE: Json = {"type": "string", "pattern": REFERENCE}
_BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
_LENGTHS = {"min_length": "min", "max_length": "max"}


def line(text: str | None) -> str:
    """A docstring in one line."""
    return " ".join((text or "").split())


def key_of(name: str) -> str:
    """A definition's key: nothing in it needs an escape in a pointer, which not all editors undo."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name)


def pointer(key: str) -> Json:
    """A reference to a definition."""
    return {"$ref": f"#/definitions/{key}"}


def or_reference(schema: Json) -> Json:
    """The schema, or a text with a reference in it. Keywords for numbers, lists and mappings leave
    text alone and the other way round, so one schema serves both and its messages stay short."""
    kind = schema["type"]
    if "string" in kind:
        return schema
    kinds = [kind] if isinstance(kind, str) else kind
    return {**schema, "type": [*kinds, "string"], "pattern": REFERENCE}


def only(key: str, keys: Iterable[str]) -> Json:
    """That key is given and no other."""
    nothing: Json = {"type": "null"}
    others = {k: nothing if k != key else {"not": nothing} for k in keys}
    return {"required": [key], "properties": others}


def nullable(schema: Json) -> Json:
    """The schema, or nothing."""
    kind = schema.get("type")
    if kind is None:
        return {"anyOf": [schema, {"type": "null"}]}
    kinds = [kind] if isinstance(kind, str) else kind
    return {**schema, "type": [*kinds, "null"]}


def limited(schema: Json, metadata: Iterable[Any]) -> Json:
    """The schema with the ranges, lengths and patterns of an Annotated type."""
    found = dict(schema)
    for item in metadata:
        for inner in item.metadata if isinstance(item, FieldInfo) else [item]:
            found.update(_limits(inner, found))
    return found


def _limits(item: Any, schema: Json) -> Json:
    found: Json = {}
    for attribute, keyword in _BOUNDS.items():
        if getattr(item, attribute, None) is not None:
            found[keyword] = getattr(item, attribute)
    what = "Items" if "array" in schema.get("type", ()) else "Length"
    what = "Properties" if "object" in schema.get("type", ()) else what
    for attribute, side in _LENGTHS.items():
        if getattr(item, attribute, None) is not None:
            found[side + what] = getattr(item, attribute)
    pattern = getattr(item, "pattern", None)
    if pattern is not None:
        found["pattern"] = f"(?:{pattern})|{REFERENCE}"
    return found
