"""The recipe of a run that exists. Its network is in `model/graph.yaml`, so of the user's own code only what stands for data
and update rules is needed again; which files that were is in run.json."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from paddlecli.config.load import load_recipe
from paddlecli.config.plugins import CodeFile, Plugin, plugins
from paddlecli.config.recipe import Recipe
from paddlecli.config.registry import KINDS
from paddlecli.engine import modeldir
from paddlecli.engine.rundir import RunDir
from paddlecli.errors import ConfigError, RunError, UserCodeError

Known = Mapping[str, Any]
T = TypeVar("T")

CODE, PLUGINS = "code", "plugins"
"""Keys of run.json: path and sha256 of the user's own code files; installed plug-ins with their versions."""


TRAINING = ("optimizer", "callbacks")
"""Sections of a recipe that training alone needs."""


def recipe_of(run: RunDir, overrides: Sequence[str] = (), unused: Collection[str] = ()) -> Recipe:
    """The recipe that a run was started with. Where its network is stored, names of networks, layers, losses and metrics
    need not be known, and never those in the sections `unused`.

    Raises:
        RunError: it is not there.
        ConfigError: another name is unknown, or an override is wrong.
    """
    if not run.config.is_file():
        raise RunError(f"{run.path}: has no config.yaml: it is no run directory, or not whole")
    built = (run.model / modeldir.GRAPH).is_file()
    return load_recipe(run.config, overrides, built=built, unused=unused)


def code_of(known: Known) -> tuple[CodeFile, ...]:
    """The files of user code that run.json, or the report of a model, says were there."""
    return tuple(CodeFile(str(f["path"]), str(f["sha256"])) for f in known.get(CODE, ()))


def record(code: Sequence[CodeFile]) -> dict[str, Any]:
    """What run.json keeps of the files that were given and of installed plug-ins; nothing without any, so that an older
    record stays."""
    found = {CODE: [asdict(file) for file in code], PLUGINS: [asdict(p) for p in plugins()]}
    return {key: files for key, files in found.items() if files}


def asking_for_code(run: RunDir, given: Sequence[CodeFile]) -> AbstractContextManager[None]:
    """A name that is unknown in here may be the user's own: the error says which `--code` the run was started with."""
    return asking(run.known(), given)


def asked(known: Known, given: Sequence[CodeFile], items: Iterable[T]) -> Iterator[T]:
    """The items, those that are made when they are asked for too (see `asking`)."""
    with asking(known, given):
        yield from items


@contextmanager
def asking(known: Known, given: Sequence[CodeFile]) -> Iterator[None]:
    """A name that is unknown in here may be the user's own: the error says which `--code` it was trained with.

    Args:
        known: run.json, or the report of a model that was moved elsewhere.
        given: the files that were loaded.
    """
    try:
        yield
    except UserCodeError:
        raise
    except (ConfigError, RunError) as error:
        missing = "; ".join(_missing(known, given)) if _is_unknown_name(error) else ""
        if not missing:
            raise
        error.hint = missing
        raise


def _is_unknown_name(error: ConfigError | RunError) -> bool:
    """Whether a registered name or an op is what is missing, not something that code would not mend."""
    faults = error.faults if isinstance(error, ConfigError) else ()
    texts = [error.message, *(f.message for f in faults)]
    unknown = any(text.startswith(f"unknown {kind} `") for text in texts for kind in KINDS)
    return unknown or " uses the op " in error.message


def _missing(known: Known, given: Sequence[CodeFile]) -> Iterator[str]:
    """What of the code that a training had is not here now, and how to give it."""
    loaded = {file.path for file in given} | {file.sha256 for file in given}
    code = [f for f in code_of(known) if f.path.endswith(".py")]  # libraries are named by code
    lacking = [f for f in code if not {f.path, f.sha256} & loaded]
    here = [f for f in lacking if Path(f.path).is_file()]
    if here:
        options = " ".join(f"--code {shlex.quote(f.path)}" for f in here)
        yield f"the run was started with code of its own: add {options}"
    for file in lacking:
        if file not in here:
            yield (
                f"the run was started with --code {shlex.quote(file.path)}, which is no longer there: give the file "
                f"whose sha256 is {file.sha256}"
            )
    installed = {p.name for p in plugins()}
    for plugin in known.get(PLUGINS, ()):
        if plugin["name"] not in installed:
            yield f"the run was started with {Plugin(**plugin)}, which is not installed"


def changes(run: RunDir, given: Sequence[CodeFile]) -> Iterator[str]:
    """A line for each file or plug-in that is not what it was when the run was started. A file that lies elsewhere now is
    known by its name."""
    known = code_of(run.known())
    by_path = {f.path: f for f in known}
    by_name = {Path(f.path).name: f for f in known}
    for file in given:
        old = by_path.get(file.path) or by_name.get(Path(file.path).name)
        if old is not None and old.sha256 != file.sha256:
            yield f"warning: {file.path} has changed since the run was started"
    now = {p.name: p for p in plugins()}
    for record in run.known().get(PLUGINS, ()):
        plugin = now.get(record["name"])
        if plugin is not None and plugin.version != record["version"]:
            yield f"warning: the run was started with {Plugin(**record)}, {plugin.version} is installed"
