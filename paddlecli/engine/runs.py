"""The runs of a folder, read for people: a line each, all of one, several beside each other, the best.

Only small files are read (run.json, summary.json, of one run also metrics.jsonl), so hundreds of runs are listed in a moment. A
run that cannot be read is shown with what is wrong with it and hides no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from paddlecli import settings
from paddlecli.config.nodes import close_names
from paddlecli.engine import eventlog, modeldir
from paddlecli.engine.checkpoint import BEST, LAST, list_folders
from paddlecli.engine.files import flagged
from paddlecli.engine.rundir import RunDir, known_runs
from paddlecli.engine.runinfo import DAMAGED, RunInfo, read, size_of
from paddlecli.errors import RunError, UsageError

Mode = Literal["min", "max"]


def catalogue(
    base: Path | None = None, recipe: str | None = None, status: str | None = None
) -> list[RunInfo]:
    """The runs of a folder, the latest first; of one recipe, or with one status, if that is given.

    Args:
        base: the runs folder if None.

    Raises:
        RunError: there is no such folder.
    """
    place = settings.runs_dir() if base is None else base
    if base is not None and not base.is_dir():
        raise RunError(f"{base}: no such folder")
    found = [read(run) for run in known_runs(place)]
    kept = [r for r in found if recipe in (None, r.recipe) and status in (None, r.status)]
    return sorted(kept, key=lambda r: (r.started, r.identity), reverse=True)


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint of a run: `marks` are `last`, `best`; `problem` says what is wrong with it."""

    name: str
    step: int
    bytes: int
    marks: tuple[str, ...]


@dataclass(frozen=True)
class Details:
    """All of one run.

    Attributes:
        info: as in a list.
        facts: run.json.
        epochs: a row an epoch: `epoch`, `step` and the metrics as `split.metric`.
        losses: (step, loss) of the training, in order.
        checkpoints: by rising step.
        saved: which parameters `model/` holds; empty without any.
        roles: what the network can do: `evaluate`, `predict`, and `samples` if it predicts from nothing.
    """

    info: RunInfo
    facts: Mapping[str, Any]
    epochs: tuple[Mapping[str, float | None], ...]
    losses: tuple[tuple[int, float], ...]
    checkpoints: tuple[Checkpoint, ...]
    saved: str
    roles: frozenset[str]

    def as_dict(self) -> dict[str, Any]:
        """The object that `runs show --json` prints."""
        return flagged({
            "schema": 1,
            **self.info.as_dict(),
            "facts": self.facts,
            "history": list(self.epochs),
            "checkpoints": [{**vars(c), "marks": list(c.marks)} for c in self.checkpoints],
            "saved": self.saved,
        })  # fmt: skip


def details(run: RunDir) -> Details:
    """All of one run; what cannot be read is left out, and `info.problem` says why."""
    info = read(run)
    facts: Mapping[str, Any] = {}
    if info.status != DAMAGED:
        facts = run.known()
    events = list(eventlog.read(run.metrics))
    return Details(
        info,
        facts,
        tuple(_epochs(events)),
        tuple(_losses(events)),
        tuple(_checkpoints(run)),
        *_model(run),
    )


def _epochs(events: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, float | None]]:
    """Epoch and evaluation events, those of one epoch in one row."""
    rows: dict[int, dict[str, float | None]] = {}
    for event in events:
        if event["event"] not in ("epoch", "evaluation"):
            continue
        row = rows.setdefault(event["step"], {"epoch": event.get("epoch"), "step": event["step"]})
        named = {
            k: v
            for k, v in event.items()
            if k not in ("event", "step", "epoch", "split", "batches", "nonfinite")
        }
        row |= {f"{event.get('split')}.{k}": v for k, v in named.items()}
    yield from rows.values()


def _losses(events: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, float]]:
    """The loss of the logged steps, or of epochs where hardly one was logged; of several losses the first."""
    for kind in ("step", "epoch"):
        of_kind = [e for e in events if e["event"] == kind]
        name = next((k for e in of_kind[:1] for k in e if k.rpartition(".")[2] == "loss"), "loss")
        found = [
            (e["step"], float(e[name])) for e in of_kind if isinstance(e.get(name), int | float)
        ]
        if len(found) > 1:
            yield from found
            return


def _checkpoints(run: RunDir) -> Iterator[Checkpoint]:
    marks: dict[str, list[str]] = {}
    for mark in (LAST, BEST):
        pointer = run.checkpoints / mark
        if pointer.is_file():
            name = pointer.read_text(encoding="utf-8", errors="replace").strip()
            marks.setdefault(name, []).append(mark)
    for folder in list_folders(run.checkpoints):
        step = int(folder.name.rpartition("-")[2])
        yield Checkpoint(folder.name, step, size_of(folder), tuple(marks.get(folder.name, ())))


def _model(run: RunDir) -> tuple[str, frozenset[str]]:
    try:
        saved = modeldir.saved_as(run.model)
    except Exception:  # whatever is wrong with the weights, the rest can be shown
        return "damaged", frozenset()
    try:
        return saved, modeldir.abilities(modeldir.read_graph(run.model)) if saved else frozenset()
    except RunError as error:  # ops of users' own code are not known here
        return saved if " uses the op " in error.message else "damaged", frozenset()


@dataclass(frozen=True)
class Comparison:
    """Runs beside each other: only settings that differ, and every metric; None where a run has none.

    Attributes:
        settings: by dotted key, a value for each run; `metrics` likewise.
    """

    runs: tuple[RunInfo, ...]
    settings: Mapping[str, tuple[Any, ...]]
    metrics: Mapping[str, tuple[float | None, ...]]

    def as_dict(self) -> dict[str, Any]:
        """The object that `runs compare --json` prints."""
        return flagged({
            "schema": 1,
            "runs": [run.as_dict() for run in self.runs],
            "settings": {k: list(v) for k, v in self.settings.items()},
            "metrics": {k: list(v) for k, v in self.metrics.items()},
        })  # fmt: skip


def compare(runs: Sequence[RunDir]) -> Comparison:
    """Settings that differ, and metrics.

    Raises:
        UsageError: less than two runs.
        RunError: a run has no config.yaml that can be read.
    """
    if len(runs) < 2:
        raise UsageError("give at least two runs to compare")
    infos = tuple(read(run) for run in runs)
    settings_of = [dict(_leaves("", _config(run))) for run in runs]
    keys = list(dict.fromkeys(k for found in settings_of for k in found))
    rows = {k: tuple(found.get(k) for found in settings_of) for k in keys}
    names = dict.fromkeys(
        f"{split}.{k}" for i in infos for split, values in i.metrics.items() for k in values
    )
    return Comparison(
        infos,
        {k: v for k, v in rows.items() if any(x != v[0] for x in v)},
        {name: tuple(i.value(name) for i in infos) for name in sorted(names)},
    )


def _config(run: RunDir) -> Any:
    """The plain settings of a run; names in it need not be known here."""
    from paddlecli.config.yaml_text import parse_file

    try:
        tree, faults = parse_file(run.config)
    except OSError as error:
        raise RunError(f"{run.config}: {error.strerror or error}") from None
    if tree is None:
        raise RunError(f"{run.config}: damaged: {faults[0]}")
    return tree.plain()


def _leaves(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for name, below in value.items():
            yield from _leaves(f"{key}.{name}" if key else str(name), below)
    elif isinstance(value, list) and any(isinstance(v, dict) for v in value):
        for index, below in enumerate(value):
            yield from _leaves(f"{key}.{index}", below)
    else:
        yield key, value


def best(runs: Sequence[RunInfo], metric: str, mode: Mode | None = None) -> list[RunInfo]:
    """The runs that measured a metric of the parameters they saved, the best first.

    Args:
        metric: `test.accuracy`.
        mode: which way is better; known for losses and usual metrics, and of what a run watched.

    Raises:
        RunError: no run has it.
        UsageError: nobody can tell which way is better.
    """
    from paddlecli.engine.watch import usual_mode

    having = [(r, v) for r in runs if (v := r.value(metric)) is not None and v == v]
    if not having:
        known = sorted(
            {f"{s}.{k}" for r in runs for s, values in r.metrics.items() for k in values}
        )
        near = close_names(metric, known)
        hint = (
            f"did you mean {' or '.join(f'`{n}`' for n in near)}?"
            if near
            else f"there are {', '.join(known) or 'none'}"
        )
        raise RunError(f"no run has measured {metric}", hint=hint)
    watched = {
        str(r.best["mode"])
        for r, _ in having
        if r.best is not None and r.best.get("metric") == metric
    }
    found = mode or (watched.pop() if len(watched) == 1 else usual_mode(metric))
    if found is None:
        raise UsageError(
            f"nobody can tell whether more or less of {metric} is better",
            hint="give --mode min or --mode max",
        )
    return [r for r, _ in sorted(having, key=lambda pair: pair[1], reverse=found == "max")]
