"""What a training leaves behind for its user: the result, what was expected, the next commands."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from paddlecli.config.recipe import Recipe
from paddlecli.engine.files import flagged

if TYPE_CHECKING:
    from paddlecli.engine.machine import ProfileRow
    from paddlecli.engine.watch import Reason

Status = Literal["completed", "stopped", "interrupted", "failed"]
Metrics = Mapping[str, Mapping[str, float]]
_HARMLESS = (
    "name", "description", "train.seed", "train.log_every", "train.eval_every", "checkpoint", "expect", "predict",
)  # fmt: skip


@dataclass(frozen=True)
class Expectation:
    """One line of a recipe's `expect:` and what came of it.

    Attributes:
        value: None when it was not measured.
        changed: the run's settings are not the recipe's, so the value need not lie in the range.
    """

    name: str
    low: float | None
    high: float | None
    value: float | None
    changed: bool = False

    @property
    def met(self) -> bool:
        """Whether the value lies in the range."""
        if self.value is None or math.isnan(self.value):
            return False
        return (self.low is None or self.value >= self.low) and (
            self.high is None or self.value <= self.high
        )

    def text(self) -> str:
        """One line."""
        if self.low is None or self.high is None:
            wanted = f"at least {self.low:g}" if self.low is not None else f"at most {self.high:g}"
        else:
            wanted = f"{self.low:g} to {self.high:g}"
        if self.value is None:
            return f"expected {self.name} {wanted}: not measured"
        if self.changed:
            return (
                f"expected {self.name} {wanted} (for the recipe as it stands): {number(self.value)}"
            )
        return f"expected {self.name} {wanted}: {'met' if self.met else 'NOT met'} ({number(self.value)})"


@dataclass(frozen=True)
class Result:
    """How a training ended.

    Attributes:
        reason: why it ended; None where it failed.
        epochs: complete passes over the data, those before a resume included; `steps` likewise.
        seconds: time of this process's training; `samples_per_second` is of the training steps alone.
        metrics: by split; `train` is the last epoch's mean by sample, the evaluated split is of the saved parameters.
        best: of what is watched: `metric`, `mode`, `value`, `step`, `epoch` and all `metrics` measured with it.
        exit_code: of the command: 0, or 130 or 143 after a signal.
        saved: which parameters `model/` holds.
        roles: what the network's entries can do: `evaluate`, `predict`.
        profile: time by kernel, where it was asked for.
    """

    status: Status
    run_dir: Path
    epochs: int
    steps: int
    seconds: float
    samples_per_second: float
    metrics: Metrics
    reason: Reason | None = None
    best: Mapping[str, Any] | None = None
    exit_code: int = 0
    saved: str = ""
    roles: frozenset[str] = frozenset()
    profile: tuple[ProfileRow, ...] = ()
    expectations: tuple[Expectation, ...] = ()
    notes: tuple[str, ...] = field(default=())

    def as_dict(self) -> dict[str, Any]:
        """The object that `train --json` prints."""
        return flagged({
            "schema": 1,
            "status": self.status,
            "reason": self.reason,
            "run_dir": str(self.run_dir),
            "epochs": self.epochs,
            "steps": self.steps,
            "seconds": round(self.seconds, 3),
            "samples_per_second": round(self.samples_per_second, 1),
            "metrics": self.metrics,
            "best": None if self.best is None else {k: v for k, v in self.best.items() if k != "metrics"},
            "saved": self.saved,
        })  # fmt: skip

    def text(self) -> str:
        """The lines at the end of a training."""
        head = f"{self.status} after {plural(self.epochs, 'epoch')}, {plural(self.steps, 'step')}, {self.seconds:.1f} s"
        lines = [f"{head} ({self.samples_per_second:,.0f} samples/s)"]
        splits = sorted(self.metrics, key=lambda split: (split != "train", split))
        lines += [
            f"{split:9} {listed(self.metrics[split])}" for split in splits if self.metrics[split]
        ]
        lines += [e.text() for e in self.expectations]
        lines += self.notes
        run = shlex.quote(str(self.run_dir))
        lines += [
            f"saved     {self.saved}" if self.saved else "nothing was saved",
            f"run       {self.run_dir}",
        ]
        return "\n".join([*lines, *self._next(run)])

    def _next(self, run: str) -> list[str]:
        """Commands that can be given now."""
        if not self.saved:
            return []
        longer = {
            "epochs": f" -o train.epochs={self.epochs + max(1, self.epochs // 2)}",
            "max_steps": f" -o train.max_steps={2 * self.steps}",
            "early_stopping": " -o ~early_stopping",
            "stop_when": " -o ~train.stop_when",
        }
        more = longer.get(str(self.reason), "")
        look = f"look      paddlecli runs show {run}"
        resume = f"go on     paddlecli train --resume {run}{more}"
        return ["", *commands(run, self.roles), look, resume]


def commands(run: str, roles: frozenset[str]) -> Iterator[str]:
    """Lines with what can be done with a model; `run` is quoted for the shell."""
    uses = {
        "evaluate": f"paddlecli evaluate {run}",
        "predict": f"paddlecli predict {run} {'--samples 64' if 'samples' in roles else 'INPUT'}",
    }
    yield from (f"{role:9} {line}" for role, line in uses.items() if role in roles)


def expectations(
    recipe: Recipe, metrics: Metrics, changed: bool = False
) -> tuple[Expectation, ...]:
    """What the recipe expects, beside what came out of its settings, or of `changed` ones."""
    found = []
    for name, bounds in recipe.expect.items():
        split, _, metric = name.partition(".")
        value = metrics.get(split, {}).get(metric)
        found.append(Expectation(name, bounds.min, bounds.max, value, changed))
    return tuple(found)


def matters(key: str) -> bool:
    """Whether an override of that key may lead to other results than the recipe promises. Another seed may not."""
    return not any(key == k or key.startswith(f"{k}.") for k in _HARMLESS)


def listed(values: Mapping[str, float]) -> str:
    """`loss 16.94  accuracy 0.9876`: the loss first."""
    order = sorted(values, key=lambda k: (k != "loss", k))
    return "  ".join(f"{k} {number(values[k])}" for k in order)


def number(value: float) -> str:
    """Five digits that count."""
    return f"{value:.5g}"


def plural(count: int, noun: str, several: str = "") -> str:
    """`1 epoch`, `2 epochs`, `2 batches`."""
    return f"{count:,} {noun if count == 1 else several or f'{noun}s'}"
