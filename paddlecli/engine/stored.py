"""The recipe of a run that exists. Its network is in `model/graph.yaml`, so of the user's own code only what stands for data
and update rules is needed again; which files that were is in run.json."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from paddlecli.config.load import load_recipe
from paddlecli.config.plugins import CodeFile
from paddlecli.config.recipe import Recipe
from paddlecli.engine import modeldir
from paddlecli.engine.rundir import RunDir
from paddlecli.errors import ConfigError, RunError, UserCodeError

CODE = "code"
"""Key of run.json: path and sha256 of the user's own code files."""


def recipe_of(run: RunDir, overrides: Sequence[str] = ()) -> Recipe:
    """The recipe that a run was started with. Where its network is stored, names of networks, layers, losses and metrics
    need not be known.

    Raises:
        RunError: it is not there.
        ConfigError: another name is unknown, or an override is wrong.
    """
    if not run.config.is_file():
        raise RunError(f"{run.path}: has no config.yaml: it is no run directory, or not whole")
    return load_recipe(run.config, overrides, built=(run.model / modeldir.GRAPH).is_file())


def code_of(run: RunDir) -> tuple[CodeFile, ...]:
    """The files of user code that a run was started with."""
    return tuple(CodeFile(str(f["path"]), str(f["sha256"])) for f in run.known().get(CODE, ()))


def record(code: Sequence[CodeFile]) -> dict[str, Any]:
    """What run.json keeps of the files that were given; nothing without any, so that an older record stays."""
    return {CODE: [asdict(file) for file in code]} if code else {}


@contextmanager
def asking_for_code(run: RunDir, given: Sequence[CodeFile]) -> Iterator[None]:
    """A name that is unknown in here may be the user's own: the error says which `--code` the run was started with."""
    try:
        yield
    except UserCodeError:
        raise
    except ConfigError as error:
        loaded = {file.path for file in given}
        missing = " ".join(f"--code {f.path}" for f in code_of(run) if f.path not in loaded)
        if not missing:
            raise
        hint = f"the run was started with code of its own: add {missing}"
        raise ConfigError(error.message, hint, error.where, error.faults) from None


def changes(run: RunDir, given: Sequence[CodeFile]) -> Iterator[str]:
    """A line for each file that is not what it was when the run was started."""
    known = {file.path: file.sha256 for file in code_of(run)}
    for file in given:
        if file.path in known and known[file.path] != file.sha256:
            yield f"warning: {file.path} has changed since the run was started"
