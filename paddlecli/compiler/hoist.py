"""Moves work out of scans: what depends on no memory runs once on all packed rows, before or behind
the loop.

A node may move when its kernel is row-wise and every tensor of it is a step view or a whole tensor:
then its packed form gives the same rows, and sums over rows become one product. Sums are added in
another order, so this pass has a tolerance, not equal bits.
"""

from __future__ import annotations

from dataclasses import replace

from paddlecli import ops
from paddlecli.graph.autodiff import whole
from paddlecli.graph.ir import Entry, Item, Loop, Node, Tensor, storage_of


def hoist(entry: Entry) -> Entry:
    """The entry with every scan's movable nodes outside it."""
    items: list[Item] = []
    for item in entry.items:
        if isinstance(item, Loop) and item.kind == "scan":
            items.extend(_split(item))
        else:
            items.append(item)
    return Entry(**{**vars(entry), "items": items})


def _split(loop: Loop) -> list[Item]:
    before, body = _before(loop.body)
    body, after = _behind(body)
    middle: list[Item] = [replace(loop, body=body)] if body else []
    return [*(n.map(whole) for n in before), *middle, *(n.map(whole) for n in after)]


def _movable(node: Node) -> bool:
    """Row-wise, on step views and whole tensors only; ``previous`` and ``prefix`` views tie a node
    to its step."""
    tensors = [*node.inputs, *node.outputs]
    rowwise = ops.get(node.kernel.op).is_rowwise(node.kernel, node.attrs)
    return rowwise and not any(t.role in ("previous", "prefix") for t in tensors)


def _ids(tensors: list[Tensor]) -> set[int]:
    return {id(s) for t in tensors for s in storage_of(t)}


def _before(nodes: list[Node]) -> tuple[list[Node], list[Node]]:
    """Nodes that read nothing that the loop computes (added outputs stay: they need the loop's
    order)."""
    inside = _ids([t for n in nodes for t in n.outputs])
    moved: list[Node] = []
    kept: list[Node] = []
    for node in nodes:
        written_twice = any(_ids(node.outputs) & _ids(o.outputs) for o in nodes if o is not node)
        if (
            _movable(node)
            and not node.accumulate
            and not written_twice
            and not _ids(node.inputs) & inside
        ):
            moved.append(node)
            inside -= _ids(node.outputs)
        else:
            kept.append(node)
    return moved, kept


def _behind(nodes: list[Node]) -> tuple[list[Node], list[Node]]:
    """Nodes whose results no remaining node of the loop reads, this step or the next."""
    moved: list[Node] = []
    kept = list(nodes)
    for node in reversed(nodes):
        others = [n for n in kept if n is not node]
        read = _ids([t for n in others for t in n.inputs])
        written = _ids([t for n in others for t in n.outputs])
        own = _ids(node.outputs)
        if _movable(node) and not node.accumulate and not own & (read | written):
            moved.append(node)
            kept = others
    return kept, moved[::-1]
