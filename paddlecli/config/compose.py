"""Composition: `extends`, `-o`, and `${...}`, on trees that know where every value was written."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path as FilePath

from paddlecli import settings
from paddlecli.config.nodes import (
    Node,
    Origin,
    Path,
    Plain,
    close_names,
    dotted,
    locate,
    split_path,
)
from paddlecli.config.sections import pick_model, pick_optimizer
from paddlecli.config.yaml_text import Source, parse, scalar_of
from paddlecli.errors import Fault, Where

WantsText = Callable[[Path, Node], bool | None]
_REFERENCE = re.compile(r"\$(\$)?\{([^{}]*)(\})?")


def merge(base: Node, over: Node, path: Path = ()) -> Node:
    """`over` on top of `base`: mappings merge key by key, everything else is replaced.

    A section that calls something else than the inherited one (another `name`, another loss)
    replaces it, since the arguments of the other have no meaning for it.
    """
    if not isinstance(base.value, dict) or not isinstance(over.value, dict):
        return over
    if _replaces(base, over, path):
        return over
    children = dict(base.value)
    for name, node in over.value.items():
        known = children.pop(name, None)
        children[name] = merge(known, node, (*path, name)) if known is not None else node
    order = [*(n for n in base.value), *(n for n in over.value if n not in base.value)]
    return Node({n: children[n] for n in order}, over.origin, over.key, over.base)


def _replaces(base: Node, over: Node, path: Path) -> bool:
    if path[:1] == ("model",) and path[-1] == "loss":
        return True
    if path[:1] == ("optimizer",) and path[-1] in ("regularizer", "clip"):
        return True
    if path == ("model",) and pick_model(base.plain()) != pick_model(over.plain()):
        return True
    if path == ("optimizer",) and pick_optimizer(base.plain()) != pick_optimizer(over.plain()):
        return True
    if path[:1] not in (("model",), ("data",), ("optimizer",)) or len(path) > 3:
        return False
    name, known = over.child("name"), base.child("name")
    return name is not None and known is not None and name.value != known.value


@dataclass(frozen=True, slots=True)
class Override:
    """One `-o`: `parts` of the path, and the source that holds the value (None: delete)."""

    parts: list[str]
    value: str | None
    source: Source
    start: int

    @property
    def origin(self) -> Origin:
        """The option itself."""
        return Origin("command line", "-o", self.source.option, 1, self.source.text)

    def where(self, key: str = "") -> Where:
        """The option, as errors carry it."""
        return self.origin.where(key or ".".join(self.parts))


def read_override(text: str, number: int) -> Override | Fault:
    """`a.b=v` or `~a.b`; the first `=` splits."""
    source = Source("-o", base=str(FilePath.cwd()), option=number)
    source.set_text(text)
    where = Where("-o", number, 1, "", text)
    path, equals, value = text.partition("=")
    delete = path.startswith("~")
    parts = split_path(path.removeprefix("~").strip())
    if parts is None:
        return Fault("this is not a path of keys", where, "`key.key=value` or `~key.key`")
    if delete and equals:
        return Fault("`~` deletes and takes no value", where, "`~key.key`")
    if not delete and not equals:
        return Fault("a `=` is missing", where, "`key.key=value` or `~key.key`")
    return Override(parts, None if delete else value, source, len(path) + 1)


def apply_override(root: Node, override: Override, wants_text: WantsText) -> list[Fault]:
    """Change `root`; what is wrong with the option comes back as faults."""
    path = locate(root, override.parts)
    if path[0] == "extends":
        hint = "write it in the file"
        return [Fault("`extends` is read before `-o`", override.where(), hint=hint)]
    holder, reached = root.nearest(path[:-1])
    if override.value is None:
        return _delete(root, path, override)
    if not isinstance(holder.value, dict | list) and holder.value is not None:
        key = dotted(reached)
        got = f"`{key}` is not a mapping"
        return [Fault(got, override.where(dotted(path)), "a key that has keys below it")]
    value, faults = _value(root, path, override, wants_text)
    return faults or _set(root, path, value, override)


def _value(
    root: Node, path: Path, override: Override, wants_text: WantsText
) -> tuple[Node, list[Fault]]:
    text = override.value or ""
    origin = Origin("command line", "-o", override.source.option, override.start + 1,
                    override.source.text)  # fmt: skip
    key = override.origin
    textual = wants_text(path, root)
    literal = Node(text, origin, key, override.source.base, text)
    if textual:
        return literal, []
    source = Source("-o", base=override.source.base, option=override.source.option)
    source.shift = override.start
    source.set_text(text)
    parsed = parse(source) if text.strip() else Node(None, origin)
    faults = [*source.text_faults, *source.schema_faults]
    if textual is None and (faults or parsed is None or not isinstance(parsed.value, dict | list)):
        if isinstance(scalar_of(text), bool | int | float) and not faults and parsed is not None:
            return _marked(parsed, key, override), []
        return literal, []
    if faults or parsed is None:
        full = [Fault(f.message, _shown(f.where, override, path), f.expected, f.nearest, f.hint)
                for f in faults]  # fmt: skip
        return literal, full or [Fault("this is not YAML", override.where(dotted(path)))]
    return _marked(parsed, key, override), []


def _shown(where: Where, override: Override, path: Path) -> Where:
    return Where("-o", where.line, where.column, dotted(path), override.source.text)


def _marked(node: Node, key: Origin, override: Override) -> Node:
    """The parsed value with the whole option as its source line."""
    for _, below in node.walk():
        below.origin = Origin("command line", "-o", key.line, below.origin.column, key.text)
        if below.key is not None:
            below.key = Origin("command line", "-o", key.line, below.key.column, key.text)
        below.base = override.source.base
    node.key = key
    if not isinstance(node.value, dict | list):
        node.text = override.value
    return node


def _set(root: Node, path: Path, value: Node, override: Override) -> list[Fault]:
    node = root
    for depth, part in enumerate(path):
        last = depth == len(path) - 1
        if node.value is None:
            node.value = [] if part in ("0", 0) else {}
        if isinstance(node.value, list):
            part = int(part) if str(part).isdecimal() else part
            fault = _index_fault(node, (*path[:depth], part), override)
            if fault is not None:
                return [fault]
            assert isinstance(part, int)
            if part == len(node.value):
                node.value.append(Node(None, override.origin))
            if last:
                value.key = node.value[part].key
                node.value[part] = value
            node = node.value[part]
        elif isinstance(node.value, dict):
            if last:
                node.value[str(part)] = value
            else:
                empty = Node(None, override.origin, override.origin)
                node.value.setdefault(str(part), empty)
            node = node.value[str(part)]
    return []


def _index_fault(node: Node, path: Path, override: Override) -> Fault | None:
    count = len(node.items)
    if isinstance(path[-1], int) and path[-1] <= count:
        return None
    return Fault(
        f"`{dotted(path[:-1])}` is a list of {count}, `{path[-1]}` is no place in it",
        override.where(dotted(path)),
        f"0 to {count - 1}, or {count} to append" if count else "0 to append",
    )


def _delete(root: Node, path: Path, override: Override) -> list[Fault]:
    holder, part = root.at(path[:-1]), path[-1]
    if holder is None or holder.child(part) is None:
        deepest, reached = root.nearest(path)
        missing = str(path[len(reached)])
        near = close_names(missing, list(deepest.mapping))
        where = override.where(dotted(path))
        return [Fault(f"there is no `{dotted(path)}` to delete", where, nearest=near)]
    if isinstance(holder.value, dict):
        del holder.value[str(part)]
    elif isinstance(holder.value, list) and isinstance(part, int):
        del holder.value[part]
    return []


class Interpolation:
    """Replaces `${a.b}` and `${env:NAME:default}` in the texts of a tree; `$${` stands for `${`."""

    def __init__(self, root: Node, defaults: Node, wants_text: WantsText) -> None:
        self.root = root
        self.defaults = defaults
        self.wants_text = wants_text
        self.faults: list[Fault] = []
        self._done: set[int] = set()
        self._open: list[Path] = []

    def run(self) -> list[Fault]:
        """Resolve everything in place and return the faults."""
        for path, node in list(self.root.walk()):
            self._resolve(path, node)
        return self.faults

    def _resolve(self, path: Path, node: Node) -> None:
        if id(node) in self._done or not isinstance(node.value, str) or "${" not in node.value:
            return None
        if path in self._open:
            return self._fault(node, path, f"`{dotted(path)}` refers to itself")
        self._open.append(path)
        whole = _REFERENCE.fullmatch(node.value)
        if whole is not None and not whole[1] and whole[3]:
            found = self._look_up(whole[2], path, node)
            if found is not None:
                node.value, node.text = found.value, found.text
                if not isinstance(node.value, dict | list) and self.wants_text(path, self.root):
                    node.value = _as_text(node.value)
        else:
            node.value = _REFERENCE.sub(lambda m: self._insert(m, path, node), node.value)
        self._done.add(id(node))
        self._open.pop()
        return None

    def _insert(self, match: re.Match[str], path: Path, node: Node) -> str:
        if match[1]:
            return match[0][1:]
        if not match[3]:
            self._fault(node, path, "a `}` is missing after `${`", "`$${` for the two characters")
            return match[0]
        found = self._look_up(match[2], path, node)
        if found is None:
            return match[0]
        if isinstance(found.value, dict | list):
            self._fault(node, path, f"`{match[2]}` is not a single value and cannot go into text")
            return match[0]
        return found.text if found.text is not None else _as_text(found.value)

    def _look_up(self, reference: str, path: Path, node: Node) -> Node | None:
        if reference.startswith("env:"):
            return self._environment(reference, path, node)
        parts = split_path(reference)
        if parts is None:
            self._fault(node, path, f"`{reference}` is not a path of keys", "`${section.key}`")
            return None
        target = locate(self.root, parts)
        found = self.root.at(target)
        if found is None:
            found = self.defaults.at(target)
        if found is None:
            deepest, reached = self.root.nearest(target)
            near = close_names(str(target[len(reached)]), list(deepest.mapping))
            self._fault(node, path, f"there is no `{reference}`", nearest=near)
            return None
        for below_path, below in list(found.walk(target)):
            self._resolve(below_path, below)
        if found is node or node.faulty:
            return None
        return found.copy()

    def _environment(self, reference: str, path: Path, node: Node) -> Node | None:
        _, name, *default = reference.split(":", 2)
        text = settings.environment(name) if name else None
        if text is None:
            text = default[0] if default else None
        if text is None:
            hint = f"set it, or give a default: ${{env:{name}:value}}"
            self._fault(node, path, f"the environment variable `{name}` is not set", hint=hint)
            return None
        value: Plain = text if self.wants_text(path, self.root) else scalar_of(text)
        if isinstance(value, float) and value != value:
            self._fault(node, path, f"`{text}` from `{name}` is not a finite number")
            return None
        return Node(value, node.origin, text=text)

    def _fault(
        self,
        node: Node,
        path: Path,
        message: str,
        expected: str = "",
        nearest: tuple[str, ...] = (),
        hint: str = "",
    ) -> None:
        node.faulty = True
        self.faults.append(Fault(message, node.origin.where(path), expected, nearest, hint))


def _as_text(value: Plain) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)
