"""What the compiler gives: the plan's bytes and where everything in it is found by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from paddlecli.ops.base import Attr
from paddlecli.ops.spec import Spec


@dataclass(frozen=True)
class Placement:
    """A named array inside a range of the plan: ``offset`` in bytes, fixed shape."""

    range: int
    offset: int
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Argument:
    """A number that a step is given.

    kind: ``learning_rate`` (of optimizer ``of``) or ``weight`` (total weight of loss ``of`` over
        the whole batch of the step: ``count`` is ``batch`` (samples), ``axis:NAME`` (rows of a
        ragged axis) or ``labels:INPUT:IGNORE`` (labels of that input which are not IGNORE)).
    """

    name: str
    kind: str
    of: str
    count: str = "batch"


class MetricInfo(NamedTuple):
    """A metric of an entry: its op and the op's attributes, the name of its state, and which of the
    op's values are reported (none named: the usual ones)."""

    op: str
    attrs: Mapping[str, Attr]
    state: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class EntryInfo:
    """One entry of the plan.

    Attributes:
        inputs: input names in the order of a step's columns.
        fetches: names of the numbers in a result row (``loss``, ``finite``, ...).
        outputs: names and specs of the tensors that a step can copy out, in order.
        metrics: by name; their states are only added to.
        updates: True when it changes parameters.
        arguments: names of the arguments that it reads.
    """

    name: str
    index: int
    inputs: tuple[str, ...]
    fetches: tuple[str, ...]
    outputs: Mapping[str, Spec]
    metrics: Mapping[str, MetricInfo]
    updates: bool
    arguments: frozenset[str]


@dataclass(frozen=True)
class Artifact:
    """A compiled graph.

    Attributes:
        plan: the byte string for ``pk_plan_create``.
        parameters: trainable and frozen parameters by path (``fc1/w``).
        states: what data decide and checkpoints save: running statistics, update counts (by name).
        slots: optimizer slots, ``<parameter>@<optimizer>.<slot>``.
        slot_start: first value of each slot.
        averages: parameter -> the slot with its average over the updates, which the entries that
            update nothing read; empty where none are kept.
        metric_states: int64 accumulators by name; zeroed before an evaluation.
        roles: what entries are for: ``train`` (list), ``evaluate``, ``predict``, and with
            accumulation ``accumulate`` (entries of the first and of further parts) and ``apply``,
            which stand in the place of the one that ``train`` names.
        axes: names of the ragged axes, those that ops make included.
        notes: what the user should know before step 1 (cost of rules that move untouched rows,
            ...).
    """

    plan: bytes
    entries: Mapping[str, EntryInfo]
    arguments: tuple[Argument, ...]
    symbols: tuple[str, ...]
    parameters: Mapping[str, Placement]
    states: Mapping[str, Placement]
    slots: Mapping[str, Placement]
    slot_start: Mapping[str, float]
    metric_states: Mapping[str, Placement]
    roles: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    axes: tuple[str, ...] = ()
    averages: Mapping[str, str] = field(default_factory=dict)
