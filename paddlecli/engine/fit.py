"""`fit`: a recipe to a run directory; and the same for a run that is continued."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paddlecli import __version__, settings
from paddlecli.config.plugins import CodeFile
from paddlecli.config.recipe import Recipe
from paddlecli.data.columns import Dataset
from paddlecli.engine import eventlog, measures, modeldir, rundir, stored
from paddlecli.engine.board import Board
from paddlecli.engine.checkpoint import Snapshot, Store
from paddlecli.engine.display import Display, Quiet
from paddlecli.engine.eventlog import EventLog
from paddlecli.engine.files import replace as replace_file
from paddlecli.engine.interrupts import Signals, Worker
from paddlecli.engine.loop import Means, Trainer
from paddlecli.engine.machine import Machine
from paddlecli.engine.place import Place
from paddlecli.engine.prepare import Prepared, data_of, fields_of, prepare
from paddlecli.engine.report import Result, Status, expectations, matters, plural
from paddlecli.engine.rundir import RunDir
from paddlecli.errors import PaddleCliError, RunError, UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CHANGEABLE = (
    "train.epochs",
    "train.max_steps",
    "train.log_every",
    "train.eval_every",
    "checkpoint",
    "expect",
)
"""Settings that may differ when a run is continued; any other would make it another run."""

_SIZES, _TIMES = 1, 2
"""Levels of PADDLECLI_DEBUG from which a training says sizes, and times of kernels."""


@dataclass(frozen=True)
class Options:
    """How to train, apart from what the recipe says. None of it changes a result.

    Attributes:
        run_dir: where to write; a fresh folder under the runs folder if None.
        force: move a used `run_dir` aside.
        threads: of the core; the setting if None.
        streamed: gather batches in a thread of Python instead of in the core.
        max_seconds: stop after so long.
        profile: time each operation.
        initial: parameters and states to start from, by name, instead of the initial values.
        code: files of user code that were loaded; run.json says which.
        told: is given the result however the training ends, also when an error is raised behind it.
    """

    run_dir: Path | None = None
    force: bool = False
    threads: int | None = None
    streamed: bool = False
    max_seconds: float | None = None
    profile: bool = False
    initial: Mapping[str, NDArray[np.generic]] | None = None
    code: Sequence[CodeFile] = ()
    told: Callable[[Result], None] = lambda result: None


def fit(recipe: Recipe, options: Options = Options(), display: Display | None = None) -> Result:
    """Trains a recipe in a fresh run directory. Nothing is written before recipe, network and data are known to fit.

    Raises:
        ConfigError, DataError: recipe or data are wrong; nothing was written.
        RunError: the run directory cannot be used.
        NumericalError: the loss became NaN or infinite; the run directory holds the last good checkpoint.
        ResourceError: the disk is full; likewise.
        Interrupted: a second signal came.
    """
    prepared = prepare(recipe, fields_of(recipe))
    data = data_of(recipe)
    machine = _machine(prepared, options)
    measures.check(prepared, data, machine)
    machine.write({**prepared.graph.initial_values(recipe.train.seed), **(options.initial or {})})
    run = rundir.fresh(options.run_dir or rundir.new_path(recipe.name), options.force)
    return _Session(prepared, data, machine, run, options, display or Quiet()).train(
        Place(), fresh=True
    )


def resume(
    run: RunDir,
    overrides: Sequence[str] = (),
    options: Options = Options(),
    display: Display | None = None,
) -> Result:
    """Continues a run from its last whole checkpoint, or from its start if there is none, with the same bits as if it
    had never stopped.

    Args:
        run: the run; `overrides` may change what `CHANGEABLE` lists.

    Raises:
        RunError: it is in use, damaged, or its data have changed. Others as for `fit`.
    """
    show = display or Quiet()
    graph = modeldir.read_graph(run.model) if (run.model / modeldir.GRAPH).is_file() else None
    with stored.asking_for_code(run, options.code):
        recipe = _resumed_recipe(run, overrides)
        prepared = prepare(recipe, fields_of(recipe), graph)
        data = data_of(recipe)
    for line in stored.changes(run, options.code):
        show.say(line)
    machine = _machine(prepared, options)
    measures.check(prepared, data, machine)
    run.claim()
    try:
        _same_data(run, data)
        place = _restore(prepared, machine, run, show)
    except BaseException:
        run.release()
        raise
    return _Session(prepared, data, machine, run, options, show).train(place, fresh=False)


def _machine(prepared: Prepared, options: Options) -> Machine:
    profile = options.profile or settings.debug() >= _TIMES
    return Machine(prepared.artifact, threads=options.threads, profile=profile)


def _restore(prepared: Prepared, machine: Machine, run: RunDir, show: Display) -> Place:
    """Sets the machine to the newest whole checkpoint and drops from the run what lies behind it."""
    recipe = prepared.recipe
    store = _store(recipe, run)
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
    else:
        machine.write(prepared.graph.initial_values(recipe.train.seed))
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


def _store(recipe: Recipe, run: RunDir) -> Store:
    saved = recipe.checkpoint
    # whoever monitors a value wants its best parameters
    best = max(saved.keep_best, 1 if saved.monitor else 0)
    return Store(run.checkpoints, saved.keep_last, best, saved.mode == "min")


@dataclass
class _Session:
    """One process's training in one run directory."""

    prepared: Prepared
    data: Dataset
    machine: Machine
    run: RunDir
    options: Options
    display: Display

    def train(self, place: Place, fresh: bool) -> Result:
        """Trains and writes down how it ended."""
        began = time.monotonic()
        trainer: Trainer | None = None
        try:
            self._describe(fresh)
            with self._means(None if fresh else place.step + 1) as means:
                trainer = Trainer(self.prepared, self.data, means, place)
                notes = self._notes(trainer)
                status = trainer.run()
                code = means.signals.exit_code if status == "interrupted" else 0
            result = self._result(trainer, status, code, time.monotonic() - began, notes)
            self._ended(result)
            return result
        except BaseException as error:
            self._failed(trainer, error, time.monotonic() - began)
            raise
        finally:
            self.display.close()
            self.run.release()

    def _ended(self, result: Result) -> None:
        self.display.close()
        self.run.update(
            status=result.status, finished=rundir.now(), exit_code=result.exit_code, steps=result.steps,
            epochs=result.epochs, seconds=round(result.seconds, 3),
        )  # fmt: skip
        self.run.say(result.text())
        self.options.told(result)

    @contextmanager
    def _means(self, purge: int | None) -> Iterator[Means]:
        store = _store(self.prepared.recipe, self.run)
        store.resume_at(1 << 62)
        limit = self.options.max_seconds
        log, worker = EventLog(self.run, self._board(purge)), Worker()
        gather = ThreadPoolExecutor(1, "gather") if self.options.streamed else None
        try:
            with Signals(self.machine.interrupt) as signals:
                yield Means(
                    self.machine, self.run, store, log, self.display, worker, signals,
                    gather, None if limit is None else time.monotonic() + limit,
                )  # fmt: skip
        finally:
            worker.close()
            if gather is not None:
                gather.shutdown(cancel_futures=True)
            log.close()

    def _board(self, purge: int | None) -> Board | None:
        """TensorBoard's files where their writer is installed; without it the log says so once."""
        try:
            return Board(self.run.path / "tb", purge)
        except ImportError as error:
            if purge is None:
                self.run.say(
                    f"no TensorBoard events: the extra `tensorboard` is not installed ({error})"
                )
            return None

    def _describe(self, fresh: bool) -> None:
        """Writes what is known before step 1."""
        recipe, data = self.prepared.recipe, self.data
        replace_file(self.run.config, recipe.to_yaml().encode())
        facts = {
            **rundir.facts(),
            "status": "running",
            "recipe": recipe.name,
            "seed": recipe.train.seed,
            "core": self.machine.info(),
            "parameters": self.prepared.parameters,
            "data": {"name": data.spec.name, "fingerprint": data.fingerprint,
                     "samples": {name: len(split) for name, split in data.splits.items()}},
            "changed": sorted({*self.run.known().get("changed", ()), *recipe.changed}),
            **stored.record(self.options.code),
        }  # fmt: skip
        self.run.update(
            **facts, **({"started": rundir.now()} if fresh else {"resumed": rundir.now()})
        )
        if not (self.run.model / modeldir.REPORT).is_file():
            modeldir.prepare(
                self.run.model, self.prepared.graph, data.preprocessing(), _reporting(recipe)
            )
        for line in self._opening():
            self.display.say(line)
            self.run.say(line)

    def _opening(self) -> Iterator[str]:
        core, recipe = self.machine.info(), self.prepared.recipe
        yield (
            f"paddlecli {__version__}  {recipe.name}  {core['backend']}/{core['level']}  "
            f"{plural(int(core['threads']), 'thread')}  seed {recipe.train.seed}"
        )
        samples = ", ".join(f"{len(split):,} {name}" for name, split in self.data.splits.items())
        yield f"{plural(self.prepared.parameters, 'parameter')}, {self.data.spec.name}: {samples} samples"
        yield from (f"note: {note}" for note in self.prepared.artifact.notes)
        if settings.debug() >= _SIZES:
            artifact = self.prepared.artifact
            names = ", ".join(artifact.entries)
            yield f"plan: {len(artifact.plan):,} bytes, {self.machine.state_bytes:,} bytes of state, entries {names}"

    def _notes(self, trainer: Trainer) -> tuple[str, ...]:
        train = self.prepared.recipe.train
        if trainer.finished:
            place = trainer.place
            return (
                f"nothing to do: {plural(place.epoch, 'epoch')} are trained; ask for more with -o train.epochs=N",
            )
        if trainer.evaluator is None:
            reason = (
                "the network has no evaluation"
                if train.eval_split in self.data.splits
                else "there is no such split"
            )
            return (f"{train.eval_split} was not evaluated: {reason}",)
        return ()

    def _result(
        self, trainer: Trainer, status: Status, code: int, seconds: float, notes: tuple[str, ...] = ()
    ) -> Result:  # fmt: skip
        place, recipe = trainer.place, self.prepared.recipe
        changed = any(matters(key) for key in self.run.known().get("changed", ()))
        metrics: dict[str, Mapping[str, float]] = dict(place.latest)
        if place.best is not None:
            metrics |= {k: v for k, v in place.best.metrics.items() if k != "train"}
        return Result(
            status=status,
            run_dir=self.run.path,
            epochs=place.epoch,
            steps=place.step,
            seconds=seconds,
            samples_per_second=trainer.samples_per_second,
            metrics=metrics,
            exit_code=code,
            saved=modeldir.saved_as(self.run.model),
            profile=self.machine.profile(),
            roles=frozenset(self.prepared.graph.roles),
            expectations=expectations(recipe, metrics, changed) if status == "completed" else (),
            notes=notes,
        )

    def _failed(self, trainer: Trainer | None, error: BaseException, seconds: float) -> None:
        known = error if isinstance(error, PaddleCliError) else None
        status: Status = (
            "interrupted" if known is not None and known.kind == "interrupted" else "failed"
        )
        code = known.exit_code if known is not None else 1
        try:
            self.run.say(f"{status}: {error}")
            if trainer is not None:
                self._ended(self._result(trainer, status, code, seconds))
            self.run.update(
                status=status,
                exit_code=code,
                finished=rundir.now(),
                error=f"{type(error).__name__}: {error}",
            )
        except PaddleCliError:
            pass  # the disk is full or gone: the first error is the one to tell


def _reporting(recipe: Recipe) -> dict[str, Any]:
    """What `predict` reads of the recipe."""
    labels = recipe.predict.labels
    return {
        "output": recipe.predict.output,
        "top": recipe.predict.top,
        "labels": list(labels) if labels else None,
    }
