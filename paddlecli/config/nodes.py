"""The tree between YAML text and settings: every value knows where it was written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Literal, TypeAlias

from paddlecli.errors import Where

Path: TypeAlias = tuple[str | int, ...]
Scalar: TypeAlias = bool | int | float | str | None
Plain: TypeAlias = Any

TWO_PART_KEYS = ("expect",)
"""Sections whose keys are `split.metric`."""
_SEGMENT = re.compile(r'"([^"]*)"|\'([^\']*)\'|([^."\']+)')


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a resolved value came from: a file, an `-o` on the command line, or a default.

    `file` is the option for the command line ("-o", "--set-file", "--epochs"), `line` then counts
    its uses.
    `text` is the source line.
    """

    kind: Literal["file", "command line", "default"] = "default"
    file: str = ""
    line: int = 0
    column: int = 0
    text: str = ""

    def __str__(self) -> str:
        if self.kind == "file":
            return f"{self.file}:{self.line}:{self.column}"
        if self.kind == "default":
            return "default"
        # a flag's text begins with it
        return self.text if self.text.startswith(f"{self.file} ") else f"{self.file} {self.text}"

    def as_dict(self) -> dict[str, Any]:
        """The form used by `--json`."""
        return {"kind": self.kind, "file": self.file, "line": self.line, "column": self.column,
                "text": str(self)}  # fmt: skip

    def where(self, path: Path | str = ()) -> Where:
        """The place, as errors carry it, for the setting at `path`."""
        key = path if isinstance(path, str) else dotted(path)
        return Where(self.file, self.line, self.column, key, self.text)


DEFAULT = Origin()


@dataclass(slots=True)
class Node:
    """A scalar, a list or a mapping of nodes.

    origin: where the value stands. key: where its key stands (None in lists and at the root).
    base: the directory that relative paths below this node start from.
    text: what was written, for scalars of the command line and the environment (a text setting
    takes it literally). faulty: a fault was reported here, further ones would repeat it.
    """

    value: Scalar | list[Node] | dict[str, Node]
    origin: Origin = DEFAULT
    key: Origin | None = None
    base: str = ""
    text: str | None = None
    faulty: bool = False

    @property
    def mapping(self) -> dict[str, Node]:
        """The children by name; empty for anything but a mapping."""
        return self.value if isinstance(self.value, dict) else {}

    @property
    def items(self) -> list[Node]:
        """The children of a list; empty for anything but a list."""
        return self.value if isinstance(self.value, list) else []

    def child(self, part: str | int) -> Node | None:
        """The child of that name or number, None where there is none."""
        if isinstance(self.value, dict):
            return self.value.get(str(part))
        if isinstance(self.value, list) and isinstance(part, int):
            return self.value[part] if 0 <= part < len(self.value) else None
        return None

    def at(self, path: Path) -> Node | None:
        """The node at a path below this one."""
        node: Node | None = self
        for part in path:
            node = node.child(part) if node is not None else None
        return node

    def nearest(self, path: Path) -> tuple[Node, Path]:
        """The deepest existing node on the way to `path`, and its own path."""
        node = self
        for depth, part in enumerate(path):
            below = node.child(part)
            if below is None:
                return node, path[:depth]
            node = below
        return node, path

    def plain(self) -> Plain:
        """The tree without positions, as lists, dicts and scalars."""
        if isinstance(self.value, dict):
            return {k: v.plain() for k, v in self.value.items()}
        if isinstance(self.value, list):
            return [v.plain() for v in self.value]
        return self.value

    def copy(self) -> Node:
        """A deep copy; the origins are shared."""
        if isinstance(self.value, dict):
            return replace(self, value={k: v.copy() for k, v in self.value.items()})
        if isinstance(self.value, list):
            return replace(self, value=[v.copy() for v in self.value])
        return replace(self)

    def walk(self, path: Path = ()) -> Iterator[tuple[Path, Node]]:
        """This node and all below it, parents first, in order."""
        yield path, self
        if isinstance(self.value, dict):
            for name, below in self.value.items():
                yield from below.walk((*path, name))
        elif isinstance(self.value, list):
            for index, below in enumerate(self.value):
                yield from below.walk((*path, index))


def node_of(value: Plain, origin: Origin = DEFAULT) -> Node:
    """A tree of nodes that all have the same origin."""
    if isinstance(value, dict):
        return Node({str(k): node_of(v, origin) for k, v in value.items()}, origin)
    if isinstance(value, list | tuple):
        return Node([node_of(v, origin) for v in value], origin)
    return Node(value, origin)


def dotted(path: Path) -> str:
    """`("layers", 3, "fc")` as `layers.3.fc`; a name that holds a dot is quoted."""
    return ".".join(f'"{p}"' if isinstance(p, str) and "." in p else str(p) for p in path)


def split_path(text: str) -> list[str] | None:
    """The parts of a dotted path, quotes taken off; None where it is not one."""
    parts: list[str] = []
    position = 0
    while True:
        found = _SEGMENT.match(text, position)
        if found is None:
            return None
        parts.append(next(g for g in found.groups() if g is not None))
        position = found.end()
        if position == len(text):
            return parts
        if text[position] != ".":
            return None
        position += 1


def locate(root: Node, parts: list[str]) -> Path:
    """Turn the written parts into a path of `root`: list indices become numbers, and names that
    hold a dot (`expect.test.loss`) are found in the mapping that has them."""
    path: list[str | int] = []
    node: Node | None = root
    while parts:
        part: str | int = parts[0]
        taken = 1
        if node is not None and isinstance(node.value, list) and parts[0].isdecimal():
            part = int(parts[0])
        elif path and path[-1] in TWO_PART_KEYS and len(path) == 1 and "." not in parts[0]:
            part, taken = ".".join(parts[:2]), 2
        elif node is not None and parts[0] not in node.mapping:
            for count in range(len(parts), 1, -1):
                if ".".join(parts[:count]) in node.mapping:
                    part, taken = ".".join(parts[:count]), count
                    break
        path.append(part)
        parts = parts[taken:]
        node = node.child(part) if node is not None else None
    return tuple(path)


def close_names(name: str, names: list[str] | tuple[str, ...] | set[str]) -> tuple[str, ...]:
    """At most two names that resemble `name`, the nearest first."""
    lowered = {n.lower(): n for n in sorted(names)}
    found = get_close_matches(name.lower(), list(lowered), n=2, cutoff=0.6)
    return tuple(lowered[f] for f in found)


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
