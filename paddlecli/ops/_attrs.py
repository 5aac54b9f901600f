"""Attributes as the type they have; the schema has checked them before."""

from __future__ import annotations

from collections.abc import Mapping

from paddlecli.ops.base import Attr


def integer(attrs: Mapping[str, Attr], name: str) -> int:
    """An attribute of kind int."""
    value = attrs[name]
    assert not isinstance(value, tuple)
    return int(value)


def number(attrs: Mapping[str, Attr], name: str) -> float:
    """An attribute of kind float."""
    value = attrs[name]
    assert not isinstance(value, tuple)
    return float(value)


def integers(attrs: Mapping[str, Attr], name: str) -> tuple[int, ...]:
    """An attribute of kind list."""
    value = attrs[name]
    assert isinstance(value, tuple)
    return value


def axis_of(attrs: Mapping[str, Attr], ndim: int) -> int:
    """The attribute ``axis``, a negative one counted from the end; it may be out of range."""
    axis = integer(attrs, "axis")
    return axis + ndim if axis < 0 else axis
