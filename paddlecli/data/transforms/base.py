"""What a transform is, and chains of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Annotated, Any, ClassVar, TypeVar

import numpy as np

from paddlecli.config.registry import TRANSFORMS, Call
from paddlecli.data.own.frame import Faults, Kind, Values, cells_of, numbers_of
from paddlecli.data.own.packed import Packed
from paddlecli.errors import ConfigError

T = TypeVar("T")
Step = Annotated[str | dict[str, Any], Call("transform")]
Steps = tuple[Step, ...]
"""Transforms as recipes write them: `[lower, {truncate: {length: 100}}]`."""


class Transform(ABC):
    """One step. Subclasses enter themselves in `TRANSFORMS`; the keyword-only parameters of their
    `__init__` are what a recipe may give.

    A transform works on all rows of a split at once, or on the one row of a prediction, and gives as
    many. A row that it cannot use goes to `faults` and gets any value of the right form.
    """

    takes: ClassVar[tuple[Kind, ...]]
    """Kinds it works on; values of another kind are turned into the first if they can be."""
    gives: ClassVar[Kind | None] = None
    """Kind of the result; None: the kind that was given."""
    random: ClassVar[bool] = False
    """Whether it draws random numbers in training; such a one does nothing random in prediction."""

    def wants(self, kind: Kind) -> Kind:
        """The kind that values of this kind must be turned into first."""
        return kind if kind in self.takes else self.takes[0]

    def fit(self, values: Values, faults: Faults) -> None:  # noqa: B027 - most learn nothing
        """Learns what it needs from the rows of the train split."""

    @abstractmethod
    def apply(self, values: Values, faults: Faults) -> Values:
        """The rows, transformed."""

    def state(self) -> dict[str, Any]:
        """What `fit` learned, as plain data."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:  # noqa: B027
        """Takes what `state` gave."""

    def notes(self, names: Sequence[str]) -> list[str]:
        """What a user should know of what was learned; `names` are the columns."""
        return []


def make(step: str | Mapping[str, Any]) -> tuple[str, dict[str, Any], Transform]:
    """Name, arguments and object of a transform as a recipe writes it.

    Raises:
        ConfigError: unknown, or with wrong arguments.
    """
    name, arguments = (step, {}) if isinstance(step, str) else next(iter(step.items()))
    given = dict(arguments or {})
    built: Transform = TRANSFORMS.get(name).function(**TRANSFORMS.bind(name, given))
    return name, given, built


def applied(step: Transform, values: Values, faults: Faults) -> Values:
    """The rows behind a step; packed ones are given to it a block at a time.

    Raises:
        ConfigError: it gave something else than one value a row.
    """
    if not isinstance(values.rows, Packed) or not len(values):
        return _whole(step, values, step.apply(values, faults))
    parts: list[Any] = []
    whole, kind = None, values.kind
    for first, block in values.rows.blocks():
        given = Values(values.kind, block)
        made = _whole(step, given, step.apply(given, faults.behind(first)))
        kind = made.kind
        if Packed.takes(kind):
            whole = Packed(kind) if whole is None else whole
            whole.extend(made.rows)
        else:
            parts.append(made.rows)
    faults.behind(0)
    if whole is not None:
        return Values(kind, whole)
    if isinstance(parts[0], np.ndarray):
        return Values(kind, np.concatenate(parts))
    return Values(kind, [row for part in parts for row in part])


def _whole(step: Transform, values: Values, made: object) -> Values:
    """What a step made, if it keeps to its contract."""
    if isinstance(made, Values) and len(made) == len(values):
        return made
    found = f"{len(made)} rows" if isinstance(made, Values) else type(made).__name__
    raise ConfigError(
        f"the transform {type(step).__name__} gave {found} for {len(values)} rows",
        hint="`apply` returns Values with one row for every row that it gets",
    )


class Chain:
    """Transforms one behind the other, from the columns of a frame to one value a row.

    Args:
        columns: names of the columns.
        steps: the transforms, as recipes write them.
    """

    def __init__(self, columns: Sequence[str], steps: Iterable[str | Mapping[str, Any]]) -> None:
        self.columns = tuple(columns)
        made = [make(step) for step in steps]
        self.written = [(name, given) for name, given, _ in made]
        self.steps = [step for _, _, step in made]

    def fit(self, columns: Sequence[Values], faults: Faults) -> Values:
        """Learns from the train rows, step by step, and gives them transformed."""
        values = self._start(columns, faults)
        for step in self.steps:
            values = self._wanted(values, step.wants(values.kind), faults)
            step.fit(values, faults.about(self.name, self.columns))
            values = applied(step, values, faults.about(self.name))
        return values

    def apply(self, columns: Sequence[Values], faults: Faults) -> Values:
        """Other rows, with what was learned."""
        return self._through(self.steps, columns, faults)

    def before(self, kind: type[Transform], columns: Sequence[Values], faults: Faults) -> Values:
        """Other rows, as they are before the first transform of this class."""
        steps = takewhile(lambda step: not isinstance(step, kind), self.steps)
        return self._through(steps, columns, faults)

    def _through(
        self, steps: Iterable[Transform], columns: Sequence[Values], faults: Faults
    ) -> Values:
        values = self._start(columns, faults)
        for step in steps:
            values = self._wanted(values, step.wants(values.kind), faults)
            values = applied(step, values, faults.about(self.name))
        return values

    @property
    def name(self) -> str:
        """The columns, for messages."""
        shown = ", ".join(self.columns[:3])
        return shown + (", ..." if len(self.columns) > 3 else "")

    def notes(self) -> list[str]:
        """What the transforms have to tell."""
        return [note for step in self.steps for note in step.notes(self.columns)]

    def find(self, kind: type[T]) -> T | None:
        """The last transform of this class, None where there is none."""
        return next((s for s in reversed(self.steps) if isinstance(s, kind)), None)

    def freeze(self) -> dict[str, Any]:
        """The chain with what it learned, as plain data."""
        steps = [
            {"name": name, "arguments": given, "state": step.state()}
            for (name, given), step in zip(self.written, self.steps, strict=True)
        ]
        return {"columns": list(self.columns), "steps": steps}

    @classmethod
    def thaw(cls, frozen: Mapping[str, Any]) -> Chain:
        """The chain that `freeze` wrote."""
        chain = cls(frozen["columns"], [{s["name"]: s["arguments"]} for s in frozen["steps"]])
        for step, stored in zip(chain.steps, frozen["steps"], strict=True):
            step.restore(stored["state"])
        return chain

    def _start(self, columns: Sequence[Values], faults: Faults) -> Values:
        if len(columns) == 1:
            return columns[0]
        return Values("numbers", _Several(columns, self.columns))

    def _wanted(self, values: Values, kind: Kind, faults: Faults) -> Values:
        """The values as the kind that a transform takes.

        Raises:
            ConfigError: they cannot be.
        """
        if isinstance(values.rows, _Several):
            return values.rows.turned(kind, faults)
        if values.kind == kind:
            return values
        if kind == "numbers":
            return Values(kind, numbers_of([values], self.columns[:1], faults))
        if kind == "cells":
            return Values(kind, cells_of(values, self.name, faults))
        raise ConfigError(
            f"the transforms of {self.name}: {kind} are wanted, but there are {values.kind}"
        )

    def finished(self, values: Values, faults: Faults) -> Values:
        """The values behind the last transform, of a kind that makes a column.

        Raises:
            ConfigError: they are texts or words, which no network takes.
        """
        if isinstance(values.rows, _Several) or values.kind == "cells":
            values = self._wanted(values, "numbers", faults)
        if values.kind == "words":
            raise ConfigError(
                f"{self.name}: words cannot go into a network",
                hint="end its transforms with `vocabulary`",
            )
        return values


class _Several:
    """Columns side by side that no transform has looked at yet."""

    def __init__(self, columns: Sequence[Values], names: Sequence[str]) -> None:
        self.columns, self.names = columns, names

    def __len__(self) -> int:
        return len(self.columns[0])

    def turned(self, kind: Kind, faults: Faults) -> Values:
        if kind == "numbers":
            return Values(kind, numbers_of(self.columns, self.names, faults))
        raise ConfigError(
            f"the transforms of {', '.join(self.names)} begin with one that takes a single column",
            hint="give each column parts of its own",
        )
