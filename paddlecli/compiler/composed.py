"""Optimizers that are graph code: a user's rule over parameter, gradient and slots.

A rule is a function that is registered as an optimizer. Its keyword-only parameters are the
recipe's; it gets the clipped and regularised gradient, declares its slots, and returns the new
parameter::

    @OPTIMIZERS.register("heavy_ball")
    def heavy_ball(o: Update, p: Value, g: Value, *, beta: Fraction = 0.9) -> Value:
        velocity = o.slot("velocity")
        new = beta * velocity + g
        o.set(velocity, new)
        return p - o.rate * new

It runs once, when the plan is made: over the flat range of all dense parameters at a time, and over
the rows with a gradient of each row-sparse table, where it says :meth:`Update.lazy_rows`. What it
writes is computed before the finite check; only the new parameter and the new slots are written
behind it, under its guard.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from paddlecli import ops
from paddlecli.compiler.groups import Group, Table
from paddlecli.config.plugins import place_of
from paddlecli.config.registry import OPTIMIZERS
from paddlecli.errors import ConfigError
from paddlecli.graph.builder import Emitter, fault
from paddlecli.graph.ir import Graph, Tensor
from paddlecli.ops._optimizer import Slot
from paddlecli.ops.base import Attr
from paddlecli.ops.cast import code
from paddlecli.ops.spec import Spec

if TYPE_CHECKING:
    from typing_extensions import TypeIs

Rule = Callable[..., Any]
_SLOT = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_TAKEN = ("parameters", "gradients")
"""Names of ranges of every optimizer."""


@dataclass(frozen=True, eq=False)
class Value:
    """A float32 tensor inside a rule, with arithmetic: ``beta * m + (1 - beta) * g``. Numbers and
    one-element values spread over all elements."""

    o: Update
    tensor: Tensor

    def __add__(self, other: Value | float) -> Value:
        return self._shift(other) if _plain(other) else self.o.apply("add", self, other)

    __radd__ = __add__

    def __sub__(self, other: Value | float) -> Value:
        return self._shift(-other) if _plain(other) else self.o.apply("sub", self, other)

    def __rsub__(self, other: float) -> Value:
        return self.o.apply("scale", self, a=-1.0, b=float(other))

    def __mul__(self, other: Value | float) -> Value:
        if _plain(other):
            return self.o.apply("scale", self, a=float(other), b=0.0)
        return self.o.apply("mul", self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Value | float) -> Value:
        return self.o.apply("div", self, other)

    def __rtruediv__(self, other: float) -> Value:
        return self.o.apply("div", other, self)

    def __neg__(self) -> Value:
        return self * -1.0

    def __pow__(self, power: float) -> Value:
        if power == 2:
            return self.o.apply("square", self)
        return self.o.sqrt(self) if power == 0.5 else self.o.apply("pow", self, power)

    def __bool__(self) -> bool:
        """A rule is run before there are numbers: `if` and `while` cannot ask for them."""
        raise TypeError("a Value has no truth: the rule is written once, before there are numbers")

    def _shift(self, by: float) -> Value:
        return self.o.apply("scale", self, a=1.0, b=float(by))


def _plain(value: Value | float) -> TypeIs[float]:
    return isinstance(value, int | float)


class Update:
    """What a rule writes to.

    Attributes:
        rate: the learning rate of this step times the parameter's own multiplier.
    """

    def __init__(self, e: Emitter, name: str, count: Tensor, place: _Place) -> None:
        self._e, self._name, self._count, self._place = e, name, count, place
        self.slots: dict[str, Slot] = {}
        self.lazy = False
        self._read: dict[str, Value] = {}
        self._written: dict[str, Tensor] = {}

    @property
    def rate(self) -> Value:
        """The learning rate times the parameter's multiplier: one number, or one an element."""
        return Value(self, self._place.rate(self._e))

    @property
    def count(self) -> Value:
        """The number of this update, 1 for the first. Updates that the finite check left out do not
        count."""
        return self.apply("cast", Value(self, self._count), shift=1.0, dtype=code("f32"))

    def correction(self, beta: float) -> Value:
        """1 - beta^count: what a mean that began at 0 is divided by."""
        return self.apply("bias_correction", Value(self, self._count), beta=float(beta))

    def slot(self, name: str, initial: float = 0.0) -> Value:
        """A state tensor of the parameter's shape as the update before left it; checkpoints save
        it. Every slot must be :meth:`set`.

        Raises:
            ConfigError: it is declared twice, or the name cannot be one.
        """
        if name in self.slots:
            raise self._wrong(f"declares the slot `{name}` twice")
        if not _SLOT.fullmatch(name) or name in _TAKEN:
            raise self._wrong(f"a slot cannot be called {name!r}")
        self.slots[name] = Slot(name, float(initial))
        self._read[name] = Value(self, self._place.slot(self._e, name))
        return self._read[name]

    def set(self, slot: Value, value: Value) -> None:
        """The slot's value for the next update.

        Raises:
            ConfigError: it is no slot, is set twice, or the value has another shape.
        """
        name = next((k for k, v in self._read.items() if v is slot), None)
        if name is None:
            raise self._wrong("sets something that is no slot: give what `slot` gave")
        if name in self._written:
            raise self._wrong(f"sets the slot `{name}` twice")
        self._written[name] = self._fitting(value, f"the slot `{name}`")

    def number(self, value: float) -> Value:
        """A number as a value of one element."""
        return Value(self, self._e.constant([float(value)]))

    def sqrt(self, x: Value) -> Value:
        """The square root, element by element."""
        return self.apply("sqrt", x)

    def apply(self, op: str, *args: Value | float, **attrs: Attr) -> Value:
        """The forward kernel of an op with one output, by its name (``paddlecli/ops``); inputs in
        the order of its signature.

        Raises:
            ConfigError: there is no such op, or the shapes do not fit it.
        """
        if op not in ops.names():
            raise self._wrong(f"applies `{op}`, and there is no such op")
        values = [self.number(a) if _plain(a) else a for a in args]
        found = self._e.apply(op, *(v.tensor for v in values), **attrs)
        if not isinstance(found, Tensor):
            raise self._wrong(f"applies `{op}`, which has several outputs")
        if ops.get(op).inplace_views:  # the bytes may be those of the parameter or of a slot
            found = self._e.apply("copy", found)
        return Value(self, found)

    def norm(self, x: Value) -> Value:
        """The Euclidean norm of a value over each parameter, repeated over its elements.

        Raises:
            ConfigError: the parameter is a row-sparse table, of which a rule sees a part only.
        """
        return Value(self, self._place.norm(self._e, x.tensor))

    def lazy_rows(self) -> None:
        """Says what happens to a table with row-sparse gradients: the rule is applied to its rows
        with a gradient, all others and their slots stay as they are. Without this such a table is
        refused, since a rule may move rows that have none."""
        self.lazy = True

    def _fitting(self, value: Any, what: str) -> Tensor:
        """A value of the parameter's shape."""
        if not isinstance(value, Value):
            got = type(value).__name__
            raise self._wrong(f"must give a Value for {what}, it gave {got}")
        spec = self._place.parameter.spec
        if value.tensor.spec.shape != spec.shape:
            raise self._wrong(f"gives {value.tensor.spec} for {what}, which is {spec}")
        return value.tensor

    def _wrong(self, text: str) -> ConfigError:
        written = place_of(OPTIMIZERS.get(self._name).function)
        text = f"the optimizer `{self._name}` {text}: it is written in {written}"
        return fault(self._e.origin, text)

    def finish(self, result: Any) -> tuple[Tensor, dict[str, Tensor]]:
        """The new parameter and the new slots."""
        if result is None:
            raise self._wrong("must return the new parameter")
        unset = [name for name in self.slots if name not in self._written]
        if unset:
            raise self._wrong(f"declares the slot `{unset[0]}` and never sets it")
        return self._fitting(result, "the parameter"), self._written


@dataclass
class _Place:
    """Where a rule runs: the tensors it sees, and how it writes to what is behind them."""

    parameter: Tensor
    gradient: Tensor
    learning_rate: Tensor

    def rate(self, e: Emitter) -> Tensor:
        """The rate as the rule sees it."""
        return self.learning_rate

    def slot(self, e: Emitter, name: str) -> Tensor:
        """A slot as the rule sees it."""
        return Tensor(name, self.parameter.spec)

    def norm(self, e: Emitter, x: Tensor) -> Tensor:
        """See :meth:`Update.norm`."""
        return x


@dataclass
class _Flat(_Place):
    """All dense parameters at once. ``bounds`` [segments, 2]."""

    group: Group
    bounds: Tensor

    def rate(self, e: Emitter) -> Tensor:
        rates = [s.rate for s in self.group.segments]
        if set(rates) == {1.0}:
            return self.learning_rate
        each = e.apply("mul", e.constant(rates), self.learning_rate)
        return self._spread(e, each)

    def slot(self, e: Emitter, name: str) -> Tensor:
        return self.group.slots[name]

    def norm(self, e: Emitter, x: Tensor) -> Tensor:
        ones = e.constant([1] * len(self.group.segments), "i32")
        return self._spread(e, e.apply("segment_norms", x, self.bounds, ones))

    def _spread(self, e: Emitter, values: Tensor) -> Tensor:
        found: Tensor = e.apply("segment_spread", values, self.bounds, self.parameter)
        return found


@dataclass
class _Rows(_Place):
    """The rows with a gradient of one table."""

    table: Table

    def rate(self, e: Emitter) -> Tensor:
        own = self.table.segment.rate
        found: Tensor = self.learning_rate
        return found if own == 1.0 else e.apply("scale", found, a=own, b=0.0)

    def slot(self, e: Emitter, name: str) -> Tensor:
        return _taken(e, self.table.slots[name], self.table)

    def norm(self, e: Emitter, x: Tensor) -> Tensor:
        text = f"{self.table.segment.name} has a row-sparse gradient, and the rule takes a norm of"
        raise fault(e.origin, f"{text} the whole parameter: say sparse: false where it is embedded")


def _taken(e: Emitter, whole: Tensor, table: Table) -> Tensor:
    rows: Tensor = e.apply("rows_take", whole, table.rows.ids, table.rows.count)
    return rows


@dataclass(frozen=True)
class Composed:
    """A registered rule with its arguments; what an op with an update kernel is for the built-in
    optimizers."""

    name: str
    function: Rule
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def _traced(self) -> Update:
        """The rule, run once on nothing."""
        e = Emitter(Graph(), [])
        p, g = Tensor("p", Spec.of(16)), Tensor("g", Spec.of(16))
        place = _Place(p, g, Tensor("rate", Spec.of(1)))
        return self._run(e, Tensor("count", Spec.of(1, dtype="i64")), place)[0]

    def slots(self) -> tuple[Slot, ...]:
        """The slots that it declares, in their order.

        Raises:
            ConfigError: the rule is none; whatever it raises itself.
        """
        return tuple(self._traced.slots.values())

    def flat(
        self,
        e: Emitter,
        group: Group,
        scale: Tensor | None,
        limit: float,
        bounds: Tensor,
        clips: Tensor,
    ) -> None:
        """Writes the update of all dense parameters. ``scale``: factors of clipping by norm;
        ``limit``: of clipping by value, 0 for none."""
        assert group.parameters is not None
        assert group.gradients is not None
        d = _clipped(e, group, scale, limit, bounds, clips)
        place = _Flat(group.parameters, d, group.rate, group, bounds)
        _, p, slots = self._run(e, group.count, place)
        old = (group.parameters, *group.slots.values())
        for x, values in ((group.parameters, p), *((group.slots[k], v) for k, v in slots.items())):
            if any(values is o for o in old):  # what the assignment before may have changed
                values = e.apply("copy", values)
            kernel = ops.get("segment_assign").forward
            e.update(kernel, {"x": x, "values": values, "bounds": bounds})

    def rows(
        self, e: Emitter, group: Group, table: Table, factor: Tensor | None, limit: float
    ) -> None:
        """Writes the update of one table's rows with a gradient.

        Raises:
            ConfigError: the rule does not say that it is lazy, or the table has a regulariser.
        """
        self._check_table(e, table)
        d: Tensor = table.rows.values
        if factor is not None:
            d = e.apply("mul", d, factor)
        if limit:
            d = e.apply("clip", d, low=-limit, high=limit)
        place = _Rows(_taken(e, table.parameter, table), d, group.rate, table)
        _, p, slots = self._run(e, group.count, place)
        for x, values in ((table.parameter, p), *((table.slots[k], v) for k, v in slots.items())):
            rows = {"ids": table.rows.ids, "rows": table.rows.count}
            e.update(ops.get("rows_assign").forward, {"x": x, "values": values, **rows})

    def _check_table(self, e: Emitter, table: Table) -> None:
        cure = "say sparse: false where it is embedded"
        what = f"{table.segment.name} has a row-sparse gradient"
        if not self._traced.lazy:
            text = f"and the optimizer `{self.name}` does not say what it does with one"
            raise fault(e.origin, f"{what}, {text}: {cure}, or call o.lazy_rows() in the rule")
        if table.segment.l2 or table.segment.l1:
            text = f"its regulariser moves all rows and `{self.name}` only those with a gradient"
            raise fault(e.origin, f"{what}, {text}: {cure}, or regularizer: null for it")

    def _run(
        self, e: Emitter, count: Tensor, place: _Place
    ) -> tuple[Update, Tensor, dict[str, Tensor]]:
        o = Update(e, self.name, count, place)
        p, g = Value(o, place.parameter), Value(o, place.gradient)
        result, slots = o.finish(self.function(o, p, g, **self.arguments))
        return o, result, slots


def _clipped(
    e: Emitter, group: Group, scale: Tensor | None, limit: float, bounds: Tensor, clips: Tensor
) -> Tensor:
    """The gradient that the rule sees; the range's own where nothing clips or regularises."""
    segments = group.segments
    assert group.gradients is not None
    if scale is None and not limit and not any(s.l2 or s.l1 for s in segments):
        return group.gradients
    found: Tensor = e.apply(
        "segment_gradient",
        group.parameters,
        group.gradients,
        scale,
        bounds,
        e.constant([s.l2 for s in segments]),
        e.constant([s.l1 for s in segments]),
        clips,
        clip_value=limit,
    )
    return found
