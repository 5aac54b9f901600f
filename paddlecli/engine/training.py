"""One process's training in one run directory: what is written beside the loop's own events, and how it ended."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from paddlecli import __version__, settings
from paddlecli.config.plugins import raised_by_user
from paddlecli.config.recipe import Recipe
from paddlecli.data.columns import Dataset
from paddlecli.engine import balance, modeldir, rundir, stored
from paddlecli.engine.board import Board
from paddlecli.engine.checkpoint import Store
from paddlecli.engine.display import Display
from paddlecli.engine.eventlog import EventLog
from paddlecli.engine.files import now
from paddlecli.engine.files import replace as replace_file
from paddlecli.engine.initial import Start
from paddlecli.engine.interrupts import Signals, Worker
from paddlecli.engine.loop import Means, Trainer
from paddlecli.engine.machine import Machine
from paddlecli.engine.options import Options
from paddlecli.engine.place import Place
from paddlecli.engine.prepare import Prepared
from paddlecli.engine.report import Result, Status, expectations, matters, plural
from paddlecli.engine.rundir import RunDir
from paddlecli.engine.watch import Reason, Watch
from paddlecli.errors import PaddleCliError, expected

_SIZES = 1
"""Level of PADDLECLI_DEBUG from which a training says sizes."""


@dataclass
class Training:
    """One process's training in one run directory, which is claimed."""

    prepared: Prepared
    data: Dataset
    machine: Machine
    watch: Watch
    run: RunDir
    options: Options
    display: Display
    start: Start | None = None

    def train(self, place: Place, fresh: bool) -> Result:
        """Trains from a place on and writes down how it ended."""
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
        except BaseException as error:
            self._failed(trainer, error, time.monotonic() - began)
            raise
        finally:
            self.display.close()
            self.run.release()
        # who cannot be told changes nothing about how the run ended
        self.options.told(result)
        return result

    def _ended(self, result: Result) -> None:
        self.display.close()
        self.run.update(
            status=result.status, finished=now(), exit_code=result.exit_code, steps=result.steps,
            epochs=result.epochs, seconds=round(result.seconds, 3),
        )  # fmt: skip
        self.run.say(result.text())

    @contextmanager
    def _means(self, purge: int | None) -> Iterator[Means]:
        store = store_of(self.prepared.recipe, self.watch, self.run)
        store.resume_at(1 << 62)
        limit, began = self.options.max_seconds, self.options.began
        log, worker = EventLog(self.run, self._board(purge)), Worker()
        streamed = self.options.streamed or self.data["train"].streamed
        ahead = ThreadPoolExecutor(1, "ahead")
        try:
            with Signals(self.machine.interrupt) as signals:
                yield Means(
                    self.machine, self.watch, self.run, store, log, self.display, worker, signals,
                    ahead, streamed, None if limit is None else began + limit,
                )  # fmt: skip
        finally:
            worker.close()
            ahead.shutdown(cancel_futures=True)
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
                     "unofficial": data.spec.unofficial,
                     "samples": {name: len(split) for name, split in data.splits.items()}},
            "changed": sorted({*self.run.known().get("changed", ()), *recipe.changed}),
            **({} if self.start is None else {"init_from": self.start.as_dict()}),
            **stored.record(self.options.code),
        }  # fmt: skip
        if fresh:
            # runs of one second are told apart
            self.run.update(**facts, started=now("milliseconds"))
        else:
            # how the process before ended is no longer how the run ended
            self.run.update(**facts, resumed=now(), error=None, exit_code=None, finished=None)
        if not (self.run.model / modeldir.REPORT).is_file():
            modeldir.prepare(
                self.run.model, self.prepared.graph, data.preprocessing(),
                {**_reporting(recipe), **stored.record(self.options.code)},
            )  # fmt: skip
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
        mark = " (unofficial copy)" if self.data.spec.unofficial else ""
        yield f"{plural(self.prepared.parameters, 'parameter')}, {self.data.spec.name}{mark}: {samples} samples"
        yield from filter(None, (self.prepared.learning(), balance.text(recipe, self.data)))
        if self.start is not None:
            yield self.start.text()
        elif "init_from" in recipe.train.model_fields_set:  # null over a recipe of fine-tuning
            yield (
                "starting from scratch: train.init_from is null. What is frozen keeps its initial values; "
                "-o model.parameters={} trains everything"
            )
        if recipe.train.overfit:
            yield (
                f"overfit: the first {plural(recipe.train.overfit, 'batch', 'batches')} again and again, in their order; "
                f"they are also what is evaluated as {recipe.train.eval_split}"
            )
        notes = (*self.data.spec.remarks, *self.prepared.artifact.notes)
        yield from (f"note: {note}" for note in notes)
        if settings.debug() >= _SIZES:
            artifact = self.prepared.artifact
            names = ", ".join(artifact.entries)
            yield f"plan: {len(artifact.plan):,} bytes, {self.machine.state_bytes:,} bytes of state, entries {names}"

    def _notes(self, trainer: Trainer) -> tuple[str, ...]:
        """What is to be said at the end, known before the loop runs."""
        train = self.prepared.recipe.train
        if trainer.finished:
            return (self._nothing_to_do(trainer),)
        if trainer.evaluator is None:
            reason = (
                "the network has no evaluation"
                if train.eval_split in self.data.splits
                else "there is no such split"
            )
            return (f"{train.eval_split} was not evaluated: {reason}",)
        return ()

    def _nothing_to_do(self, trainer: Trainer) -> str:
        more = {
            "early_stopping": "more patience (-o early_stopping.patience=N) or none (-o ~early_stopping)",
            "stop_when": "another goal (-o train.stop_when=...) or none (-o ~train.stop_when)",
            "max_steps": "more with -o train.max_steps=N",
        }
        asked = more.get(str(trainer.reason), "more with -o train.epochs=N")
        told = self.watch.told(trainer.place)
        done = told or f"{plural(trainer.place.epoch, 'epoch')} are trained"
        return f"nothing to do: {done}; ask for {asked}"

    def _reason(self, trainer: Trainer, status: Status) -> Reason | None:
        if status == "completed":
            return trainer.reason
        if status == "stopped" and trainer.callbacks.stopped:
            return "callback"
        return {"stopped": "max_time", "interrupted": "signal"}.get(status)  # type: ignore[return-value]

    def _result(
        self, trainer: Trainer, status: Status, code: int, seconds: float, notes: tuple[str, ...] = ()
    ) -> Result:  # fmt: skip
        place, recipe = trainer.place, self.prepared.recipe
        changed = any(matters(key) for key in self.run.known().get("changed", ()))
        metrics: dict[str, Mapping[str, float]] = dict(place.latest)
        if place.best is not None:
            metrics |= {k: v for k, v in place.best.metrics.items() if k != "train"}
        told = self.watch.told(place) if status == "completed" and not notes else ""
        if status == "stopped" and trainer.callbacks.stopped:
            told = f"stopped by a callback: {trainer.callbacks.stopped}"
        return Result(
            status=status,
            reason=self._reason(trainer, status),
            run_dir=self.run.path,
            epochs=place.epoch,
            steps=place.step,
            seconds=seconds,
            samples_per_second=trainer.samples_per_second,
            metrics=metrics,
            best=self.watch.best_of(place),
            exit_code=code,
            saved=modeldir.saved_as(self.run.model),
            profile=self.machine.profile(),
            roles=modeldir.abilities(self.prepared.graph),
            expectations=expectations(recipe, metrics, changed) if status == "completed" else (),
            notes=(told, *notes) if told else notes,
        )

    def _failed(self, trainer: Trainer | None, error: BaseException, seconds: float) -> None:
        known = expected(error) or raised_by_user(error)
        status: Status = (
            "interrupted" if known is not None and known.kind == "interrupted" else "failed"
        )
        code = known.exit_code if known is not None else 1
        try:
            self.run.say(f"{status}: {error}")
            if trainer is not None:
                result = self._result(trainer, status, code, seconds)
                self._ended(result)
            self.run.update(
                status=status,
                exit_code=code,
                finished=now(),
                error=f"{type(error).__name__}: {error}",
            )
            if trainer is not None:
                self.options.told(result)
        except (PaddleCliError, OSError):
            pass  # the disk is full, or nobody listens: the first error is the one to tell


def store_of(recipe: Recipe, watch: Watch, run: RunDir) -> Store:
    """The run's checkpoints, kept as the recipe says."""
    saved = recipe.checkpoint
    # whoever watches for the best value wants its parameters
    best = max(saved.keep_best, 1 if watch.best is not None else 0)
    return Store(run.checkpoints, saved.keep_last, best, watch.best is None or watch.best.smaller)


def _reporting(recipe: Recipe) -> dict[str, Any]:
    """What `predict` reads of the recipe."""
    labels = recipe.predict.labels
    return {
        "output": recipe.predict.output,
        "top": recipe.predict.top,
        "labels": list(labels) if labels else None,
        "pictures": pictures.model_dump() if (pictures := recipe.predict.pictures) else None,
    }
