"""A network on the real core, a step at a time: compiled as training compiles it, fed with numpy, every array readable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from null.executor import Batch

from paddlecli.compiler.emit import emit
from paddlecli.compiler.groups import OptimizerSpec
from paddlecli.compiler.pipeline import Passes, run_passes
from paddlecli.engine.requests import Maker, Work, iteration
from paddlecli.graph.ir import NUMPY, Graph
from paddlecli.ops.base import Ragged
from paddlecli.runtime.device import Device
from paddlecli.runtime.request import Request
from paddlecli.runtime.session import Params, Plan, Session

Array = np.ndarray[Any, np.dtype[Any]]
Arrays = dict[str, Array]


@dataclass(frozen=True)
class Step:
    """How a step ended: ``done`` or ``halted``, its result row and its outputs by name."""

    status: str
    numbers: dict[str, float]
    outputs: Arrays

    @property
    def loss(self) -> float:
        """The entry's loss."""
        return self.numbers["loss"]


class Road:
    """Plan, parameters and session of a forward graph.

    Args:
        optimizers: by the names that the graph's updates use.
        grain: cut all parallel work as finely as possible.
    """

    def __init__(
        self, graph: Graph, optimizers: Mapping[str, OptimizerSpec] | None = None, *, passes: Passes | None = None, seed: int = 3,
        accumulate: bool = False, threads: int = 1, grain: bool = False, poison: bool = False, profile: bool = False,
    ) -> None:  # fmt: skip
        self.graph = graph
        self.stages = run_passes(graph, optimizers or {}, passes or Passes(), accumulate)
        self.artifact = emit(self.stages, seed)
        self.plan = Plan(self.artifact.plan)
        self.places = self.stages.storage.placements
        """Every persistent array by its key: ``fc1/w``, ``gradient:fc1/w``, ``fc1/w@default.moment1``, ``updates.default``."""
        self._first = dict(graph.starts(seed))
        self._begin(threads=threads, profile=profile, poison=poison, smallest_grain=grain)

    def _begin(self, threads: int = 1, **modes: bool) -> None:
        self.params = Params(self.plan)
        self.session = Session(self.plan, self.params, Device("cpu", 0, threads), **modes)
        self.write(self._first)
        self.write(
            {k: np.full(self.places[k].shape, v) for k, v in self.artifact.slot_start.items()}
        )

    def poisoned(self) -> Road:
        """The same plan once more with arrays of its own, in a session that poisons memory."""
        other = copy(self)
        other._begin(poison=True)
        return other

    # -- arrays -----------------------------------------------------------------------------------------------------
    def read(self, name: str) -> Array:
        """A copy of a persistent array."""
        return self.params.read(self.places[name])

    def write(self, values: Mapping[str, Any]) -> None:
        """Sets persistent arrays."""
        for name, value in values.items():
            self.params.write(self.places[name], np.asarray(value))

    def shake(self, seed: int = 1) -> None:
        """Moves every parameter, biases too, so that nothing is 0 by chance."""
        rng = np.random.default_rng(seed)
        for name in self.graph.parameters:
            old = self.read(name)
            self.write({name: old + rng.uniform(-0.3, 0.3, old.shape)})

    def everything(self, but: Iterable[str] = ()) -> Arrays:
        """All that outlives a step, gradients left out; ``but`` leaves out classes of ranges too."""
        ranges, skipped = self.stages.storage.ranges, {"grad", *but}
        return {
            n: self.params.read(p) for n, p in self.places.items()
            if ranges[p.range].klass not in skipped and not n.startswith("flat:")
        }  # fmt: skip

    # -- steps ------------------------------------------------------------------------------------------------------
    def step(self, entry: str, batch: Batch, rate: float = 0.1, outputs: bool = False) -> Step:
        """Runs an entry on a batch. ``rate`` is every optimizer's learning rate."""
        info = self.artifact.entries[entry]
        args = [
            rate if a.kind == "learning_rate" else batch.arguments[a.name]
            for a in self.artifact.arguments
        ]
        request = Request(self.plan, info.index, [batch.size], [args], batch.step).from_columns(
            [self._columns(batch)]
        )
        if outputs:
            request.want_outputs()
        status = self.session.run(request).status
        found = dict(zip(info.outputs, request.outputs(0), strict=True)) if outputs else {}
        return Step(
            status, dict(zip(info.fetches, request.results[0].tolist(), strict=False)), found
        )

    def _columns(self, batch: Batch) -> dict[str, Any]:
        def typed(name: str, value: Any) -> Any:
            dtype = NUMPY[self.graph.inputs[name].spec.dtype]
            if isinstance(value, Ragged):
                return Ragged(value.values.astype(dtype), value.offsets)
            return np.asarray(value).astype(dtype)

        return {k: typed(k, v) for k, v in batch.columns.items()}

    def run(self, work: Work, split: Any) -> Array:
        """The result rows of what the engine asks for."""
        from paddlecli.runtime.session import Table

        axes = [axis.name for axis in self.plan.info.axes] if work.axis_firsts else []
        first_rows = np.stack([work.axis_firsts[a] for a in axes], axis=1) if axes else None
        request = Request(
            self.plan, work.entries, work.counts, work.args, work.steps, work.firsts, first_rows
        )
        if work.columns is None:
            request.from_table(Table(self.plan, split.columns), work.rows, work.starts)
        else:
            request.from_columns(work.columns)
        assert self.session.run(request).done == len(work)
        return request.results

    def maker(self, spec: Any, split: Any, batch_size: int, rate: float, parts: int = 1) -> Maker:
        """The engine's maker of training requests over a split, at a constant rate; each batch in so many parts."""
        calls = iteration(self.artifact, (), parts)
        owners = {a.of for a in self.artifact.arguments if a.kind == "learning_rate"}
        rates = {name: np.full(1, rate) for name in owners}
        return Maker(
            self.artifact,
            calls,
            spec,
            split,
            batch_size,
            lambda first, count: {k: v.repeat(count) for k, v in rates.items()},
        )


def same(a: Mapping[str, Array], b: Mapping[str, Array]) -> None:
    """Equal names and equal bits."""
    assert a.keys() == b.keys()
    for name, value in a.items():
        assert value.tobytes() == b[name].tobytes(), f"{name}: {value} and {b[name]}"


def close(a: Mapping[str, Array], b: Mapping[str, Array], tolerance: float) -> None:
    """Equal names and values that differ by rounding."""
    assert a.keys() == b.keys()
    for name, value in a.items():
        np.testing.assert_allclose(value, b[name], rtol=tolerance, atol=tolerance, err_msg=name)


def plain(optimizers: Mapping[str, OptimizerSpec]) -> dict[str, OptimizerSpec]:
    """The same names, all of them gradient descent: parameters move by rate times gradient and nothing else."""
    return {
        k: replace(v, op="sgd", attrs={}, regularizer={}, clip={}) for k, v in optimizers.items()
    }
