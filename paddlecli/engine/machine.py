"""A compiled graph with its parameters and memory: the engine's one place that talks to the runtime."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paddlecli import ops, settings
from paddlecli.compiler.artifact import Artifact, EntryInfo, Placement
from paddlecli.data.columns import Split
from paddlecli.engine.requests import Work
from paddlecli.errors import RunError
from paddlecli.graph.ir import Graph
from paddlecli.runtime import native
from paddlecli.runtime.request import Request
from paddlecli.runtime.session import Params, Plan, Session, Table

Arrays = dict[str, NDArray[Any]]
_METRIC = "metric:"
_TRAINED = "trained:"
"""Of a parameter whose average is saved in its place: the value that training goes on with."""
_POISON = 4  # level of PADDLECLI_DEBUG that fills dead memory and checks every output


@dataclass(frozen=True)
class Outcome:
    """How a request ended.

    Attributes:
        done: steps that ended, the halted one included.
        results: [steps, fetches], NaN where a step did not run.
        outputs: by step, the entry's outputs by name; only when asked for.
        halted: the last step's loss is not finite; its update was not made.
        interrupted: a signal ended it early.
        seconds: time inside the core.
    """

    done: int
    results: NDArray[np.float64]
    outputs: tuple[Arrays, ...]
    halted: bool
    interrupted: bool
    seconds: float

    def joined(self, rest: Outcome) -> Outcome:
        """This request and the one with the steps behind it, as one."""
        results = self.results.copy()
        results[self.done : self.done + rest.done, : rest.results.shape[1]] = rest.results[
            : rest.done
        ]
        return Outcome(
            self.done + rest.done, results, self.outputs + rest.outputs, rest.halted, self.interrupted,
            self.seconds + rest.seconds,
        )  # fmt: skip


@dataclass(frozen=True)
class ProfileRow:
    """Time of one kernel call of the plan: where it stands, calls, seconds, bytes by shape."""

    name: str
    calls: int
    seconds: float
    bytes: float


class Machine:
    """Runs the entries of an artifact.

    Args:
        artifact: what to run.
        threads: of the core; the setting if None.
        profile: measure every node.

    Raises:
        ResourceError: this core lacks a kernel, or there is no memory.
    """

    def __init__(
        self, artifact: Artifact, threads: int | None = None, profile: bool = False
    ) -> None:
        from paddlecli.runtime.device import device

        self.artifact = artifact
        self._device = device(threads=threads)
        self._plan = Plan(artifact.plan, self._device.kind)
        self._params = Params(self._plan)
        self._session = Session(
            self._plan,
            self._params,
            self._device,
            profile=profile,
            poison=settings.debug() >= _POISON,
        )
        self._tables: dict[int, tuple[Split, Table]] = {}
        self._profiled: dict[int, ProfileRow] = {}
        for name, value in artifact.slot_start.items():
            if value:
                place = artifact.slots[name]
                self._params.write(place, np.full(place.shape, value))

    # -- arrays -----------------------------------------------------------------------------------------------------
    def write(
        self, values: Mapping[str, NDArray[Any]] | Iterable[tuple[str, NDArray[Any]]]
    ) -> None:
        """Sets parameters and states by name, and where averages of parameters are kept those too. Those that this artifact
        has no use for are passed over.

        Raises:
            RunError: another shape.
        """
        for name, value in values.items() if isinstance(values, Mapping) else values:
            place = self.artifact.parameters.get(name) or self.artifact.states.get(name)
            if place is not None:
                self._write(name, place, value)
            if name in self.artifact.averages:
                self._write(name, self.artifact.slots[self.artifact.averages[name]], value)

    def _write(self, name: str, place: Placement, value: NDArray[Any]) -> None:
        if tuple(value.shape) != tuple(place.shape):
            raise RunError(
                f"{name}: the network has shape {list(place.shape)}, the values {list(value.shape)}"
            )
        self._params.write(place, value)

    def arrays(self, graph: Graph) -> tuple[Arrays, Arrays]:
        """What a checkpoint saves: parameters and states of the graph, with averages in place of parameters where they are
        kept; and what only training needs: optimizer slots, update counts, metrics in progress, the parameters themselves."""
        own = {*graph.parameters, *graph.states}
        found = {n: self._params.read(p) for n, p in self._places().items()}
        return {n: v for n, v in found.items() if n in own}, {
            n: v for n, v in found.items() if n not in own
        }

    def _places(self) -> dict[str, Placement]:
        """Where everything that a checkpoint saves lies, by the name that it is saved under."""
        a = self.artifact
        averages = set(a.averages.values())
        return {
            **a.parameters,
            **a.states,
            **{n: p for n, p in a.slots.items() if n not in averages},
            **{n: a.slots[key] for n, key in a.averages.items()},
            **{_TRAINED + n: a.parameters[n] for n in a.averages},
            **{_METRIC + n: p for n, p in a.metric_states.items()},
        }

    def restore(self, model: Mapping[str, NDArray[Any]], rest: Mapping[str, NDArray[Any]]) -> None:
        """Sets what `arrays` gave.

        Raises:
            RunError: names or shapes are not this artifact's.
        """
        places, values = self._places(), {**model, **rest}
        odd = sorted(places.keys() ^ values.keys())
        if odd:
            raise RunError(
                f"the checkpoint does not fit the network and its optimizer: {', '.join(odd[:5])}"
            )
        for name, place in places.items():
            self._write(name, place, values[name])

    # -- metrics ----------------------------------------------------------------------------------------------------
    def metrics(self, entry: EntryInfo) -> dict[str, float]:
        """The entry's metrics since they were cleared; NaN where nothing was counted."""
        found: dict[str, float] = {}
        for name in entry.metrics:
            found |= self.report(entry, name)
        return found

    def report(self, entry: EntryInfo, metric: str) -> dict[str, float]:
        """The numbers of one of the entry's metrics; one metric may report several."""
        m = entry.metrics[metric]
        counts = self._params.read(self.artifact.metric_states[m.state]).ravel().tolist()
        found: dict[str, float] = ops.get(m.op).report(metric, counts, m.attrs, m.values)  # type: ignore[attr-defined]
        return found

    def clear_metrics(self, entry: EntryInfo) -> None:
        """Starts counting anew."""
        for metric in entry.metrics.values():
            place = self.artifact.metric_states[metric.state]
            self._params.write(place, np.zeros(place.shape, np.int64))

    # -- running ----------------------------------------------------------------------------------------------------
    def run(self, work: Work, split: Split, outputs: bool = False) -> Outcome:
        """Runs a request; on the rows of `split`, or on the columns that the work brings."""
        request = Request(
            self._plan,
            work.entries,
            work.counts,
            work.args,
            work.steps,
            work.firsts,
            self._first_rows(work),
        )
        if work.columns is None:
            request.from_table(self._table(split), work.rows, work.starts)
        else:
            request.from_columns(work.columns)
        if outputs:
            request.want_outputs()
        began = time.perf_counter()
        ended = self._session.run(request)
        seconds = time.perf_counter() - began
        found = tuple(self._outputs(request, work, i) for i in range(ended.done)) if outputs else ()
        halted, interrupted = ended.status == "halted", ended.status == "interrupted"
        return Outcome(ended.done, request.results, found, halted, interrupted, seconds)

    def _outputs(self, request: Request, work: Work, step: int) -> Arrays:
        entry = next(e for e in self.artifact.entries.values() if e.index == work.entries[step])
        return dict(zip(entry.outputs, request.outputs(step), strict=True))

    def _first_rows(self, work: Work) -> NDArray[np.int64] | None:
        axes = [axis.name for axis in self._plan.info.axes]
        if not work.axis_firsts or not axes:
            return None
        unread = np.zeros(len(work), np.int64)
        return np.stack([work.axis_firsts.get(name, unread) for name in axes], axis=1)

    def _table(self, split: Split) -> Table:
        if id(split) not in self._tables:
            self._tables[id(split)] = (split, Table(self._plan, split.columns))
        return self._tables[id(split)][1]

    def interrupt(self, urgent: bool = False) -> None:
        """Ends the running request between steps, or between nodes when `urgent`. From any thread or signal handler."""
        self._session.interrupt(urgent)

    # -- facts ------------------------------------------------------------------------------------------------------
    def info(self) -> dict[str, Any]:
        """Backend, instruction-set level, build of the core, device and threads."""
        found = native.info(self._device.kind)
        return {
            "backend": found.backend, "level": found.level, "build": found.build, "device": str(self._device),
            "threads": self._device.threads,
        }  # fmt: skip

    @property
    def state_bytes(self) -> int:
        """Bytes of parameters, gradients, optimizer slots and other state."""
        return sum(r.bytes for r in self._plan.info.ranges)

    def allocations_in_steps(self) -> int:
        """Allocations that steps made since the core was loaded; none are allowed."""
        return native.counters(self._device.kind).allocations_in_steps

    def profile(self) -> tuple[ProfileRow, ...]:
        """Time by node since `clear_profile`, in the plan's order; empty without `profile`."""
        rows = []
        for r in self._session.profile():
            old = self._profiled.get(r.node, ProfileRow("", 0, 0.0, 0.0))
            kernel = r.signature.partition("(")[0]
            row = ProfileRow(
                f"{kernel}  {r.path}".rstrip(),
                r.calls - old.calls,
                r.seconds - old.seconds,
                r.bytes - old.bytes,
            )
            if row.calls:
                rows.append(row)
        return tuple(rows)

    def clear_profile(self) -> None:
        """Lets `profile` start here."""
        self._profiled = {
            r.node: ProfileRow("", r.calls, r.seconds, r.bytes) for r in self._session.profile()
        }
