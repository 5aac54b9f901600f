"""Leaves out what nobody reads: nodes that no fetch, output or update needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from paddlecli.graph.ir import Entry, Item, Loop, Node, Tensor, storage_of, tensors_of


def prune(entry: Entry) -> Entry:
    """The entry without nodes whose results nobody reads. Loop bodies lose such nodes too."""
    needed: set[int] = set()

    def want(tensors: list[Tensor]) -> None:
        for t in tensors:
            needed.update((id(t), *(id(s) for s in storage_of(t))))

    want(entry.roots)
    kept: list[Item] = []
    for item in reversed(entry.items):
        if isinstance(item, Loop):
            body = _loop(item, needed, want)
            if body:
                kept.append(replace(item, body=body))
        elif _used(item, needed):
            want(_read(item))
            kept.append(item)
    return Entry(**{**vars(entry), "items": kept[::-1]})


def _used(node: Node, needed: set[int]) -> bool:
    return any(t.persistent or id(s) in needed for t in node.outputs for s in (t, *storage_of(t)))


def _read(node: Node) -> list[Tensor]:
    """What a node reads, results that it adds to among them."""
    added = [t for port in node.accumulate for t in tensors_of(node.results[port])]
    return [*node.inputs, *added, *([node.guard] if node.guard is not None else [])]


def _loop(loop: Loop, needed: set[int], want: Callable[[list[Tensor]], None]) -> list[Node]:
    """A body is read by its own next repetition, so it is walked until nothing more is needed."""
    if loop.flag is not None:
        want([loop.flag])
    while True:
        before = len(needed)
        body = []
        for node in reversed(loop.body):
            if _used(node, needed):
                want(_read(node))
                body.append(node)
        if len(needed) == before:
            return body[::-1]
