"""The graph: tensors, nodes, loops, entries.

A :class:`Graph` holds named entries. An entry is a list of nodes in order of execution; parameters,
states and inputs are shared by all entries through their names. ``build`` makes graphs whose
entries only go forward; ``differentiate`` and the compiler's passes give new graphs. Nothing here
knows a device or a size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from paddlecli.ops.base import Attr, Kernel
from paddlecli.ops.spec import Axis, Spec


@dataclass(frozen=True)
class Origin:
    """Where a node came from: file, line and column of the recipe or source, the layer's path, and
    what kind of layer that is (``fc``)."""

    file: str = ""
    line: int = 0
    column: int = 0
    path: str = ""
    kind: str = ""

    @property
    def scopes(self) -> list[str]:
        """The layer's path and those around it, the outermost first: ``stage1``, ``stage1/fc1``. Of a
        node that does the work of several layers those of all."""
        parts = [path.split("/") for path in self.path.split("+") if path]
        return ["/".join(p[: n + 1]) for p in parts for n in range(len(p))]

    def under(self, path: str) -> Origin:
        """The same place with another layer path."""
        return replace(self, path=path)

    def joined(self, *others: Origin) -> Origin:
        """Where a node comes from that does the work of several: this place, and the layer paths of
        all, ``fc1+relu1``."""
        paths = dict.fromkeys(o.path for o in (self, *others) if o.path)
        return self.under("+".join(paths))


@dataclass(frozen=True)
class ParameterInfo:
    """What training does with a parameter.

    Attributes:
        initializer: mapping with ``name`` and arguments (see ``paddlecli.models.initializers``).
        trainable: False freezes it.
        rate: multiplier of the learning rate.
        regularizer: its own ``{"l2": c}`` or ``{"l1": c}`` that replaces the optimizer's; None
            takes the optimizer's.
        clip: False leaves it out of clipping.
        sparse: its gradient is rows, never a dense array.
        since: the epoch from which it is trained, 1 for the first: its updates are counted apart from
            those of others.
    """

    initializer: Mapping[str, Any]
    trainable: bool = True
    rate: float = 1.0
    regularizer: Mapping[str, float] | None = None
    clip: bool = True
    sparse: bool = False
    since: int = 1


@dataclass(eq=False)
class Tensor:
    """A tensor of a graph.

    role: ``value`` (computed), ``input``, ``parameter``, ``gradient`` (of parameter ``of``),
        ``slot`` (of an optimizer), ``state`` (outlives the step), ``metric`` (int64 accumulator),
        ``flat`` (all of range ``of``), ``argument`` (one number per step), ``constant`` (``data``),
        ``axis`` (``part`` of ``spec``'s axis data), and the views of loops: ``step`` (rows of the
        present step of ``base``), ``previous`` (of the step before, of ``init`` at the first),
        ``prefix`` (first rows of ``base``).
    """

    name: str
    spec: Spec
    role: str = "value"
    info: ParameterInfo | None = None
    initial: float = 0.0
    data: bytes = b""
    of: str = ""
    part: str = ""
    source: Axis | None = None
    base: Tensor | None = None
    init: Tensor | None = None

    @property
    def is_view(self) -> bool:
        """True for the views that loops use."""
        return self.role in ("step", "previous", "prefix")

    @property
    def persistent(self) -> bool:
        """True when it outlives the step."""
        return self.role in ("parameter", "gradient", "slot", "state", "metric", "flat")

    def __repr__(self) -> str:
        return f"%{self.name}: {self.spec}"


def tensors_of(value: Any) -> Iterator[Tensor]:
    """The tensors at a port."""
    if isinstance(value, Tensor):
        yield value
    elif value is not None:
        yield from value


@dataclass(eq=False)
class Node:
    """One kernel call. ``args`` and ``results`` go from port names to tensors; ``accumulate`` names
    the outputs that are added to."""

    kernel: Kernel
    args: dict[str, Any]
    results: dict[str, Any]
    attrs: dict[str, Attr]
    origin: Origin = Origin()
    accumulate: frozenset[str] = frozenset()
    guard: Tensor | None = None
    stream: str = ""

    @property
    def inputs(self) -> list[Tensor]:
        """All input tensors in order, absent ones left out."""
        return [t for v in self.args.values() for t in tensors_of(v)]

    @property
    def outputs(self) -> list[Tensor]:
        """All output tensors in order."""
        return [t for v in self.results.values() for t in tensors_of(v)]

    def map(self, f: Callable[[Tensor], Tensor]) -> Node:
        """The same node on other tensors."""

        def each(value: Any) -> Any:
            return (
                f(value)
                if isinstance(value, Tensor)
                else None
                if value is None
                else [f(t) for t in value]
            )

        return replace(
            self,
            args={k: each(v) for k, v in self.args.items()},
            results={k: each(v) for k, v in self.results.items()},
            guard=None if self.guard is None else f(self.guard),
        )

    def __repr__(self) -> str:
        return f"{self.outputs} = {self.kernel.full_name}({self.inputs})"


@dataclass(eq=False)
class Loop:
    """``scan``: the body runs once for each step of ``axis`` (from the last to the first when
    ``reverse``); ``decode``: at most ``limit`` times, until ``flag`` is non-zero."""

    kind: str
    body: list[Node]
    axis: Axis | None = None
    reverse: bool = False
    limit: int = 0
    flag: Tensor | None = None
    origin: Origin = Origin()

    @property
    def inputs(self) -> list[Tensor]:
        """Tensors that the body reads, views and all."""
        return [t for n in self.body for t in n.inputs]

    @property
    def outputs(self) -> list[Tensor]:
        """Tensors that the body writes, views and all."""
        return [t for n in self.body for t in n.outputs]


Item = Node | Loop


def flat(items: Sequence[Item]) -> Iterator[Node]:
    """All nodes in order, those of loop bodies included."""
    for item in items:
        if isinstance(item, Loop):
            yield from item.body
        else:
            yield item


def storage_of(tensor: Tensor) -> list[Tensor]:
    """The tensors whose bytes a tensor shows: itself, or what a view looks at."""
    if not tensor.is_view:
        return [tensor]
    return [t for t in (tensor.base, tensor.init) if t is not None]


@dataclass
class Metric:
    """A metric node's bookkeeping: op name, attributes, its int64 state, and which of the op's values
    are reported (none named: the usual ones)."""

    op: str
    attrs: dict[str, Attr]
    state: Tensor
    values: tuple[str, ...] = ()


@dataclass
class Update:
    """Which parameters an entry updates, by which optimizer of the recipe, and where the recipe
    says so."""

    optimizer: str
    parameters: list[str]
    origin: Origin = Origin()


@dataclass
class Entry:
    """A named list of nodes with what it fetches (one-element tensors), outputs, metrics and
    updates."""

    name: str
    training: bool
    items: list[Item] = field(default_factory=list)
    loss: Tensor | None = None
    fetches: dict[str, Tensor] = field(default_factory=dict)
    outputs: dict[str, Tensor] = field(default_factory=dict)
    metrics: dict[str, Metric] = field(default_factory=dict)
    updates: list[Update] = field(default_factory=list)
    halt: Tensor | None = None
    finite: Tensor | None = None
    gradients: dict[str, Any] = field(default_factory=dict)
    """Parameter name -> its gradient: a Tensor, or Rows for a row-sparse table."""

    @property
    def roots(self) -> list[Tensor]:
        """What the entry is run for, apart from its updates."""
        found = [*self.fetches.values(), *self.outputs.values()]
        return found + [t for t in (self.loss, self.halt) if t is not None]


@dataclass
class Rows:
    """A merged row-sparse gradient: sorted unique ids [cap], values [cap, ...], count [1]."""

    ids: Tensor
    values: Tensor
    count: Tensor


@dataclass
class ArgumentInfo:
    """An argument's meaning; see ``paddlecli.compiler.artifact.Argument``."""

    tensor: Tensor
    kind: str
    of: str
    count: str = "batch"


@dataclass
class Graph:
    """Entries over shared inputs, parameters, states and arguments.

    ``roles`` says what entries are for: ``train`` (list: one iteration runs them in order),
    ``evaluate``, ``predict`` (names), ``phases`` (list of [epoch, name]: from that epoch on this entry
    is run in place of the one that trains).
    """

    inputs: dict[str, Tensor] = field(default_factory=dict)
    parameters: dict[str, Tensor] = field(default_factory=dict)
    states: dict[str, Tensor] = field(default_factory=dict)
    arguments: dict[str, ArgumentInfo] = field(default_factory=dict)
    entries: dict[str, Entry] = field(default_factory=dict)
    roles: dict[str, Any] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    """Inputs that a prediction does not need."""

    def starts(self, seed: int, zeros: bool = True) -> Iterator[tuple[str, Any]]:
        """Arrays of all parameters and states before training, name by name: who takes them one at a
        time never holds them all. Without ``zeros`` only those that are not 0 everywhere: new memory
        is, and stays untouched."""
        import numpy as np

        from paddlecli.models.initializers import initialise, is_zero

        for name, t in self.parameters.items():
            shape = tuple(d.coefficient for d in t.spec.shape)
            kind = t.info.initializer if t.info else {"name": "constant"}
            if zeros or not is_zero(kind):
                yield name, initialise(kind, shape, seed, name)
        for name, t in self.states.items():
            shape = tuple(d.coefficient for d in t.spec.shape)
            if zeros or t.initial:
                yield name, np.full(shape, t.initial, NUMPY[t.spec.dtype])


NUMPY = {
    "f32": "float32",
    "f64": "float64",
    "f16": "float16",
    "i64": "int64",
    "i32": "int32",
    "i16": "int16",
    "i8": "int8",
    "u8": "uint8",
    "bool": "bool",
}
"""Element types as numpy spells them."""
