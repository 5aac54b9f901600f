"""The recipe language as JSON schema draft-07, for editors: keys, types, ranges, words, texts.

Sections come from `schema.py`, arguments from the signatures of what is registered (user's code
included, once it is loaded). A file that `extends` others may leave out what they give, so most
sections exist twice: complete, and as a part. What needs several keys at once (`shuffle: window`
needs a buffer) and names that a recipe defines itself are checked by `recipe validate` only.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, Discriminator, TypeAdapter
from pydantic.fields import FieldInfo

from paddlecli import assets
from paddlecli.config import shape
from paddlecli.config.describe import argument_text, field_texts, summary
from paddlecli.config.dump import writable
from paddlecli.config.json_parts import (
    A_REFERENCE,
    REFERENCE,
    Json,
    key_of,
    limited,
    line,
    nullable,
    only,
    or_reference,
    pointer,
)
from paddlecli.config.recipe import Recipe
from paddlecli.config.registry import KINDS, Entry, Parameter, call_in
from paddlecli.config.schema_network import LayerCall, WrittenModel
from paddlecli.config.sections import (
    ONE_OPTIMIZER,
    WRITTEN,
    Called,
    Named,
    OneOf,
    pick_model,
    pick_optimizer,
)
from paddlecli.errors import ConfigError

DRAFT = "http://json-schema.org/draft-07/schema#"
_TYPES = {int: "integer", float: "number", str: "string", bool: "boolean"}


def _has(*keys: str) -> Json:
    return {"anyOf": [{"required": [key]} for key in keys]}


FIRST_BRANCH: dict[Callable[[Any], str], Json] = {
    pick_model: {"anyOf": [{"required": ["name"]}, {"not": _has(*WRITTEN)}]},
    pick_optimizer: {
        "anyOf": [
            _has(*ONE_OPTIMIZER),
            {"maxProperties": 0},
            {"not": {"additionalProperties": {"anyOf": [{"type": "object"}, A_REFERENCE]}}},
        ]
    },
}
"""When a value is the first alternative of a union, for each function that picks by the keys."""


@dataclass(frozen=True, slots=True)
class _Form:
    """Which form of a section is meant. part: keys may be missing. blocks: the recipe may define
    blocks, so that a layer's name need not be a registered one."""

    part: bool = False
    blocks: bool = False

    @property
    def suffix(self) -> str:
        return ".part" if self.part else ".blocks" if self.blocks else ""


def json_schema(*, fragment: bool = False) -> Json:
    """JSON schema draft-07 of a recipe file, with everything that is registered now.

    fragment: of a file that is only meant for `extends`, in which anything may be missing.
    """
    schema = _Schema()
    known = sorted({*assets.fragment_names(), *assets.recipe_names()})
    whole, part = schema.section(Recipe, _Form()), schema.section(Recipe, _Form(True, True))
    for name in ("Recipe", "Recipe.part"):
        found = schema.definitions[name]["properties"]["extends"]
        schema.definitions[name]["properties"]["extends"] = {
            "description": found["description"], "type": "array",
            "items": {"anyOf": [{"enum": known}, {"type": "string", "minLength": 1}]},
        }  # fmt: skip
    root: Json = {"allOf": [part]}
    if not fragment:
        root = {"if": {"required": ["extends"]}, "then": part, "else": whole}
    return {
        "$schema": DRAFT,
        "title": "paddlecli recipe",
        "description": line(Recipe.__doc__),
        "type": "object",
        **root,
        "definitions": dict(sorted(schema.definitions.items())),
    }


class _Schema:
    """Collects definitions while sections are walked."""

    def __init__(self) -> None:
        self.definitions: dict[str, Json] = {}

    def define(self, name: str, make: Callable[[], Json]) -> Json:
        """A pointer to the definition `name`, which is made when it is first asked for."""
        key = key_of(name)
        if key not in self.definitions:
            self.definitions[key] = {}  # so that a section which holds itself comes to an end
            self.definitions[key] = make()
        return pointer(key)

    # -- sections ----------------------------------------------------------------------------------
    def section(self, model: type[BaseModel], form: _Form) -> Json:
        """A pointer to the definition of a section."""
        form = _Form(form.part and _demands(model), form.blocks and _has_layers(model))
        make = self._called if issubclass(model, Called) else self._object
        if model is WrittenModel and form == _Form():
            make = self._written
        return self.define(model.__name__ + form.suffix, lambda: make(model, form))

    def _written(self, model: type[BaseModel], form: _Form) -> Json:
        """Layers may have the names of blocks where there are any."""
        return {
            "description": line(model.__doc__),
            "if": {"required": ["blocks"]},
            "then": self.section(model, replace(form, blocks=True)),
            "else": self.define("WrittenModel.plain", lambda: self._object(model, form)),
        }

    def _object(self, model: type[BaseModel], form: _Form) -> Json:
        found: Json = {
            "description": line(model.__doc__),
            "type": "object",
            "properties": self._properties(model, form),
            "additionalProperties": model.model_config.get("extra") != "forbid",
        }
        required = [f.alias or n for n, f in model.model_fields.items() if f.is_required()]
        if model is Recipe:
            required.remove("name")  # the file's own if left out
        if required and not form.part:
            found["required"] = required
        if issubclass(model, Named):
            found["allOf"] = self._registered(model, form)
            found["properties"]["name"] = self._names(model.kind, found["properties"]["name"])
        if issubclass(model, OneOf):
            found["anyOf"] = [only(n, model.model_fields) for n in model.model_fields]
        found, shorthand = or_reference(found), getattr(model, "shorthand", None)
        if shorthand is None:
            return found
        return {"description": found["description"], "anyOf": [found, self.of(shorthand, _Form())]}

    def _properties(self, model: type[BaseModel], form: _Form) -> Json:
        return {
            (f.alias or n): self._described(
                self.of(shape.field_type(f), form), field_texts(model).get(n, ""), f
            )
            for n, f in model.model_fields.items()
        }

    def _described(self, schema: Json, text: str, field: FieldInfo | Parameter) -> Json:
        found: Json = {"allOf": [schema]} if "$ref" in schema else dict(schema)
        if text:
            found["description"] = text
        if isinstance(field, Parameter):
            given, default = not field.required, field.default
        else:
            given = not field.is_required() and field.default_factory is None
            default = field.default
        if given and default is not None and not isinstance(default, BaseModel):
            with suppress(TypeError):  # a user's own type that has no form in YAML
                found["default"] = writable(default)
        return found

    # -- what is registered ------------------------------------------------------------------------
    def _names(self, kind: str, described: Json) -> Json:
        entries = _entries(kind)
        names = {"enum": list(entries), "enumDescriptions": [summary(e) for e in entries.values()]}
        return {
            "description": f"{described['description']} A registered {kind}.",
            "anyOf": [names, A_REFERENCE],
        }

    def _registered(self, model: type[Named], form: _Form) -> list[Json]:
        """For each name, the keys that may stand beside it."""
        own = [f.alias or n for n, f in model.model_fields.items()]
        found = []
        for name, entry in _entries(model.kind).items():
            arguments = self.arguments(model.kind, entry, own, form.part)
            says = {"properties": {"name": {"const": name}}, "required": ["name"]}
            found.append({"if": says, "then": arguments})
        return found

    def arguments(
        self, kind: str, entry: Entry, own: Iterable[str] = (), part: bool = False
    ) -> Json:
        """A pointer to the definition of the arguments of one registered name."""
        part = part and any(p.required for p in entry.parameters.values())
        name = f"{kind}.{entry.name}" + (".part" if part else "")
        return self.define(name, lambda: self._arguments(kind, entry, own, part))

    def _arguments(self, kind: str, entry: Entry, own: Iterable[str], part: bool) -> Json:
        told = summary(entry)
        properties: Json = dict.fromkeys(own, True)
        for parameter in entry.parameters.values():
            text = argument_text(entry, parameter) or f"Argument of the {kind} `{entry.name}`."
            made = self.of(parameter.annotation, _Form())
            properties[parameter.name] = self._described(made, text, parameter)
        found: Json = {
            "description": told or f"The {kind} `{entry.name}`.",
            "properties": properties,
            "additionalProperties": False,
        }
        required = [p.name for p in entry.parameters.values() if p.required]
        if required and not part:
            found["required"] = required
        return found

    def _called(self, model: type[BaseModel], form: _Form) -> Json:
        """`{fc: {size: 10}, name: x}`, or the bare name where no argument is needed."""
        assert issubclass(model, Called)
        entries = _entries(model.kind)
        own = self._properties(model, form)
        block = model is LayerCall and form.blocks
        calls = {n: self._call_of(model.kind, e) for n, e in entries.items() if n not in own}
        keys: Json = {"type": "object", "properties": {**calls, **own}}
        keys["additionalProperties"] = {"type": ["object", "null"]} if block else False
        keys["not"] = {"propertyNames": {"enum": [k for k in own if k != "layers"]}}
        bare = [n for n, e in entries.items() if not any(p.required for p in e.parameters.values())]
        name: Json = {"type": "string", "anyOf": [{"enum": bare}, {"pattern": REFERENCE}]}
        return {
            "description": line(model.__doc__),
            "anyOf": [keys, {"type": "string"} if block else name],
        }

    def _call_of(self, kind: str, entry: Entry) -> Json:
        free = not any(p.required for p in entry.parameters.values())
        return {
            "description": summary(entry) or f"The {kind} `{entry.name}`.",
            "type": ["object", "null", "string"] if free else ["object", "string"],
            "pattern": REFERENCE,
            "allOf": [self.arguments(kind, entry)],
        }

    def _nested_call(self, kind: str) -> Json:
        """`init: xavier`, or `init: {constant: {value: 1}}`."""
        entries = _entries(kind)
        bare = [n for n, e in entries.items() if not any(p.required for p in e.parameters.values())]
        return {
            "description": f"A registered {kind}: its name, or its name over its arguments.",
            "anyOf": [
                {"enum": bare},
                {
                    "type": "object",
                    "properties": {n: self._call_of(kind, e) for n, e in entries.items()},
                    "additionalProperties": False,
                    "minProperties": 1,
                    "maxProperties": 1,
                },
                A_REFERENCE,
            ],
        }

    # -- types -------------------------------------------------------------------------------------
    def of(self, annotation: Any, form: _Form) -> Json:
        """The schema of a type."""
        call = call_in(annotation)
        if call is not None:
            pointer = self.define(f"{call.kind} call", lambda: self._nested_call(call.kind))
            return nullable(pointer) if type(None) in get_args(annotation) else pointer
        target = shape.bare(annotation)
        metadata = shape.metadata(annotation)
        picker = next((m.discriminator for m in metadata if isinstance(m, Discriminator)), None)
        if get_origin(target) in (Union, types.UnionType):
            return self._union(get_args(target), picker, form)
        return limited(self._plain(target, form), metadata)

    def _union(self, members: tuple[Any, ...], picker: Any, form: _Form) -> Json:
        found = [self.of(m, form) for m in members if m is not type(None)]
        if picker in FIRST_BRANCH and len(found) == 2:
            return {"if": FIRST_BRANCH[picker], "then": found[0], "else": found[1]}
        whole = found[0] if len(found) == 1 else {"anyOf": found}
        return nullable(whole) if type(None) in members else whole

    def _plain(self, target: Any, form: _Form) -> Json:
        origin, inside = get_origin(target), get_args(target)
        if target in _TYPES:
            return or_reference({"type": _TYPES[target]})
        if target is Path:
            return {"type": "string", "minLength": 1}
        if target is type(None):
            return {"type": "null"}
        if origin is Literal:
            words = {"enum": list(inside)}
            return {"anyOf": [words, A_REFERENCE]}
        if origin in (list, tuple) or target in (list, tuple):
            return or_reference(self._list(origin is tuple, inside, form))
        if origin is dict:
            return or_reference(self._mapping(inside, form))
        if isinstance(target, type) and issubclass(target, BaseModel):
            return self.section(target, form)
        return {} if target is Any else self._by_pydantic(target)

    def _list(self, fixed: bool, inside: tuple[Any, ...], form: _Form) -> Json:
        complete = replace(form, part=False)  # lists are replaced as a whole, never merged
        if not inside:
            return {"type": "array"}
        if not fixed or Ellipsis in inside:
            return {"type": "array", "items": self.of(inside[0], complete)}
        items = [self.of(a, complete) for a in inside]
        return {
            "type": "array", "items": items, "additionalItems": False,
            "minItems": len(items), "maxItems": len(items),
        }  # fmt: skip

    def _mapping(self, inside: tuple[Any, ...], form: _Form) -> Json:
        key = {k: v for k, v in self.of(inside[0], _Form()).items() if k != "type"}
        values = self.of(inside[1], form)
        found: Json = {"type": "object", "additionalProperties": values or True}
        return {**found, "propertyNames": key} if key else found

    def _by_pydantic(self, target: Any) -> Json:
        """A type that no recipe section uses; a user's function may."""
        try:
            found = TypeAdapter(target).json_schema(ref_template="#/definitions/{model}")
        except Exception:  # the type has no JSON form: pydantic names several classes of errors
            return {}
        self.definitions.update(found.pop("$defs", {}))
        return found


def _entries(kind: str) -> Mapping[str, Entry]:
    """What recipes may call; a data set that nothing reads is none of it."""
    found: dict[str, Entry] = {}
    for name in KINDS[kind].names():
        entry = KINDS[kind].get(name)
        with suppress(ConfigError):
            assert entry.parameters is not None
            found[name] = entry
    return found


def _demands(model: type[BaseModel]) -> bool:
    """Whether keys are demanded in a section or below it."""
    return any(
        issubclass(s, Named) or any(f.is_required() for f in s.model_fields.values())
        for s in _with_below(model)
    )


def _has_layers(model: type[BaseModel]) -> bool:
    """Whether layers are called in a section or below it."""
    return LayerCall in _with_below(model)


def _with_below(model: type[BaseModel]) -> set[type[BaseModel]]:
    found: set[type[BaseModel]] = set()
    todo = [model]
    while todo:
        section = todo.pop()
        if section not in found:
            found.add(section)
            todo += [s for f in section.model_fields.values() for s in _sections_in(f.annotation)]
    return found


def _sections_in(annotation: Any) -> list[type[BaseModel]]:
    target = shape.bare(annotation)
    if isinstance(target, type) and issubclass(target, BaseModel):
        return [target]
    return [s for a in get_args(target) if a is not Ellipsis for s in _sections_in(a)]
