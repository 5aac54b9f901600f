"""What the recurrent ops share: activations by number, scratch, and a reference that walks one sequence at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from paddlecli.ops._attrs import integer
from paddlecli.ops.base import Attr, check
from paddlecli.ops.spec import Dim, Spec

if TYPE_CHECKING:
    import numpy as np

ACTIVATIONS = ("sigmoid", "tanh", "relu", "identity")
"""What activation attributes count; in the order of ``core/cpu/recurrences.h``."""


def check_activations(op: str, attrs: Mapping[str, Attr], *names: str) -> None:
    """Each is an index into :data:`ACTIVATIONS`."""
    for name in names:
        known = 0 <= integer(attrs, name) < len(ACTIVATIONS)
        check(known, op, f"{name} activation {attrs[name]} is unknown")


def check_start(op: str, name: str, start: Spec | None, x: Spec, width: int) -> None:
    """Start values have one row a sequence."""
    if start is None or x.axis is None:
        return
    wanted = Spec.of(x.axis.sequences, width)
    check(start.shape == wanted.shape, op, f"{name} is {start}, expected {wanted}")


def scratch(x: Spec, row: int, *matrices: tuple[int, int]) -> dict[str, Spec]:
    """Room for the order of sequences, ``row`` floats for each, and packed matrices [k, n]."""
    assert x.axis is not None
    n = x.axis.sequences
    floats = sum(-(-columns // 32) * 32 * rows for rows, columns in matrices)
    return {
        "work_order": Spec.of(n, dtype="i64"),
        "work_rows": Spec.of(n, row),
        "work_panels": Spec.of(floats),
    }


def every_row(rows: Dim) -> Dim:
    """Of rows of a scan's step those of all steps: the size for a kernel that runs behind the loop."""
    if rows.symbol is None or rows.symbol.kind != "step_rows":
        return rows
    assert rows.symbol.axis is not None
    return rows.symbol.axis.total * rows.coefficient


def activation(number: int) -> Callable[[np.ndarray], np.ndarray]:
    """The function of an activation's number, in float64."""
    import numpy as np

    found: tuple[Callable[[Any], Any], ...] = (
        lambda v: 1 / (1 + np.exp(-v)),
        np.tanh,
        lambda v: np.maximum(v, 0),
        lambda v: v,
    )
    return found[number]


def walk(offsets: np.ndarray, reverse: bool, step: Callable[[int, int, int], None]) -> None:
    """Calls ``step(sequence, token, token before or -1)`` in the order of time."""
    for s in range(len(offsets) - 1):
        tokens = range(int(offsets[s]), int(offsets[s + 1]))
        before = -1
        for t in reversed(tokens) if reverse else tokens:
            step(s, t, before)
            before = t
