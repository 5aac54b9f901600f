"""Adding up gradients: who writes a gradient, who may add to it.

The first writer of a gradient assigns, later ones add (a flag on the node), so no buffer is
cleared. A gradient that its node writes for one tensor alone is *owned*: others add to it in place.
One that is read elsewhere, or is another tensor's gradient passed on, is not: it is summed into a
new one.
"""

from __future__ import annotations

from dataclasses import dataclass

from paddlecli import ops
from paddlecli.graph.builder import Emitter
from paddlecli.graph.ir import Graph, Item, Node, Origin, Tensor, storage_of

Writer = tuple[Node, str] | None
"""The node and port that make a gradient, for it alone; None when others read it too."""


@dataclass(eq=False)
class Grad:
    """The gradient of one tensor so far."""

    tensor: Tensor
    owned: bool


def first(tensor: Tensor, writer: Writer) -> Grad:
    """The first gradient of a tensor. One that is another's bytes under a new shape is not its
    own."""
    return Grad(tensor, writer is not None and not ops.get(writer[0].kernel.op).inplace_views)


class Sums:
    """The gradients of an entry by tensor, and the nodes that add them up.

    Attributes:
        sink: where nodes are written.
        at: origin of the forward node whose gradient is written.
        grads: id of a tensor -> its gradient; of a value inside a scan its packed tensor's.
    """

    def __init__(self, graph: Graph, sink: list[Item]) -> None:
        self.graph, self.sink = graph, sink
        self.names: dict[str, int] = {}
        self.at = Origin()
        self.grads: dict[int, Grad] = {}

    def emitter(self) -> Emitter:
        """An emitter of gradient nodes."""
        e = Emitter(self.graph, self.sink, "d.")
        e.origin, e._names = self.at, self.names
        return e

    def add(self, target: Tensor, grad: Tensor, writer: Writer) -> None:
        """Adds to the gradient of a tensor outside of scans."""
        old = self.grads.get(id(target))
        if old is None:
            self.grads[id(target)] = first(grad, writer)
        elif old.owned:
            self.add_into(old.tensor, grad, writer)
        else:
            self.grads[id(target)] = Grad(self.summed(old.tensor, grad), True)

    def add_step(self, target: Tensor, grad: Tensor, writer: Writer) -> None:
        """Adds to the gradient of a value of a scan's present step: all its gradients come in this
        step, the first one makes it."""
        assert target.base is not None and grad.base is not None
        old = self.grads.get(id(target.base))
        if old is None:
            self.grads[id(target.base)] = first(grad.base, writer)
        elif old.owned:
            self.add_into(step_of(target, old.tensor), grad, writer)
        else:
            total = self.summed(step_of(target, old.tensor), grad)
            assert total.base is not None
            self.grads[id(target.base)] = Grad(total.base, True)

    def add_into(self, into: Tensor, grad: Tensor, writer: Writer) -> None:
        """``into`` += ``grad``: by its writer, or by a copy where others read ``grad`` too."""
        if writer is None or self._is_ahead(writer[0], into) or not _redirect(*writer, grad, into):
            self.copy(grad, into, add=True)

    def _is_ahead(self, node: Node, into: Tensor) -> bool:
        """Whether a node stands before the one that assigns ``into``, as where a rule gives one tensor
        two gradients (x in x * x) and the first was summed with an older one behind both."""
        places = {id(s) for s in storage_of(into)}
        for item in reversed(self.sink):
            if item is node:
                return False
            if any(id(s) in places for t in item.outputs for s in storage_of(t)):
                return True
        return False

    def summed(self, a: Tensor, b: Tensor) -> Tensor:
        """a + b in a new tensor."""
        name = self.emitter().fresh("sum")
        total = Tensor(name, a.spec)
        if a.base is not None:
            total = Tensor(name, a.spec, "step", base=Tensor(f"{name}.steps", a.base.spec))
        kernel = ops.get("sum").forward
        self.sink.append(Node(kernel, {"xs": [a, b]}, {"y": total}, {}, self.at))
        return total

    def copy(self, source: Tensor, target: Tensor, add: bool) -> None:
        """``target`` = or += ``source``."""
        flags = frozenset("y") if add else frozenset()
        kernel = ops.get("copy").forward
        self.sink.append(Node(kernel, {"x": source}, {"y": target}, {}, self.at, flags))


def step_of(value: Tensor, base: Tensor) -> Tensor:
    """The gradient of a scan's value at its step, ``base`` being that of all steps."""
    return Tensor(f"d.{value.name}", value.spec, "step", base=base)


def _redirect(node: Node, port: str, grad: Tensor, into: Tensor) -> bool:
    """Makes the node add its result to ``into``; False when the result is one of several, or another
    result of the node goes there."""
    if node.results.get(port) is not grad or port in node.accumulate:
        return False
    places = {id(s) for t in node.outputs for s in storage_of(t)}
    if any(id(s) in places for s in storage_of(into)):
        return False
    node.results[port] = into
    node.accumulate = node.accumulate | {port}
    return True
