"""Parameters by the range they live in: one per (optimizer or frozen, dtype), row-sparse tables
apart.

A range holds its parameters in order of first use, each at a 64-byte boundary; gradients and
optimizer slots lie at the same offsets in ranges of their own, so one update kernel walks all of
them by a segment table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from paddlecli.graph.ir import Rows, Tensor
from paddlecli.ops.base import Attr


@dataclass(frozen=True)
class OptimizerSpec:
    """An optimizer of the recipe, resolved.

    Attributes:
        name: key in the recipe (``default`` when there is one).
        op: op name (``adam``).
        attrs: attributes of the op's ``update`` kernel that the recipe or the defaults give.
        regularizer: ``{"l2": c}`` or ``{"l1": c}`` or empty.
        clip: ``{"value": c}``, ``{"norm": c}``, ``{"global_norm": c}`` or empty.
        average: ``{"decay": d, "warmup": w}`` where averages of the parameters are kept, or empty.
    """

    name: str
    op: str
    attrs: Mapping[str, Attr]
    regularizer: Mapping[str, float] = field(default_factory=dict)
    clip: Mapping[str, float] = field(default_factory=dict)
    average: Mapping[str, Attr] = field(default_factory=dict)


@dataclass(frozen=True)
class Segment:
    """One parameter inside a flat range: offset and length in elements, what the update does with it,
    and the epoch from which it is updated."""

    name: str
    offset: int
    length: int
    rate: float
    l2: float
    l1: float
    clip: bool
    since: int = 1


@dataclass(frozen=True)
class Table:
    """A row-sparse parameter with its merged gradient, its slots (slot name -> tensor of the
    table's shape) and its average, where one is kept."""

    segment: Segment
    parameter: Tensor
    rows: Rows
    slots: Mapping[str, Tensor]
    average: Tensor | None = None


@dataclass(frozen=True)
class Group:
    """What one optimizer updates in one entry.

    Attributes:
        segments: dense parameters; ``parameters``, ``gradients`` and each of ``slots`` are flat
            tensors [n] over the whole range
            (None when every parameter is a table).
        counts: i64 states [1], updates done so far, by the epoch from which parameters are updated:
            a rule that corrects its moments for their first value begins anew with each.
        rate: f32 argument [1], the learning rate.
        average: flat averages of the dense parameters, where they are kept.
    """

    optimizer: OptimizerSpec
    segments: tuple[Segment, ...]
    parameters: Tensor | None
    gradients: Tensor | None
    slots: Mapping[str, Tensor]
    tables: tuple[Table, ...]
    counts: Mapping[int, Tensor]
    rate: Tensor
    average: Tensor | None = None

    @property
    def count(self) -> Tensor:
        """Updates of the parameters that are updated from the start."""
        return self.counts[min(self.counts)]
