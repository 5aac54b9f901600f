"""Gradients of the generated op tests: the op's own rule, and central differences of its reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from op_cases import FLOATS, Call, Case, Eager, Run, Value, each, flat, reference, spec_of

from paddlecli.ops.base import Attr, RowGrad


def upstream(run: Run, only: int | None = None) -> dict[str, Any]:
    """Random gradients of the first output (of its member ``only`` where it is several); None for the others."""
    rng = np.random.default_rng(99)
    found: dict[str, Any] = {
        p.name: each(run.results.get(p.name), lambda _: None) for p in run.case.it.forward.outputs
    }
    first = run.case.it.forward.outputs[0].name

    def random(v: Value) -> Value:
        return Value(v.spec.with_dtype("f32"), rng.uniform(-1, 1, v.array.shape).astype(np.float32))

    found[first] = each(run.results[first], random)
    if only is not None:
        found[first] = [d if i == only else None for i, d in enumerate(found[first])]
    return found


@dataclass(frozen=True, eq=False)
class Node:
    """What a gradient rule sees of the forward node."""

    args: Mapping[str, Any]
    results: Mapping[str, Any]
    attrs: Mapping[str, Attr]


DATA_PORTS = frozenset({"label", "weight", "prior", "like", "count", "expected"})
"""Float inputs that may be data alone: an op need not give a gradient for them."""


def trainable(case: Case) -> list[str]:
    """Input ports that get a gradient: they hold floats, and so does what the op makes of them."""
    args = {k: v for k, v in case.sample.args.items() if any(a.dtype == "f32" for a in flat(v))}
    if not case.it.differentiable or not args:
        return []
    specs: dict[str, Any] = {p.name: None for p in case.it.forward.inputs}
    specs |= {
        k: each(v, lambda a: spec_of(a, case.sample.axes)) for k, v in case.sample.args.items()
    }
    attrs = {**getattr(case.it, "defaults", {}), **case.sample.attrs}
    made = next(flat(case.it.shape(specs, attrs)[case.it.forward.outputs[0].name]))
    return list(args) if made.dtype in FLOATS else []


def gradient(
    run: Run, dy: Mapping[str, Any], wanted: Sequence[str] | None = None
) -> tuple[dict[str, Any], list[Call]]:
    """The op's own gradient: port -> array (list when variadic), row gradients made dense; and the calls."""
    e = Eager(run.sizes, wanted)
    node = Node(run.args, run.results, run.attrs)
    found = run.case.it.grad(e, node, dy)
    return {k: _dense(run.args[k], g) for k, g in found.items() if g is not None}, e.calls


def _dense(target: Any, g: Any) -> Any:
    if isinstance(target, list):
        return [None if v is None else v.array for v in g]
    if not isinstance(g, RowGrad):
        assert g.spec.shape == target.spec.shape, "a gradient has its tensor's shape"
        return g.array
    total = np.zeros_like(target.array)
    ids = g.ids.array
    np.add.at(total, ids[ids >= 0], g.values.array[ids >= 0])
    return total


def projection(run: Run, dy: Mapping[str, Any], args: Mapping[str, Any]) -> float:
    """Sum of dy times the reference's outputs."""
    outputs = reference(run, args)
    total = 0.0
    for port, d in dy.items():
        pairs = (
            zip(d, outputs[port], strict=True) if isinstance(d, list) else [(d, outputs.get(port))]
        )
        total += sum(
            float((g.array.astype(np.float64) * y).sum()) for g, y in pairs if g is not None
        )
    return total


def moved(run: Run, port: str, member: int, direction: np.ndarray) -> dict[str, Any]:
    """The arguments with one of them moved."""

    def move(v: Value) -> Value:
        return replace(v, array=v.array.astype(np.float64) + direction)

    value = run.args[port]
    if not isinstance(value, list):
        return {**run.args, port: move(value)}
    return {**run.args, port: [move(v) if i == member else v for i, v in enumerate(value)]}


def slope(
    run: Run, dy: Mapping[str, Any], port: str, member: int, direction: np.ndarray, h: float = 1e-5
) -> float:
    """Central difference of the projection along a direction."""
    up, down = (projection(run, dy, moved(run, port, member, s * h * direction)) for s in (1, -1))
    return (up - down) / (2 * h)
