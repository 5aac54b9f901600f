"""Loops in networks: ``scan`` repeats a step over the rows of sequences, ``decode`` over its own
output."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from paddlecli import ops
from paddlecli.graph.builder import fault
from paddlecli.graph.ir import Item, Loop, Node, Tensor
from paddlecli.models.network import Network
from paddlecli.ops.spec import BATCH, Axis, Dim, Spec


@dataclass(frozen=True)
class Memory:
    """What a step remembers: shape of one row, element type, first value (a number, or a tensor
    with one row a sequence)."""

    shape: tuple[int, ...]
    dtype: str = "f32"
    start: Tensor | float = 0.0


Step = Callable[
    [Sequence[Tensor], Mapping[str, Tensor], Mapping[str, Tensor]],
    tuple[Mapping[str, Tensor], Mapping[str, Tensor]],
]
"""(inputs, memories, statics) -> (outputs by name, next values of the memories by name)."""


def scan(
    net: Network, xs: Sequence[Tensor], step: Step, memories: Mapping[str, Memory],
    statics: Mapping[str, Tensor] | None = None, *, reverse: bool = False,
) -> dict[str, Tensor]:  # fmt: skip
    """Runs ``step`` over every sequence of an axis, longest sequences first, on the rows that are
    still running.

    Args:
        xs: ragged tensors [T, ...] on one axis; a step gets its rows [n, ...].
        statics: tensors that every step sees: with one row a sequence, of which a step gets those that
            run, or ragged ones, which it gets whole (see `sequence_of`).
        reverse: sequences are read from their end; outputs stay in place.

    Returns:
        The step's outputs by name, each [T, ...] on the same axis.

    Raises:
        ConfigError: the inputs are not on one ragged axis, or a memory's next value has another
            shape.
    """
    net.outermost()
    axis = _axis(net, xs)
    order = net.axis_data(axis, "map_reversed" if reverse else "map")
    views = [_step_view(net, _gather(net, x, order, axis.total), axis) for x in xs]
    carried = {k: _carried(net, axis, k, m) for k, m in memories.items()}
    fixed = {k: _prefix(net, t, axis) for k, t in (statics or {}).items()}
    with net.body(axis) as body:
        outputs, following = step(views, carried, fixed)
    for name, view in carried.items():
        _close(net, name, view, following.get(name))
    net.items.append(Loop("scan", _nodes(body), axis, origin=net.origin))
    return {k: _scatter(net, k, t, order, axis) for k, t in outputs.items()}


def _nodes(body: list[Item]) -> list[Node]:
    return [n for n in body if isinstance(n, Node)]


def _axis(net: Network, xs: Sequence[Tensor]) -> Axis:
    axes = {x.spec.axis for x in xs}
    axis = next(iter(axes)) if len(axes) == 1 else None
    if axis is None:
        shown = ", ".join(f"{x.name}: {x.spec.axis.name if x.spec.axis else 'no axis'}" for x in xs)
        raise fault(
            net.origin,
            f"[scan] all inputs must lie on one ragged axis; {shown or 'there are none'}",
        )
    return axis


def _gather(net: Network, x: Tensor, index: Tensor, rows: Dim) -> Tensor:
    spec = Spec((rows, *x.spec.shape[1:]), x.spec.dtype)
    result: Tensor = net.emit(
        ops.get("gather_rows").forward, {"x": x, "index": index}, out={"y": spec}
    )
    return result


def _step_view(net: Network, packed: Tensor, axis: Axis) -> Tensor:
    spec = Spec((axis.step_rows, *packed.spec.shape[1:]), packed.spec.dtype)
    return Tensor(net.fresh(f"{packed.name}.t"), spec, "step", base=packed)


def _carried(net: Network, axis: Axis, name: str, memory: Memory) -> Tensor:
    rows = Spec.of(axis.sequences, *memory.shape, dtype=memory.dtype)
    if isinstance(memory.start, Tensor):
        if memory.start.spec.shape != rows.shape:
            raise fault(
                net.origin, f"[scan] memory {name!r} is {rows}, its start {memory.start.spec}"
            )
        init = _gather(net, memory.start, net.axis_data(axis, "order"), axis.sequences)
    else:
        init = net.emit(ops.get("fill").forward, {}, {"value": memory.start}, out={"y": rows})
    spec = Spec.of(axis.step_rows, *memory.shape, dtype=memory.dtype)
    return Tensor(net.fresh(f"{net.path}.{name}.before"), spec, "previous", init=init)


def sequence_of(net: Network, rows: Tensor) -> Tensor | None:
    """Which sequence each row of a scan's present step belongs to [n] i64: rows are ordered by length,
    ragged statics are not. None outside of scans."""
    axis = net.scanned
    if axis is None or rows.spec.shape[:1] != (axis.step_rows,):
        return None
    order = net.axis_data(axis, "order")
    return Tensor(
        net.fresh(f"{net.path}.sequence"), Spec((axis.step_rows,), "i64"), "prefix", base=order
    )


def _prefix(net: Network, static: Tensor, axis: Axis) -> Tensor:
    if static.spec.axis is not None:
        if static.spec.axis.sequences != axis.sequences:
            text = f"static {static.name} is {static.spec}: its sequences are not those of the scan"
            raise fault(net.origin, f"[scan] {text}")
        return static
    ordered = _gather(net, static, net.axis_data(axis, "order"), axis.sequences)
    spec = Spec((axis.step_rows, *static.spec.shape[1:]), static.spec.dtype)
    return Tensor(net.fresh(f"{static.name}.n"), spec, "prefix", base=ordered)


def _close(net: Network, name: str, view: Tensor, following: Tensor | None) -> None:
    inside = {id(following)} if following is not None and following.role == "step" else set()
    view.base = _computed(net, "scan", name, view, following, inside).base


def _computed(
    net: Network, loop: str, name: str, memory: Tensor, following: Tensor | None, inside: set[int]
) -> Tensor:
    """The next value of a memory, which the step must compute: ``inside`` are its results."""
    if following is None or id(following) not in inside:
        raise fault(
            net.origin, f"[{loop}] the step gives no next value of memory {name!r} that it computes"
        )
    if following.spec.shape != memory.spec.shape:
        text = f"memory {name!r} is {memory.spec}, its next value {following.spec}"
        raise fault(net.origin, f"[{loop}] {text}")
    return following


def _scatter(net: Network, name: str, value: Tensor, order: Tensor, axis: Axis) -> Tensor:
    if value.role != "step" or value.base is None:
        raise fault(net.origin, f"[scan] output {name!r} is not computed by the step")
    spec, work = (
        Spec((axis.total, *value.spec.shape[1:]), value.spec.dtype, axis),
        Spec((axis.total,), "u8"),
    )
    result: Tensor = net.emit(
        ops.get("scatter_rows").forward,
        {"x": value.base, "index": order},
        out={"y": spec, "work": work},
    )
    return result


@dataclass(frozen=True)
class Decoded:
    """What a decode found, ``end`` behind the end of each sequence.

    Attributes:
        ids: [N, max_length] i64, with beams [N, beam, max_length], best first.
        length: [N] i64 without the end mark, with beams [N, beam].
        score: with beams the sums of the logarithms [N, beam].
    """

    ids: Tensor
    length: Tensor
    score: Tensor | None = None

    @property
    def named(self) -> dict[str, Tensor]:
        """By the names that recipes use."""
        found = {"ids": self.ids, "length": self.length}
        return found if self.score is None else {**found, "score": self.score}


def decode(
    net: Network,
    step: Step,
    memories: Mapping[str, Memory],
    statics: Mapping[str, Tensor] | None = None,
    *,
    scores: str,
    start: int,
    end: int,
    max_length: int,
    beam: int = 1,
    logarithms: bool = False,
) -> Decoded:
    """Repeats ``step`` on its own choice until every row has chosen ``end``, at most ``max_length``
    times.

    Args:
        step: gets the last ids [rows] i64 as its only input; its output ``scores`` [rows, V] is
            maximised.
        statics: tensors that every step sees: with one row a sample, or ragged ones, given whole.
        beam: 1 takes the best id of each step, and rows are the batch. More follow that many
            sequences of each sample, those with the largest sums of the scores' logarithms, and rows
            are ``beam`` for each sample.
        logarithms: the scores are logarithms already.
    """
    if net.training:
        raise fault(net.origin, "[decode] belongs to prediction: it has no gradient")
    search = (_Beams if beam > 1 else _Greedy)(net, beam, end, max_length)
    ids = _kept(net, "ids", Spec.of(search.rows, dtype="i64"), float(start))
    carried = {k: _start(net, k, m, search.width) for k, m in memories.items()}
    fixed = {k: _tiled(net, t, search.width) for k, t in (statics or {}).items()}
    with net.body() as body:
        outputs, following = step([ids], carried, fixed)
        values = outputs[scores]
        if beam > 1 and not logarithms:
            values = net.apply("log", values)
        inside = {id(t) for n in _nodes(body) for t in n.outputs}
        chosen, done = search.choose(values)
        _copy(net, chosen, ids)
        for name, kept in carried.items():
            search.carry(_computed(net, "decode", name, kept, following.get(name), inside), kept)
    net.items.append(Loop("decode", _nodes(body), limit=max_length, flag=done, origin=net.origin))
    return search.trace()


class _Greedy:
    """One row a sample, the best id of each step."""

    def __init__(self, net: Network, width: int, end: int, limit: int) -> None:
        self.net, self.width, self.end, self.limit = net, width, end, limit
        self.rows = BATCH * width
        self.finished = _kept(net, "finished", Spec.of(self.rows, dtype="i32"), 0.0)
        self.log = self._log("log", end)

    def _log(self, name: str, value: int) -> Tensor:
        """Room for a number of each row and step."""
        return _kept(self.net, name, Spec.of(self.rows * self.limit, dtype="i64"), float(value))

    def _write(self, value: Tensor, log: Tensor) -> None:
        """Keeps what this step chose."""
        _copy(
            self.net, value, Tensor(self.net.fresh(f"{log.name}.t"), value.spec, "step", base=log)
        )

    def choose(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """The ids of this step, and the flag that all rows have ended."""
        args = {"scores": scores, "finished": self.finished}
        chosen, ended, done = self.net.emit(ops.get("greedy_step").forward, args, {"end": self.end})
        _copy(self.net, ended, self.finished)
        self._write(chosen, self.log)
        return chosen, done

    def carry(self, following: Tensor, kept: Tensor) -> None:
        """A memory's value for the next step."""
        _copy(self.net, following, kept)

    def trace(self) -> Decoded:
        """The sequences from the log."""
        attrs = {"end": self.end, "limit": self.limit}
        return Decoded(*self.net.emit(ops.get("decode_trace").forward, {"log": self.log}, attrs))


class _Beams(_Greedy):
    """``width`` rows a sample; memories follow the rows that they come from."""

    def __init__(self, net: Network, width: int, end: int, limit: int) -> None:
        super().__init__(net, width, end, limit)
        self.parents_log = self._log("parents", -1)
        # All prefixes are the same at first: only one of them may be continued.
        none = _kept(net, "none", Spec.of(BATCH, width), 0.0)
        first = net.constant([0.0, *[-1e9] * (width - 1)])
        self.total = _kept(net, "total", Spec.of(BATCH, width), 0.0)
        _copy(net, net.apply("add", none, first, axis=-1), self.total)
        self.parents: Tensor | None = None

    def choose(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """The ids of this step, and the flag that all rows have ended."""
        args = {"scores": scores, "total": self.total, "finished": self.finished}
        kernel, net = ops.get("beam_step").forward, self.net
        chosen, self.parents, total, ended, done = net.emit(kernel, args, {"end": self.end})
        for value, kept in ((total, self.total), (ended, self.finished)):
            _copy(net, value, kept)
        self._write(chosen, self.log)
        self._write(self.parents, self.parents_log)
        return chosen, done

    def carry(self, following: Tensor, kept: Tensor) -> None:
        """A memory's value for the next step: its parent's."""
        assert self.parents is not None
        _copy(self.net, _gather(self.net, following, self.parents, self.rows), kept)

    def trace(self) -> Decoded:
        """The sequences from the log, best first."""
        args = {"ids": self.log, "parents": self.parents_log, "total": self.total}
        attrs = {"end": self.end, "limit": self.limit}
        return Decoded(*self.net.emit(ops.get("beam_trace").forward, args, attrs))


def _tiled(net: Network, tensor: Tensor, width: int) -> Tensor:
    """A tensor with ``width`` rows a sample; a ragged one as it is."""
    if width == 1 or tensor.spec.axis is not None:
        return tensor
    result: Tensor = net.apply("tile_rows", tensor, times=width)
    return result


def _kept(net: Network, name: str, spec: Spec, value: float) -> Tensor:
    """A tensor that is filled before the loop and written in it."""
    result: Tensor = net.emit(ops.get("fill").forward, {}, {"value": value}, out={"y": spec})
    result.name = net.fresh(f"{net.path}.{name}")
    return result


def _start(net: Network, name: str, memory: Memory, width: int) -> Tensor:
    rows = Spec.of(BATCH, *memory.shape, dtype=memory.dtype)
    spec = Spec.of(BATCH * width, *memory.shape, dtype=memory.dtype)
    if not isinstance(memory.start, Tensor):
        return _kept(net, name, spec, memory.start)
    if memory.start.spec.shape != rows.shape:
        raise fault(
            net.origin, f"[decode] memory {name!r} is {rows}, its start {memory.start.spec}"
        )
    kept = Tensor(net.fresh(f"{net.path}.{name}"), spec)
    _copy(net, _tiled(net, memory.start, width), kept)
    return kept


def _copy(net: Network, source: Tensor, target: Tensor) -> None:
    kernel = ops.get("copy").forward
    net.items.append(Node(kernel, {"x": source}, {"y": target}, {}, net.origin))
