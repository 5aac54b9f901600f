"""The schema stage: a merged tree against the sections and the registries, all faults at once."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path as FilePath

from pydantic import ValidationError

from paddlecli import assets
from paddlecli.config import shape
from paddlecli.config.blocks import LOOPS, argument_faults, loop_faults, use_faults
from paddlecli.config.calls import Call, calls_of
from paddlecli.config.dump import writable
from paddlecli.config.moved import key_meant, name_meant
from paddlecli.config.nodes import DEFAULT, Node, Path, close_names, dotted, kind_of, node_of
from paddlecli.config.recipe import Recipe
from paddlecli.config.registry import KINDS, Entry, calls_within
from paddlecli.config.sections import CALL_FORM
from paddlecli.config.translate import translate
from paddlecli.config.yaml_text import is_unicode
from paddlecli.errors import ConfigError, Fault, Where


def check(
    root: Node, built: bool = False, unused: Collection[str] = ()
) -> tuple[Recipe | None, list[Fault]]:
    """The recipe (None with faults). Fills in the defaults of registered names' arguments and
    turns relative paths into absolute ones, in `root` itself. What makes the network is not looked
    up where that is `built`, nor is what the sections `unused` name."""
    passed = {*unused, *(("model", "metrics") if built else ())}
    model = root.child("model")
    faults = list(argument_faults(model)) if model is not None and not built else []
    for call in calls_of(root):
        if call.path[0] not in passed:
            faults.extend(_check_call(call, root))
    faults = list(dict.fromkeys(faults))  # a block is checked for each of its uses
    faults.extend(_check_names(root))
    try:
        recipe = Recipe.model_validate_json(json.dumps(root.plain()))
    except ValidationError as error:
        faults.extend(translate(error, Recipe, root, ()))
        return None, _without_echoes(faults)
    return (None, _without_echoes(faults)) if faults else (recipe, [])


def _without_echoes(faults: list[Fault]) -> list[Fault]:
    """Each cause once: not a missing key beside the misspelt one, and not what a copy made by
    `${...}` repeats from its source."""
    misspelt = {
        ".".join([*f.where.key.split(".")[:-1], near])
        for f in faults
        for near in f.nearest[:1]
        if f.message.startswith("unknown key")
    }
    kept = [f for f in faults if not (f.message.startswith("the key") and f.where.key in misspelt)]
    found: dict[tuple[str, Where], Fault] = {}
    for fault in kept:
        message = fault.message.replace(f"`{fault.where.key.rpartition('.')[0]}`", "")
        found.setdefault((message, replace(fault.where, key="")), fault)
    return list(found.values())


def _stray_keys(call: Call, root: Node) -> Iterator[Fault]:
    """Keys beside a call that mean nothing there."""
    for name, place in call.stray.items():
        path = (*call.path[:-1], name)
        meant, hint = key_meant("beside", name, call.beside)
        near = (meant,) if meant else close_names(name, call.beside)
        message = f"unknown key `{name}` beside the {call.kind} `{call.name}`"
        expected = f"one of {', '.join(call.beside)}"
        yield Fault(message, place.where(path), expected, near, hint)
    holder = root.at(call.path[:-1])
    if call.stray and holder is not None:
        holder.faulty = True  # that there are two keys is told


def _check_call(call: Call, root: Node) -> Iterator[Fault]:
    """The name and the arguments of one registered call."""
    yield from _stray_keys(call, root)
    if call.name in call.local:
        block = call.local[call.name]
        yield from use_faults(call.name, call.arguments, block, call.path, call.free)
        return
    registry = KINDS[call.kind]
    call = _place_card(call, root)
    entry = registry.find(call.name)
    if entry is None:
        names = [*registry.names(), *call.local]
        yield Fault(
            f"unknown {call.kind} `{call.name}`",
            call.place.where(call.name_path),
            f"a registered {call.kind}",
            name_meant(call.kind, call.name, names) or close_names(call.name, names),
            _quoted(call.name) or registry.hint(call.name),
        )
        return
    if not isinstance(call.arguments.value, dict):
        where = call.arguments.origin.where(call.path)
        got = kind_of(call.arguments.value)
        yield Fault(
            f"the arguments of `{call.name}` must be a mapping, got {got}", where, "a mapping"
        )
        return
    try:
        schema = shape.Arguments(call.kind, call.name, call.own)
        entry.model.model_validate_json(json.dumps(call.arguments.plain()))
    except ValidationError as error:
        for fault in translate(error, schema, call.arguments, call.path, call.free):
            yield _moved_out(fault, call)
        return
    except ConfigError as error:
        yield from _unfit(error, call)
        return
    if call.kind == "layer" and call.name in LOOPS:
        yield from loop_faults(call.name, call.arguments, call.local, call.path)
    for nested in _nested(call, entry):
        yield from [nested] if isinstance(nested, Fault) else _check_call(nested, root)
    yield from _resolve_paths(call)
    if call.own:
        _fill_defaults(call, root)


def _moved_out(fault: Fault, call: Call) -> Fault:
    """An unknown argument that is a key beside the call: `{f1: {from: p}}` for `{f1: {}, from: p}`."""
    name = fault.where.key.rpartition(".")[2]
    inside = f"{dotted(call.path)}.{name}" == fault.where.key
    if name not in call.beside or not inside or not fault.message.startswith("unknown key"):
        return fault
    hint = f"`{name}` stands beside `{call.name}`: {{{call.name}: {{...}}, {name}: ...}}"
    return replace(fault, nearest=(), hint=hint)


def _place_card(call: Call, root: Node) -> Call:
    """A data set may be a card's file: its path starts where its recipe lies."""
    node = root.at(call.name_path) if call.kind == "data set" else None
    if node is None or not assets.is_path(call.name):
        return call
    base = FilePath(node.base) if node.base else FilePath.cwd()
    node.value = os.path.normpath(base / FilePath(call.name).expanduser())
    return replace(call, name=node.value)


def _unfit(error: ConfigError, call: Call) -> Iterator[Fault]:
    """What is wrong with what is registered, or with a card: its own places, or where it is called."""
    if error.faults:
        yield from error.faults
    else:
        where = call.place.where(call.name_path)
        yield Fault(error.message, where, hint=error.hint or "")


def _quoted(name: str) -> str:
    """A hint for quotes that reached the value: `-o` takes text as it is."""
    return "leave out the quotes: text is taken as it is" if name[:1] in ("'", '"') else ""


def _nested(call: Call, entry: Entry) -> Iterator[Call | Fault]:
    """Calls among the arguments: `init: {constant: {value: 1}}`, and those in lists."""
    for key, node in call.arguments.mapping.items():
        annotation = entry.parameters[key].annotation
        for below, marker in calls_within(annotation, node.plain()):
            found = node.at(below)
            if found is not None:
                yield _nested_call(marker.kind, found, (*call.path, key, *below))


def _nested_call(kind: str, node: Node, path: Path) -> Call | Fault:
    if isinstance(node.value, str):
        empty = Node({}, node.origin, node.key, node.base)
        return Call(kind, node.value, path, empty, node.origin, path)
    if len(node.mapping) != 1:
        message = f"expected exactly one {kind} here, found {_listed(node.mapping)}"
        return Fault(message, node.origin.where(path), CALL_FORM)
    name, below = next(iter(node.mapping.items()))
    given = Node({}, below.origin, below.key, below.base) if below.value is None else below
    place = below.key or below.origin
    return Call(kind, name, (*path, name), given, place, (*path, name))


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
                whole = os.path.normpath(base / FilePath(leaf.value).expanduser())
                if not is_unicode(whole):
                    message = "the folder's name is not UTF-8, so that no recipe can hold it"
                    yield Fault(message, leaf.origin.where(path), "an absolute path in UTF-8")
                leaf.value = whole


def _fill_defaults(call: Call, root: Node) -> None:
    section = root.at(call.path)
    entry = KINDS[call.kind].get(call.name)
    assert section is not None
    assert isinstance(section.value, dict)
    for parameter in entry.parameters.values():
        if not parameter.required and parameter.name not in section.value:
            section.value[parameter.name] = node_of(writable(parameter.default), DEFAULT)


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
