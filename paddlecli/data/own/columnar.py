"""What the readers of tables share: which column is what, said in a few words or field by field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from paddlecli.data.own.fields import Field, FieldRecipe, names_of
from paddlecli.data.own.frame import Faults, Frame, numbers_of
from paddlecli.data.own.reader import Common, Missing, OwnReader, fields_of, only
from paddlecli.data.own.splits import SplitRule
from paddlecli.data.spec import Role
from paddlecli.data.transforms.base import Chain
from paddlecli.errors import ConfigError, DataError

Task = Literal["regression", "classification"]
_LOOKED_AT = 1000  # rows that tell whether a column holds numbers
TEXT_STEPS: tuple[Any, ...] = ("lower", {"tokenise": {"by": "words"}}, "vocabulary")
"""What is done to a text unless a recipe says more."""


@dataclass(frozen=True)
class Shorthand:
    """What the columns of a table are, in a few words; see the arguments of `csv`."""

    label: str | tuple[str, ...] | None = None
    task: Task | None = None
    inputs: tuple[str, ...] | None = None
    categories: tuple[str, ...] | None = None
    text: tuple[str, ...] | None = None
    ignore: tuple[str, ...] | None = None
    scale: str | None = None
    missing: Missing = "error"

    def given(self) -> list[str]:
        """The names that were given, but for `missing`."""
        return [k for k, v in vars(self).items() if v is not None and k != "missing"]


class TableReader(OwnReader):
    """Base of the readers whose files have named columns."""

    def __init__(
        self,
        name: str,
        common: Common,
        shorthand: Shorthand,
        fields: Mapping[str, FieldRecipe] | None,
    ) -> None:
        super().__init__(name, common)
        self.shorthand, self.recipes = shorthand, fields
        only(fields, "fields", shorthand.given)
        if fields is not None and shorthand.missing == "fill":
            raise ConfigError(
                "data: `missing: fill` does not go with `fields`: use the transform `fill_missing`"
            )
        if fields is None and shorthand.label is None:
            raise ConfigError("data: say which column is the `label`, or write `fields`")
        if fields is None and shorthand.task is None:
            raise ConfigError("data: say whether the task is a `regression` or a `classification`")

    def fields(self, train: Frame) -> list[Field]:
        """See `OwnReader.fields`."""
        if self.recipes is not None:
            return fields_of(self.recipes)
        return _from_words(self.shorthand, train, self.common.split)


def _from_words(words: Shorthand, train: Frame, split: SplitRule | None) -> list[Field]:
    labels = names_of(words.label)
    ignored, categories, texts = words.ignore or (), words.categories or (), words.text or ()
    # what says which rows train is no input, unless the recipe names it
    rule = {split.column, split.group} - {*categories, *texts} if split is not None else set()
    inputs = words.inputs or [c for c in train.columns if c not in {*labels, *ignored, *rule}]
    for name in (*labels, *inputs, *ignored, *categories, *texts):
        train.column(name)
    for name in (*categories, *texts):
        if name not in inputs:
            raise ConfigError(f"data: column {name!r} is a category or a text, but no input")
    if set(labels) & set(inputs):
        raise ConfigError(
            f"data: {sorted(set(labels) & set(inputs))[0]!r} is an input and the label"
        )
    numbers = [c for c in inputs if c not in categories and c not in texts]
    _all_numbers(train, numbers)
    parts = []
    if numbers:
        parts.append(Chain(numbers, _number_steps(words)))
    fill: list[Any] = [{"fill_missing": {"rule": "most_common"}}] if words.missing == "fill" else []
    parts += [Chain([c], [*fill, "one_hot"]) for c in categories]
    found = [Field("x", "input", parts)] if parts else []
    found += [Field(c, "input", [Chain([c], TEXT_STEPS)]) for c in texts]
    return [*found, _label(labels, words)]


def _number_steps(words: Shorthand) -> list[Any]:
    scale = words.scale or "standardise"
    return [
        *(["fill_missing"] if words.missing == "fill" else []),
        *([] if scale == "none" else [scale]),
    ]


def _label(labels: Sequence[str], words: Shorthand) -> Field:
    role: Role = "label"
    if words.task == "classification":
        if len(labels) != 1:
            raise ConfigError("data: a classification has one `label`")
        return Field("y", role, [Chain(labels, ["category_ids"])])
    return Field("y", role, [Chain(labels, [])])


def _all_numbers(train: Frame, names: Sequence[str]) -> None:
    """No column is one of texts; the error says what to do with it. Single cells that are no number are
    found later, each with its line."""
    few = train.take(np.arange(min(len(train), _LOOKED_AT)))
    for name in names:
        values, faults = few.column(name), Faults(few, gather=True)
        numbers_of([values], [name], faults)
        if 2 * len(faults.found) > len(values):
            first = next(iter(faults.found.values()))
            hint = f"list {name!r} under `categories`, `text` or `ignore` if it is no number"
            raise DataError(first, hint)
