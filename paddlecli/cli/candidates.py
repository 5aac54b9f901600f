"""What may stand at the end of a command line: commands, options, and names of all kinds.

Asked at every press of the tab key, so nothing slow is loaded: neither numpy nor the core.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin

FILES, FOLDERS = ":files", ":folders"
"""Stand for what the shell completes itself."""


class Candidate(NamedTuple):
    """A word, and what it is; no text where that says nothing."""

    word: str
    text: str = ""


def candidates(root: Any, words: Sequence[str]) -> list[Candidate]:
    """What may stand for the last of `words` (the program's name left out, the last one begun or
    empty), in order. root: the click command of the whole program."""
    *before, begun = words
    place = _Place(root)
    for word in before:
        place.take(word)
    found = dict.fromkeys(c for c in place.next(begun) if c.word.startswith((begun, ":")))
    return sorted(found, key=lambda c: c.word.startswith(":"))  # what the shell does comes last


class _Place:
    """Where in a command line one is: the command so far and what it has taken."""

    def __init__(self, root: Any) -> None:
        self.command: Any = root
        self.path: tuple[str, ...] = ()
        self.open: Any = None  # the option that waits for its value
        self.taken = 0
        self.only_arguments = False

    def take(self, word: str) -> None:
        """One word more."""
        if self.open is not None:
            optional, self.open = self.open.opts[0] in _optional(self.command), None
            if not (optional and word.startswith("-")):
                return
        if word == "--" and not self.only_arguments:
            self.only_arguments = True
        elif self._is_option(word):
            option = self._option(word.partition("=")[0])
            if option is not None and "=" not in word and _takes_value(option):
                self.open = option
        elif hasattr(self.command, "list_commands"):
            below = self.command.get_command(None, word) if word in self._below() else None
            self.command, self.path = below or _Nothing(), (*self.path, word)
        else:
            self.taken += 1

    def next(self, begun: str) -> Iterator[Candidate]:
        """All that may follow."""
        if self.open is not None and not (
            begun.startswith("-") and self.open.opts[0] in _optional(self.command)
        ):
            yield from _values(self.path, self.open, begun)
        elif self._is_option(begun) and "=" in begun:
            name, sign, value = begun.partition("=")
            option = self._option(name)
            if option is not None and _takes_value(option):
                for word, text in _values(self.path, option, value):
                    yield Candidate(word if word.startswith(":") else name + sign + word, text)
        elif self._is_option(begun):
            yield from self._options()
        elif hasattr(self.command, "list_commands"):
            yield from map(Candidate, self._below(), self._helps())
        else:
            yield from self._arguments(begun)

    def _is_option(self, word: str) -> bool:
        return word.startswith("-") and not self.only_arguments

    def _below(self) -> list[str]:
        return list(self.command.list_commands(None))

    def _helps(self) -> list[str]:
        from paddlecli.cli.app import COMMANDS

        if not self.path:
            return [row.help for row in COMMANDS.values()]
        return [str(self.command.commands[name].help or "") for name in self._below()]

    def _options(self) -> Iterator[Candidate]:
        for parameter in self.command.params:
            for name in (*parameter.opts, *parameter.secondary_opts):
                if name.startswith("--") and not getattr(parameter, "hidden", False):
                    yield Candidate(name, str(getattr(parameter, "help", None) or ""))
        yield Candidate("--help", "Show this message and exit.")

    def _option(self, name: str) -> Any:
        for parameter in self.command.params:
            if name in parameter.opts:
                return parameter
        return None

    def _arguments(self, begun: str) -> Iterator[Candidate]:
        known = [p for p in self.command.params if p.opts == [p.name]]
        if self.taken < len(known):
            yield from _values(self.path, known[self.taken], begun)
        elif known and known[-1].nargs == -1:
            yield from _values(self.path, known[-1], begun)


class _Nothing:
    """Stands for an unknown command."""

    params: tuple[Any, ...] = ()


def _optional(command: Any) -> Sequence[str]:
    return getattr(command, "optional", ())


def _takes_value(option: Any) -> bool:
    return not (option.is_flag or option.count)


# -- values of options and arguments ---------------------------------------------------------------
_WORDS: dict[str, tuple[str, ...]] = {
    "DEVICE": ("cpu", "cuda", "auto"),
    "SHELL": ("bash", "zsh", "fish", "powershell"),
    "TASK": ("regression", "classification"),
    "--split": ("train", "valid", "test"),
    "--stage": ("graph", "gradients", "fused", "memory"),
    "--mode": ("min", "max"),
    "--status": ("completed", "stopped", "running", "failed", "killed"),
}
"""Values that are fixed, by the metavar or the option."""
_SAME = {
    "--config": ("RECIPE",),
    "--recipe": ("RECIPE",),
    "--model": ("MODEL",),
    "A": ("RECIPE", "RUN"),
    "B": ("RECIPE", "RUN"),
    "FILE.py": ("FILE",),
    "INPUT": ("FILE",),
    "PATH": ("FILE",),
    "DIR": ("FOLDER",),
    "KEY=FILE": ("KEY=VALUE",),
}
_KINDS = ("layer", "loss", "optimizer", "schedule", "metric", "transform", "model")


def sources_of(path: Sequence[str], parameter: Any) -> tuple[str, ...]:
    """What the values of an option or an argument come from, as the words of its metavar; empty
    where nobody can know them."""
    metavar = (parameter.metavar or "").strip("[]").removesuffix("...")
    if parameter.name in ("name", "names") and parameter.opts == [parameter.name]:
        if path[0] in _KINDS:
            return (path[0].upper(),)
        if path[0] == "dataset":
            return ("DATASET",)
    own = [o for o in parameter.opts if o in _SAME or o in _WORDS]
    names = own or [m for m in metavar.split("|") if m]
    found = tuple(s for name in names for s in _SAME.get(name, (name,)) if s in _SOURCES)
    return found or _by_type(parameter.type_descriptor.annotation)


def _by_type(annotation: Any) -> tuple[str, ...]:
    if annotation is Path or Path in get_args(annotation):
        return ("FILE",)
    return ("LITERAL",) if get_origin(annotation) is Literal else ()


def _values(path: Sequence[str], parameter: Any, begun: str) -> Iterator[Candidate]:
    for source in sources_of(path, parameter):
        if source == "LITERAL":
            yield from map(Candidate, map(str, get_args(parameter.type_descriptor.annotation)))
        else:
            with suppress(Exception):  # a broken file must not spoil the tab key
                yield from map(Candidate, list(_SOURCES[source]()))


def _recipes() -> Iterable[str]:
    from paddlecli import assets

    return [*assets.recipe_names(), FILES]


def _runs() -> Iterable[str]:
    from paddlecli.engine import rundir

    runs = list(rundir.known_runs())
    names = dict.fromkeys(run.path.parent.name for run in runs)
    return [rundir.LAST, *names, *sorted((r.identity for r in runs), reverse=True), FOLDERS]


def _datasets() -> Iterable[str]:
    from paddlecli import assets

    return assets.names("datasets")


def _settings() -> Iterable[str]:
    """Keys of a recipe that have one value."""
    from paddlecli.config import shape
    from paddlecli.config.recipe import Recipe

    def below(annotation: Any, key: str, depth: int) -> Iterator[str]:
        for branch in shape.branches(annotation, None)[:1]:
            keys = shape.keys_of(branch, None)
            if not keys:
                yield f"{key}="
            elif depth:
                for name, inside in keys.items():
                    yield from below(inside, f"{key}.{name}" if key else name, depth - 1)

    return below(Recipe, "", 3)


_KEY = re.compile(r'^ {4}"(\w+)": \(', re.MULTILINE)
"""A row of a table at the top of a module."""


def registered(kind: str) -> list[str]:
    """The shipped names of a kind, read from the sources: importing all that registers takes too
    long, and for transforms numpy. Only modules that provide names by a function are imported. A module
    that registers in a loop has its names as the keys of a table."""
    from paddlecli.config import registry

    known = registry.KINDS[kind]
    constant = next(name for name, value in vars(registry).items() if value is known)
    name = re.compile(rf'^@{constant}\.register\("([^"]+)"\)', re.MULTILINE)
    found: set[str] = set()
    for module, file in _sources(known.modules):
        text = file.read_text(encoding="utf-8")
        found.update(name.findall(text))
        if f"{constant}.register(name)" in text:
            found.update(_KEY.findall(text))
        if f"@{constant}.provider(" in text:
            importlib.import_module(module)
    return sorted(found | known.provided())


def _sources(modules: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """Names and files of modules, and of those in packages."""
    for module in modules:
        spec = importlib.util.find_spec(module)
        if spec is not None and spec.submodule_search_locations:
            for folder in spec.submodule_search_locations:
                yield from ((f"{module}.{f.stem}", f) for f in sorted(Path(folder).glob("*.py")))
        elif spec is not None and spec.origin:
            yield module, Path(spec.origin)


_SOURCES: dict[str, Any] = {
    "RECIPE": _recipes,
    "RUN": _runs,
    "DATASET": _datasets,
    "FILE": lambda: [FILES],
    "FOLDER": lambda: [FOLDERS],
    "KEY=VALUE": _settings,
    **{kind.upper(): (lambda kind=kind: registered(kind)) for kind in _KINDS},
    **{name: (lambda words=words: words) for name, words in _WORDS.items()},
}
