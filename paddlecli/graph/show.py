"""Graphs as text: one line a node, for ``paddlecli plan`` and for tests that compare two graphs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from paddlecli.graph.ir import Entry, Graph, Item, Loop, Node, Tensor


def show(graph: Graph) -> str:
    """The whole graph: inputs, parameters, states, entries."""
    lines = [f"input {t.name}: {t.spec}" for t in graph.inputs.values()]
    lines += [f"parameter {t.name}: {t.spec}{_info(t)}" for t in graph.parameters.values()]
    lines += [f"state {t.name}: {t.spec}" for t in graph.states.values()]
    lines += [f"argument {name}: {a.kind} of {a.of}" for name, a in graph.arguments.items()]
    for entry in graph.entries.values():
        lines += ["", *show_entry(entry)]
    return "\n".join(lines) + "\n"


def _info(t: Tensor) -> str:
    if t.info is None:
        return ""
    words = [] if t.info.trainable else ["frozen"]
    words += ["sparse"] if t.info.sparse else []
    words += [f"rate*{t.info.rate:g}"] if t.info.rate != 1 else []
    words += [f"{k} {v:g}" for k, v in (t.info.regularizer or {}).items()]
    words += [] if t.info.clip else ["not clipped"]
    return f" ({', '.join(words)})" if words else ""


def show_entry(entry: Entry) -> Iterator[str]:
    """Lines of one entry."""
    yield f"entry {entry.name}{' (training)' if entry.training else ''}:"
    for item in entry.items:
        yield from _item(item, "  ")
    for name, t in {**entry.fetches, **entry.outputs}.items():
        yield f"  -> {name} = %{t.name}"


def _item(item: Item, indent: str) -> Iterator[str]:
    if isinstance(item, Node):
        yield indent + line(item)
        return
    assert isinstance(item, Loop)
    over = f"over {item.axis.name}" if item.axis else f"at most {item.limit} times"
    yield f"{indent}{item.kind} {over}{' reversed' if item.reverse else ''}:"
    for node in item.body:
        yield from _item(node, indent + "  ")


def line(node: Node) -> str:
    """``%fc1.y: f32[N, 10] = matmul.forward(%x, %w; flatten=1)  # fc1``."""
    out = ", ".join(
        ("+" if k in node.accumulate else "") + _port(v, True) for k, v in node.results.items()
    )
    args = ", ".join(_port(v, False) for v in node.args.values())
    attrs = "".join(
        f", {k}={v}" if i else f"; {k}={v}" for i, (k, v) in enumerate(node.attrs.items())
    )
    guard = f" if %{node.guard.name}" if node.guard is not None else ""
    where = f"  # {node.origin.path}" if node.origin.path else ""
    return f"{out} = {node.kernel.full_name}({args}{attrs}){guard}{where}"


def _port(value: Any, spec: bool) -> str:
    if value is None:
        return "-"
    if isinstance(value, list):
        return "[" + ", ".join(_port(v, spec) for v in value) + "]"
    name = f"%{value.name}"
    if value.role in ("step", "previous", "prefix"):
        name += {"step": "[t]", "previous": "[t-1]", "prefix": "[:n]"}[value.role]
    return f"{name}: {value.spec}" if spec else name
