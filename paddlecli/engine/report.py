"""What a training leaves behind for its user: the result, what was expected, the next commands."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from paddlecli.config.recipe import Recipe
from paddlecli.engine.files import flagged

if TYPE_CHECKING:
    from paddlecli.engine.machine import ProfileRow

Status = Literal["completed", "stopped", "interrupted", "failed"]
Metrics = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Expectation:
    """One line of a recipe's `expect:` and what came of it; `value` is None when it was not measured."""

    name: str
    low: float | None
    high: float | None
    value: float | None

    @property
    def met(self) -> bool:
        """Whether the value lies in the range."""
        if self.value is None or math.isnan(self.value):
            return False
        return (self.low is None or self.value >= self.low) and (self.high is None or self.value <= self.high)

    def text(self) -> str:
        """One line."""
        if self.low is None or self.high is None:
            wanted = f"at least {self.low:g}" if self.low is not None else f"at most {self.high:g}"
        else:
            wanted = f"{self.low:g} to {self.high:g}"
        if self.value is None:
            return f"expected {self.name} {wanted}: not measured"
        return f"expected {self.name} {wanted}: {'met' if self.met else 'NOT met'} ({number(self.value)})"


@dataclass(frozen=True)
class Result:
    """How a training ended.

    Attributes:
        epochs: complete passes over the data, those before a resume included; `steps` likewise.
        seconds: time of this process's training; `samples_per_second` is of the training steps alone.
        metrics: by split; `train` is the last epoch's mean by sample, the evaluated split is of the saved parameters.
        exit_code: of the command: 0, or 130 or 143 after a signal.
        saved: which parameters `model/` holds.
        profile: time by kernel, where it was asked for.
    """

    status: Status
    run_dir: Path
    epochs: int
    steps: int
    seconds: float
    samples_per_second: float
    metrics: Metrics
    exit_code: int = 0
    saved: str = ""
    profile: tuple[ProfileRow, ...] = ()
    expectations: tuple[Expectation, ...] = ()
    notes: tuple[str, ...] = field(default=())

    def as_dict(self) -> dict[str, Any]:
        """The object that `train --json` prints."""
        return flagged({
            "schema": 1,
            "status": self.status,
            "run_dir": str(self.run_dir),
            "epochs": self.epochs,
            "steps": self.steps,
            "seconds": round(self.seconds, 3),
            "samples_per_second": round(self.samples_per_second, 1),
            "metrics": self.metrics,
        })  # fmt: skip

    def text(self) -> str:
        """The lines at the end of a training."""
        head = f"{self.status} after {plural(self.epochs, 'epoch')}, {plural(self.steps, 'step')}, {self.seconds:.1f} s"
        lines = [f"{head} ({self.samples_per_second:,.0f} samples/s)"]
        splits = sorted(self.metrics, key=lambda split: (split != "train", split))
        lines += [f"{split:9} {listed(self.metrics[split])}" for split in splits if self.metrics[split]]
        lines += [e.text() for e in self.expectations]
        lines += self.notes
        run = shlex.quote(str(self.run_dir))
        lines += [f"saved     {self.saved}" if self.saved else "nothing was saved", f"run       {self.run_dir}"]
        if self.saved:
            lines += [
                "",
                f"evaluate  paddlecli evaluate {run}",
                f"predict   paddlecli predict {run} INPUT",
                f"go on     paddlecli train --resume {run} -o train.epochs={self.epochs + max(1, self.epochs // 2)}"
                if self.status == "completed"
                else f"go on     paddlecli train --resume {run}",
            ]
        return "\n".join(lines)


def expectations(recipe: Recipe, metrics: Metrics) -> tuple[Expectation, ...]:
    """What the recipe expects, beside what came out."""
    found = []
    for name, bounds in recipe.expect.items():
        split, _, metric = name.partition(".")
        found.append(Expectation(name, bounds.min, bounds.max, metrics.get(split, {}).get(metric)))
    return tuple(found)


def listed(values: Mapping[str, float]) -> str:
    """`loss 16.94  accuracy 0.9876`: the loss first."""
    order = sorted(values, key=lambda k: (k != "loss", k))
    return "  ".join(f"{k} {number(values[k])}" for k in order)


def number(value: float) -> str:
    """Five digits that count."""
    return f"{value:.5g}"


def plural(count: int, noun: str) -> str:
    """`1 epoch`, `2 epochs`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
