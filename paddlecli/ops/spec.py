"""Symbolic sizes: what a tensor is before any batch is known.

A dimension is a number times at most one symbol. Symbols are compared by meaning, so two ops that compute the same derived
size agree. A ragged axis is an object: tensors refer to the axis, not to its total, and ops that combine tensors demand the
same one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

DTYPES: dict[str, int] = {
    "f32": 4, "f64": 8, "f16": 2, "bf16": 2, "i64": 8, "i32": 4, "i16": 2, "i8": 1, "u8": 1, "bool": 1,
}  # fmt: skip
"""Element types and their bytes; the order is that of ``pk_dtype``."""


@dataclass(frozen=True)
class Axis:
    """A ragged axis: sequences of rows. ``parent`` is the axis of the next outer level, None the batch.

    ``input`` names the input whose offsets define it; ``of``: the axes that an op made it from
    (:mod:`paddlecli.ops._made`), none for an axis of the data.
    """

    name: str
    input: str
    parent: Axis | None = None
    of: tuple[Axis, ...] = ()

    @property
    def total(self) -> Dim:
        """Rows of all sequences together."""
        return Dim(1, Symbol("total", axis=self))

    @property
    def longest(self) -> Dim:
        """Length of the longest sequence."""
        return Dim(1, Symbol("longest", axis=self))

    @property
    def sequences(self) -> Dim:
        """Number of sequences: the batch, or the rows of the parent axis."""
        return BATCH if self.parent is None else self.parent.total

    @property
    def step_rows(self) -> Dim:
        """Rows of the present step inside a scan over this axis."""
        return Dim(1, Symbol("step_rows", axis=self))


@dataclass(frozen=True)
class Symbol:
    """A size known when a batch is bound.

    kind: ``batch``, ``total``, ``longest``, ``step_rows`` (of ``axis``), ``sum`` (a + b), ``product`` (a * b), ``pairs``
    (sum over sequences of len_a * len_b of ``axis`` and ``other``).
    """

    kind: str
    axis: Axis | None = None
    other: Axis | None = None
    a: Dim | None = None
    b: Dim | None = None

    def __str__(self) -> str:
        if self.kind == "batch":
            return "N"
        if self.kind in ("total", "longest", "step_rows") and self.axis is not None:
            return (
                f"{ {'total': 'T', 'longest': 'L', 'step_rows': 'n'}[self.kind] }({self.axis.name})"
            )
        if self.kind == "pairs" and self.axis is not None and self.other is not None:
            return f"P({self.axis.name},{self.other.name})"
        return f"({self.a}{'+' if self.kind == 'sum' else '*'}{self.b})"


@dataclass(frozen=True)
class Dim:
    """``coefficient`` times ``symbol``, or the plain number ``coefficient``."""

    coefficient: int
    symbol: Symbol | None = None

    @property
    def known(self) -> bool:
        """True for a plain number."""
        return self.symbol is None

    def __mul__(self, other: Dim | int) -> Dim:
        other = as_dim(other)
        if self.symbol is None or other.symbol is None:
            symbol = (
                None if 0 in (self.coefficient, other.coefficient) else self.symbol or other.symbol
            )
            return Dim(self.coefficient * other.coefficient, symbol)
        a, b = sorted((self.symbol, other.symbol), key=str)
        return Dim(
            self.coefficient * other.coefficient, Symbol("product", a=Dim(1, a), b=Dim(1, b))
        )

    __rmul__ = __mul__

    def __add__(self, other: Dim | int) -> Dim:
        other = as_dim(other)
        if self.symbol == other.symbol:
            return Dim(self.coefficient + other.coefficient, self.symbol)
        if other == ZERO or self == ZERO:
            return self if other == ZERO else other
        a, b = (other, self) if self.symbol is None else (self, other)
        if b.symbol is not None:
            a, b = sorted((a, b), key=str)
        return Dim(1, Symbol("sum", a=a, b=b))

    __radd__ = __add__

    def __floordiv__(self, other: Dim | int) -> Dim:
        """Exact division.

        Raises:
            ValueError: the result is not a dimension.
        """
        other = as_dim(other)
        if (
            other.coefficient == 0
            or self.coefficient % other.coefficient
            or other.symbol not in (None, self.symbol)
        ):
            raise ValueError(f"{self} cannot be divided by {other}")
        return Dim(
            self.coefficient // other.coefficient, self.symbol if other.symbol is None else None
        )

    def __str__(self) -> str:
        if self.symbol is None:
            return str(self.coefficient)
        return str(self.symbol) if self.coefficient == 1 else f"{self.coefficient}*{self.symbol}"


ZERO = Dim(0)
ONE = Dim(1)
BATCH = Dim(1, Symbol("batch"))
"""Samples in the batch."""


def as_dim(value: Dim | int) -> Dim:
    """A plain number as a dimension."""
    return value if isinstance(value, Dim) else Dim(value)


def product(dims: Iterable[Dim]) -> Dim:
    """Product of dimensions; 1 of none."""
    result = ONE
    for dim in dims:
        result = result * dim
    return result


@dataclass(frozen=True)
class Spec:
    """Shape, element type and ragged axis (of dimension 0) of a tensor. ``layout``: plain, nchw8c or packed."""

    shape: tuple[Dim, ...]
    dtype: str = "f32"
    axis: Axis | None = None
    layout: str = "plain"

    @staticmethod
    def of(*shape: Dim | int, dtype: str = "f32", axis: Axis | None = None) -> Spec:
        """A spec from numbers and dimensions."""
        return Spec(tuple(as_dim(d) for d in shape), dtype, axis)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> Dim:
        """Number of elements."""
        return product(self.shape)

    @property
    def row(self) -> int:
        """Elements of one row (dimension 0 left out).

        Raises:
            ValueError: they depend on the batch.
        """
        size = product(self.shape[1:])
        if not size.known:
            raise ValueError(f"the rows of {self} have no fixed size")
        return size.coefficient

    def with_shape(self, *shape: Dim | int) -> Spec:
        """The same element type and axis under another shape."""
        return Spec(tuple(as_dim(d) for d in shape), self.dtype, self.axis, self.layout)

    def with_dtype(self, dtype: str) -> Spec:
        """The same shape with another element type."""
        return Spec(self.shape, dtype, self.axis, self.layout)

    def __str__(self) -> str:
        inner = ", ".join(str(d) for d in self.shape)
        return f"{self.dtype}[{inner}]" + ("" if self.layout == "plain" else f"/{self.layout}")
