"""Arrays of a file beside those of a network: which do not fit, told in a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from paddlecli.errors import RunError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from paddlecli.graph.ir import Graph

    Arrays = Mapping[str, NDArray[np.generic]]

Shapes = Mapping[str, tuple[int, ...]]
_SHOWN = 50
"""Rows of a table."""


@dataclass(frozen=True)
class Misfit:
    """One thing that does not fit.

    what: `missing` (no array of the file became it), `shape`; of equal names also `unexpected` (the network has no such array), of
    a conversion also `left over` (no rule, or no array of the network has that name), `twice` (another array became it) and
    `type`. Names and shapes are None where there are none; `near` is a name that may have been meant.
    """

    what: str
    source: str | None
    source_shape: tuple[int, ...] | None
    target: str | None
    target_shape: tuple[int, ...] | None
    near: str = ""

    @property
    def name(self) -> str:
        """Of the network's array, or of the file's where it has none."""
        return self.target or self.source or ""


def shapes_of(graph: Graph) -> dict[str, tuple[int, ...]]:
    """Names and shapes of all arrays that a network keeps."""
    tensors = {**graph.parameters, **graph.states}
    return {n: tuple(d.coefficient for d in t.spec.shape) for n, t in tensors.items()}


def compare(wanted: Shapes, found: Shapes) -> list[Misfit]:
    """What a network's arrays and a file's of the same names do not have in common, by name."""
    names = sorted(wanted.keys() | found.keys())
    return [beside(n, wanted, found) for n in names if wanted.get(n) != found.get(n)]


def beside(name: str, wanted: Shapes, found: Shapes) -> Misfit:
    """One array as both sides have it."""
    what = "missing" if name not in found else "shape" if name in wanted else "unexpected"
    theirs, ours = (name if name in side else None for side in (found, wanted))
    return Misfit(what, theirs, found.get(name), ours, wanted.get(name))


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lines of a table, the last of them how many more there are."""
    shown = [head, *rows[:_SHOWN]]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    for row in shown:
        yield "  " + "  ".join(f"{c:{w}}" for c, w in zip(row, widths, strict=True)).rstrip()
    if len(rows) > _SHOWN:
        yield f"  ... and {len(rows) - _SHOWN} more"


def shape_text(shape: tuple[int, ...] | None) -> str:
    """A shape as tables have it."""
    return "-" if shape is None else "x".join(map(str, shape)) or "one number"


def check_finite(place: object, arrays: Arrays) -> None:
    """Raises RunError, which begins with `place`, where an array holds numbers that are not finite."""
    import numpy as np

    for name, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise RunError(f"{place}: {name} holds numbers that are not finite")
