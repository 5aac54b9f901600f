"""A word of the command line that means a recipe or a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from paddlecli import assets

if TYPE_CHECKING:
    from paddlecli.config.plugins import CodeFile
    from paddlecli.config.recipe import Recipe
    from paddlecli.engine.rundir import RunDir


def run_of(text: str) -> RunDir | None:
    """The run that is meant: a run directory, its config.yaml, an id, or the word `last`; None where
    a recipe is meant. What ships under the name wins.

    Raises:
        UsageError, RunError: an id that fits several runs; `last` without any.
    """
    from paddlecli.engine import rundir

    if text in ("", "-") or assets.find("recipes", text) is not None:
        return None
    if text == rundir.LAST:
        return rundir.find(text)
    path = Path(text).expanduser()
    folder = path.parent if path.name == "config.yaml" and path.is_file() else path
    if (folder / "run.json").is_file():
        return rundir.RunDir(folder)
    if path.is_dir():
        return rundir.find(text)  # raises: it is no run directory
    known = any(text in run.identity for run in rundir.known_runs())
    return rundir.find(text) if known and not assets.is_path(text) else None


def load(text: str, overrides: Sequence[str] = (), code: Sequence[CodeFile] = ()) -> Recipe:
    """The recipe that is meant, or that a run was started with.

    code: user code that was loaded before.
    Raises ConfigError, RunError.
    """
    run = run_of(text)
    if run is None:
        from paddlecli.config.load import load_recipe

        return load_recipe(text, overrides)
    from paddlecli.engine import stored

    with stored.asking_for_code(run, code):
        return stored.recipe_of(run, overrides)
