"""Composition: `extends`, `-o`, and `${...}`, on trees that know where every value was written."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
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
from paddlecli.config.shape import Form
from paddlecli.config.yaml_text import Source, decode, is_unicode, parse, read, scalar_of
from paddlecli.errors import Fault, Where

NULL = "null"
FormOf = Callable[[Path, Node], Form]
_INDEX = re.compile(r"-?[0-9]+")
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
    if path[:1] == ("model",) and path[-1] in ("loss", "initializer", "regularizer"):
        return True
    if path[:1] == ("optimizer",) and path[-1] in ("regularizer", "clip"):
        return True
    if path == ("model",) and set(over.mapping) <= {"parameters"}:
        return False  # settings of parameters go with both kinds of networks
    if path == ("model",) and pick_model(base.plain()) != pick_model(over.plain()):
        return True
    if path == ("optimizer",) and pick_optimizer(base.plain()) != pick_optimizer(over.plain()):
        return True
    if path[:1] not in (("model",), ("data",), ("optimizer",)) or len(path) > 3:
        return False
    name, known = over.child("name"), base.child("name")
    return name is not None and known is not None and name.value != known.value


class FromFile(str):
    """`KEY=FILE`, as given with `--set-file`: the key's value is what the file holds."""


class Preset(str):
    """`a.b=value` or `~a.b` that a command adds itself: it comes before `-o`, and does not count."""


class Flag(str):
    """`a.b_c=value`, as given with the flag `--b-c value`."""


@dataclass(frozen=True, slots=True)
class Override:
    """One change: `parts` of the path, and the source of the value's text (None: delete).

    option: the whole option, as errors show it. value: the text as it was given, for settings that
    take text; that of a file without its last line end.
    """

    parts: list[str]
    source: Source | None
    option: Origin
    value: str = ""

    def where(self, key: str = "") -> Where:
        """The option, as errors carry it."""
        return self.option.where(key or ".".join(self.parts))


def read_override(text: str, number: int) -> Override | Fault:
    """`a.b=v`, `~a.b`, or a FromFile; the first `=` splits. The option is the `number`th of its
    kind."""
    name = "--set-file" if isinstance(text, FromFile) else "-o"
    option = Origin("command line", name, number, 1, text)
    if not is_unicode(text):
        return Fault("this is not UTF-8", option.where(""), "UTF-8 text")
    path, equals, value = text.partition("=")
    delete = path.startswith("~") and name == "-o"
    form = "`key.key=value` or `~key.key`" if name == "-o" else "`key.key=FILE`"
    parts = split_path(path.removeprefix("~" if delete else "").strip())
    if parts is None:
        return Fault("this is not a path of keys", option.where(""), form)
    if delete and equals:
        return Fault("`~` deletes and takes no value", option.where(""), "`~key.key`")
    if not delete and not equals:
        return Fault("a `=` is missing", option.where(""), form)
    if delete:
        return Override(parts, None, option)
    if name == "--set-file":
        found = _content(value, option, ".".join(parts))
        if isinstance(found, Fault):
            return found
        return Override(parts, found, option, found.text.removesuffix("\n"))
    if isinstance(text, Flag):
        name = f"--{parts[-1].replace('_', '-')}"
        option = Origin("command line", name, number, 1, f"{name} {value}")
    shift = len(option.text) - len(value)
    source = Source(name, base=str(FilePath.cwd()), option=number, shift=shift)
    source.set_text(value)
    return Override(parts, source, option, value)


def _content(file: str, option: Origin, key: str) -> Source | Fault:
    """The text of a file, or what is wrong with it."""
    path = FilePath(file).expanduser()
    source = Source(file, base=str(path.parent.resolve()))
    if not file:
        return Fault("the name of the file is empty", option.where(key), "a path")
    try:
        raw = read(path)
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        return Fault(f"cannot read the file `{file}`: {reason}", option.where(key), "a file")
    if decode(raw, source):
        return source
    found = source.text_faults[0]
    return replace(found, where=replace(found.where, key=key))


def apply_override(root: Node, override: Override, form_of: FormOf) -> list[Fault]:
    """Change `root`; what is wrong with the option comes back as faults."""
    path = locate(root, override.parts)
    if path[0] == "extends":
        hint = "write it in the file"
        return [Fault("`extends` is read before `-o`", override.where(), hint=hint)]
    holder, reached = root.nearest(path[:-1])
    if override.source is None:
        return _delete(root, path, override)
    if not isinstance(holder.value, dict | list) and holder.value is not None:
        key = dotted(reached)
        got = f"`{key}` is not a mapping"
        return [Fault(got, override.where(dotted(path)), "a key that has keys below it")]
    value, faults = _value(root, path, override, form_of)
    return faults or _set(root, path, value, override)


def _value(root: Node, path: Path, override: Override, form_of: FormOf) -> tuple[Node, list[Fault]]:
    source = override.source
    assert source is not None
    form, optional = form_of(path, root)
    text = override.value
    nothing = optional and text == NULL
    literal = Node(None if nothing else text, source.origin(0), override.option, source.base)
    if form == "text":
        return _marked(literal, override), []
    parsed = parse(source) if text.strip() else Node(None, source.origin(0))
    faults = [*source.text_faults, *source.schema_faults]
    if form != "value":
        value = None if faults or parsed is None else parsed.value
        scalar = form == "text or scalar" and isinstance(value, bool | int | float)
        if parsed is not None and (scalar or isinstance(value, dict | list)):
            return _marked(parsed, override), []
        return _marked(literal, override), []
    if faults or parsed is None:
        full = [replace(f, where=_shown(f.where, override, path)) for f in faults]
        return literal, full or [Fault("this is not YAML", override.where(dotted(path)))]
    return _marked(parsed, override), []


def _shown(where: Where, override: Override, path: Path) -> Where:
    """A place in an option with the whole option as its line; one in a file stays as it is."""
    key = where.key or dotted(path)
    text = override.option.text if where.file == override.option.file else where.text
    return replace(where, key=key, text=text)


def _marked(node: Node, override: Override) -> Node:
    """The value with its option: as the source line, and as the place of the key."""
    source, option = override.source, override.option
    assert source is not None
    if source.option:
        for _, below in node.walk():
            below.origin = replace(below.origin, text=option.text)
            if below.key is not None:
                below.key = replace(below.key, text=option.text)
        if not isinstance(node.value, dict | list):
            node.text = override.value
    node.key = option
    return node


def _set(root: Node, path: Path, value: Node, override: Override) -> list[Fault]:
    node = root
    for depth, part in enumerate(path):
        last = depth == len(path) - 1
        if node.value is None:
            node.value = [] if _INDEX.fullmatch(str(part)) else {}
        if isinstance(node.value, list):
            part = int(part) if str(part).isdecimal() else part
            fault = _index_fault(node, (*path[:depth], part), override)
            if fault is not None:
                return [fault]
            assert isinstance(part, int)
            if part == len(node.value):
                node.value.append(Node(None, override.option))
            if last:
                value.key = node.value[part].key
                node.value[part] = value
            node = node.value[part]
        elif isinstance(node.value, dict):
            if last:
                node.value[str(part)] = value
            else:
                empty = Node(None, override.option, override.option)
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
        f"{'0 to ' if count > 1 else ''}{count - 1}, or {count} to append"
        if count
        else "0 to append",
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

    def __init__(self, root: Node, defaults: Node, form_of: FormOf) -> None:
        self.root = root
        self.defaults = defaults
        self.form_of = form_of
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
                if not isinstance(node.value, dict | list) and self._textual(path):
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
        if found is node or node.faulty or found.faulty:
            node.faulty = True
            return None
        return found.copy()

    def _textual(self, path: Path) -> bool:
        """Whether a single value is text there, whatever it looks like."""
        return self.form_of(path, self.root).takes in ("text", "text or more")

    def _environment(self, reference: str, path: Path, node: Node) -> Node | None:
        _, name, *default = reference.split(":", 2)
        text = settings.environment(name) if name else None
        if text is None:
            text = default[0] if default else None
        if text is None:
            hint = f"set it, or give a default: ${{env:{name}:value}}"
            self._fault(node, path, f"the environment variable `{name}` is not set", hint=hint)
            return None
        if not is_unicode(text):
            self._fault(node, path, f"the value of `{name}` is not UTF-8", "UTF-8 text")
            return None
        value: Plain = text if self._textual(path) else scalar_of(text)
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
        return NULL
    return str(value).lower() if isinstance(value, bool) else str(value)
