"""Gradients: each op's own rule, applied from the loss backwards.

The first writer of a gradient assigns, later ones add (a flag on the node): no buffer is cleared.
Gradients of parameters end in ``gradient`` tensors; row-sparse tables get one merged (ids, values,
count) triple. The gradient of a scan is a scan from the last step to the first: gradients of its
packed values are packed, weight gradients become one product behind the loop.
"""

from __future__ import annotations

from collections.abc import Mapping
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


_Writer = tuple[Node, str] | None
"""The node and port that make a gradient, for it alone; None when others read it too."""


@dataclass(eq=False)
class _Grad:
    """The gradient of one tensor so far. ``owned``: its node writes it for this gradient only, so
    that others may add to it."""

    tensor: Tensor
    node: Node | None
    port: str
    owned: bool


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


class _Walk:
    """One backward walk over an entry."""

    def __init__(self, graph: Graph, items: list[Item], wanted: list[Tensor]) -> None:
        self.graph = graph
        self.sink: list[Item] = items
        self.forward = list(items)
        self.names: dict[str, int] = {}
        self.wanted = {id(t) for t in wanted}
        self.parameters = wanted
        self.active = self._active()
        self.grads: dict[int, _Grad] = {}
        self.rows: dict[int, list[RowGrad]] = {}
        self.tables: dict[int, Origin] = {}
        self.at = Origin()

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

    # -- the walk ---------------------------------------------------------------------------------------------------
    def run(self, loss: Tensor) -> dict[str, Any]:
        one = Emitter(self.graph, self.sink, "d.")
        one._names = self.names
        seed = one.constant([1.0], shape=tuple(d.coefficient for d in loss.spec.shape))
        self.grads[id(loss)] = _Grad(seed, None, "", False)
        for item in reversed(self.forward):
            if isinstance(item, Loop):
                self._loop(item)
            else:
                self._node(item, None)
        return {p.name: self._finish(p) for p in self.parameters}

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
        shared = {id(t) for n in rules.made for t in n.inputs}
        for port, value in found.items():
            for target, grad in _pairs(node.args.get(port), value):
                if self.wants(target):
                    known = {} if id(grad) in shared else made
                    self._add(target, grad, known, scan)
                    shared.add(id(grad))

    def _gradient_of(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._gradient_of(v) for v in value]
        found = None if value is None else self.grads.get(id(_key(value)))
        if found is None:
            return None
        return found.tensor if value.role != "step" else self._step_view(value, found.tensor)

    def _step_view(self, view: Tensor, base: Tensor) -> Tensor:
        return Tensor("d." + view.name, view.spec, "step", base=base)

    # -- adding up --------------------------------------------------------------------------------------------------
    def _add(
        self, target: Tensor, grad: Any, made: Mapping[int, tuple[Node, str]], scan: _Scan | None
    ) -> None:
        if isinstance(grad, RowGrad):
            if target.role != "parameter" or scan is not None:
                raise fault(
                    self.at,
                    f"[embedding] {target.name}: a row-sparse gradient needs a parameter outside a scan",
                )
            self.rows.setdefault(id(target), []).append(grad)
            self.tables[id(target)] = self.at
            return
        writer = made.get(id(grad))
        if scan is not None:
            self._add_inside(target, grad, writer, scan)
            return
        old = self.grads.get(id(target))
        if old is None:
            self.grads[id(target)] = _first(grad, writer)
        else:
            self._more(target, old, grad, writer)

    def _more(self, target: Tensor, old: _Grad, grad: Tensor, writer: _Writer) -> None:
        if not old.owned:
            self.grads[id(target)] = self._summed(old.tensor, grad)
            return
        if (
            writer is not None
            and not ops.get(writer[0].kernel.op).inplace_views
            and _redirect(*writer, grad, old.tensor)
        ):
            return
        self._emit_copy(grad, old.tensor, add=True)

    def _summed(self, a: Tensor, b: Tensor) -> _Grad:
        e = Emitter(self.graph, self.sink, "d.")
        e._names = self.names
        total = e.apply("sum", [a, b])
        node = self.sink[-1]
        assert isinstance(node, Node)
        return _Grad(total, node, next(iter(node.results)), True)

    def _emit_copy(self, source: Tensor, target: Tensor, add: bool) -> Node:
        kernel = ops.get("copy").forward
        node = Node(
            kernel, {kernel.inputs[0].name: source}, {kernel.outputs[0].name: target}, {}, self.at
        )
        if add:
            node.accumulate = frozenset([kernel.outputs[0].name])
        self.sink.append(node)
        return node

    # -- scans ------------------------------------------------------------------------------------------------------
    def _loop(self, loop: Loop) -> None:
        if loop.kind != "scan":
            if any(self.wants(t) for t in loop.outputs):
                raise fault(
                    loop.origin,
                    "[decode] is not differentiable: it belongs into entries without updates",
                )
            return
        assert loop.axis is not None
        outer = self.sink
        body: list[Any] = []
        back = Loop("scan", body, loop.axis, not loop.reverse, origin=loop.origin)
        scan = _Scan(back)
        self.sink = body
        try:
            self._prepare(loop, scan)
            for node in reversed(loop.body):
                self._node(node, scan)
        finally:
            self.sink = outer
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
        for node in loop.body:  # gradients from outside are shared with nobody inside
            for t in node.outputs:
                old = self.grads.get(id(t.base)) if t.role == "step" else None
                if old is not None and not old.owned:
                    self._owned_copy(t.base, old, scan)

    def _owned_copy(self, base: Any, old: _Grad, scan: _Scan) -> None:
        fresh = Tensor(f"d.{base.name}#", base.spec)
        saved, self.sink = self.sink, scan.before
        node = self._emit_copy(old.tensor, fresh, add=False)
        self.sink = saved
        self.grads[id(base)] = _Grad(fresh, node, next(iter(node.results)), True)

    def _zeros(self, target: Tensor, scan: _Scan) -> None:
        old = self.grads.get(id(target))
        if old is not None:
            if not old.owned:
                self._owned_copy(target, old, scan)
            return
        kernel = ops.get("fill").forward
        fresh = Tensor(f"d.{target.name}", target.spec)
        node = Node(kernel, {}, {kernel.outputs[0].name: fresh}, {"value": 0.0}, scan.loop.origin)
        scan.before.append(node)
        self.grads[id(target)] = _Grad(fresh, node, kernel.outputs[0].name, True)

    def _add_inside(self, target: Tensor, grad: Tensor, writer: _Writer, scan: _Scan) -> None:
        if not target.is_view:
            self._add_whole(target, grad, writer, scan)
        elif target.role == "step":
            self._add_step(target, grad, writer)
        else:
            self._into(self._held(target), grad, writer)

    def _add_step(self, target: Tensor, grad: Tensor, writer: _Writer) -> None:
        """A value of the present step: all its gradients come in this step, the first one makes
        it."""
        assert target.base is not None and grad.base is not None
        old = self.grads.get(id(target.base))
        if old is None:
            self.grads[id(target.base)] = _first(grad.base, writer)
        elif old.owned:
            self._into(self._step_view(target, old.tensor), grad, writer)
        else:
            total = self._summed(self._step_view(target, old.tensor), grad)
            assert total.tensor.base is not None
            self.grads[id(target.base)] = replace(total, tensor=total.tensor.base)

    def _into(self, into: Tensor, grad: Tensor, writer: _Writer) -> None:
        if writer is None or not _redirect(*writer, grad, into):
            self._emit_copy(grad, into, add=True)

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
                self._emit_copy(tensor, scan.kept[id(tensor)], add=False)
            return whole(scan.kept[id(tensor)])

        return node.map(keep)

    def _add_whole(self, target: Tensor, grad: Tensor, writer: _Writer, scan: _Scan) -> None:
        """A parameter's gradient: the node moves behind the loop and runs once on all packed
        rows."""
        if (
            writer is None
            or not writer[0].kernel.rowwise
            or any(t.is_view for t in writer[0].outputs)
        ):
            raise fault(
                scan.loop.origin,
                f"[{writer[0].kernel.op if writer else 'scan'}] the gradient of {target.name} cannot be "
                "moved behind the loop",
            )
        node, port = writer
        if node in scan.loop.body:
            scan.loop.body.remove(node)
            packed = self._packed(node, scan)
            scan.after.append(packed)
            node.args, node.results = packed.args, packed.results
        moved = next(
            n for n in scan.after if isinstance(n, Node) and any(t is grad for t in n.outputs)
        )
        old = self.grads.get(id(target))
        if old is None:
            self.grads[id(target)] = _Grad(grad, moved, port, True)
        elif old.owned and _redirect(moved, port, grad, old.tensor):
            return
        else:
            saved, self.sink = self.sink, scan.after
            if old.owned:
                self._emit_copy(grad, old.tensor, add=True)
            else:
                self.grads[id(target)] = self._summed(old.tensor, grad)
            self.sink = saved

    # -- parameters -------------------------------------------------------------------------------------------------
    def _finish(self, parameter: Tensor) -> Any:
        rows = self.rows.get(id(parameter))
        dense = self.grads.get(id(parameter))
        if rows is not None:
            if dense is not None:
                text = f"[embedding] {parameter.name} is a row-sparse table that is also used densely: say sparse: false here"
                raise fault(self.tables[id(parameter)], text)
            return self._merge(parameter, rows)
        if dense is None and parameter.info is not None and parameter.info.sparse:
            return self._no_rows(parameter)
        target = Tensor(f"d.{parameter.name}", parameter.spec, "gradient", of=parameter.name)
        if dense is None:
            kernel = ops.get("fill").forward
            self.sink.append(Node(kernel, {}, {kernel.outputs[0].name: target}, {"value": 0.0}))
        elif dense.owned:
            _rename(self.sink, dense.tensor, target)
        else:
            self._emit_copy(dense.tensor, target, add=False)
        return target

    def _no_rows(self, parameter: Tensor) -> Rows:
        """The gradient of a table that the loss does not read."""
        e = Emitter(self.graph, self.sink, "d.")
        e._names = self.names
        row = tuple(d.coefficient for d in parameter.spec.shape[1:])
        return Rows(e.constant([], "i64"), e.constant([], shape=(0, *row)), e.constant([0], "i64"))

    def _merge(self, parameter: Tensor, rows: list[RowGrad]) -> Rows:
        e = Emitter(self.graph, self.sink, "d.")
        e._names = self.names
        pairs = [
            t for r in reversed(rows) for t in (r.ids, r.values)
        ]  # in the order of the forward uses
        ids, values, count = e.apply("rows_merge", *pairs)
        return Rows(ids, values, count)


def _first(tensor: Tensor, writer: _Writer) -> _Grad:
    """The first gradient of a tensor; a view of another one, or one that is read elsewhere, belongs
    to nobody."""
    if writer is None or ops.get(writer[0].kernel.op).inplace_views:
        return _Grad(tensor, None, "", False)
    return _Grad(tensor, *writer, True)


def whole(tensor: Tensor) -> Tensor:
    """The packed tensor behind a step view; other tensors as they are."""
    return tensor.base if tensor.role == "step" and tensor.base is not None else tensor


def _key(tensor: Tensor) -> Tensor:
    return tensor.base if tensor.role == "step" and tensor.base is not None else tensor


def _pairs(args: Any, grads: Any) -> list[tuple[Tensor, Any]]:
    if isinstance(args, list):
        return [(t, g) for t, g in zip(args, grads, strict=True) if g is not None]
    return [] if args is None or grads is None else [(args, grads)]


def _redirect(node: Node, port: str, grad: Tensor, into: Tensor) -> bool:
    """Makes the node add its result to ``into``; False when the result has other readers or is one
    of several."""
    if node.results.get(port) is not grad or port in node.accumulate:
        return False
    node.results[port] = into
    node.accumulate = node.accumulate | {port}
    return True


def _rename(items: list[Item], old: Tensor, new: Tensor) -> None:
    for item in items:
        nodes = item.body if isinstance(item, Loop) else [item]
        for node in nodes:
            if any(t is old for t in (*node.inputs, *node.outputs)):
                changed = node.map(lambda t: new if t is old else t)
                node.args, node.results = changed.args, changed.results
