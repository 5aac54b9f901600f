"""Measuring a split: the one code path of training's evaluations and of `paddlecli evaluate`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from paddlecli.compiler.artifact import EntryInfo
from paddlecli.data.columns import Split
from paddlecli.data.spec import DatasetSpec
from paddlecli.engine.averages import Averages, by_iteration, keys_of
from paddlecli.engine.machine import Machine, Outcome
from paddlecli.engine.outside import Feeder, Outside
from paddlecli.engine.requests import Call, Maker, Pace, Work, axis_rows

T = TypeVar("T")
Runner = Callable[[Callable[[], Outcome]], Outcome]
"""Runs a request, for example in the worker thread."""


@dataclass(frozen=True)
class Measured:
    """What an evaluation found."""

    split: str
    samples: int
    metrics: dict[str, float]


class Evaluator:
    """Runs an entry over a whole split, in the order of the file.

    The loss and every metric are by sample (or by token, where the loss is); beside each loss stands `<loss>_batch_mean`, the
    unweighted mean over batches of `batch_size`.
    """

    def __init__(
        self, machine: Machine, entry: EntryInfo, spec: DatasetSpec, split: Split, batch_size: int,
        outside: tuple[Outside, ...] = (),
    ) -> None:  # fmt: skip
        self.machine, self.entry, self.split = machine, entry, split
        self._maker = Maker(machine.artifact, [Call(entry)], spec, split, batch_size)
        self._keys = keys_of(self._maker.calls)
        self._order = np.arange(len(split), dtype=np.int64)
        rows = axis_rows(machine.artifact, spec, split)
        self._edges = {axis: np.append(0, np.cumsum(n)) for axis, n in rows.items()}
        self._batches = -(-len(split) // batch_size)
        self._pace = Pace()
        self.outside = outside

    def names(self) -> set[str]:
        """What `measure` will find."""
        means = set(self._keys.values())
        counted = {*self.machine.metrics(self.entry), *(n for o in self.outside for n in o.names())}
        return means | {f"{name}_batch_mean" for name in means} | counted

    def _by_sample(self, work: Work, batch: int) -> Work:
        """The request with random numbers by the sample's place in the split, whatever the size of a batch; those of
        sequences by their rows' places."""
        firsts = work.starts + batch * self._maker.batch_size
        rows = {axis: edges[firsts] for axis, edges in self._edges.items()}
        return replace(work, steps=np.zeros_like(work.steps), firsts=firsts, axis_firsts=rows)

    def measure(
        self,
        run: Runner = lambda request: request(),
        stopped: Callable[[], bool] = lambda: False,
    ) -> Measured | None:
        """The metrics with the machine's present parameters; None when a signal came in between.

        Args:
            run: runs one request.
            stopped: whether a signal came: one between two requests ends neither of them.
        """
        self.machine.clear_metrics(self.entry)
        averages = Averages()
        feeder = Feeder(self.outside, self.entry, self.split)
        wanted = bool(self.outside)
        batch = 0
        while batch < self._batches:
            if stopped():
                return None
            count = self._maker.fits(self._pace.count(self._batches - batch))
            work = self._by_sample(self._maker.make(self._order, batch, count, 0), batch)
            outcome = run(lambda work=work: self.machine.run(work, self.split, wanted))  # type: ignore[misc]
            if outcome.interrupted:
                return None
            count = int(work.iterations[-1]) + 1
            averages.add(by_iteration(self._keys, work, outcome.results, count), work.counts)
            for samples, outputs in zip(work.counts.tolist(), outcome.outputs, strict=False):
                feeder.add(samples, outputs)
            self._pace.took(count, outcome.seconds)
            batch += count
        means = {f"{name}_batch_mean": value for name, value in averages.by_batch().items()}
        return Measured(
            self.split.name,
            len(self.split),
            {
                **averages.by_sample(),
                **means,
                **self.machine.metrics(self.entry),
                **feeder.numbers(),
            },
        )
