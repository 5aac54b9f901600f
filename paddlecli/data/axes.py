"""Offsets of ragged axes in the columns of a split, those that ops make included."""

from __future__ import annotations

import numpy as np

from paddlecli.data.columns import Rows, Split
from paddlecli.ops._made import offsets as made_offsets
from paddlecli.ops.spec import Axis


def levels(split: Split, axis: Axis) -> tuple[Rows, ...]:
    """Offsets of an axis and of all outside of it, the outermost first."""
    if axis.of:
        found = {a.name: a for a in _base(axis)}
        own = made_offsets(axis.name, lambda name: np.diff(levels(split, found[name])[-1]))
        return (*(() if axis.parent is None else levels(split, axis.parent)), own)
    depth, above = 1, axis.parent
    while above is not None:
        depth, above = depth + 1, above.parent
    return split.columns[axis.input].offsets[:depth]


def _base(axis: Axis) -> list[Axis]:
    """The axes of the data that an axis is made of."""
    return [b for a in axis.of for b in _base(a)] if axis.of else [axis]
