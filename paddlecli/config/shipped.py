"""What the shipped recipes say, read from their text alone: neither the schema nor numpy is loaded."""

from __future__ import annotations

from functools import cache
from typing import Any

from paddlecli import assets
from paddlecli.config.nodes import Node
from paddlecli.config.yaml_text import Source, decode, parse

BASE = "fit_a_line"
"""The recipe that lends its other sections where nothing but a network is named."""


def written(name: str, *path: str) -> Any:
    """The value that a shipped recipe has at a path, its own or from what it extends (the last one
    wins); None where nobody wrote one."""
    return _written(_tree(name, ("recipes",)), path)


def users_of(model: str) -> list[str]:
    """The shipped recipes whose network has that name."""
    return [r for r in assets.recipe_names() if written(r, "model", "name") == model]


def _written(root: Node | None, path: tuple[str, ...]) -> Any:
    if root is None:
        return None
    own = root.at(path)
    if own is not None:
        return own.plain()
    extended = root.child("extends")
    for base in reversed(extended.items if extended is not None else []):
        found = _written(_tree(str(base.value), ("configs", "recipes")), path)
        if found is not None:
            return found
    return None


@cache
def _tree(name: str, kinds: tuple[assets.Kind, ...]) -> Node | None:
    path = next(filter(None, (assets.find(kind, name) for kind in kinds)), None)
    source = Source(name)
    if path is None or not decode(path.read_bytes(), source):
        return None
    return parse(source)
