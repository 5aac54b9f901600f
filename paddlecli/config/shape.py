"""What the schema says about a path: the types that may stand there, and how to put them in words.

The walk follows pydantic sections by their aliases, picks the branch of a union by its
discriminator, and enters the arguments of registered names through their signatures.
"""

from __future__ import annotations

import pathlib
import types
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel, Discriminator, Tag
from pydantic.fields import FieldInfo

from paddlecli.config.nodes import Node, Path
from paddlecli.config.registry import KINDS, Entry
from paddlecli.config.sections import Called, Named

_BOUNDS = (
    ("ge", "at least {}"),
    ("gt", "above {}"),
    ("le", "at most {}"),
    ("lt", "below {}"),
)
_WORDS = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


@dataclass(frozen=True)
class Arguments:
    """Stands for the arguments of one registered name; `own` are the section's keys beside them."""

    kind: str
    name: str
    own: tuple[str, ...] = ()

    @property
    def entry(self) -> Entry | None:
        """The registered name's entry, None for an unknown one."""
        return KINDS[self.kind].find(self.name)


def branches(annotation: Any, node: Node | None) -> list[Any]:
    """The alternatives that `annotation` allows for `node`, None left out; metadata kept."""
    origin = get_origin(annotation)
    if origin is Annotated:
        inner, *metadata = get_args(annotation)
        picker = next((m for m in metadata if isinstance(m, Discriminator)), None)
        if picker is not None and callable(picker.discriminator):
            return _tagged(inner, str(picker.discriminator(node.plain() if node else None)), node)
        below = branches(inner, node)
        return [Annotated[b, *metadata] if metadata else b for b in below]
    if origin in (Union, types.UnionType):
        return [b for a in get_args(annotation) if a is not type(None) for b in branches(a, node)]
    return [annotation]


def _tagged(union: Any, tag: str, node: Node | None) -> list[Any]:
    for member in get_args(union):
        inner, *limits = get_args(member)
        if any(isinstance(m, Tag) and m.tag == tag for m in limits):
            limits = [m for m in limits if not isinstance(m, Tag)]
            return branches(Annotated[inner, *limits] if limits else inner, node)
    return branches(union, node)


def bare(annotation: Any) -> Any:
    """The type without its metadata."""
    return bare(get_args(annotation)[0]) if get_origin(annotation) is Annotated else annotation


def field_type(field: FieldInfo) -> Any:
    """A field's type with the metadata that pydantic took off it."""
    metadata: list[Any] = [*field.metadata]
    if field.discriminator is not None:
        metadata.append(field.discriminator)
    if field.title:
        metadata.append(field)
    return Annotated[field.annotation, *metadata] if metadata else field.annotation


def keys_of(annotation: Any, node: Node | None) -> dict[str, Any]:
    """Names and types of the keys that a mapping of this type may have; empty when free."""
    target = bare(annotation)
    if isinstance(target, Arguments):
        entry = target.entry
        return {p.name: p.annotation for p in entry.parameters.values()} if entry else {}
    if not (isinstance(target, type) and issubclass(target, BaseModel)):
        return {}
    found = {(f.alias or n): field_type(f) for n, f in target.model_fields.items()}
    name = node.child("name") if node is not None else None
    if issubclass(target, Named) and name is not None and isinstance(name.value, str):
        found.update(keys_of(Arguments(target.kind, name.value), None))
    return found


def below(annotation: Any, part: str | int, node: Node | None) -> list[Any]:
    """Types allowed for the child `part` of a value of this type."""
    target = bare(annotation)
    origin, inside = get_origin(target), get_args(target)
    if origin is dict:
        return [inside[1]]
    if origin in (list, tuple) and isinstance(part, int):
        fixed = origin is tuple and Ellipsis not in inside
        return [inside[part]] if fixed and part < len(inside) else [inside[0]] if inside else []
    known = keys_of(annotation, node)
    if part in known:
        return [known[str(part)]]
    if isinstance(target, type) and issubclass(target, Called):
        return [Arguments(target.kind, str(part))]
    return []


def types_at(schema: type[BaseModel] | Arguments, path: Path, root: Node) -> list[Any]:
    """The types that may stand at `path` of a tree whose root has the type `schema`."""
    node: Node | None = root
    found: list[Any] = [schema]
    for part in path:
        found = [b for a in found for b in below(a, part, node)]
        node = node.child(part) if node is not None else None
        found = [b for a in found for b in branches(a, node)]
    return found


class Form(NamedTuple):
    """What a setting takes: text only; text, or a list or mapping; text, or another scalar too; no
    text. ``optional``: it may be left out with `null`."""

    takes: Literal["text", "text or more", "text or scalar", "value"]
    optional: bool = False


def form_of(schema: type[BaseModel], path: Path, root: Node) -> Form:
    """What may be written at a path, whatever stands there now: text from outside (an option, the
    environment) is read as that."""
    node = root.at(path[:-1])
    parents = types_at(schema, path[:-1], root)
    types_ = [t for p in parents for t in below(p, path[-1], node)]
    found = [bare(b) for t in types_ for b in _all(t)]
    optional = any(type(None) in get_args(bare(t)) for t in types_)
    textual = [t in (str, pathlib.Path) or get_origin(t) is Literal for t in found]
    if not any(textual):
        return Form("value", optional)
    if all(textual):
        return Form("text", optional)
    scalar = any(t in (int, float, bool) for t in found)
    return Form("text or scalar" if scalar else "text or more", optional)


def _all(annotation: Any) -> list[Any]:
    """All alternatives of a type, whatever picks among them."""
    target = bare(annotation)
    if get_origin(target) in (Union, types.UnionType):
        return [b for a in get_args(target) if a is not type(None) for b in _all(a)]
    return [annotation]


def holds_path(annotation: Any) -> bool:
    """Whether the type is a file path, or a list of them."""
    target = bare(annotation)
    return target is pathlib.Path or any(
        holds_path(a) for a in get_args(target) if a is not Ellipsis
    )


def describe(annotations: list[Any]) -> str:
    """The types in words: `a whole number, at least 1`."""
    found = list(dict.fromkeys(filter(None, map(_words, annotations))))
    return (", or " if any(", " in words for words in found) else " or ").join(found)


def _words(annotation: Any) -> str:
    titles = [m.title for m in metadata(annotation) if isinstance(m, FieldInfo) and m.title]
    if titles:
        return titles[0]
    target = bare(annotation)
    bounds = ", ".join(_bounds(annotation))
    if target in _WORDS:
        return f"{_WORDS[target]}, {bounds}" if bounds else _WORDS[target]
    if target is pathlib.Path:
        return "a path"
    if isinstance(target, Arguments | type):
        return "a mapping"
    return _container_words(target, metadata(annotation))


def _container_words(target: Any, limits: list[Any]) -> str:
    origin, inside = get_origin(target), get_args(target)
    if origin is Literal:
        return " or ".join(f"`{v}`" for v in inside)
    if origin is dict:
        return "a mapping"
    if origin in (list, tuple):
        items = describe([b for a in inside[:1] for b in branches(a, None)])
        fixed = len(inside) if origin is tuple and Ellipsis not in inside else 0
        count = f" of {fixed}" if fixed else _count(limits)
        return f"a list{count}, each item {items}" if items else f"a list{count}"
    if origin in (Union, types.UnionType, Annotated):
        return describe(branches(target, None))
    return ""


def _count(limits: list[Any]) -> str:
    """How long a list may be: ` of 1 to 2`; nothing where any length will do."""
    for item in limits:
        low, high = getattr(item, "min_length", None), getattr(item, "max_length", None)
        if high is not None:
            return f" of {low or 0} to {high}" if low != high else f" of {high}"
        if low is not None and low > 1:
            return f" of at least {low}"
    return ""


def metadata(annotation: Any) -> list[Any]:
    """What an Annotated type carries beside the type."""
    return list(get_args(annotation)[1:]) if get_origin(annotation) is Annotated else []


def _bounds(annotation: Any) -> list[str]:
    found: list[str] = []
    for item in metadata(annotation):
        for inner in item.metadata if isinstance(item, FieldInfo) else [item]:
            for attribute, words in _BOUNDS:
                limit = getattr(inner, attribute, None)
                if limit is not None:
                    found.append(words.format(limit))
            if getattr(inner, "min_length", None) == 1:
                found.append("not empty")
    return found


def literals(annotations: list[Any]) -> list[str]:
    """The words that a Literal allows."""
    found = [bare(a) for a in annotations]
    return [str(v) for t in found if get_origin(t) is Literal for v in get_args(t)]
