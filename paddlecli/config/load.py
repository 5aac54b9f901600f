"""`load_recipe`: from a file or a shipped recipe's name to checked settings.

Order of precedence: defaults, `extends`, the file, `-o`. Faults are collected by stage: first the
texts (all files and options), then the schema (keys, types, ranges, names, references).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path as FilePath

from paddlecli import assets
from paddlecli.config import shape
from paddlecli.config.check import check
from paddlecli.config.compose import (
    Flag,
    FromFile,
    Interpolation,
    Override,
    Preset,
    apply_override,
    merge,
    read_override,
)
from paddlecli.config.dump import plain_section
from paddlecli.config.nodes import DEFAULT, Node, Origin, Path, close_names, kind_of, node_of
from paddlecli.config.recipe import Recipe
from paddlecli.config.schema import Checkpoint, Predict, Train
from paddlecli.config.yaml_text import Source, decode, parse, read
from paddlecli.errors import ConfigError, Fault, Where

__all__ = ["Recipe", "load_recipe"]


def load_recipe(
    source: str | FilePath,
    overrides: Sequence[str] = (),
    *,
    built: bool = False,
    unused: Collection[str] = (),
) -> Recipe:
    """Read a recipe, its `extends` and the overrides, and check all of it.

    source: a path (`./x.yaml`, or any Path), a shipped recipe's name (`fit_a_line`), or `-` for
    stdin.
    overrides: `a.b=value` or `~a.b`, as given with `-o`; FromFile("a.b=FILE"), as given with
    `--set-file`. Files come first, so that an option beside them may change what they hold.
    built: the network exists already, so names in `model` and `metrics` are not looked up.
    unused: other sections whose names are not looked up.
    Raises ConfigError with all faults of the first stage that has any.
    """
    files = _Files()
    root = files.recipe(source if isinstance(source, str) else str(source.absolute()))
    options = _options(overrides)
    faults = [*files.text_faults, *(o for o in options if isinstance(o, Fault))]
    if faults or root is None:
        raise ConfigError.of(faults, files.subject)
    faults = files.schema_faults
    for option in options:
        if isinstance(option, Override):
            faults += apply_override(root, option, _form_of)
    defaults = node_of({"train": plain_section(Train()), "checkpoint": plain_section(Checkpoint()),
                        "predict": plain_section(Predict())})  # fmt: skip
    assert isinstance(root.value, dict)
    root.value.setdefault("name", Node(files.default_name, DEFAULT))
    faults += Interpolation(root, defaults, _form_of).run()
    recipe, found = check(root, built, unused)
    if recipe is None or faults:
        raise ConfigError.of([*faults, *found], files.subject)
    recipe._source = files.subject
    recipe._changed = tuple(".".join(o.parts) for o in options if isinstance(o, Override))
    recipe._origins = {p: n.origin for p, n in root.walk()}
    recipe._mappings = frozenset(p for p, n in root.walk() if isinstance(n.value, dict))
    return recipe


def _options(overrides: Sequence[str]) -> list[Override | Fault]:
    """The changes in the order in which they are made; `-o` are numbered as they were given."""
    files = [o for o in overrides if isinstance(o, FromFile)]
    presets = [o for o in overrides if isinstance(o, Preset)]
    given = [o for o in overrides if not isinstance(o, FromFile | Preset | Flag)]
    return [
        *_numbered(presets, len(given) + 1),
        *_numbered(files, 1),
        *_numbered(given, 1),
        *(read_override(o, 1) for o in overrides if isinstance(o, Flag)),
    ]


def _numbered(texts: Sequence[str], first: int) -> list[Override | Fault]:
    return [read_override(text, n) for n, text in enumerate(texts, first)]


def _form_of(path: Path, root: Node) -> shape.Form:
    return shape.form_of(Recipe, path, root)


class _Files:
    """Reads a recipe and everything it extends, and keeps what is wrong with the texts."""

    def __init__(self) -> None:
        self.sources: list[Source] = []
        self.known: dict[FilePath, Node | None] = {}
        self.faults: list[Fault] = []
        self.subject = ""
        self.default_name = ""

    @property
    def text_faults(self) -> list[Fault]:
        """Faults that end the text stage."""
        return [*self.faults, *(f for s in self.sources for f in s.text_faults)]

    @property
    def schema_faults(self) -> list[Fault]:
        """Faults found while reading that belong to the schema stage."""
        return [f for s in self.sources for f in s.schema_faults]

    def recipe(self, text: str) -> Node | None:
        """The merged tree of a recipe given as users give it."""
        if text == "-":
            self.subject, self.default_name = "<stdin>", "recipe"
            return self._tree(None, "<stdin>", str(FilePath.cwd()), ())
        path = find_recipe(text, FilePath.cwd())
        self.subject = text
        if isinstance(path, Fault):
            self.faults.append(path)
            return None
        self.default_name = _name_of(text, path)
        return self._tree(path, _display(path), str(path.parent.resolve()), ())

    def _tree(
        self, path: FilePath | None, shown: str, base: str, above: tuple[FilePath, ...]
    ) -> Node | None:
        source = Source(shown, base=base)
        self.sources.append(source)
        root = self._read(path, source)
        if root is None:
            return None
        merged: Node | None = None
        for item in self._extends(root):
            found = self._extended(item, base, (*above, path) if path is not None else above)
            if found is not None:
                merged = found if merged is None else merge(merged, found)
        if merged is None:
            return root
        if isinstance(merged.value, dict):
            merged.value.pop("name", None)
        return merge(merged, root)

    def _read(self, path: FilePath | None, source: Source) -> Node | None:
        try:
            raw = read(path)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            self.faults.append(Fault(f"cannot read the file: {reason}", Where(source.name)))
            return None
        if not decode(raw, source):
            return None
        root = parse(source)
        if source.text_faults:
            return None
        if root is None or root.value is None:
            self.faults.append(Fault("the file is empty", source.origin(0).where(), "a mapping"))
            return None
        if not isinstance(root.value, dict):
            got = kind_of(root.value)
            message = f"a recipe must be a mapping, got {got}"
            self.faults.append(Fault(message, root.origin.where(), "`key: value` lines"))
            return None
        return root

    def _extends(self, root: Node) -> list[Node]:
        assert isinstance(root.value, dict)
        node = root.value.pop("extends", None)
        if node is None:
            return []
        if not isinstance(node.value, list):
            hint = f"write [{node.value}]" if isinstance(node.value, str) else ""
            message = f"`extends` must be a list, got {kind_of(node.value)}"
            where = node.origin.where("extends")
            self.faults.append(Fault(message, where, "a list of names and paths", hint=hint))
            return []
        for index, item in enumerate(node.value):
            if not isinstance(item.value, str):
                where = item.origin.where(("extends", index))
                message = f"`extends` takes names and paths, got {kind_of(item.value)}"
                self.faults.append(Fault(message, where, "text"))
        return [n for n in node.value if isinstance(n.value, str)]

    def _extended(self, item: Node, base: str, above: tuple[FilePath, ...]) -> Node | None:
        path = _find(str(item.value), FilePath(base), ("configs", "recipes"), item.origin)
        if isinstance(path, Fault):
            self.faults.append(path)
            return None
        if any(path.resolve() == p.resolve() for p in above):
            chain = " -> ".join(_display(p) for p in (*above, path))
            where = item.origin.where("extends")
            self.faults.append(Fault(f"`extends` goes round in a circle: {chain}", where))
            return None
        whole = path.resolve()
        if whole not in self.known:  # a file is read once, however many files extend it
            self.known[whole] = self._tree(path, _display(path), str(whole.parent), above)
        found = self.known[whole]
        return None if found is None else found.copy()


def find_recipe(text: str, base: FilePath) -> FilePath | Fault:
    """The file that a user means by a recipe's name or path; `base` is where paths start."""
    return _find(text, base, ("recipes",))


def _find(
    text: str, base: FilePath, kinds: tuple[assets.Kind, ...], origin: Origin | None = None
) -> FilePath | Fault:
    """The file that a name or a path means, or the fault that says why there is none."""
    key = "extends" if origin is not None else ""
    where = origin.where(key) if origin is not None else Where()
    if not text.strip():
        return Fault("the name of the recipe is empty", where, "a name or a path")
    if assets.is_path(text):
        path = base / FilePath(text).expanduser()
        if path.exists() and not path.is_dir():  # a pipe, as `<(...)` of the shell, is as good
            return path
        if not path.is_dir():
            resembling = close_names(path.name, [p.name for p in path.parent.glob("*.y*ml")])
            near = tuple(text.removesuffix(path.name) + name for name in resembling)
            return Fault(f"the file `{text}` does not exist", where, nearest=near)
        files = sorted(p.name for p in path.glob("*.yaml"))
        first = "config.yaml" if "config.yaml" in files else next(iter(files), "")
        hint = f"name the file in it: {text.rstrip('/')}/{first}" if first else ""
        return Fault(f"the file `{text}` is a folder", where, "a file", hint=hint)
    for kind in kinds:
        found = assets.find(kind, text)
        if found is not None:
            return found
    names = [
        n for k in kinds for n in (assets.recipe_names() if k == "recipes" else assets.names(k))
    ]
    here = (base / f"{text}.yaml").is_file() or (base / text).exists()
    hint = f"a file is written as a path: ./{text}" + (
        ".yaml" if not (base / text).exists() else ""
    )
    return Fault(
        f"there is no recipe named `{text}`"
        if kinds == ("recipes",)
        else f"nothing is named `{text}`",
        where,
        "a name that `paddlecli recipe list` shows, or a path",
        close_names(text, names),
        hint if here else "",
    )


def _display(path: FilePath) -> str:
    """A file as errors call it: relative to the working directory when it lies below it."""
    try:
        return str(path.resolve().relative_to(FilePath.cwd()))
    except ValueError:
        return str(path)


def _name_of(text: str, path: FilePath) -> str:
    """The name of a recipe that has none: its own, made fit for a folder."""
    stem = path.stem if assets.is_path(text) else text.replace("/", "-")
    cleaned = re.sub(r"[^A-Za-z0-9._-]+", "-", stem).lstrip("._-")
    return cleaned or "recipe"
