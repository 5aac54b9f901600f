"""Leaves out what nobody reads: nodes that no fetch, output or update needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from paddlecli import ops
from paddlecli.graph.ir import Entry, Item, Loop, Node, Tensor, flat, storage_of, tensors_of


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
        if not any(_used(node, needed) for node in loop.body):
            return []  # only the loop itself would ask whether it has ended
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


def values_read(entry: Entry) -> set[str]:
    """Names of the inputs whose values the entry's outputs depend on. Of any other input only the
    number of rows matters, as where noise is drawn for them."""
    needed = {id(s) for t in entry.outputs.values() for s in (t, *storage_of(t))}
    inputs = {t.name for t in entry.outputs.values() if t.role == "input"}
    before = -1
    while len(needed) != before:  # a loop reads what its last repetition wrote
        before = len(needed)
        for node in reversed(list(flat(entry.items))):
            if not any(id(s) in needed for t in node.outputs for s in (t, *storage_of(t))):
                continue
            unread = ops.get(node.kernel.op).rows_only
            for port, value in node.args.items():
                for t in () if port in unread else tensors_of(value):
                    needed.update((id(t), *(id(s) for s in storage_of(t))))
                    inputs |= {s.name for s in (t, *storage_of(t)) if s.role == "input"}
    return {name.partition("@")[0] for name in inputs}  # `@` stands before what was made of one
