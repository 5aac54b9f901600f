"""Numbers that are not finite: what is told of the step that met them, and that they are never saved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paddlecli.engine.rundir import RunDir
from paddlecli.errors import NumericalError

_ROWS = 8  # shown of a batch


def halted(step: int, rows: list[int], numbers: Mapping[str, float], run: RunDir) -> NumericalError:
    """The error of a step that was not made.

    Args:
        step: steps before it.
        rows: of the training data, its batch.
        numbers: what it reported, by name, without the flag.
        run: where the last good checkpoint is.
    """
    more = f" ... ({len(rows)} rows)" if len(rows) > _ROWS else ""
    shown = ", ".join(map(str, rows[:_ROWS])) + more
    fine = all(np.isfinite(value) for value in numbers.values())
    what = "a gradient is not finite, though the loss is" if fine else "the loss is not finite"
    return NumericalError(
        f"step {step + 1}: {what} (rows {shown} of the training data); the update was not made; {_last_good(run)}",
        hint="a smaller learning rate, gradient clipping or cleaner data may help; the rows are in metrics.jsonl",
    )


def check(model: Mapping[str, NDArray[Any]], step: int, run: RunDir) -> None:
    """A step whose loss and gradients were finite may still have taken a parameter beyond all bounds: that is never saved.

    Raises:
        NumericalError: names the first such array.
    """
    for name, value in model.items():
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            raise NumericalError(
                f"step {step}: {name} is not finite, though the loss was; {_last_good(run)}",
                hint="a smaller learning rate or gradient clipping may help",
            )


def _last_good(run: RunDir) -> str:
    kept = list(run.checkpoints.glob("step-*"))
    if not kept:
        return "no checkpoint had been saved before it"
    return f"the last good checkpoint is {max(kept).name}"
