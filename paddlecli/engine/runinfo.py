"""One run as a list shows it, from its small files; a run that cannot be read says what is wrong with it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paddlecli.engine.files import flagged
from paddlecli.engine.rundir import RunDir
from paddlecli.errors import PaddleCliError

Metrics = Mapping[str, Mapping[str, float]]
DAMAGED = "damaged"


@dataclass(frozen=True)
class RunInfo:
    """One run as a list shows it.

    Attributes:
        status: `running`, `completed`, `stopped`, `interrupted`, `failed`; `killed` where the process is gone that said it was
            running; `damaged` where files cannot be read, and then `problem` says which.
        started: UTC, ISO 8601; empty where nobody knows.
        seconds: of training, of the last process.
        metrics: by split, of the parameters that `model/` holds.
        best: what decided which those are: `metric`, `mode`, `value`, `step`, `epoch`.
        bytes: of all files.
    """

    path: Path
    recipe: str = ""
    status: str = DAMAGED
    started: str = ""
    steps: int = 0
    epochs: int = 0
    seconds: float | None = None
    metrics: Metrics = field(default_factory=dict)
    best: Mapping[str, Any] | None = None
    bytes: int = 0
    problem: str = ""

    @property
    def identity(self) -> str:
        """The name that users may give instead of the path."""
        return self.path.name

    def value(self, metric: str) -> float | None:
        """`test.accuracy` of the parameters in `model/`, None where it was not measured."""
        split, _, name = metric.partition(".")
        return self.metrics.get(split, {}).get(name)

    def headline(self) -> tuple[str, float] | None:
        """The metric that says most: what the run watched, else what is not a loss, of a split that was evaluated."""
        if self.best is not None and self.value(str(self.best.get("metric"))) is not None:
            name = str(self.best["metric"])
            return name, float(self.value(name) or 0.0)
        ranked = sorted(
            (
                split == "train",
                name.startswith("loss"),
                name.endswith("_batch_mean"),
                i,
                split,
                name,
            )
            for split, values in self.metrics.items()
            for i, name in enumerate(values)
        )
        return (
            (f"{ranked[0][4]}.{ranked[0][5]}", self.metrics[ranked[0][4]][ranked[0][5]])
            if ranked
            else None
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        own = {k: v for k, v in vars(self).items() if k not in ("path", "problem")}
        problem = {"problem": self.problem} if self.problem else {}
        return flagged({"id": self.identity, "path": str(self.path), **own, **problem})


def read(run: RunDir) -> RunInfo:
    """One run; never raises."""
    size = size_of(run.path)
    try:
        known = run.read("run.json")
        summary = run.read("summary.json") if (run.path / "summary.json").is_file() else {}
        return _info(run, known, summary, size)
    except PaddleCliError as error:
        problem = error.message
    except (TypeError, ValueError, AttributeError, KeyError, OSError) as error:
        problem = f"{run.path}: run.json or summary.json is not what was written: {error}"
    return RunInfo(run.path, recipe=run.path.parent.name, bytes=size, problem=problem)


def _info(run: RunDir, known: Mapping[str, Any], summary: Mapping[str, Any], size: int) -> RunInfo:
    best = summary.get("best")
    metrics: dict[str, Mapping[str, float]] = dict(summary.get("last", {}))
    if best is not None:
        metrics |= {k: v for k, v in best["metrics"].items() if k != "train"}
    seconds = known.get("seconds")
    return RunInfo(
        path=run.path,
        recipe=str(known.get("recipe", run.path.parent.name)),
        status=_status(known),
        started=str(known.get("started", "")),
        steps=int(known.get("steps", summary.get("step", 0))),
        epochs=int(known.get("epochs", summary.get("epoch", 0))),
        seconds=None if seconds is None else float(seconds),
        metrics={
            split: {k: float("nan") if v is None else float(v) for k, v in values.items()}
            for split, values in metrics.items()
        },
        best=None if best is None else {k: v for k, v in best.items() if k != "metrics"},
        bytes=size,
    )


def _status(known: Mapping[str, Any]) -> str:
    status = str(known.get("status", DAMAGED))
    return "killed" if status == "running" and _gone(known) else status


def _gone(known: Mapping[str, Any]) -> bool:
    """Whether the process that said it was running is no more; only this machine's can be asked for."""
    import platform

    if known.get("host") != platform.node() or not isinstance(known.get("process"), int):
        return False
    try:
        os.kill(known["process"], 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def size_of(folder: Path) -> int:
    """Bytes of all files below a folder; a file with several names counts once."""
    total, seen, left = 0, set[tuple[int, int]](), [folder]
    while left:
        try:
            with os.scandir(left.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        left.append(Path(entry.path))
                        continue
                    found = entry.stat(follow_symlinks=False)
                    if (found.st_dev, found.st_ino) not in seen:
                        seen.add((found.st_dev, found.st_ino))
                        total += found.st_size
        except OSError:
            continue  # gone meanwhile
    return total
