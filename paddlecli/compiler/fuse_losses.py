"""Losses whose gradient is known before they are: forward and backward kernel become one.

The gradient of a mean by its values is a number that does not depend on them, so softmax and cross
entropy need not wait for the loss: one pass makes the loss and the gradient of the scores, which then
takes the scores' place. What lies between the two kernels and reads the loss moves behind them, all
else (metrics that read the scores) stays before.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from paddlecli.graph.ir import Entry, Item, Loop, Node, Tensor, flat, storage_of
from paddlecli.ops import softmax_with_cross_entropy

OP = softmax_with_cross_entropy.OP
_SAVED = "stats"
"""What the forward kernel leaves for the backward one alone."""


def fuse_losses(entry: Entry) -> Entry:
    """The entry with such pairs as one node each."""
    items = list(entry.items)
    kept = {id(s) for t in entry.roots for s in storage_of(t)}
    for node in entry.items:
        if isinstance(node, Node) and _is_plain(node):
            back = _gradient(node, items, kept)
            if back is not None:
                items = _joined(items, node, back) or items
    return Entry(**{**vars(entry), "items": items})


def _is_plain(node: Node) -> bool:
    """A loss of hard labels along the last axis."""
    if node.kernel is not OP.forward or node.guard is not None or node.accumulate:
        return False
    last = node.args["x"].spec.ndim - 1
    return not node.attrs["soft_label"] and node.attrs["axis"] in (-1, last)


def _gradient(node: Node, items: list[Item], kept: set[int]) -> Node | None:
    """The only reader of what the loss saves, outside of loops, if it is the scores' gradient."""
    saved = node.results[_SAVED]
    if id(saved) in kept:
        return None
    readers = [n for n in flat(items) if any(saved is s for t in n.inputs for s in storage_of(t))]
    if len(readers) != 1 or not any(readers[0] is i for i in items):
        return None
    back = readers[0]
    same = all(back.args[p] is node.args[p] for p in ("x", "label", "weight"))
    plain = back.guard is None and not back.accumulate and back.attrs == node.attrs
    return back if back.kernel is OP.backward_x and same and plain else None


@dataclass
class _Touched:
    """Ids of what some items read and write."""

    read: set[int] = field(default_factory=set)
    written: set[int] = field(default_factory=set)

    @classmethod
    def by(cls, item: Item) -> _Touched:
        nodes = item.body if isinstance(item, Loop) else [item]
        guards = [n.guard for n in nodes if n.guard is not None]
        flag = [item.flag] if isinstance(item, Loop) and item.flag is not None else []
        return cls(_ids([*item.inputs, *guards, *flag]), _ids(item.outputs))

    def meets(self, other: _Touched) -> bool:
        """Whether the order of the two matters."""
        either = self.read | self.written
        return bool(either & other.written or self.written & other.read)

    def add(self, other: _Touched) -> None:
        self.read |= other.read
        self.written |= other.written


def _ids(tensors: Iterable[Tensor]) -> set[int]:
    return {id(s) for t in tensors for s in storage_of(t)}


def _joined(items: list[Item], node: Node, back: Node) -> list[Item] | None:
    """The items with one node for the two, at the later one's place; None where its gradient needs the
    loss."""
    at, end = items.index(node), items.index(back)
    early: list[Item] = []
    late: list[Item] = []
    behind = _Touched.by(node)
    for item in items[at + 1 : end]:
        touched = _Touched.by(item)
        if touched.meets(behind):
            late.append(item)
            behind.add(touched)
        else:
            early.append(item)
    needed = _ids(t for port, t in back.args.items() if port != _SAVED and t is not None)
    if needed & behind.written:
        return None
    args = {p: back.args[p] for p in ("x", "label", "weight", "dloss")}
    results = {"loss": node.results["loss"], "dx": back.results["dx"]}
    attrs = {"ignore_index": node.attrs["ignore_index"]}
    both = Node(OP.forward_backward, args, results, attrs, node.origin)
    return [*items[:at], *early, both, *late, *items[end + 1 :]]
