"""From a place in the data to the steps that the core runs: which entry, which rows, which arguments.

One *iteration* is one batch and one learning rate; it runs one or more calls (entries) on that batch. With accumulation the
batch is cut into parts, each told where its first sample lies in the whole batch, so that masks and loss weights are those of
the whole batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from paddlecli.compiler.artifact import Argument, Artifact, EntryInfo
from paddlecli.data.columns import Column, Rows, Split
from paddlecli.data.spec import DatasetSpec
from paddlecli.errors import ConfigError
from paddlecli.ops._made import per_sample, recipe, sources

_MOST_BYTES = 1 << 26
"""Of rows that are made in Python for one request; one more request is made ahead."""
TURN = 1 << 40
"""What the key of random numbers grows by when an entry runs once more in an iteration: it draws other numbers."""
Rates = Callable[[int, int], Mapping[str, NDArray[np.float64]]]
"""(first step, number of steps) -> learning rate of each step by optimizer."""


@dataclass(frozen=True)
class Call:
    """One entry's run inside an iteration: on the whole batch, or on one of several parts of it."""

    entry: EntryInfo
    part: int = 0
    parts: int = 1


@dataclass(frozen=True)
class Work:
    """The steps of one request, one element of each array a step.

    Attributes:
        entries: index of the entry.
        counts: samples.
        firsts: index of the first sample in the whole batch.
        steps: number of the iteration since the start of training, and `TURN` for each time that its entry ran in it before:
            the key of random numbers.
        starts: where in `rows` the step's rows begin.
        rows: row numbers of all steps.
        args: [steps, arguments of the plan].
        iterations: which iteration of this request a step belongs to, from 0.
        axis_firsts: by ragged axis, the index of the step's first row in the whole batch; 0 for an axis that is not there.
        columns: for streamed data, the gathered columns by input of each step; None lets the core gather `rows`.
    """

    entries: NDArray[np.int32]
    counts: Rows
    firsts: Rows
    steps: Rows
    starts: Rows
    rows: Rows
    args: NDArray[np.float64]
    iterations: Rows
    axis_firsts: Mapping[str, Rows] = field(default_factory=dict)
    columns: Sequence[Mapping[str, Column]] | None = None

    def __len__(self) -> int:
        return int(self.entries.size)

    def batch_sizes(self, batch_size: int, iterations: int) -> NDArray[np.int64]:
        """Samples of each of the first `iterations` whole batches."""
        return np.diff(np.minimum(np.arange(iterations + 1) * batch_size, self.rows.size))

    def part(self, first: int, count: int) -> Work:
        """`count` iterations from number `first` on, as if they had been made alone."""
        low, high = np.searchsorted(self.iterations, (first, first + count)).tolist()
        cut = slice(low, high)
        starts, counts = self.starts[cut], self.counts[cut]
        begin = int(starts[0])
        return Work(
            self.entries[cut], counts, self.firsts[cut], self.steps[cut], starts - begin,
            self.rows[begin : int((starts + counts).max())], self.args[cut], self.iterations[cut] - first,
            {k: v[cut] for k, v in self.axis_firsts.items()},
            None if self.columns is None else self.columns[cut],
        )  # fmt: skip

    def behind(self, done: int, iterations: int) -> Work:
        """The steps from number `done` on that belong to the first `iterations` iterations."""
        stop = int(np.searchsorted(self.iterations, iterations))
        cut = slice(done, stop)
        return Work(
            self.entries[cut], self.counts[cut], self.firsts[cut], self.steps[cut], self.starts[cut], self.rows,
            self.args[cut], self.iterations[cut], {k: v[cut] for k, v in self.axis_firsts.items()},
            None if self.columns is None else self.columns[cut],
        )  # fmt: skip


def iteration(artifact: Artifact, loop: Sequence[str], accumulate: int) -> tuple[Call, ...]:
    """The calls of one training iteration.

    Args:
        artifact: the compiled graph, whose roles say what its entries are for.
        loop: the recipe's `train.loop`; empty takes the graph's.
        accumulate: parts that a batch is cut into.

    Raises:
        ConfigError: nothing trains, an unknown entry, or accumulation that the graph has no entries for.
    """
    roles = artifact.roles
    names = list(loop) or list(roles.get("train") or ())
    if not names:
        raise ConfigError(
            "the network has no entry that trains",
            hint="give it a loss and the recipe an optimizer",
        )
    if accumulate > 1:
        if not roles.get("accumulate") or not roles.get("apply") or loop:
            raise ConfigError(
                "train.accumulate needs a network with one training step",
                hint="set train.accumulate to 1",
            )
        first, more = (artifact.entries[n] for n in roles["accumulate"])
        parts = [Call(more if i else first, i, accumulate) for i in range(accumulate)]
        return (*parts, Call(artifact.entries[roles["apply"]]))
    unknown = [n for n in names if n not in artifact.entries]
    if unknown:
        raise ConfigError(
            f"train.loop: no entry `{unknown[0]}`", hint=f"there are {', '.join(artifact.entries)}"
        )
    return tuple(Call(artifact.entries[n]) for n in names)


class Weights:
    """For each of some loss weights, how much every row of a split counts."""

    def __init__(self, arguments: Sequence[Argument], spec: DatasetSpec, split: Split) -> None:
        self._rows = {
            a.name: _counts(a.count, spec, split) for a in arguments if a.kind == "weight"
        }

    def of_batches(self, name: str, rows: Rows, starts: Rows) -> NDArray[np.float64]:
        """Total weight of each batch; the batches begin at `starts` in `rows`, and none is empty."""
        counts = self._rows[name]
        if counts is None:
            return np.diff(np.append(starts, rows.size)).astype(np.float64)
        return np.add.reduceat(counts[rows], starts).astype(np.float64)


def _counts(count: str, spec: DatasetSpec, split: Split) -> Rows | None:
    """Weight of every row; None stands for one each."""
    kind, _, rest = count.partition(":")
    if kind == "batch":
        return None
    if kind == "axis":
        return _lengths(rest, spec, split)
    if kind == "labels":
        name, _, ignored = rest.rpartition(":")
        return _per_row(split.columns[name], split.columns[name].values != int(ignored))
    raise ValueError(f"unknown count of a loss weight: {count!r}")


def axis_rows(artifact: Artifact, spec: DatasetSpec, split: Split) -> dict[str, Rows]:
    """How many rows each sample has on every ragged axis that columns of the split lie on or give."""
    held = {axis for f in spec.fields if f.name in split.columns for axis in f.axes}
    made = {axis for axis in artifact.axes if recipe(axis) and held.issuperset(sources(axis))}
    return {axis: _lengths(axis, spec, split) for axis in sorted(held | made)}


def _lengths(axis: str, spec: DatasetSpec, split: Split) -> Rows:
    return per_sample(axis, lambda name: _field_lengths(name, spec, split))


def _field_lengths(axis: str, spec: DatasetSpec, split: Split) -> Rows:
    for known in spec.fields:
        if axis in known.axes and known.name in split.columns:
            return np.diff(_edges(split.columns[known.name].offsets[: known.axes.index(axis) + 1]))
    raise ValueError(f"no column of {spec.name} lies on the axis {axis!r}")


def _edges(offsets: Sequence[Rows]) -> Rows:
    """Where each row's elements of the last level begin and end."""
    edges = offsets[0]
    for level in offsets[1:]:
        edges = level[edges]
    return edges


def _per_row(column: Column, counted: NDArray[np.bool_]) -> Rows:
    items: Rows = counted.reshape(len(column.values), -1).sum(axis=1, dtype=np.int64)
    if not column.offsets:
        return items
    sums: Rows = np.append(0, np.cumsum(items))
    edges: Rows = sums[_edges(column.offsets)]
    return np.diff(edges)


class Maker:
    """Makes the requests of one split for one kind of iteration; without `rates`, for entries that update nothing."""

    def __init__(
        self, artifact: Artifact, calls: Sequence[Call], spec: DatasetSpec, split: Split, batch_size: int,
        rates: Rates | None = None,
    ) -> None:  # fmt: skip
        self.calls, self.batch_size, self.split = tuple(calls), batch_size, split
        self._arguments, self._rates = artifact.arguments, rates
        self._read = frozenset[str]().union(*(c.entry.arguments for c in self.calls))
        self._weights = Weights(
            [a for a in artifact.arguments if a.name in self._read], spec, split
        )
        cut = any(c.parts > 1 for c in self.calls)
        self._lengths = axis_rows(artifact, spec, split) if cut else {}

    def fits(self, count: int) -> int:
        """So many iterations, or fewer where the rows that are made for a request would take more than `_MOST_BYTES`."""
        if not self.split.streamed:
            return count
        most = _MOST_BYTES // max(1, self.batch_size * self.split.row_bytes)
        return max(1, min(count, most))

    def make(
        self, order: Rows, batch: int, count: int, step: int, gather: bool = False, epoch: int | None = None
    ) -> Work:  # fmt: skip
        """Iterations on the `count` batches of `order` from number `batch` on; the first is iteration `step` of the training.

        With `gather`, and always for a split that makes rows when they are taken, the columns are gathered here instead of
        in the core: as training sees them in `epoch`, or as evaluation does without one.
        """
        rows = np.ascontiguousarray(
            order[batch * self.batch_size : (batch + count) * self.batch_size]
        )
        starts = np.arange(0, rows.size, self.batch_size, dtype=np.int64)
        work = self._of(rows, starts, step)
        return self._gathered(work, epoch) if gather or self.split.streamed else work

    def epochs(self, orders: Rows, step: int) -> Work:
        """Iterations on all batches of whole epochs, one order a line; the core gathers their rows."""
        count, size = orders.shape
        first = np.arange(0, size, self.batch_size, dtype=np.int64)
        starts = (np.arange(count, dtype=np.int64)[:, None] * size + first).ravel()
        return self._of(np.ascontiguousarray(orders).ravel(), starts, step)

    def _of(self, rows: Rows, starts: Rows, step: int) -> Work:
        sizes = np.diff(np.append(starts, rows.size))
        entries = np.array([c.entry.index for c in self.calls], np.int32)
        part = np.array([c.part for c in self.calls])
        parts = np.array([c.parts for c in self.calls])
        turns = np.array([self.calls[:i].count(c) for i, c in enumerate(self.calls)], np.int64)
        # part p of k of n samples: from ceil(p n / k) on, so that sizes differ by at most one
        low = -(-sizes[:, None] * part // parts)
        high = -(-sizes[:, None] * (part + 1) // parts)
        kept = ((high > low) | (parts == 1)).ravel()
        iterations = np.repeat(np.arange(starts.size), entries.size)[kept]
        work = Work(
            entries=np.tile(entries, starts.size)[kept],
            counts=(high - low).ravel()[kept],
            firsts=low.ravel()[kept],
            steps=step + iterations + TURN * np.tile(turns, starts.size)[kept],
            starts=(starts[:, None] + low).ravel()[kept],
            rows=rows,
            args=self._args(rows, starts, step)[iterations],
            iterations=iterations,
        )
        if not self._lengths:
            return work
        firsts = {a: _first_rows(n[rows], work, starts) for a, n in self._lengths.items()}
        return replace(work, axis_firsts=firsts)

    def _args(self, rows: Rows, starts: Rows, step: int) -> NDArray[np.float64]:
        rates = {} if self._rates is None else self._rates(step, starts.size)
        table = np.zeros((starts.size, len(self._arguments)), np.float64)
        for i, argument in enumerate(self._arguments):
            if argument.name not in self._read:
                continue
            if argument.kind == "weight":
                table[:, i] = self._weights.of_batches(argument.name, rows, starts)
            elif self._rates is not None:
                table[:, i] = rates[argument.of]
        return table

    def _gathered(self, work: Work, epoch: int | None) -> Work:
        pieces = (work.rows[s : s + n] for s, n in zip(work.starts, work.counts, strict=True))
        columns = [self.split.take(rows, epoch) for rows in pieces]
        return replace(work, columns=columns)


def _first_rows(lengths: Rows, work: Work, starts: Rows) -> Rows:
    """Index of each step's first row of an axis in its whole batch, from the lengths of all samples of the request."""
    edges = np.append(0, np.cumsum(lengths))
    return np.asarray(edges[work.starts] - edges[starts[work.iterations]])


class InputPlace:
    """How many inputs and rows of sequences came before those of a batch: their random numbers go by their place, not by how
    many are run together."""

    def __init__(self, artifact: Artifact, spec: DatasetSpec) -> None:
        self._artifact, self._spec, self._samples = artifact, spec, 0
        self._rows: dict[str, int] = {}

    def of(self, work: Work) -> Work:
        """The work of one batch, told where it begins."""
        rows = {axis: np.full(len(work), n) for axis, n in self._rows.items()}
        return replace(work, firsts=work.firsts + self._samples, axis_firsts=rows)

    def passed(self, split: Split) -> None:
        """Counts a batch that was run."""
        self._samples += len(split)
        for axis, rows in axis_rows(self._artifact, self._spec, split).items():
            self._rows[axis] = self._rows.get(axis, 0) + int(rows.sum())


class Pace:
    """How many iterations fit in one request of about 0.1 s, measured as it goes."""

    def __init__(self, seconds: float = 0.1) -> None:
        self._target = seconds
        self._count = 1

    def count(self, most: int) -> int:
        """Iterations of the next request, at most `most`."""
        return max(1, min(self._count, most))

    def took(self, iterations: int, seconds: float) -> None:
        """Learns from a finished request; the count at most grows eightfold, as a first request pays for set-up."""
        fitting = int(iterations * self._target / max(seconds, 1e-9))
        self._count = max(1, min(fitting, 8 * max(iterations, self._count)))
