"""What an op is: schema, shape rule, gradient, numpy reference, samples.

An op has one or more kernels. The first is ``forward``; others are used by gradients or updates. Python and C meet on a
kernel's signature text, compared when the library is loaded::

    layer_norm.forward(x: f32, w: f32, b?: f32; epsilon: float) -> (y: f32, mean: f32, rstd: f32)

``name?`` is an optional input, ``name*`` takes any number (last input or last output only). Attribute types: int, float, bool,
list (of ints). Outputs that start with ``work`` are scratch of that node alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from paddlecli.ops.spec import DTYPES, Spec

if TYPE_CHECKING:
    import numpy as np

Attr = int | float | bool | tuple[int, ...]
Shape = tuple[int, ...]


class ShapeError(Exception):
    """Shapes that do not fit; the text starts with the op in brackets and names the numbers."""


@dataclass(frozen=True)
class Port:
    """One input or output of a kernel."""

    name: str
    dtype: str
    optional: bool = False
    variadic: bool = False


_SIGNATURE = re.compile(r"^(\w+)\.(\w+)\(([^;)]*)(?:;([^)]*))?\) -> \(([^)]*)\)$")


def _ports(text: str, where: str) -> tuple[Port, ...]:
    ports = []
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, _, dtype = (s.strip() for s in item.partition(":"))
        if dtype not in DTYPES and dtype != "any":
            raise ValueError(f"{where}: unknown element type {dtype!r}")
        ports.append(Port(name.rstrip("?*"), dtype, name.endswith("?"), name.endswith("*")))
    return tuple(ports)


@dataclass(frozen=True)
class Kernel:
    """A kernel by its signature.

    Attributes:
        signature: the text that Python and C share.
        inplace: output -> input whose memory it may take over (same bytes in the same order, each element read before it
            is written).
        rowwise: every output whose first dimension is the rows of the first input depends on the same row only, and every
            other output is a sum over rows: a scan may run the kernel once on all steps. Sums of such outputs over pieces of the
            rows add up.
        updates: writes parameters or other state that outlives the step (its outputs are state tensors).
        random: draws random numbers (the node gets a stream named by its layer path).
    """

    signature: str
    inplace: Mapping[str, str] = field(default_factory=dict, hash=False)
    rowwise: bool = False
    updates: bool = False
    random: bool = False
    op: str = field(init=False)
    name: str = field(init=False)
    inputs: tuple[Port, ...] = field(init=False)
    outputs: tuple[Port, ...] = field(init=False)
    attrs: tuple[tuple[str, str], ...] = field(init=False)

    def __post_init__(self) -> None:
        match = _SIGNATURE.match(self.signature)
        if match is None:
            raise ValueError(f"not a kernel signature: {self.signature!r}")
        op, name, inputs, attrs, outputs = match.groups()
        pairs = [
            tuple(s.strip() for s in item.split(":"))
            for item in filter(None, (attrs or "").split(","))
        ]
        if any(len(p) != 2 or p[1] not in ("int", "float", "bool", "list") for p in pairs):
            raise ValueError(f"{self.signature}: an attribute is 'name: int|float|bool|list'")
        for key, value in (
            ("op", op), ("name", name), ("inputs", _ports(inputs, self.signature)),
            ("outputs", _ports(outputs, self.signature)), ("attrs", tuple((p[0], p[1]) for p in pairs)),
        ):  # fmt: skip
            object.__setattr__(self, key, value)

    @property
    def full_name(self) -> str:
        """``op.kernel``."""
        return f"{self.op}.{self.name}"


class TensorLike(Protocol):
    """What an op sees of a tensor: its spec."""

    @property
    def spec(self) -> Spec: ...


Value = TensorLike | Sequence[TensorLike] | None
"""What stands at a port: a tensor, several (variadic), none (optional)."""


@dataclass(frozen=True)
class RowGrad:
    """A row-sparse gradient as one use gives it: row ids [rows] i64, repeats allowed, and their values [rows, ...]."""

    ids: TensorLike
    values: TensorLike


class NodeLike(Protocol):
    """What a gradient rule sees of the forward node."""

    @property
    def args(self) -> Mapping[str, Any]: ...  # input port -> tensor, list of tensors, or None
    @property
    def results(self) -> Mapping[str, Any]: ...  # output port -> tensor (list when variadic)
    @property
    def attrs(self) -> Mapping[str, Attr]: ...


class Emitter(Protocol):
    """How a gradient rule or a decomposition writes nodes."""

    def emit(
        self,
        kernel: Kernel,
        args: Mapping[str, Value],
        attrs: Mapping[str, Attr] | None = None,
        out: Mapping[str, Spec | TensorLike | Sequence[Spec | TensorLike]] | None = None,
    ) -> Any:
        """Adds a node. ``out`` gives the spec of each output (a tensor stands for its spec); without it the op's shape rule
        is asked. Returns the tensor, or a tuple in signature order when there are several outputs (``work*`` ones left out)."""

    def apply(self, op: str, *args: Value, **attrs: Attr) -> Any:
        """Adds the forward kernel of another op by name; inputs in signature order. Returns like :meth:`emit`."""

    def needs(self, port: str) -> bool:
        """True when the gradient of that input of the present node is wanted."""


@dataclass(frozen=True)
class Arg:
    """How a generated test makes one input: shape with numbers, ``"N"`` (batch) or an axis name (its total); values drawn
    evenly from [low, high], or one of ``choices``, or ``values`` as given. ``low``/``high`` of integers are inclusive."""

    shape: tuple[int | str, ...]
    dtype: str = "f32"
    low: float = -1.0
    high: float = 1.0
    choices: tuple[float, ...] = ()
    values: tuple[float, ...] = ()


@dataclass(frozen=True)
class Sample:
    """One case of the generated tests.

    Attributes:
        args: input port -> Arg, tuple of Arg (variadic) or absent.
        attrs: attributes.
        axes: axis names used in the shapes; the test draws lengths, empty sequences included.
        lengths: axis name -> shortest and longest sequence that is drawn, where an op needs others than 1 to 4.
        kink: inputs are kept this far away from the points in ``kinks`` (where finite differences mean nothing).
        tolerance: relative tolerance of the forward check against the reference.
        grad_tolerance: relative tolerance against central differences of the reference.
    """

    args: Mapping[str, Arg | tuple[Arg, ...]]
    attrs: Mapping[str, Attr] = field(default_factory=dict)
    axes: tuple[str, ...] = ()
    lengths: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    kinks: tuple[float, ...] = ()
    kink: float = 0.01
    tolerance: float = 2e-6
    grad_tolerance: float = 1e-4


@dataclass(frozen=True)
class RandomKey:
    """Key of the counter-based random numbers, for references: seed, step, stream, index of the first row."""

    seed: int
    step: int
    stream: int
    first: int = 0


@dataclass(frozen=True)
class Ragged:
    """A packed tensor with the offsets of its axis, as references get and give it: values [T, ...], offsets [n + 1]."""

    values: np.ndarray
    offsets: np.ndarray


class Op:
    """Base of all ops. A subclass sets ``name`` and ``forward`` and overrides what applies."""

    name: ClassVar[str]
    forward: ClassVar[Kernel]
    again: ClassVar[Kernel | None] = None
    """Gives the outputs that it has once more, in ``forward``'s bits, from its inputs and from what that gave."""
    inplace_views: ClassVar[bool] = False
    """True when the output is always the input's bytes under another shape (reshape): the planner makes it an alias."""
    version: ClassVar[int] = 1
    """Raised when stored graphs with the op would mean something else; older ones are refused or converted where they are read."""
    differentiable: ClassVar[bool] = True
    rows_only: ClassVar[tuple[str, ...]] = ()
    """Input ports that give a number of rows and their axis; no value of theirs is read."""

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """All kernels of the op, ``forward`` first."""
        own = {
            k: v
            for c in reversed(type(self).__mro__)
            for k, v in vars(c).items()
            if isinstance(v, Kernel)
        }
        return (self.forward, *(v for v in own.values() if v is not self.forward))

    def is_rowwise(self, kernel: Kernel, attrs: Mapping[str, Attr]) -> bool:
        """Whether a kernel is row-wise with these attributes (see :class:`Kernel`)."""
        return kernel.rowwise

    def shape(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr]
    ) -> dict[str, Spec | list[Spec]]:
        """Specs of the forward outputs from the specs of the inputs (``args``: port -> Spec, list of Spec, or None).

        Raises:
            ShapeError: the shapes do not fit; the text names the op and the numbers.
        """
        raise NotImplementedError

    def grad(self, g: Emitter, node: NodeLike, dy: Mapping[str, Any]) -> dict[str, Any]:
        """Gradients of the inputs: port -> tensor, RowGrad or list (variadic). ``dy``: output port -> gradient or None.
        Ports whose ``g.needs`` is False may be left out."""
        raise NotImplementedError

    def reference(
        self, args: Mapping[str, Any], attrs: Mapping[str, Attr], random: RandomKey
    ) -> dict[str, Any]:
        """The forward outputs in numpy, float64, from numpy arrays (``Ragged`` where the tensor has an axis)."""
        raise NotImplementedError

    def samples(self) -> Sequence[Sample]:
        """Cases of the generated tests."""
        raise NotImplementedError

    def decompose(self, g: Emitter, node: NodeLike) -> dict[str, Any] | None:
        """For a fused op: the same outputs written with plain ops (its executable meaning); None for a plain op."""
        return None

    def flops(self, kernel: Kernel, shapes: Mapping[str, Shape], attrs: Mapping[str, Attr]) -> int:
        """Floating-point operations of one call, a multiply-add counted as two, for ``model summary``.

        ``shapes``: the sizes at the kernel's ports, inputs and outputs alike. As in the literature only products count, those of
        gradients too; an op that multiplies matrices or filters overrides this, everything else is 0.
        """
        return 0


def check(condition: bool, op: str, text: str) -> None:
    """Raises ShapeError ``[op] text`` unless the condition holds."""
    if not condition:
        raise ShapeError(f"[{op}] {text}")
