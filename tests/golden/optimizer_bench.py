"""Runs what the optimizer pass writes, node by node, on numpy arrays: no plan, no session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from paddlecli.compiler.groups import Group, Segment, Table
from paddlecli.compiler.optimizer import append_updates, optimizer_spec, slots_of
from paddlecli.config.schema import Optimizer
from paddlecli.graph.builder import Emitter
from paddlecli.graph.ir import NUMPY, Graph, Item, Node, Rows, Tensor, tensors_of
from paddlecli.ops.spec import Spec
from paddlecli.runtime.eager import run_kernel

Array = np.ndarray[Any, np.dtype[Any]]
ALIGN = 16
"""Elements between the starts of parameters are multiples of this, as in a plan's ranges."""


class Bench:
    """Dense parameters ``dense`` in one flat range, row-sparse ones in ``tables``; :meth:`step`
    takes gradients.

    settings: the recipe's optimizer section. rates: multipliers by parameter. unclipped: parameters
        left out of clipping. how: arguments of ``run_kernel``.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        dense: Mapping[str, Any],
        tables: Mapping[str, Any] | None = None,
        rates: Mapping[str, float] | None = None,
        unclipped: Sequence[str] = (),
        room: int = 8,
        **how: Any,
    ) -> None:
        self.settings = Optimizer.model_validate(settings)
        self.spec = optimizer_spec("default", self.settings)
        self.values: dict[int, Array] = {}
        self.rates, self.unclipped, self.room = rates or {}, unclipped, room
        self.how = how
        self.places: dict[str, slice] = {}
        self.shapes = {k: np.shape(v) for k, v in dense.items()}
        self.group = self._group(dense, tables or {})
        self.items: list[Item] = []
        self.norm, _ = append_updates(Emitter(Graph(), self.items), self.group)

    def step(
        self, gradients: Mapping[str, Any], rows: Mapping[str, tuple[Any, Any]] | None = None
    ) -> None:
        """One update. ``rows``: table -> (ids, values), repeats allowed; gaps of the range are
        poisoned."""
        if self.group.gradients is not None:
            flat = self.values[id(self.group.gradients)]
            flat[:] = np.nan
            for name, g in gradients.items():
                flat[self.places[name]] = np.ravel(g)
        for table in self.group.tables:
            self._set_rows(table, *(rows or {})[table.segment.name])
        self.values[id(self.group.rate)][:] = self.settings.learning_rate
        for node in self.items:
            assert isinstance(node, Node)
            self._run(node)

    def value(self, name: str) -> Array:
        """A parameter as it is now."""
        for table in self.group.tables:
            if table.segment.name == name:
                return self.values[id(table.parameter)]
        assert self.group.parameters is not None
        return self.values[id(self.group.parameters)][self.places[name]].reshape(self.shapes[name])

    @property
    def gradient_norm(self) -> float:
        """The global norm of the last step, before clipping."""
        assert self.norm is not None
        return float(self.values[id(self.norm)][0])

    # -- making -----------------------------------------------------------------------------------
    def _group(self, dense: Mapping[str, Any], tables: Mapping[str, Any]) -> Group:
        offset = 0
        segments = []
        for name, value in dense.items():
            size = int(np.size(value))
            segments.append(self._segment(name, offset, size))
            self.places[name] = slice(offset, offset + size)
            offset += -(-size // ALIGN) * ALIGN
        parameters = self._tensor("p", np.full(offset, 7.0, np.float32))
        for name, value in dense.items():
            self.values[id(parameters)][self.places[name]] = np.ravel(value)
        slots = slots_of(self.spec)
        state = {
            s.name: self._tensor(s.name, np.full(offset, s.initial, np.float32)) for s in slots
        }
        return Group(
            optimizer=self.spec, segments=tuple(segments),
            parameters=parameters if dense else None,
            gradients=self._tensor("g", np.zeros(offset, np.float32)) if dense else None,
            slots=state if dense else {},
            tables=tuple(self._table(k, v, slots) for k, v in tables.items()),
            counts={1: self._tensor("count", np.zeros(1, np.int64))},
            rate=self._tensor("rate", np.zeros(1, np.float32)),
        )  # fmt: skip

    def _segment(self, name: str, offset: int, size: int) -> Segment:
        own = self.spec.regularizer
        clip = name not in self.unclipped
        return Segment(
            name,
            offset,
            size,
            self.rates.get(name, 1.0),
            own.get("l2", 0.0),
            own.get("l1", 0.0),
            clip,
        )

    def _table(self, name: str, value: Any, slots: Iterable[Any]) -> Table:
        data = np.array(value, np.float32)
        rows = Rows(
            self._tensor("ids", np.full(self.room, -1, np.int64)),
            self._tensor("values", np.full((self.room, data.shape[1]), np.nan, np.float32)),
            self._tensor("rows", np.zeros(1, np.int64)),
        )
        state = {
            s.name: self._tensor(s.name, np.full(data.shape, s.initial, np.float32)) for s in slots
        }
        return Table(self._segment(name, 0, data.size), self._tensor(name, data), rows, state)

    def _tensor(self, name: str, data: Array) -> Tensor:
        dtype = next(k for k, v in NUMPY.items() if v == data.dtype.name)
        tensor = Tensor(name, Spec.of(*data.shape, dtype=dtype), "state")
        self.values[id(tensor)] = data
        return tensor

    def _set_rows(self, table: Table, ids: Any, values: Any) -> None:
        unique, where = np.unique(np.asarray(ids), return_inverse=True)
        merged = np.zeros((len(unique), np.shape(values)[1]), np.float32)
        np.add.at(merged, where, np.asarray(values, np.float32))
        self.values[id(table.rows.ids)][: len(unique)] = unique
        self.values[id(table.rows.values)][: len(unique)] = merged
        self.values[id(table.rows.count)][:] = len(unique)

    # -- running ----------------------------------------------------------------------------------
    def _run(self, node: Node) -> None:
        """State that stands among inputs and outputs is one array; other outputs are new."""
        for tensor in node.outputs:
            shape = tuple(d.coefficient for d in tensor.spec.shape)
            self.values.setdefault(id(tensor), np.zeros(shape, NUMPY[tensor.spec.dtype]))
        args = {k: self._arrays(v) for k, v in node.args.items()}
        outs = {port: t.spec for port, t in node.results.items()}
        for port, value in run_kernel(node.kernel, args, node.attrs, outs, **self.how).items():
            self.values[id(node.results[port])][...] = value

    def _arrays(self, value: Any) -> Any:
        if value is None:
            return None
        found = [
            self._constant(t) if t.role == "constant" else self.values[id(t)]
            for t in tensors_of(value)
        ]
        return found[0] if isinstance(value, Tensor) else found

    def _constant(self, tensor: Tensor) -> Array:
        shape = tuple(d.coefficient for d in tensor.spec.shape)
        return np.frombuffer(tensor.data, NUMPY[tensor.spec.dtype]).reshape(shape)
