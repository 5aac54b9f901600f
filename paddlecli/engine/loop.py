"""The training loop: requests up to the next event, then the event.

    advance     one request: many iterations in one call of the core, at most about 0.1 s
    end_epoch   metrics of the epoch, evaluation, checkpoint
    save        a checkpoint, and `model/` with it

The order at one step is always: step events, epoch event, evaluation event, checkpoint. So a checkpoint's step says exactly
which events are before it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paddlecli.data.columns import Dataset
from paddlecli.engine import finite, modeldir
from paddlecli.engine.ahead import Ahead
from paddlecli.engine.averages import FINITE, by_iteration, keys_of, reporters
from paddlecli.engine.callbacks import Callbacks
from paddlecli.engine.checkpoint import Snapshot, Store
from paddlecli.engine.display import Display, Moment
from paddlecli.engine.due import Due
from paddlecli.engine.eventlog import EventLog
from paddlecli.engine.interrupts import Signals, Worker
from paddlecli.engine.machine import Machine, Outcome
from paddlecli.engine.measures import evaluator_of
from paddlecli.engine.place import Place
from paddlecli.engine.prepare import Prepared, loader_of
from paddlecli.engine.rates import LearningRates, rate_columns, told
from paddlecli.engine.report import Status, listed
from paddlecli.engine.requests import TURN, Call, Maker, Pace, Work
from paddlecli.engine.rundir import RunDir
from paddlecli.engine.stock import Stock
from paddlecli.engine.watch import Reason, Watch
from paddlecli.errors import NumericalError


@dataclass(frozen=True)
class Means:
    """What the loop works with beside recipe and data. `ahead` is the thread that makes requests ahead; `streamed` data
    are gathered there, others by the core."""

    machine: Machine
    watch: Watch
    run: RunDir
    store: Store
    log: EventLog
    display: Display
    worker: Worker
    signals: Signals
    ahead: Executor
    streamed: bool = False
    deadline: float | None = None


class Trainer:
    """Trains from `place` to the end, or to a signal or deadline."""

    def __init__(self, prepared: Prepared, data: Dataset, means: Means, place: Place) -> None:
        recipe = prepared.recipe
        self.recipe, self.prepared, self.means, self.place = recipe, prepared, means, place
        self.loader = loader_of(recipe, data)
        self.due = Due(recipe, len(self.loader))
        self.rates = LearningRates(recipe, self.due.steps, len(self.loader))
        self.rates.restore(place.schedules)
        self._split = data["train"]
        self._enter(prepared.calls_in(place.epoch))
        self.evaluator = evaluator_of(prepared, data, means.machine)
        self._rate_columns = rate_columns(prepared.artifact)
        self.callbacks = Callbacks(self, prepared.callbacks)
        self.newest: dict[str, float] = {}
        self._pace = Pace()
        self._saved = place.state() if place.step else None
        self._seconds = 0.0
        self._waited = self._stepping = 0.0
        self._trained = 0
        self._began = time.monotonic()
        self._first = place.step

    def _enter(self, calls: tuple[Call, ...]) -> None:
        """Begins to run these in every iteration."""
        self.calls = calls
        self.maker = Maker(
            self.prepared.artifact, calls, self.prepared.spec, self._split, self.recipe.train.batch_size, self.rates,
        )  # fmt: skip
        self._ahead = Ahead(self.maker, self.means.ahead) if self.means.streamed else None
        self._stock = Stock(self.maker, self.loader, self._certain, self.means.ahead)
        self._reporters = [(prefix, entries[0]) for prefix, entries in reporters(calls)]
        self._keys = keys_of(calls)

    # -- the loop ---------------------------------------------------------------------------------------------------
    def run(self) -> Status:
        """Trains; returns `completed`, `stopped` (deadline) or `interrupted` (signal). What was done is saved.

        Raises:
            NumericalError: the loss is not finite; names the step and the rows of its batch.
        """
        self.callbacks.start()
        try:
            status = self._run_all()
        except BaseException:
            self.callbacks.end("failed")
            raise
        if self.place.step > self._first:
            self._clock("end", status=status)
        self.callbacks.end(status)
        return status

    def _run_all(self) -> Status:
        while not self.finished:
            reason = self._stopped()
            if reason:
                self._save_here()
                return reason
            if self.due.at_end(self.place):
                self._end_epoch()
            else:
                self._advance()
        self._save_here()
        return "completed"

    @property
    def finished(self) -> bool:
        """Whether nothing is left to train."""
        return self.reason is not None

    @property
    def reason(self) -> Reason | None:
        """Why nothing is left to train; None while something is."""
        place = self.place
        if place.epoch >= self.recipe.train.epochs:
            return "epochs"
        if self.due.at_last(place) and (place.closed or place.batch == 0):
            return "max_steps"
        return self.means.watch.reason(place) if place.closed or place.batch == 0 else None

    @property
    def samples_per_second(self) -> float:
        """Speed of the training steps of this process."""
        return self._trained / self._seconds if self._seconds else 0.0

    def _stopped(self) -> Status | None:
        if self.means.signals.signal:
            return "interrupted"
        if self.means.deadline is not None and time.monotonic() >= self.means.deadline:
            return "stopped"
        return "stopped" if self.callbacks.stopped else None

    # -- a request --------------------------------------------------------------------------------------------------
    def _advance(self) -> None:
        began = time.perf_counter()
        work = self._work()
        self._waited += time.perf_counter() - began
        outcome = self._run_whole(work)
        done = int(work.iterations[outcome.done - 1]) + (not outcome.halted) if outcome.done else 0
        if done:
            self._pace.took(done, outcome.seconds)
            values = by_iteration(self._keys, work, outcome.results, done)
            self._account(
                work, values, work.batch_sizes(self.loader.batch_size, done), outcome.seconds
            )
            self._show(work, values, done)
            self.newest = {k: float(v[-1]) for k, v in values.items()}
        self._stepping += time.perf_counter() - began
        if outcome.halted:
            raise self._not_finite(work, outcome)
        if done:
            self.callbacks.stepped(self.place.step)
            if self.due.save_inside(self.place):
                self._save()

    def _work(self) -> Work:
        place, most = self.place, self._until_event()
        count = self.maker.fits(self._pace.count(most))
        if self._ahead is not None:
            order = self.loader.order(place.epoch)
            return self._ahead.make(order, place.batch, count, place.step, most, place.epoch)
        return self._stock.take(place.epoch, place.batch, place.step, count)

    def _certain(self, step: int) -> int:
        """Whole epochs from iteration `step` on that are trained at rates known now; early stopping may still end them."""
        if self.rates.watching:
            return 0
        until = self.prepared.alike_until(self.place.epoch)
        whole = (self.due.steps - step) // len(self.loader)
        return whole if until is None else min(whole, until - step // len(self.loader))

    def _until_event(self) -> int:
        """Iterations to the next event, those of callbacks among them."""
        limits = (self.due.until_event(self.place), self.callbacks.until(self.place.step))
        return min(limit for limit in limits if limit is not None)

    def outputs(self, count: int) -> Mapping[str, NDArray[np.generic]]:
        """What the entry that predicts gives for the first `count` samples of the split that is evaluated, or of the train split,
        with the present parameters; empty where a signal came in between."""
        entry = self.prepared.artifact.entries[self.prepared.graph.roles["predict"]]
        split = self.maker.split if self.evaluator is None else self.evaluator.split
        rows = np.arange(min(count, len(split)), dtype=np.int64)
        maker = Maker(
            self.prepared.artifact, [Call(entry)], self.prepared.spec, split, max(1, rows.size)
        )
        work = maker.make(rows, 0, 1, 0)
        found = self._run(lambda: self.means.machine.run(work, split, outputs=True)).outputs
        return found[0] if found else {}

    def _run(self, request: Callable[[], Outcome]) -> Outcome:
        return self.means.worker.call(request)

    def _run_whole(self, work: Work) -> Outcome:
        """Runs a request. One that a signal ended between the calls of an iteration is run to that iteration's end."""
        machine, split = self.means.machine, self.maker.split
        outcome = self._run(lambda: machine.run(work, split))
        done = outcome.done
        if (
            outcome.halted
            or not 0 < done < len(work)
            or work.iterations[done] != work.iterations[done - 1]
        ):
            return outcome
        rest = work.behind(done, int(work.iterations[done]) + 1)
        second = self._run(lambda: machine.run(rest, split))
        return outcome.joined(second)

    def _account(
        self, work: Work, values: dict[str, NDArray[np.float64]], counts: NDArray[np.int64], seconds: float
    ) -> None:  # fmt: skip
        place, log_every = self.place, self.recipe.train.log_every
        done = counts.size
        place.averages.add(values, counts)
        first = -(place.step + 1) % log_every
        firsts = np.searchsorted(work.iterations, np.arange(done))
        for i in range(first, done, log_every):
            numbers = {k: float(v[i]) for k, v in values.items()}
            rates = told(self._rate_columns, work.args[int(firsts[i])])
            self.means.log.add(
                "step", place.step + i + 1, {"epoch": place.epoch + 1, **numbers, **rates}
            )
        place.step += done
        place.batch += done
        place.closed = False
        place.samples += int(counts.sum())
        self._trained += int(counts.sum())
        self._seconds += seconds

    def _show(self, work: Work, values: dict[str, NDArray[np.float64]], done: int) -> None:
        place = self.place
        elapsed = (time.monotonic() - self._began) / max(1, place.step - self._first)
        first = next(iter(values.values()), np.zeros(done))
        rates = told(self._rate_columns, work.args[np.searchsorted(work.iterations, done - 1)])
        self.means.display.progress(Moment(
            epoch=min(place.epoch + 1, self.recipe.train.epochs),
            epochs=self.recipe.train.epochs,
            step=place.step,
            steps=self.due.steps,
            loss=float(first.mean()),
            rate=next(iter(rates.values()), None),
            samples_per_second=self.samples_per_second,
            seconds_left=elapsed * (self.due.steps - place.step),
        ))  # fmt: skip

    def _not_finite(self, work: Work, outcome: Outcome) -> NumericalError:
        bad = outcome.done - 1
        step = int(work.steps[bad]) % TURN
        rows = work.rows[work.starts[bad] : work.starts[bad] + work.counts[bad]].tolist()
        entry = next(c.entry for c in self.calls if c.entry.index == work.entries[bad])
        numbers = dict(zip(entry.fetches, outcome.results[bad].tolist(), strict=False))
        self.means.log.add(
            "not_finite", step, {"epoch": self.place.epoch + 1, "rows": rows, **numbers}
        )
        losses = {name: value for name, value in numbers.items() if name != FINITE}
        return finite.halted(step, rows, losses, self.means.run)

    # -- the end of an epoch ----------------------------------------------------------------------------------------
    def _end_epoch(self) -> None:
        place = self.place
        whole = place.batch >= len(self.loader)
        train = self._train_metrics()
        measured = None
        if self.evaluator is not None and self.due.evaluation(place, whole):
            measured = self.evaluator.measure(self._run, lambda: bool(self.means.signals.signal))
            if measured is None:
                return
        epoch = place.epoch + 1
        self.means.log.add(
            "epoch", place.step, {"epoch": epoch, "split": "train", "batches": place.batch, **train}
        )
        place.latest["train"] = train
        text = f"epoch {epoch}/{self.recipe.train.epochs}  train {listed(train)}"
        if measured is not None:
            self.means.log.add(
                "evaluation",
                place.step,
                {"epoch": epoch, "split": measured.split, **measured.metrics},
            )
            place.latest[measured.split], place.measured = measured.metrics, place.step
            text += f"  {measured.split} {listed(measured.metrics)}"
        self._clock("epoch", epoch=epoch)
        self.means.run.say(text)
        self.means.display.result(text)
        self._leave_epoch(whole)
        self.rates.observe(
            {k: place.latest[k] for k in ("train", measured.split if measured else "train")}
        )
        place.schedules = self.rates.state()
        fresh = {k: place.latest[k] for k in ("train", *([measured.split] if measured else []))}
        value, improved = self.means.watch.observe(place, epoch, fresh)
        if measured is not None:
            self.callbacks.evaluated(measured.metrics)
        if improved or self.due.save_behind(self.place, whole, self.finished):
            self._save(value)

    def _clock(self, event: str, **values: int | str) -> None:
        """Notes the time of an event, and the share of the time of steps since the last one that was spent waiting for
        their rows."""
        share = self._waited / self._stepping if self._stepping else 0.0
        self._waited = self._stepping = 0.0
        self.means.log.time(event, self.place.step, {
            **values, "seconds": round(time.monotonic() - self._began, 4),
            "samples_per_second": round(self.samples_per_second, 1), "data_wait": round(share, 4),
        })  # fmt: skip

    def _train_metrics(self) -> dict[str, float]:
        """Means by sample of the epoch in progress."""
        found = self.place.averages.by_sample()
        for prefix, entry in self._reporters:
            found |= {prefix + k: v for k, v in self.means.machine.metrics(entry).items()}
        return found

    def _leave_epoch(self, whole: bool) -> None:
        if not whole:
            self.place.closed = True
            return
        self.place.epoch += 1
        self.place.batch = 0
        self.place.averages = type(self.place.averages)()
        for _, entry in self._reporters:
            self.means.machine.clear_metrics(entry)
        calls = self.prepared.calls_in(self.place.epoch)
        if calls != self.calls:
            self._enter(calls)

    # -- saving -----------------------------------------------------------------------------------------------------
    def _save_here(self) -> None:
        """Saves unless this very place is saved."""
        if self._saved != self.place.state():
            self._save()

    def _save(self, value: float | None = None) -> None:
        means, place = self.means, self.place
        means.log.sync()
        best = place.best
        is_best = best is not None and best.step == place.step
        choice = (
            f"best {means.watch.best.name} {best.value:.6g}"
            if best is not None and is_best and means.watch.best is not None
            else "last"
        )
        state = {
            **place.state(),
            **({} if value is None else {"value": value}),
            **self.callbacks.state(),
        }
        model, rest = means.machine.arrays(self.prepared.graph)
        finite.check(model, place.step, means.run)
        folder = means.store.save(Snapshot(model, rest, state, choice))
        if best is None or is_best:
            modeldir.renew(means.run.model, folder)
        means.run.write("summary.json", {"step": place.step, "epoch": place.epoch, "last": place.latest,
                                         "best": means.watch.best_of(place)})  # fmt: skip
        self._saved = place.state()
        self.callbacks.saved(folder)
