"""The optimizer pass: clip, update and count nodes for what one optimizer updates in one entry.

Norms and factors come first, then the updates, each with clip -> regularise -> rule inside its
kernel, then the count. All dense parameters go in one call over their flat range; each row-sparse
table in one of its own. An optimizer is an op with an update kernel, or a user's rule that is
composed of ops (``composed.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from paddlecli import ops
from paddlecli.compiler.composed import Composed
from paddlecli.compiler.groups import Group, OptimizerSpec, Segment, Table
from paddlecli.config.registry import OPTIMIZERS
from paddlecli.graph.builder import Emitter
from paddlecli.graph.ir import Node, Tensor
from paddlecli.ops._optimizer import OptimizerOp, Slot
from paddlecli.ops.base import Attr, Kernel
from paddlecli.ops.spec import Spec

if TYPE_CHECKING:
    from paddlecli.config.recipe import Recipe


def _names() -> Iterable[str]:
    return (name for name in ops.names() if _arguments(name) is not None)


@OPTIMIZERS.provider(_names)
def _arguments(name: str) -> Callable[..., Any] | None:
    """The recipe arguments of an op that is an optimizer."""
    op = ops.get(name) if name in ops.names() else None
    return op.arguments if isinstance(op, OptimizerOp) else None


class Settings(Protocol):
    """What the pass reads of the recipe's section (``paddlecli.config.schema.Optimizer``)."""

    @property
    def name(self) -> str: ...
    @property
    def arguments(self) -> Mapping[str, Any]: ...
    @property
    def regularizer(self) -> Any: ...  # l1, l2: float or None
    @property
    def clip(self) -> Any: ...  # value, norm, global_norm: float or None


def optimizer_spec(key: str, settings: Settings) -> OptimizerSpec:
    """The recipe's optimizer, resolved: op, attributes with defaults, regulariser, clip.

    Args:
        key: its name in the recipe, ``default`` where there is one only.

    Raises:
        ConfigError: no optimizer has that name, or its arguments do not fit.
    """
    attrs = OPTIMIZERS.bind(settings.name, settings.arguments)
    op = optimizer_op(settings.name)
    if op is not None:
        attrs = op.arguments(**attrs)
    return OptimizerSpec(
        key,
        settings.name,
        attrs,
        _given(settings.regularizer, "l2", "l1"),
        _given(settings.clip, "value", "norm", "global_norm"),
    )


def optimizers(recipe: Recipe) -> dict[str, OptimizerSpec]:
    """All optimizers of a recipe; a single one is called ``default``."""
    ema = recipe.train.ema
    average = {} if ema is None else {"decay": ema.decay, "warmup": ema.warmup}
    return {
        name or "default": replace(optimizer_spec(name or "default", o), average=average)
        for name, o in recipe.optimizers().items()
    }


def optimizer_op(name: str) -> OptimizerOp | None:
    """The op behind an optimizer, None for a rule that is composed of ops. Raises ConfigError with
    near names for an unknown optimizer."""
    OPTIMIZERS.get(name)
    op = ops.get(name) if name in ops.names() else None
    return op if isinstance(op, OptimizerOp) else None


def slots_of(optimizer: OptimizerSpec) -> tuple[Slot, ...]:
    """The state that an optimizer keeps beside each parameter."""
    op = optimizer_op(optimizer.op)
    return _composed(optimizer).slots() if op is None else op.slots(optimizer.attrs)


def _composed(optimizer: OptimizerSpec) -> Composed:
    return Composed(optimizer.op, OPTIMIZERS.get(optimizer.op).function, optimizer.attrs)


def _given(section: Any, *keys: str) -> dict[str, float]:
    values = {k: getattr(section, k) for k in keys} if section is not None else {}
    return {k: float(v) for k, v in values.items() if v is not None}


def append_updates(e: Emitter, group: Group) -> tuple[Tensor | None, list[Tensor]]:
    """Writes the nodes. Returns the global gradient norm f32 [1] before clipping, None without a
    clip by global norm; and tensors that are finite where all gradients are."""
    op = optimizer_op(group.optimizer.op)
    walk = _Composed(e, group) if op is None else _BuiltIn(e, group, op)
    norm = walk.clip()
    watched = walk.watched(norm)
    if group.segments:
        walk.update_flat()
    for table in group.tables:
        walk.update_table(table)
    for count in group.counts.values():
        _emit(e, ops.get("update_count").forward, {"count": count}, {}, {"count_out": count})
    _average(e, group)
    return norm, watched


def _average(e: Emitter, group: Group) -> None:
    """Moves the averages of the parameters, behind their update and its count. Of a row-sparse table
    too the whole is walked: rows that stay where they are still draw nearer to it."""
    pairs = [(group.average, group.parameters)]
    pairs += [(t.average, t.parameter) for t in group.tables]
    kernel = ops.get("moving_average").forward
    for average, value in pairs:
        if average is not None:
            args = {"average": average, "value": value, "count": group.count}
            _emit(e, kernel, args, group.optimizer.average, {"average_out": average})


def table_notes(optimizer: OptimizerSpec, tables: Iterable[tuple[Segment, int]]) -> list[str]:
    """A sentence for each table (segment, bytes of the table) of which every step walks all rows,
    not only those with a gradient."""
    op = optimizer_op(optimizer.op)
    if op is None:  # a composed rule moves rows with a gradient, or refuses the table
        return []
    notes = []
    for segment, size in tables:
        reason = (
            f"{optimizer.op} moves rows without a gradient"
            if op.moves_rows(optimizer.attrs)
            else ""
        )
        if segment.l2 or segment.l1:
            reason = "its regulariser shrinks rows without a gradient"
        if reason:
            touched = size * (1 + len(op.slots(optimizer.attrs)))
            notes.append(
                f"{segment.name}: every step walks the whole table, {touched / 1e6:.1f} MB with "
                f"slots: {reason}"
            )
    return notes


class _Pass:
    """One group's nodes; ``scale`` and ``factors`` hold what clipping by norm multiplies with,
    ``value`` is the limit of clipping by value, 0 without."""

    def __init__(self, e: Emitter, group: Group) -> None:
        self.e, self.group = e, group
        self.kind, self.limit = next(iter(group.optimizer.clip.items()), ("", 0.0))
        self.value = self.limit if self.kind == "value" else 0.0
        self.scale: Tensor | None = None
        self.factors: dict[str, Tensor] = {}
        if group.segments:
            self.bounds, self.clips = self._bounds(group.segments)

    def _bounds(self, segments: Sequence[Segment]) -> tuple[Tensor, Tensor]:
        """Where segments lie, and which of them clipping concerns."""
        pairs = [x for s in segments for x in (s.offset, s.length)]
        bounds = self.e.constant(pairs, "i64", (len(segments), 2))
        return bounds, self.e.constant([int(s.clip) for s in segments], "i32")

    # -- clip
    def clip(self) -> Tensor | None:
        """Factors for clipping by norm; the global norm where that is what is clipped."""
        clipped = [t for t in self.group.tables if t.segment.clip]
        if self.kind == "global_norm":
            totals = [self._rows_total(t) for t in clipped]
            if any(s.clip for s in self.group.segments):
                totals.insert(0, self._flat_total())
            if not totals:
                return None
            norm: Tensor = self.e.apply("global_norm", totals)
            self.scale = self._factor(norm)
            self.factors = {t.segment.name: self.scale for t in clipped}
            return norm
        if self.kind == "norm":
            if any(s.clip for s in self.group.segments):
                self.scale = self._factor(
                    self.e.apply("segment_norms", self.group.gradients, self.bounds, self.clips)
                )
            for t in clipped:
                self.factors[t.segment.name] = self._factor(
                    self.e.apply("global_norm", [self._rows_total(t)])
                )
        return None

    def watched(self, norm: Tensor | None) -> list[Tensor]:
        """The norm where it is taken of all gradients; else all dense gradients, and a norm of the
        row-sparse ones, of which only the rows in use hold anything."""
        whole = [*self.group.segments, *(t.segment for t in self.group.tables)]
        if norm is not None and all(s.clip for s in whole):
            return [norm]
        found = [] if norm is None else [norm]
        if self.group.gradients is not None:
            found.append(self.group.gradients)
        if self.group.tables:
            totals = [self._rows_total(t) for t in self.group.tables]
            found.append(self.e.apply("global_norm", totals))
        return found

    def _factor(self, norm: Tensor) -> Tensor:
        factor: Tensor = self.e.apply("clip_scale", norm, limit=self.limit)
        return factor

    def _flat_total(self) -> Tensor:
        assert self.group.gradients is not None
        args = {"g": self.group.gradients, "bounds": self.bounds, "clips": self.clips}
        return self._total("squares", args, self.group.gradients)

    def _rows_total(self, table: Table) -> Tensor:
        rows = table.rows
        return self._total("squares_rows", {"values": rows.values, "rows": rows.count}, rows.values)

    def _total(self, kernel: str, args: Mapping[str, Tensor], summed: Tensor) -> Tensor:
        norm: Any = ops.get("global_norm")
        out = {"total": Spec.of(1, dtype="f64"), "work": norm.work(summed.spec.size)}
        total: Tensor = self.e.emit(getattr(norm, kernel), args, {}, out)
        return total

    # -- update
    def update_flat(self) -> None:
        """All dense parameters at once."""
        raise NotImplementedError

    def update_table(self, table: Table) -> None:
        """One table with a row-sparse gradient."""
        raise NotImplementedError


class _Composed(_Pass):
    """The updates of a rule that is composed of ops."""

    def __init__(self, e: Emitter, group: Group) -> None:
        super().__init__(e, group)
        self.rule = _composed(group.optimizer)

    def update_flat(self) -> None:
        self.rule.flat(self.e, self.group, self.scale, self.value, self.bounds, self.clips)

    def update_table(self, table: Table) -> None:
        s = table.segment
        limit = self.value if s.clip else 0.0
        self.rule.rows(self.e, self.group, table, self.factors.get(s.name), limit)


class _BuiltIn(_Pass):
    """The updates of an op with update kernels."""

    def __init__(self, e: Emitter, group: Group, op: OptimizerOp) -> None:
        super().__init__(e, group)
        self.op, self.attrs = op, group.optimizer.attrs

    def update_flat(self) -> None:
        whole = self.group.segments
        parts = {since: [s for s in whole if s.since == since] for since in self.group.counts}
        for since, segments in parts.items():
            if len(segments) == len(whole):
                self._update_segments(since, segments, self.scale, self.bounds, self.clips)
            elif segments:
                bounds, clips = self._bounds(segments)
                scale = self.scale
                if self.kind == "norm" and scale is not None:  # one factor a segment
                    args = (self.group.gradients, bounds, clips)
                    scale = self._factor(self.e.apply("segment_norms", *args))
                self._update_segments(since, segments, scale, bounds, clips)

    def _update_segments(
        self, since: int, segments: Sequence[Segment], scale: Tensor | None, bounds: Tensor, clips: Tensor
    ) -> None:  # fmt: skip
        group = self.group
        assert group.parameters is not None
        args = {
            "p": group.parameters,
            "g": group.gradients,
            **group.slots,
            **self._common(since, scale),
            "bounds": bounds,
            "clips": clips,
            "rates": self.e.constant([s.rate for s in segments]),
            "l2": self.e.constant([s.l2 for s in segments]),
            "l1": self.e.constant([s.l1 for s in segments]),
        }
        work = self.op.work(group.parameters.spec.size.coefficient, len(segments))
        attrs: dict[str, Attr] = {"clip_value": self.value}
        self._update(False, args, attrs, group.parameters, group.slots, work)

    def update_table(self, table: Table) -> None:
        s, rows = table.segment, table.rows
        args = {
            "p": table.parameter,
            "ids": rows.ids,
            "values": rows.values,
            "rows": rows.count,
            **table.slots,
            **self._common(s.since, self.factors.get(s.name)),
        }
        limit = self.value if s.clip else 0.0
        attrs: dict[str, Attr] = {"rate": s.rate, "l2": s.l2, "l1": s.l1, "clip_value": limit}
        work = Spec.of(2 * table.parameter.spec.shape[0].coefficient + 1, dtype="f64")
        self._update(True, args, attrs, table.parameter, table.slots, work)

    def _common(self, since: int, scale: Tensor | None) -> dict[str, Tensor | None]:
        counted = {"count": self.group.counts[since]} if self.op.counted else {}
        return {**counted, "lr": self.group.rate, "scale": scale}

    def _update(
        self,
        rows: bool,
        args: Mapping[str, Any],
        attrs: Mapping[str, Attr],
        parameter: Tensor,
        slots: Mapping[str, Tensor],
        work: Spec,
    ) -> None:
        kernel = self.op.kernel(self.attrs, rows)
        known = {k for k, _ in kernel.attrs}
        own = {k: v for k, v in self.attrs.items() if k in known}
        states = {"p_out": parameter, **{f"{k}_out": t for k, t in slots.items()}}
        scratch = {"work": work} if self.op.norms else {}
        _emit(self.e, kernel, args, {**own, **attrs}, states, scratch)


def _emit(
    e: Emitter,
    kernel: Kernel,
    args: Mapping[str, Any],
    attrs: Mapping[str, Attr],
    states: Mapping[str, Tensor],
    scratch: Mapping[str, Spec] | None = None,
) -> None:
    """A node whose outputs ``states`` are tensors that stand among its inputs."""
    e.emit(kernel, args, attrs, out={**states, **(scratch or {})})
    node = e.items[-1]
    assert isinstance(node, Node)
    node.results.update(states)
