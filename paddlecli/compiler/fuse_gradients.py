"""Fusion behind the loss: masks that the next kernel applies itself, and sums that the last summand's
kernel adds up.

======================================  ==================================================
relu gradient, batch norm gradients     ``batch_norm.backward`` with ``b`` or ``y``
sum of gradients                        the later kernels add to the first one's result
======================================  ==================================================
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

from paddlecli import ops
from paddlecli.graph.ir import Entry, Item, Loop, Node, Tensor, storage_of, tensors_of

_NORMS = ("batch_norm.backward", "batch_norm.backward_inference")


@dataclass
class _Uses:
    """Where each tensor's bytes are read and written (positions of items, a loop counting as one), what
    the entry is run for, and the nodes of loops."""

    readers: dict[int, list[tuple[int, Node]]]
    writers: dict[int, list[tuple[int, Node]]]
    kept: set[int]
    inside: set[int]

    @classmethod
    def of(cls, entry: Entry) -> _Uses:
        readers: dict[int, list[tuple[int, Node]]] = defaultdict(list)
        writers: dict[int, list[tuple[int, Node]]] = defaultdict(list)
        for at, node in _placed(entry.items):
            for tensors, uses in ((node.inputs, readers), (node.outputs, writers)):
                for t in tensors:
                    for s in storage_of(t):
                        uses[id(s)].append((at, node))
        gradients = [t for g in entry.gradients.values() for t in _tensors(g)]
        kept = {id(s) for t in (*entry.roots, *gradients) for s in storage_of(t)}
        inside = {id(n) for i in entry.items if isinstance(i, Loop) for n in i.body}
        return cls(readers, writers, kept, inside)

    def free(self, tensor: Tensor) -> bool:
        """True for a value that only nodes outside of loops know, written once and shown under no other
        name."""
        if tensor.role != "value" or id(tensor) in self.kept:
            return False
        written = self.writers.get(id(tensor), [])
        nodes = [n for _, n in (*written, *self.readers.get(id(tensor), []))]
        tied = any(id(n) in self.inside or ops.get(n.kernel.op).inplace_views for n in nodes)
        return len(written) == 1 and not tied


def _tensors(gradient: object) -> Iterator[Tensor]:
    values = [gradient] if isinstance(gradient, Tensor) else vars(gradient).values()
    return (t for t in values if isinstance(t, Tensor))


def _placed(items: list[Item]) -> Iterator[tuple[int, Node]]:
    for at, item in enumerate(items):
        for node in item.body if isinstance(item, Loop) else [item]:
            yield at, node


def fuse_gradients(entry: Entry) -> Entry:
    """The entry with masks and sums inside the kernels beside them."""
    entry = _masks(entry)
    while (smaller := _one_sum_less(entry)) is not None:
        entry = smaller
    return entry


# -- masks -----------------------------------------------------------------------------------------
def _masks(entry: Entry) -> Entry:
    """A relu's gradient that only batch norms read: they look at the relu's result themselves, or where
    it is that of their own result compute that again."""
    uses = _Uses.of(entry)
    gone: set[int] = set()
    changed: dict[int, Node] = {}
    for node in entry.items:
        if isinstance(node, Loop) or node.kernel.full_name != "relu.backward" or node.accumulate:
            continue
        masked = node.outputs[0]
        found = [n for _, n in uses.readers.get(id(masked), [])]
        if not found or not uses.free(masked) or not all(_takes(n, node) for n in found):
            continue
        gone.add(id(node))
        for norm in found:
            own = _own_shift(norm, node.args["y"], uses)
            y = node.args["y"] if own is None else None
            args = {**norm.args, "dy": node.args["dy"], "y": y, "b": own}
            changed[id(norm)] = replace(norm, args=args, origin=norm.origin.joined(node.origin))
    items = [changed.get(id(i), i) if isinstance(i, Node) else i for i in entry.items]
    kept = [i for i, old in zip(items, entry.items, strict=True) if id(old) not in gone]
    return Entry(**{**vars(entry), "items": kept})


def _own_shift(norm: Node, y: Tensor, uses: _Uses) -> Tensor | None:
    """The shift of the batch norm that made y with a relu and nothing added, if it is the one that
    ``norm`` belongs to."""
    writers = uses.writers.get(id(y), [])
    made = writers[0][1] if len(writers) == 1 else norm
    if made.kernel.full_name not in ("batch_norm.forward", "batch_norm.inference"):
        return None
    mean = made.results.get("mean", made.args.get("mean"))
    same = mean is norm.args["mean"] and all(made.args[p] is norm.args[p] for p in "xw")
    same = same and made.attrs["epsilon"] == norm.attrs["epsilon"]
    shift: Tensor = made.args["b"]
    return shift if same and made.args.get("z") is None and "y" not in made.accumulate else None


def _takes(norm: Node, mask: Node) -> bool:
    return (
        norm.kernel.full_name in _NORMS
        and norm.args["dy"] is mask.outputs[0]
        and norm.args["y"] is None
        and norm.args["b"] is None
        and norm.guard is mask.guard
    )


# -- sums ------------------------------------------------------------------------------------------
def _one_sum_less(entry: Entry) -> Entry | None:
    """The entry without the first sum that can go, None when none can."""
    uses = _Uses.of(entry)
    for at, node in enumerate(entry.items):
        if isinstance(node, Node) and node.kernel.full_name == "sum.forward":
            first = _first_summand(node, at, uses)
            if first is not None:
                return _without(entry, node, first, uses)
    return None


def _first_summand(node: Node, at: int, uses: _Uses) -> Tensor | None:
    """The summand that the others' kernels can add to: whoever else reads it has done so before."""
    xs = list(tensors_of(node.args["xs"]))
    total = node.outputs[0]
    distinct = len({id(t) for t in xs}) == len(xs) > 1
    if node.accumulate or node.guard is not None or not distinct or not uses.free(total):
        return None
    for first in xs:
        others = [t for t in xs if t is not first]
        if not uses.free(first) or not all(_adds(t, node, uses) for t in others):
            continue
        touched = [p for p, _ in uses.writers[id(first)]]
        touched += [p for p, n in uses.readers[id(first)] if n is not node]
        if max(touched) < min(uses.writers[id(t)][0][0] for t in others) < at:
            return first
    return None


def _adds(summand: Tensor, total: Node, uses: _Uses) -> bool:
    """True when the summand's kernel can add it to something: the sum is all it is made for."""
    if not uses.free(summand) or [n for _, n in uses.readers[id(summand)]] != [total]:
        return False
    writer = uses.writers[id(summand)][0][1]
    port = _port(writer, summand)
    plain = writer.guard is None and not writer.kernel.updates
    return plain and port is not None and port not in writer.accumulate


def _port(node: Node, tensor: Tensor) -> str | None:
    return next((port for port, t in node.results.items() if t is tensor), None)


def _without(entry: Entry, total: Node, first: Tensor, uses: _Uses) -> Entry:
    result = total.outputs[0]
    others = [t for t in tensors_of(total.args["xs"]) if t is not first]
    adders = {id(uses.writers[id(t)][0][1]): t for t in others}

    def renamed(t: Tensor) -> Tensor:
        return first if t is result else t

    def changed(node: Node) -> Node:
        summand = adders.get(id(node))
        if summand is None:
            return node.map(renamed)
        port = _port(node, summand)
        assert port is not None
        results = {**node.results, port: first}
        return replace(node, results=results, accumulate=node.accumulate | {port}).map(renamed)

    items: list[Item] = []
    for item in entry.items:
        if isinstance(item, Loop):
            items.append(replace(item, body=[changed(n) for n in item.body]))
        elif item is not total:
            items.append(changed(item))
    return Entry(**{**vars(entry), "items": items})
