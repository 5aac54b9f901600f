"""Blocks: what their arguments stand for at each use, and what can be wrong with that.

In the layers of a block `$name` stands for an argument. `${...}` is filled in once, when the recipe
is read; `$name` each time the block is used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from paddlecli.config.nodes import Node, Path, close_names
from paddlecli.errors import Fault

ARGUMENT = re.compile(r"\$([A-Za-z_]\w*)")
LOOPS = ("scan", "decode")
"""Layers that repeat the block which their argument `block` names."""
Given = Mapping[str, Node | None]
"""Values of a block's arguments; None where only a use will tell."""


def argument(value: Any) -> str | None:
    """Name of the block's argument that a value stands for, None for any other value."""
    found = ARGUMENT.fullmatch(value) if isinstance(value, str) else None
    return found[1] if found is not None else None


def filled(value: Any, given: Mapping[str, Any]) -> Any:
    """A plain value with the block's arguments put in; unknown ones stay as they are."""
    if isinstance(value, dict):
        return {k: filled(v, given) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [filled(v, given) for v in value]
    name = argument(value)
    return given[name] if name is not None and name in given else value


def filled_node(node: Node, given: Given) -> Node | None:
    """The same for a tree; None where something in it is not known yet."""
    name = argument(node.value)
    if name is not None:
        return given.get(name)
    if isinstance(node.value, dict):
        below = {k: filled_node(v, given) for k, v in node.value.items()}
        found = {k: v for k, v in below.items() if v is not None}
        return replace(node, value=found) if len(found) == len(below) else None
    if isinstance(node.value, list):
        items = [filled_node(v, given) for v in node.value]
        kept = [v for v in items if v is not None]
        return replace(node, value=kept) if len(kept) == len(items) else None
    return node


def defaults(block: Node) -> Given:
    """A block's arguments where no use is known: their defaults."""
    declared = block.child("arguments")
    found = declared.mapping if declared is not None else {}
    return {k: None if v.value is None else v for k, v in found.items()}


def step_of(arguments: Node) -> tuple[str, Node] | None:
    """The block that a loop repeats, and what it is given: `block: cell`, `block: {cell: {...}}`."""
    node = arguments.child("block")
    if node is None:
        return None
    if isinstance(node.value, str):
        return node.value, Node({}, node.origin, node.key, node.base)
    if len(node.mapping) != 1:
        return None
    name, given = next(iter(node.mapping.items()))
    empty = Node({}, given.origin, given.key, given.base)
    return name, empty if given.value is None else given


def loop_faults(
    loop: str, arguments: Node, local: Mapping[str, Node], path: Path
) -> Iterator[Fault]:
    """What is wrong with the block that a loop repeats, and with what it is given."""
    node, step = arguments.child("block"), step_of(arguments)
    if node is None:
        return
    if step is None:
        where = node.origin.where((*path, "block"))
        yield Fault(f"`{loop}` repeats exactly one block", where, "a block's name")
    elif step[0] not in local:
        where = node.origin.where((*path, "block"))
        listed = f"one of {', '.join(local)}" if local else "the recipe has no blocks"
        near = close_names(step[0], set(local))
        yield Fault(f"there is no block `{step[0]}`", where, listed, near)
    else:
        yield from use_faults(step[0], step[1], local[step[0]], (*path, "block"))


def use_faults(
    name: str, given: Node, block: Node, path: Path, free: frozenset[str] = frozenset()
) -> Iterator[Fault]:
    """What is wrong with the arguments that a use gives a block. `free`: given ones whose values
    only a use of the block around tells."""
    known = defaults(block)
    place = (given.key or given.origin).where(path)
    if not isinstance(given.value, dict):
        yield Fault(f"the arguments of the block `{name}` must be a mapping", place, "a mapping")
        return
    for key, node in given.mapping.items():
        if key not in known:
            where = (node.key or node.origin).where((*path, key))
            listed = f"one of {', '.join(known)}" if known else "no key here"
            near = close_names(key, set(known))
            yield Fault(f"the block `{name}` has no argument `{key}`", where, listed, near)
    told = free | given.mapping.keys()
    missing = [k for k, v in known.items() if v is None and k not in told]
    if missing:
        listed = ", ".join(f"`{k}`" for k in missing)
        yield Fault(f"the block `{name}` needs {listed}", place, "a value for each")


def argument_faults(model: Node) -> Iterator[Fault]:
    """Arguments that no block declares, and blocks whose names something else has."""
    from paddlecli.config.registry import LAYERS

    blocks = model.child("blocks")
    for name, block in (blocks.mapping if blocks is not None else {}).items():
        path: Path = ("model", "blocks", name)
        known = set(defaults(block))
        for part in ("layers", "memories"):
            yield from _undeclared(block.child(part), (*path, part), known, f"the block `{name}`")
        if LAYERS.find(name) is not None:
            where = (block.key or block.origin).where(path)
            yield Fault(f"`{name}` is a layer: a block needs a name of its own", where)
    for part in ("layers", "entries"):
        yield from _undeclared(model.child(part), ("model", part), None, "")


def _undeclared(
    node: Node | None, path: Path, known: set[str] | None, block: str
) -> Iterator[Fault]:
    for at, found in node.walk(path) if node is not None else ():
        name = argument(found.value)
        if name is None or (known is not None and name in known):
            continue
        where = found.origin.where(at)
        if known is None:
            found.faulty = True  # that `$name` is no value of the setting is told by this
            yield Fault(f"`${name}` stands for an argument, but this is no layer of a block", where)
            continue
        expected = f"one of {', '.join(sorted(known))}" if known else "no argument here"
        near = close_names(name, known)
        hint = "" if near else f"declare it: arguments: {{{name}: 1}}"
        yield Fault(f"{block} has no argument `{name}`", where, expected, near, hint)
