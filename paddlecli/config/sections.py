"""What the schema's sections are made of: their base classes, and how a union picks its branch.

A branch is picked from the shape of the value, so that an error shows the branch that was meant.
Tags are written `<so>`: they appear in pydantic's error locations and are dropped there.
"""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic_core import PydanticCustomError

from paddlecli.config.types import Name

WRITTEN = ("inputs", "blocks", "layers", "loss", "outputs", "entries")
ONE_OPTIMIZER = ("name", "learning_rate", "schedule", "regularizer", "clip")


CALL_FORM = "`NAME`, or `{NAME: {...}}` with its arguments"
"""How something registered is called."""


def complain(message: str, key: str = "", expected: str = "") -> NoReturn:
    """Fail a validator with our own sentence; `key` is the key below the section it is about."""
    context = {"text": message, "key": key, "expected": expected}
    raise PydanticCustomError("rule", "{text}", context)


def mapping_or_name(value: Any) -> Any:
    """`accuracy` as `{accuracy: {}}`, `{softmax: null}` as `{softmax: {}}`."""
    if isinstance(value, str):
        return {value: {}}
    return value


def pick_names(value: Any) -> str:
    """Branch of a field that takes a name or a list of names."""
    return "<list>" if isinstance(value, list | tuple) else "<name>"


def pick_ragged(value: Any) -> str:
    """Branch of a field that takes a name or a bool."""
    return "<yes or no>" if isinstance(value, bool) else "<name>"


def pick_start(value: Any) -> str:
    """Branch of a field that takes a name or a number."""
    return "<name>" if isinstance(value, str) else "<number>"


def pick_argument(value: Any) -> str:
    """Branch of a field that takes a number or, in a block, an argument."""
    return "<argument>" if isinstance(value, str) and value[:1] == "$" else "<number>"


def pick_weights(value: Any) -> str:
    """Branch of weights by class: a word, a list, or a mapping."""
    if isinstance(value, str):
        return "<word>"
    return "<mapping>" if isinstance(value, dict) else "<list>"


def pick_model(value: Any) -> str:
    """A network is named unless it has a key that only written ones have."""
    keys = value if isinstance(value, dict) else {}
    if "name" not in keys and any(k in keys for k in WRITTEN):
        return "<written>"
    return "<named>"


def pick_optimizer(value: Any) -> str:
    """Several optimizers are a mapping whose values are mappings and whose keys are not fields."""
    if not isinstance(value, dict):
        return "<one>"
    several = all(isinstance(v, dict) for v in value.values())
    return "<several>" if value and several and not set(value) & set(ONE_OPTIMIZER) else "<one>"


class Section(BaseModel):
    """Base of all sections."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        allow_inf_nan=False,
        serialize_by_alias=True,
    )
    shorthand: ClassVar[Any] = None
    """Type of another form that the section may be written in."""


class Named(Section):
    """A section that calls something registered: `name`, and beside it the arguments."""

    model_config = ConfigDict(extra="allow")
    kind: ClassVar[str]
    """The registry that `name` is looked up in."""

    name: Name
    """The registered name."""

    @property
    def arguments(self) -> dict[str, Any]:
        """The keys that are arguments of what `name` calls."""
        return dict(self.model_extra or {})


class Called(Section):
    """One registered name with its arguments, `{fc: {size: 10}}`; siblings have meanings of their
    own. The bare name stands for a call without arguments."""

    model_config = ConfigDict(extra="allow")
    kind: ClassVar[str]
    """The registry that the name is looked up in."""

    @model_validator(mode="before")
    @classmethod
    def _bare_name(cls, value: Any) -> Any:
        return mapping_or_name(value)

    @model_validator(mode="after")
    def _agree(self) -> Called:
        self.one_call()
        return self

    def one_call(self) -> None:
        """Complain unless exactly one name is called."""
        if len(self.model_extra or {}) != 1:
            complain(
                f"expected exactly one {self.kind} here, found "
                f"{', '.join(f'`{k}`' for k in self.model_extra or {}) or 'none'}",
                expected=CALL_FORM,
            )

    @property
    def call(self) -> str:
        """The registered name; empty where nothing is called."""
        return next(iter(self.model_extra or {}), "")

    @property
    def arguments(self) -> dict[str, Any]:
        """Its arguments."""
        return dict((self.model_extra or {}).get(self.call) or {})


class OneOf(Section):
    """A section in which exactly one key is given."""

    @model_validator(mode="after")
    def _one(self) -> OneOf:
        if sum(getattr(self, f) is not None for f in type(self).model_fields) != 1:
            complain(f"expected exactly one of {', '.join(type(self).model_fields)}")
        return self
