"""Run directories: where they are, who uses them, what is written in them apart from checkpoints.

<runs>/<recipe>/<UTC time>-<id>/
  config.yaml   resolved and complete        run.json       status, versions, times
  metrics.jsonl events without clock values  timing.jsonl   the same moments with clock values
  summary.json  best and last metrics        log.txt        what was said
  checkpoints/  see checkpoint.py            model/         see modeldir.py
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paddlecli import __version__, assets, settings
from paddlecli.config.nodes import close_names
from paddlecli.engine.files import json_page, now, read_json, replace, saving
from paddlecli.errors import RunError, UsageError

if TYPE_CHECKING:
    from filelock import FileLock

LAST = "last"
_LOCK = ".lock"
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def new_path(recipe: str) -> Path:
    """A fresh run directory's path for a recipe of that name; nothing is created."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    identity = "".join(secrets.choice(_ALPHABET) for _ in range(4))
    return settings.runs_dir() / recipe / f"{stamp}-{identity}"


@dataclass
class RunDir:
    """One run directory. Paths only, until it is opened for writing with `claim`."""

    path: Path
    _lock: FileLock | None = None

    @property
    def identity(self) -> str:
        """The name that users may give instead of the path."""
        return self.path.name

    @property
    def config(self) -> Path:
        """The resolved, complete recipe."""
        return self.path / "config.yaml"

    @property
    def checkpoints(self) -> Path:
        """Folder of the checkpoints."""
        return self.path / "checkpoints"

    @property
    def model(self) -> Path:
        """Folder of the model to predict with."""
        return self.path / "model"

    @property
    def metrics(self) -> Path:
        """The events of the run."""
        return self.path / "metrics.jsonl"

    @property
    def timing(self) -> Path:
        """What each moment took."""
        return self.path / "timing.jsonl"

    @property
    def log(self) -> Path:
        """What was said."""
        return self.path / "log.txt"

    def claim(self) -> None:
        """Makes the directory and locks it, so that no second process writes in it.

        Raises:
            RunError: another process has it, or it cannot be written.
        """
        from filelock import FileLock, Timeout

        with saving(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.path / _LOCK)
            try:
                lock.acquire(timeout=0)
            except Timeout:
                raise RunError(
                    f"{self.path}: another process is training in this run directory",
                    hint="wait for it, or give another --run-dir",
                ) from None
        self._lock = lock

    def release(self) -> None:
        """Lets other processes in."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def used(self) -> bool:
        """Whether anything but the lock lies in it."""
        return self.path.is_dir() and any(p.name != _LOCK for p in self.path.iterdir())

    def write(self, name: str, value: Mapping[str, Any]) -> None:
        """Renews a JSON file."""
        replace(self.path / name, json_page(value), durable=False)

    def read(self, name: str) -> dict[str, Any]:
        """The content of a JSON file of the run.

        Raises:
            RunError: it is missing or damaged.
        """
        return read_json(self.path / name)

    def known(self) -> dict[str, Any]:
        """What run.json says; nothing where there is none yet."""
        return self.read("run.json") if (self.path / "run.json").is_file() else {}

    def update(self, **fields: Any) -> None:
        """Changes fields of run.json."""
        self.write("run.json", {**self.known(), **fields})

    def say(self, text: str) -> None:
        """Adds a line to log.txt."""
        with (
            saving(self.log),
            self.log.open("a", encoding="utf-8", errors="surrogateescape") as file,
        ):
            file.write(f"{now()} {text}\n")


def fresh(path: Path, force: bool) -> RunDir:
    """A run directory to start in, claimed. A used one is refused, or moved aside with `force`.

    Raises:
        RunError: it is in use, or holds something and `force` is not given.
    """
    run = RunDir(path)
    if path.exists() and not path.is_dir():
        raise RunError(f"{path}: is a file, not a directory")
    if not path.is_dir() or not run.used():
        run.claim()
        return run
    if not force:
        raise RunError(
            f"{path}: is not empty",
            hint=f"continue it with --resume {path}, or start anew with --force, which moves it aside",
        )
    run.claim()
    run.release()
    aside = path.with_name(
        f"{path.name}.old-{datetime.now(UTC).strftime('%Y%m%dT%H%M%S')}-{secrets.token_hex(2)}"
    )
    with saving(path):
        path.rename(aside)
    run.claim()
    return run


def known_runs(base: Path | None = None) -> Iterator[RunDir]:
    """The runs in a folder, or one folder below it, by path; `base` is the runs folder if None. A run directory that lost its
    run.json or its config.yaml is among them."""
    base = settings.runs_dir() if base is None else base
    for path in _folders(base):
        if is_run(path):
            yield RunDir(path)
        else:
            yield from (RunDir(below) for below in _folders(path) if is_run(below))


def _folders(base: Path) -> list[Path]:
    if not base.is_dir():
        return []
    with os.scandir(base) as found:
        names = [e.name for e in found if not e.name.startswith(".") and e.is_dir()]
    return [base / name for name in sorted(names)]


def is_run(path: Path) -> bool:
    """Whether a folder is a run directory, whole or not."""
    return any((path / name).is_file() for name in ("run.json", "config.yaml"))


def find(text: str) -> RunDir:
    """The run that a user means: a path, an id (or an unambiguous part of one), the name of a recipe, in its file or as
    `chapter/variant`, for its latest run, or `last`.

    Raises:
        RunError: there is none.
        UsageError: the id fits several.
    """
    if not text:
        raise UsageError("RUN is empty", hint="give a run directory, an id, or `last`")
    if text == LAST:
        return last()
    path = Path(text).expanduser()
    if path.is_dir() and is_run(path):
        return RunDir(path)
    if len(path.parts) > 1 or path.is_dir():
        recipe = None if assets.is_path(text) else _recipe_called(text)
        if recipe is not None:
            return last(recipe)
        raise RunError(
            f"{path}: {'is no run directory' if path.is_dir() else 'no such run directory'}"
        )
    return _named(text, list(known_runs()))


def _recipe_called(text: str) -> str | None:
    """The name in a shipped recipe that users call `chapter/variant`; None where there is no such recipe."""
    if assets.find("recipes", text) is None:
        return None
    from paddlecli.config.load import load_recipe

    return load_recipe(text).name


def _named(text: str, runs: list[RunDir]) -> RunDir:
    exact = [r for r in runs if r.identity == text or r.identity.endswith(f"-{text}")]
    of_recipe = [r for r in runs if r.path.parent.name == text]
    if not exact and of_recipe:
        return _latest(of_recipe)
    found = exact or [r for r in runs if text in r.identity]
    if len(found) > 1:
        listed = ", ".join(run.identity for run in found[:5])
        raise UsageError(f"{len(found)} runs fit `{text}`: {listed}", hint="give more of the id")
    if not found:
        near = close_names(text, [r.identity for r in runs] + [r.path.parent.name for r in runs])
        hint = f"did you mean {' or '.join(f'`{n}`' for n in near)}?" if near else ""
        raise RunError(
            f"no run called `{text}` in {settings.runs_dir()}",
            hint=hint or "`last` is the latest run, `paddlecli runs list` shows all",
        )
    return found[0]


def last(recipe: str | None = None) -> RunDir:
    """The run that was started last, of one recipe or of all.

    Raises:
        RunError: there is none.
    """
    runs = [r for r in known_runs() if recipe is None or r.path.parent.name == recipe]
    if not runs:
        of = "" if recipe is None else f" of {recipe}"
        raise RunError(
            f"there is no run{of} in {settings.runs_dir()} yet",
            hint="train one, or set PADDLECLI_RUNS_DIR to where your runs are",
        )
    return _latest(runs)


def _latest(runs: list[RunDir]) -> RunDir:
    return max(runs, key=lambda run: (_started(run), run.identity))


def _started(run: RunDir) -> str:
    """When a run was started; a damaged run.json makes it the oldest, and hides no other run."""
    try:
        return str(run.known().get("started", ""))
    except RunError:
        return ""


def facts() -> dict[str, Any]:
    """What run.json says of the machine and the command, apart from the core."""
    import platform

    import numpy as np

    return {
        "arguments": sys.argv[1:],
        "working_directory": str(Path.cwd()),
        "versions": {
            "paddlecli": __version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
        },
        "platform": platform.platform(),
        "process": os.getpid(),
        "host": platform.node(),
    }
