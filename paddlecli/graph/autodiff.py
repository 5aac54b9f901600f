"""Gradients: each op's own rule, applied from the loss backwards.

Gradients of parameters end in ``gradient`` tensors; row-sparse tables get one merged (ids, values,
count) triple. The gradient of a scan is a scan from the last step to the first: gradients of its
packed values are packed, weight gradients become one product behind the loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from paddlecli import ops
from paddlecli.graph.builder import Emitter, fault, step_value
from paddlecli.graph.ir import (
    Entry,
    Graph,
    Item,
    Loop,
    Node,
    Origin,
    Rows,
    Tensor,
    flat,
    storage_of,
    tensors_of,
)
from paddlecli.graph.sums import Grad, Sums, Writer, step_of
from paddlecli.ops.base import Attr, Kernel, RowGrad
from paddlecli.ops.spec import Spec


def differentiate(graph: Graph) -> Graph:
    """A graph whose updating entries also compute the gradients of their parameters
    (``entry.gradients``).

    Raises:
        ConfigError: an op on the way has no gradient, or a sparse table is also used densely.
    """
    entries = {name: _entry(graph, e) if e.updates else e for name, e in graph.entries.items()}
    return replace(graph, entries=entries)


def _entry(graph: Graph, entry: Entry) -> Entry:
    if entry.loss is None:
        raise fault(
            entry.updates[0].origin, f"entry {entry.name!r} updates parameters but has no loss"
        )
    wanted = [graph.parameters[p] for u in entry.updates for p in u.parameters]
    items = list(entry.items)
    walk = _Walk(graph, items, wanted)
    gradients = walk.run(entry.loss)
    return replace(entry, items=items, gradients=gradients)


@dataclass(eq=False)
class _Rules(Emitter):
    """The emitter a gradient rule gets: knows which gradients are wanted and how results are
    stored."""

    walk: _Walk
    node: Node
    inside: _Scan | None = None
    made: list[Node] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.graph, self.items, self.origin = self.walk.graph, self.walk.sink, self.node.origin
        self._prefix, self._names = "d.", self.walk.names

    def needs(self, port: str) -> bool:
        return any(self.walk.wants(t) for t in tensors_of(self.node.args[port]))

    def emit(
        self,
        kernel: Kernel,
        args: Mapping[str, Any],
        attrs: Mapping[str, Attr] | None = None,
        out: Mapping[str, Any] | None = None,
    ) -> Any:
        result = super().emit(kernel, args, attrs, out)
        made = self.items[-1]
        assert isinstance(made, Node)
        if made.kernel.random:
            made.stream = self.node.stream
        self.made.append(made)
        return result

    def value(self, stem: str, spec: Spec) -> Tensor:
        """Inside a scan every value with the step's rows is a view of a packed tensor."""
        if self.inside is None:
            return super().value(stem, spec)
        return self.inside.value(self.fresh(stem), spec)


@dataclass(eq=False)
class _Scan:
    """Bookkeeping while the gradient of a scan is written."""

    loop: Loop
    before: list[Item] = field(default_factory=list)
    after: list[Item] = field(default_factory=list)
    kept: dict[int, Tensor] = field(default_factory=dict)

    def value(self, name: str, spec: Spec) -> Tensor:
        assert self.loop.axis is not None
        return step_value(self.loop.axis, name, spec)


class _Walk(Sums):
    """One backward walk over an entry."""

    def __init__(self, graph: Graph, items: list[Item], wanted: list[Tensor]) -> None:
        super().__init__(graph, items)
        self.forward = list(items)
        self.wanted = {id(t) for t in wanted}
        self.parameters = wanted
        self.active = self._active()
        self.rows: dict[int, list[RowGrad]] = {}
        self.tables: dict[int, Origin] = {}
        self.renamed: dict[int, Tensor] = {}

    def _active(self) -> set[int]:
        """Tensors that depend on a wanted parameter (through loops too, hence until nothing
        changes)."""
        found = set(self.wanted)
        while True:
            before = len(found)
            for node in flat(self.forward):
                if any(id(s) in found for t in node.inputs for s in (t, *storage_of(t))):
                    for t in node.outputs:
                        found.update((id(t), *(id(s) for s in storage_of(t))))
            if len(found) == before:
                return found

    def wants(self, tensor: Tensor) -> bool:
        """True when the tensor's gradient is needed."""
        return any(id(s) in self.active for s in (tensor, *storage_of(tensor)))

    # -- the walk ----------------------------------------------------------------------------------
    def run(self, loss: Tensor) -> dict[str, Any]:
        """The gradients of all wanted parameters of a one-element loss."""
        seed = self.emitter().constant([1.0], shape=tuple(d.coefficient for d in loss.spec.shape))
        self.grads[id(loss)] = Grad(seed, False)
        for item in reversed(self.forward):
            if isinstance(item, Loop):
                self._loop(item)
            else:
                self._node(item, None)
        found = {p.name: self._finish(p) for p in self.parameters}
        _rename(self.sink, self.renamed)
        return found

    def _node(self, node: Node, scan: _Scan | None) -> None:
        if not any(self.wants(t) for t in node.outputs) or node.kernel.updates:
            return
        dy = {k: self._gradient_of(v) for k, v in node.results.items()}
        if all(
            v is None or (isinstance(v, list) and all(x is None for x in v)) for v in dy.values()
        ):
            return
        op = ops.get(node.kernel.op)
        if not op.differentiable:
            raise fault(
                node.origin, f"[{op.name}] has no gradient, but a parameter before it is trained"
            )
        self.at = node.origin
        rules = _Rules(self, node, scan)
        found = op.grad(rules, node, dy)
        made = {
            id(t): (n, k) for n in rules.made for k, v in n.results.items() for t in tensors_of(v)
        }
        pairs = [x for k, v in found.items() for x in _pairs(node.args.get(k), v)]
        shared = {id(t) for n in rules.made for t in n.inputs}
        shared |= {id(g) for i, (_, g) in enumerate(pairs) if any(g is o for _, o in pairs[:i])}
        for target, grad in pairs:
            if self.wants(target):
                writer = None if id(grad) in shared else made.get(id(grad))
                self._give(target, grad, writer, scan)

    def _gradient_of(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._gradient_of(v) for v in value]
        found = None if value is None else self.grads.get(id(whole(value)))
        if found is None:
            return None
        return found.tensor if value.role != "step" else step_of(value, found.tensor)

    def _give(self, target: Tensor, grad: Any, writer: Writer, scan: _Scan | None) -> None:
        """Adds to the gradient of a rule's input, wherever it lives."""
        if isinstance(grad, RowGrad):
            if target.role != "parameter" or scan is not None:
                text = f"{target.name}: a row-sparse gradient needs a parameter outside a scan"
                raise fault(self.at, f"[embedding] {text}")
            self.rows.setdefault(id(target), []).append(grad)
            self.tables[id(target)] = self.at
        elif scan is None:
            self.add(target, grad, writer)
        elif not target.is_view:
            self._add_whole(target, grad, writer, scan)
        elif target.role == "step":
            self.add_step(target, grad, writer)
        else:
            self.add_into(self._held(target), grad, writer)

    # -- scans -------------------------------------------------------------------------------------
    def _loop(self, loop: Loop) -> None:
        if loop.kind != "scan":
            if any(self.wants(t) for t in loop.outputs):
                raise fault(
                    loop.origin,
                    "[decode] is not differentiable: it belongs into entries without updates",
                )
            return
        assert loop.axis is not None
        body: list[Node] = []
        back = Loop("scan", body, loop.axis, not loop.reverse, origin=loop.origin)
        scan = _Scan(back)
        with self._to(body):  # type: ignore[arg-type]  # rules write nodes only
            self._prepare(loop, scan)
            for node in reversed(loop.body):
                self._node(node, scan)
        self.sink.extend(scan.before)
        if body:
            self.sink.append(back)
        self.sink.extend(scan.after)

    def _prepare(self, loop: Loop, scan: _Scan) -> None:
        """Gradients that later steps add to start as what arrives from outside, or as zeros."""
        for node in loop.body:
            for t in node.inputs:
                if t.role == "previous" and self.wants(t):
                    assert t.base is not None and t.init is not None
                    self._zeros(t.base, scan)
                    self._zeros(t.init, scan)
                elif t.role == "prefix" and self.wants(t):
                    assert t.base is not None
                    self._zeros(t.base, scan)

    @contextmanager
    def _to(self, items: list[Item]) -> Iterator[None]:
        """Nodes written inside go to ``items``."""
        saved, self.sink = self.sink, items
        try:
            yield
        finally:
            self.sink = saved

    def _zeros(self, target: Tensor, scan: _Scan) -> None:
        old = self.grads.get(id(target))
        if old is not None:  # a scan's values leave it through a scatter, whose gradient is its own
            assert old.owned
            return
        fresh = Tensor(f"d.{target.name}", target.spec)
        scan.before.append(_fill(fresh, scan.loop.origin))
        self.grads[id(target)] = Grad(fresh, True)

    def _held(self, target: Tensor) -> Tensor:
        """Where gradients of a memory or a static input are added; ``_prepare`` has made the
        places."""
        assert target.base is not None
        base = self.grads[id(target.base)].tensor
        init = None if target.init is None else self.grads[id(target.init)].tensor
        return Tensor("d." + target.name, target.spec, target.role, base=base, init=init)

    def _packed(self, node: Node, scan: _Scan) -> Node:
        """The node on all packed rows. What it reads of memories and static inputs is kept by a
        copy in the loop."""

        def keep(tensor: Tensor) -> Tensor:
            if tensor.role not in ("previous", "prefix"):
                return whole(tensor)
            if id(tensor) not in scan.kept:
                scan.kept[id(tensor)] = scan.value(f"{tensor.name}.kept", tensor.spec)
                self.copy(tensor, scan.kept[id(tensor)], add=False)
            return whole(scan.kept[id(tensor)])

        return node.map(keep)

    def _add_whole(self, target: Tensor, grad: Tensor, writer: Writer, scan: _Scan) -> None:
        """A parameter's gradient: the node moves behind the loop and runs once on all packed
        rows."""
        node = None if writer is None else writer[0]
        rowwise = node is not None and ops.get(node.kernel.op).is_rowwise(node.kernel, node.attrs)
        if node is None or not rowwise or any(t.is_view for t in node.outputs):
            op = "scan" if node is None else node.kernel.op
            text = f"[{op}] the gradient of {target.name} cannot be moved behind the loop"
            raise fault(self.at, text)
        if node in scan.loop.body:
            packed = self._packed(node, scan)
            node.args, node.results = packed.args, packed.results
            scan.loop.body.remove(node)
            scan.after.append(node)
        with self._to(scan.after):
            self.add(target, grad, writer)

    # -- parameters --------------------------------------------------------------------------------
    def _finish(self, parameter: Tensor) -> Any:
        rows = self.rows.get(id(parameter))
        dense = self.grads.get(id(parameter))
        if rows is not None:
            if dense is not None:
                text = f"{parameter.name} is a row-sparse table that is also used densely"
                raise fault(
                    self.tables[id(parameter)], f"[embedding] {text}: say sparse: false here"
                )
            return self._merge(parameter, rows)
        if dense is None and parameter.info is not None and parameter.info.sparse:
            return self._no_rows(parameter)
        target = Tensor(f"d.{parameter.name}", parameter.spec, "gradient", of=parameter.name)
        if dense is None:
            self.sink.append(_fill(target, Origin(path=parameter.name)))
        elif dense.owned:
            self.renamed[id(dense.tensor)] = target
        else:
            self.copy(dense.tensor, target, add=False)
        return target

    def _no_rows(self, parameter: Tensor) -> Rows:
        """The gradient of a table that the loss does not read."""
        e = self.emitter()
        row = tuple(d.coefficient for d in parameter.spec.shape[1:])
        return Rows(e.constant([], "i64"), e.constant([], shape=(0, *row)), e.constant([0], "i64"))

    def _merge(self, parameter: Tensor, rows: list[RowGrad]) -> Rows:
        uses = reversed(rows)  # in the order of the forward uses
        pairs = [t for r in uses for t in (r.ids, r.values)]
        ids, values, count = self.emitter().apply("rows_merge", *pairs)
        return Rows(ids, values, count)


def _fill(target: Tensor, origin: Origin) -> Node:
    """A node that sets a tensor to zeros."""
    return Node(ops.get("fill").forward, {}, {"y": target}, {"value": 0.0}, origin)


def whole(tensor: Tensor) -> Tensor:
    """The packed tensor behind a step view; other tensors as they are."""
    return tensor.base if tensor.role == "step" and tensor.base is not None else tensor


def _pairs(args: Any, grads: Any) -> list[tuple[Tensor, Any]]:
    if isinstance(args, list):
        return [(t, g) for t, g in zip(args, grads, strict=True) if g is not None]
    return [] if args is None or grads is None else [(args, grads)]


def _rename(items: list[Item], new: Mapping[int, Tensor]) -> None:
    """Puts other tensors, by the ids of the old ones, into the nodes that have these."""
    for node in flat(items):
        if any(id(t) in new for t in (*node.inputs, *node.outputs)):
            changed = node.map(lambda t: new.get(id(t), t))
            node.args, node.results = changed.args, changed.results
