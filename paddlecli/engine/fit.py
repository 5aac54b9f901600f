"""`fit`: a recipe to a run directory; `resume`: the same for a run that is continued."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from paddlecli import settings
from paddlecli.config.load import load_recipe
from paddlecli.config.recipe import Recipe
from paddlecli.config.words import BALANCED
from paddlecli.data.columns import Dataset
from paddlecli.engine import (
    balance,
    callbacks,
    eventlog,
    initial,
    measures,
    modeldir,
    rundir,
    stored,
)
from paddlecli.engine.checkpoint import Snapshot
from paddlecli.engine.display import Display, Quiet
from paddlecli.engine.machine import Machine
from paddlecli.engine.options import Options
from paddlecli.engine.place import Place
from paddlecli.engine.prepare import Prepared, data_of, fields_of, prepare
from paddlecli.engine.report import Result
from paddlecli.engine.rundir import RunDir
from paddlecli.engine.training import Training, store_of
from paddlecli.engine.watch import Watch
from paddlecli.errors import RunError, UsageError

__all__ = ["CHANGEABLE", "Options", "changes", "fit", "resume"]

CHANGEABLE = (
    "train.epochs",
    "train.max_steps",
    "train.log_every",
    "train.eval_every",
    "train.stop_when",
    "early_stopping",
    "checkpoint",
    "callbacks",
    "expect",
)
"""Settings that may differ when a run is continued; any other would make it another run."""

_TIMES = 2
"""Level of PADDLECLI_DEBUG from which a training says times of kernels."""


def fit(recipe: Recipe, options: Options | None = None, display: Display | None = None) -> Result:
    """Trains a recipe in a fresh run directory. Nothing is written before recipe, network and data are known to fit.

    Raises:
        ConfigError, DataError: recipe or data are wrong; nothing was written.
        RunError: the run directory cannot be used, or the weights to start from do not fit.
        NumericalError: the loss became NaN or infinite; the run directory holds the last good checkpoint.
        ResourceError: the disk is full; likewise.
        Interrupted: a second signal came.
    """
    options = options or Options()
    recipe = balance.resolved(initial.resolved(recipe))
    prepared = prepare(recipe, fields_of(recipe))
    start = initial.start_of(recipe, prepared.graph)
    data = data_of(recipe)
    machine = _machine(prepared, options)
    watch = measures.watch_of(prepared, data.splits)
    _begin(prepared, machine, start)
    run = rundir.fresh(options.run_dir or rundir.new_path(recipe.name), options.force)
    return Training(prepared, data, machine, watch, run, options, display or Quiet(), start).train(
        Place(), fresh=True
    )


def resume(
    run: RunDir,
    overrides: Sequence[str] = (),
    options: Options | None = None,
    display: Display | None = None,
) -> Result:
    """Continues a run from its last whole checkpoint, or from its start if there is none, with the same bits as if it
    had never stopped.

    Args:
        run: the run; `overrides` may change what `CHANGEABLE` lists.

    Raises:
        RunError: it is in use, damaged, or its data have changed. Others as for `fit`.
    """
    options, show = options or Options(), display or Quiet()
    with stored.asking_for_code(run, options.code):
        built = (run.model / modeldir.GRAPH).is_file()
        graph = modeldir.read_graph(run.model) if built else None
        recipe = _resumed_recipe(run, overrides)
        prepared = prepare(recipe, fields_of(recipe), graph)
        data = data_of(recipe)
    for line in stored.changes(run, options.code):
        show.say(line)
    machine = _machine(prepared, options)
    watch = measures.watch_of(prepared, data.splits)
    run.claim()
    try:
        _same_data(run, data)
        place = _restore(prepared, machine, watch, run, show)
    except BaseException:
        run.release()
        raise
    return Training(prepared, data, machine, watch, run, options, show).train(place, fresh=False)


def changes(run: RunDir, recipe: Recipe) -> list[str]:
    """The overrides that turn a run's own recipe into `recipe`, for `resume`.

    Raises:
        UsageError: they differ in more than `CHANGEABLE`; lists the settings.
    """
    built = (run.model / modeldir.GRAPH).is_file()
    old, new = load_recipe(run.config, built=built).as_dict(), recipe.as_dict()
    overrides = []
    for key in CHANGEABLE:
        before, now = _cut(old, key), _cut(new, key)
        if before != now:
            # a setting that is text takes what is written literally
            text = now if isinstance(now, str) else json.dumps(now)
            overrides.append(f"~{key}" if now is None else f"{key}={text}")
    for values in (old, new):
        # written out when the run was started
        _cut(values, "train.init_from")
    if new.get("train", {}).get("class_weights") == BALANCED:
        for values in (old, new):
            _cut(values, "train.class_weights")
    odd = sorted(_differing(old, new))
    if odd:
        raise UsageError(
            f"{recipe.source or recipe.name} is no longer what {run.path} was started with: "
            f"{'; '.join(odd[:5])}{' ...' if len(odd) > 5 else ''}",
            hint=f"continue it as it was with `paddlecli train --resume {run.path}`, or train anew without --resume",
        )
    return overrides


def _cut(values: dict[str, Any], key: str) -> Any:
    """Takes what is at a dotted key out of nested mappings; None where there is nothing."""
    *above, name = key.split(".")
    for part in above:
        values = values.get(part) or {}
    return values.pop(name, None)


def _differing(old: Any, new: Any, key: str = "") -> Iterator[str]:
    """`train.batch_size was 16, is 8` for all that is not the same."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in old.keys() | new.keys():
            below = f"{key}.{name}" if key else name
            yield from _differing(old.get(name), new.get(name), below)
    elif old != new:
        words = ("nothing" if v is None else json.dumps(v) for v in (old, new))
        yield "{} was {}, is {}".format(key, *words)


def _machine(prepared: Prepared, options: Options) -> Machine:
    profile = options.profile or settings.debug() >= _TIMES
    return Machine(prepared.artifact, threads=options.threads, profile=profile)


def _begin(prepared: Prepared, machine: Machine, start: initial.Start | None) -> None:
    """Sets the machine to where step 1 begins."""
    machine.write(prepared.graph.starts(prepared.recipe.train.seed, zeros=False))
    if start is not None:
        machine.write(start.values)


def _restore(
    prepared: Prepared, machine: Machine, watch: Watch, run: RunDir, show: Display
) -> Place:
    """Sets the machine to the newest whole checkpoint and drops from the run what lies behind it."""
    recipe = prepared.recipe
    store = store_of(recipe, watch, run)
    snapshot = store.newest(lambda text: _warn(text, run, show))
    place = Place()
    if snapshot is not None:
        place = Place.of(snapshot.state)
        if recipe.train.epochs < place.epoch:
            raise UsageError(
                f"train.epochs: {recipe.train.epochs} is less than the {place.epoch} that are trained",
                hint=f"a shorter training is a new run: paddlecli train --config {run.config}",
            )
        machine.restore(snapshot.model, snapshot.optimizer)
        callbacks.restore(prepared.callbacks, snapshot.state)
    else:
        _begin(prepared, machine, initial.start_of(recipe, prepared.graph))
    eventlog.truncate(run.metrics, place.step)
    eventlog.truncate(run.timing, place.step)
    store.resume_at(place.step)
    show.say(_resume_text(run, snapshot, place))
    return place


def _warn(text: str, run: RunDir, show: Display) -> None:
    show.warn(f"warning: {text}")
    run.say(f"warning: {text}")


def _resumed_recipe(run: RunDir, overrides: Sequence[str]) -> Recipe:
    for text in overrides:
        key = text.lstrip("~").partition("=")[0].strip()
        if not any(key == c or key.startswith(f"{c}.") for c in CHANGEABLE):
            raise UsageError(
                f"{key} cannot be changed when a run is continued",
                hint=f"it may change {', '.join(CHANGEABLE)}; anything else makes a new run: "
                f"paddlecli train --config {run.config} -o {text}",
            )
    return stored.recipe_of(run, overrides)


def _resume_text(run: RunDir, snapshot: Snapshot | None, place: Place) -> str:
    if snapshot is None:
        return f"{run.path}: no checkpoint yet, starting over"
    return f"{run.path}: continuing behind step {place.step} (epoch {place.epoch + 1}, batch {place.batch})"


def _same_data(run: RunDir, data: Dataset) -> None:
    known = run.known().get("data", {}).get("fingerprint")
    if known is not None and known != data.fingerprint:
        raise RunError(
            f"{run.path}: the data set {data.spec.name} is not the one this run was started with",
            hint="restore the data, or start a new run with `paddlecli train --config RUN/config.yaml`",
        )
