"""Convolutions in tiles: where the sizes of a conv2d say that it pays, the kernels of ``conv2d_tiled``
take its place, forwards and in both gradients, with the scratch that they need.

Chosen by static sizes alone. It changes bits within the tolerance of the method (``core/cpu/winograd.h``).
"""

from __future__ import annotations

from dataclasses import replace

from paddlecli.graph.ir import Entry, Item, Loop, Node, Tensor
from paddlecli.ops import conv2d_tiled

OP = conv2d_tiled.OP


def tiles(entry: Entry) -> Entry:
    """The entry with tiled convolutions."""
    items: list[Item] = [
        replace(i, body=[_tiled(n) for n in i.body]) if isinstance(i, Loop) else _tiled(i)
        for i in entry.items
    ]
    return Entry(**{**vars(entry), "items": items})


def _tiled(node: Node) -> Node:
    kernel = OP.kernel(node.kernel.name) if node.kernel.op == "conv2d" else None
    if kernel is None:
        return node
    at = {**node.args, **node.results}
    x, w, y = (at[f"d{port}" if f"d{port}" in at else port].spec for port in "xwy")
    if not conv2d_tiled.pays(x, w, y, node.attrs):
        return node
    name = f"{node.outputs[0].name}.work"
    room = {port: Tensor(name, spec) for port, spec in OP.room(kernel, x, w, y).items()}
    attrs = {key: node.attrs[key] for key, _ in kernel.attrs}
    return replace(node, kernel=kernel, attrs=attrs, results={**node.results, **room})
