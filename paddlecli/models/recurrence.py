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
        statics: tensors with one row a sequence that every step sees.
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


def _prefix(net: Network, static: Tensor, axis: Axis) -> Tensor:
    ordered = _gather(net, static, net.axis_data(axis, "order"), axis.sequences)
    spec = Spec((axis.step_rows, *static.spec.shape[1:]), static.spec.dtype)
    return Tensor(net.fresh(f"{static.name}.n"), spec, "prefix", base=ordered)


def _close(net: Network, name: str, view: Tensor, following: Tensor | None) -> None:
    if following is None or following.role != "step":
        raise fault(
            net.origin, f"[scan] the step gives no next value of memory {name!r} that it computes"
        )
    if following.spec.shape != view.spec.shape:
        raise fault(
            net.origin, f"[scan] memory {name!r} is {view.spec}, its next value {following.spec}"
        )
    view.base = following.base


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
) -> tuple[Tensor, Tensor]:
    """Greedy decoding: repeats ``step`` on its own choice until every row has chosen ``end``, at
    most ``max_length`` times.

    Args:
        step: gets the last ids [N] i64 as its only input; its output ``scores`` [N, V] is
            maximised.

    Returns:
        ids [N, max_length] i64 (``end`` behind the end), lengths [N] i64 without the end mark.
    """
    if net.training:
        raise fault(net.origin, "[decode] belongs to prediction: it has no gradient")
    rows = BATCH
    ids = _kept(net, "ids", Spec.of(rows, dtype="i64"), float(start))
    finished = _kept(net, "finished", Spec.of(rows, dtype="i32"), 0.0)
    carried = {
        k: _start(net, k, Spec.of(rows, *m.shape, dtype=m.dtype), m) for k, m in memories.items()
    }
    log = _kept(net, "log", Spec.of(rows * max_length, dtype="i64"), float(end))
    with net.body() as body:
        outputs, following = step([ids], carried, dict(statics or {}))
        chosen, ended, done = net.emit(
            ops.get("greedy_step").forward,
            {"scores": outputs[scores], "finished": finished},
            {"end": end},
        )
        _copy(net, chosen, ids)
        _copy(net, ended, finished)
        _copy(net, chosen, Tensor(net.fresh("log.t"), chosen.spec, "step", base=log))
        for name, kept in carried.items():
            _copy(net, following[name], kept)
    net.items.append(Loop("decode", _nodes(body), limit=max_length, flag=done, origin=net.origin))
    found = net.emit(
        ops.get("decode_trace").forward, {"log": log}, {"end": end, "limit": max_length}
    )
    return found[0], found[1]


def _kept(net: Network, name: str, spec: Spec, value: float) -> Tensor:
    """A tensor that is filled before the loop and written in it."""
    result: Tensor = net.emit(ops.get("fill").forward, {}, {"value": value}, out={"y": spec})
    result.name = net.fresh(f"{net.path}.{name}")
    return result


def _start(net: Network, name: str, spec: Spec, memory: Memory) -> Tensor:
    if not isinstance(memory.start, Tensor):
        return _kept(net, name, spec, memory.start)
    if memory.start.spec.shape != spec.shape:
        raise fault(
            net.origin, f"[decode] memory {name!r} is {spec}, its start {memory.start.spec}"
        )
    kept = Tensor(net.fresh(f"{net.path}.{name}"), spec)
    _copy(net, memory.start, kept)
    return kept


def _copy(net: Network, source: Tensor, target: Tensor) -> None:
    kernel = ops.get("copy").forward
    net.items.append(Node(kernel, {"x": source}, {"y": target}, {}, net.origin))
