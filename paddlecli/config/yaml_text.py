"""YAML 1.2 text to a tree of nodes, on PyYAML, with every fault of the text reported.

Scalars follow the YAML 1.2 core schema: `1e-3` is a number, `no` and dates are text, `017` is 17.
Tags are refused, aliases and depth are limited, and merge keys (`<<`) have no meaning. Positions
are counted in characters from 1, the way editors do.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

import yaml
from yaml.nodes import MappingNode, ScalarNode, SequenceNode

from paddlecli.config.nodes import Node, Origin, Path, Scalar, dotted
from paddlecli.errors import Fault, Where

MAX_BYTES = 1 << 20
MAX_NODES = 50_000
MAX_DEPTH = 64
MAX_FAULTS = 20
_SECTION = re.compile(r"^[A-Za-z_]\w*[ ]*:(?=\s|$)", re.MULTILINE)
_INTEGER = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_SPECIAL = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_WORDS: dict[str, Scalar] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
PLAIN_FORMS = {
    "null": re.compile(r"(~|null|Null|NULL|)\Z"),
    "bool": re.compile(r"(true|True|TRUE|false|False|FALSE)\Z"),
    "int": re.compile(rf"({_INTEGER.pattern}|{_BASED.pattern})\Z"),
    "float": re.compile(rf"({_FLOAT.pattern}|{_SPECIAL.pattern})\Z"),
}
"""What an unquoted scalar of each type looks like; the writer quotes text that looks like one."""


def scalar_of(text: str) -> Scalar:
    """The value of an unquoted scalar under YAML 1.2.

    A number that no 64-bit integer or finite float holds comes back as NaN.
    """
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return _whole(text, 10)
    if _BASED.fullmatch(text):
        return _whole(text[2:], 8 if text[1] == "o" else 16)
    if _FLOAT.fullmatch(text):
        number = float(text)
        return number if abs(number) != float("inf") else float("nan")
    return float("nan") if _SPECIAL.fullmatch(text) else text


def _whole(text: str, base: int) -> int | float:
    number = int(text, base) if len(text) < 400 else 1 << 64
    return number if -(1 << 63) <= number < 1 << 63 else float("nan")


@dataclass(slots=True)
class Source:
    """One text and what was found wrong with it.

    name: how errors call the file. base: directory for its relative paths. text_faults stop the
    stage after reading; schema_faults are reported with those of the schema.
    """

    name: str
    text: str = ""
    base: str = ""
    option: int = 0
    shift: int = 0
    text_faults: list[Fault] = field(default_factory=list)
    schema_faults: list[Fault] = field(default_factory=list)
    _starts: list[int] = field(default_factory=list)
    _lines: dict[int, str] = field(default_factory=dict)

    def set_text(self, text: str) -> None:
        """Set the text, line ends turned into `\\n`."""
        self.text = text.replace("\r\n", "\n").replace("\r", "\n")
        self._starts = [0, *(m.end() for m in re.finditer("\n", self.text))]
        self._lines = {}

    def origin(self, index: int) -> Origin:
        """The place of the character at `index`."""
        if self.option:
            return Origin("command line", self.name, self.option, index + self.shift + 1, self.text)
        line = bisect_right(self._starts, index) - 1
        start = self._starts[line]
        if line not in self._lines:  # one text that all values of the line share
            end = self.text.find("\n", start)
            self._lines[line] = self.text[start : end if end >= 0 else None]
        return Origin("file", self.name, line + 1, index - start + 1, self._lines[line])

    def text_fault(self, message: str, index: int, expected: str = "", hint: str = "") -> None:
        """Report a fault of the text."""
        where = self.origin(index).where()
        self.text_faults.append(Fault(message, where, expected, hint=hint))

    def blank_before(self, index: int) -> str:
        """The text with blanks instead of everything before `index`, so that places stay."""
        return re.sub(r"[^\n]", " ", self.text[:index]) + self.text[index:]


def read(path: FilePath | None) -> bytes:
    """The bytes of a file, or of stdin; of one that is too large just so many that `decode` refuses
    it. Raises OSError."""
    if path is None:
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)


def decode(raw: bytes, source: Source) -> bool:
    """Put the bytes into `source` as text. False, with a fault, for what is no UTF-8 text."""
    if len(raw) > MAX_BYTES:
        where = Where(source.name)
        source.text_faults.append(
            Fault("the file has too many bytes", where, f"at most {MAX_BYTES:,} bytes")
        )
        return False
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        where = Where(source.name, 1, 1)
        hint = "save it as UTF-8"
        source.text_faults.append(Fault("the file is UTF-16", where, "UTF-8 text", hint=hint))
        return False
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        good = raw[: error.start].decode("utf-8")
        source.set_text(good.removeprefix("\ufeff"))
        bad = raw[error.start]
        source.text_fault(
            f"byte 0x{bad:02x} is not UTF-8", len(source.text), "UTF-8 text", "save it as UTF-8"
        )
        return False
    source.set_text(text.removeprefix("\ufeff"))
    return True


def is_unicode(text: str) -> bool:
    """False for what the command line or the environment hold in place of bytes that are no
    UTF-8: such text can be written to no file."""
    return not any("\ud800" <= c <= "\udfff" for c in text)


class _StopError(Exception):
    """The text is hopeless; the fault is already in the source."""


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader with the YAML 1.2 scalars, without tags and without deep nesting."""

    def __init__(self, source: Source, text: str) -> None:
        self.source = source
        self.depth = 0
        self.count = 0
        super().__init__(text)

    def compose_node(self, parent: Any, index: Any) -> Any:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if getattr(event, "tag", None) is not None:
            name = event.tag.replace("tag:yaml.org,2002:", "!!")
            self.source.text_fault(
                f"the tag `{name}` is not allowed",
                event.start_mark.index,
                "plain YAML without tags",
            )
            event.tag = None
            if isinstance(event, yaml.ScalarEvent):
                event.implicit = (event.style is None, event.style is not None)
        if self.depth >= MAX_DEPTH:
            self.source.text_fault(
                "the text is nested too deeply",
                event.start_mark.index,
                f"at most {MAX_DEPTH} levels",
            )
            raise _StopError
        self.count += 1
        if self.count > MAX_NODES:
            index = event.start_mark.index
            self.source.text_fault("the text is too large", index, f"at most {MAX_NODES:,} values")
            raise _StopError
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


_Loader.yaml_implicit_resolvers = {}


def parse_file(path: FilePath, what: str = "file") -> tuple[Node | None, list[Fault]]:
    """The tree in a file that is no recipe, and what is wrong with its text: one of the two is empty.

    Raises:
        OSError: it cannot be read.
    """
    source = Source(str(path))
    tree = parse(source) if decode(path.read_bytes(), source) else None
    faults = source.text_faults + source.schema_faults
    if tree is None and not faults:
        faults = [Fault(f"the {what} is empty", Where(str(path)))]
    return (None if faults else tree), faults


def parse(source: Source) -> Node | None:
    """The tree of the source's text, None (and faults) where there is none to be had."""
    try:
        root = _compose(source, source.text)
        return None if root is None else _Tree(source).node(root, ())
    except _StopError:
        return None
    except yaml.reader.ReaderError as error:
        character = error.character
        number = ord(character) if isinstance(character, str) else int(character)
        source.text_fault(f"the character U+{number:04X} is not allowed", int(error.position))
        return None
    except yaml.MarkedYAMLError as error:
        _syntax_fault(source, error)
        _read_on(source, error)
        return None


def _compose(source: Source, text: str) -> Any:
    return _Loader(source, text).get_single_node()


def _read_on(source: Source, error: yaml.MarkedYAMLError | None) -> None:
    """Report what is wrong in the sections behind a fault too. A section (a key that begins a line)
    is YAML by itself, but for aliases of anchors above."""
    reached = 0
    while error is not None and len(source.text_faults) < MAX_FAULTS:
        whole = "another document" in str(error.problem)
        behind = source.text.find("\n", max(_begun(error), reached))
        following = _SECTION.search(source.text, behind) if behind >= 0 and not whole else None
        if following is None:
            return
        reached = following.start()
        try:
            _compose(source, source.blank_before(following.start()))
            return
        except _StopError:
            return
        except yaml.MarkedYAMLError as found:
            error = found
            if "undefined alias" not in str(error.problem):
                _syntax_fault(source, error)


def _begun(error: yaml.MarkedYAMLError) -> int:
    """Where the part that is faulty begins: a quote or bracket, which may swallow what follows, or
    the place itself."""
    swallows = any(word in (error.context or "") for word in ("flow", "scalar"))
    mark = error.context_mark if swallows else error.problem_mark
    mark = mark or error.problem_mark or error.context_mark
    return mark.index if mark is not None else 0


_QUOTE = 'quote `"${...}"` inside [ ] and { }'
_SYNTAX = (
    ("'\\t'", "a tab cannot indent or start a value", "use blanks"),
    ("another document", "a second document starts here", "a recipe is one document"),
    ("mapping values are not allowed", "a `:` does not fit here",
     "quote text that holds `: `, check the indentation"),
    ("<block end>", "this line does not continue the block above it", "check the indentation"),
    ("could not find expected ':'", "a key without `:`", "a setting is written `key: value`"),
    ("expected the node content", "a value is missing", ""),
)  # fmt: skip
"""What PyYAML says, and what that means to somebody who writes a recipe."""


def _syntax_fault(source: Source, error: yaml.MarkedYAMLError) -> None:
    begun = error.context_mark
    mark = error.problem_mark or begun
    index = mark.index if mark is not None else 0
    problem = error.problem or "this is not YAML"
    context = error.context or ""
    if begun and "quoted scalar" in context and "end of stream" in problem:
        return source.text_fault("this quote is not closed", begun.index)
    if begun and "flow" in context and problem.startswith("expected ','"):
        bracket, line = source.text[begun.index], source.origin(begun.index).line
        hint = _QUOTE if "${" in source.origin(index).text else ""
        hint = hint or f"close the `{bracket}` of line {line}, or write a `,` here"
        return source.text_fault(f"`{bracket}` is not closed before this", index, hint=hint)
    for part, message, hint in _SYNTAX:
        if part in problem:
            return source.text_fault(message, index, hint=hint)
    hint = _QUOTE if "${" in source.origin(index).text else ""
    if context and begun is not None and begun.index != index:
        line = source.origin(begun.index).line
        problem = f"{problem} ({context} that starts at line {line})"
    source.text_fault(problem, index, hint=hint)
    return None


class _Tree:
    """Turns PyYAML's graph of nodes, in which aliases share, into a tree of copies."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.count = 0
        self.open: set[int] = set()

    def node(self, node: Any, path: Path, key: Origin | None = None) -> Node:
        self.count += 1
        if self.count > MAX_NODES:
            self.source.text_fault(
                "aliases make this text too large",
                node.start_mark.index,
                f"at most {MAX_NODES:,} values",
            )
            raise _StopError
        if id(node) in self.open:
            self.source.text_fault("an alias contains itself", node.start_mark.index)
            raise _StopError
        self.open.add(id(node))
        origin = self.source.origin(node.start_mark.index)
        found = Node(None, origin, key, self.source.base)
        if isinstance(node, MappingNode):
            found.value = self.mapping(node, path)
        elif isinstance(node, SequenceNode):
            found.value = [self.node(n, (*path, i)) for i, n in enumerate(node.value)]
        else:
            self.scalar(node, found, path)
        self.open.discard(id(node))
        return found

    def scalar(self, node: ScalarNode, found: Node, path: Path) -> None:
        """Read a scalar; what is not finite is a fault of the schema and leaves no second one."""
        value = scalar_of(node.value) if node.style is None else node.value
        if isinstance(value, float) and value != value:
            found.faulty, value = True, 0
            long = _INTEGER.fullmatch(node.value) or _BASED.fullmatch(node.value)
            what = "has more than 64 bits" if long else "is not a finite number"
            where = found.origin.where(path)
            fault = Fault(f"`{node.value[:60]}` {what}", where, "a finite number of 64 bits")
            self.source.schema_faults.append(fault)
        found.value = value

    def mapping(self, node: MappingNode, path: Path) -> dict[str, Node]:
        """Read a mapping; a key that comes twice is a fault of the schema."""
        found: dict[str, Node] = {}
        for key_node, value_node in node.value:
            place = self.source.origin(key_node.start_mark.index)
            if not isinstance(key_node, ScalarNode):
                self.source.text_fault(
                    "a list or mapping cannot be a key", key_node.start_mark.index
                )
                continue
            name = str(key_node.value)
            below = self.node(value_node, (*path, name), place)
            if name in found:
                first = found[name].key
                line = first.line if first is not None else 0
                self.source.schema_faults.append(
                    Fault(f"the key `{name}` comes twice, first in line {line}",
                          place.where(dotted((*path, name))), "each key once",
                          hint="remove one of the two lines")
                )  # fmt: skip
                continue
            found[name] = below
        return found
