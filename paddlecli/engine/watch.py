"""What a training watches: which parameters are the best, when a metric no longer gets better, when it is good enough.

Nothing is remembered here: what a decision needs stands in `Place`, so a resumed training decides as if it had never stopped.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from paddlecli.config.recipe import Recipe
from paddlecli.config.schema import CONDITION, Mode
from paddlecli.engine.place import Best, Place, better

Reason = Literal[
    "epochs", "max_steps", "early_stopping", "stop_when", "callback", "max_time", "signal"
]
"""Why a training ended."""
Metrics = Mapping[str, Mapping[str, float]]
_MODES: dict[str, Mode] = {
    **dict.fromkeys(("loss", "error", "mae", "mse", "rmse", "perplexity", "distance"), "min"),
    **dict.fromkeys(
        ("accuracy", "auc", "f1", "precision", "recall", "r2", "bleu", "top", "iou"), "max"
    ),
}
_SIGNS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def usual_mode(name: str) -> Mode | None:
    """Which way a metric is better, where its name says so: `min` for `test.loss`, `max` for `macro_f1`."""
    words = name.rpartition(".")[2].removesuffix("_batch_mean").split("_")
    return _MODES.get(words[-1]) or _MODES.get(words[-1].rstrip("0123456789"))


@dataclass(frozen=True)
class Watched:
    """A metric of a split, and whether a smaller value is a better one."""

    name: str
    smaller: bool

    def value(self, measured: Metrics) -> float | None:
        """Its value among metrics by split, None where it was not measured."""
        split, _, metric = self.name.partition(".")
        return measured.get(split, {}).get(metric)


@dataclass(frozen=True)
class Goal:
    """A recipe's `train.stop_when`."""

    name: str
    sign: str
    bound: float

    @classmethod
    def of(cls, text: str) -> Goal:
        """Reads what the schema lets through: `test.accuracy >= 0.98`."""
        if re.fullmatch(CONDITION, text) is None:
            raise ValueError(f"{text!r} is no condition")
        name, sign, bound = re.split(r" *(<=|>=|<|>) *", text)
        return cls(name, sign, float(bound))

    def met(self, measured: Metrics) -> bool:
        """Whether the newest metrics by split fulfil it; NaN and what was not measured do not."""
        split, _, metric = self.name.partition(".")
        value = measured.get(split, {}).get(metric)
        return value is not None and bool(_SIGNS[self.sign](value, self.bound))


@dataclass(frozen=True)
class Watch:
    """All that a recipe watches, resolved.

    Attributes:
        best: what decides which parameters `model/` holds; None takes the last.
        early: what must get better by more than `min_delta` once in `patience` measurements.
        goal: what ends the training when it is reached.
    """

    best: Watched | None = None
    early: Watched | None = None
    patience: int = 0
    min_delta: float = 0.0
    goal: Goal | None = None

    def observe(self, place: Place, epoch: int, measured: Metrics) -> tuple[float | None, bool]:
        """Takes what was just measured into the place.

        Args:
            epoch: in which; the first is 1.
            measured: by split, without what is older.

        Returns:
            The value that decides what is best, if it was measured, and whether it is better than all before it.
        """
        if self.early is not None:
            self._early(place, self.early.value(measured))
        value = None if self.best is None else self.best.value(measured)
        old = None if place.best is None else place.best.value
        if self.best is None or value is None or not better(value, old, self.best.smaller):
            return value, False
        metrics = {split: dict(values) for split, values in place.latest.items()}
        place.best = Best(value, place.step, epoch, metrics)
        return value, True

    def _early(self, place: Place, value: float | None) -> None:
        assert self.early is not None
        if value is None:
            return
        margin = self.min_delta if self.early.smaller else -self.min_delta
        if better(value + margin, place.lead, self.early.smaller):
            place.lead, place.stall = value, 0
        else:
            place.stall += 1

    def best_of(self, place: Place) -> dict[str, Any] | None:
        """The best measurement so far, and what it was of: `metric`, `mode`, `value`, `step`, `epoch`, `metrics`."""
        if self.best is None or place.best is None:
            return None
        mode: Mode = "min" if self.best.smaller else "max"
        return {**asdict(place.best), "metric": self.best.name, "mode": mode}

    def reason(self, place: Place) -> Reason | None:
        """Why the training ends at this place before its last epoch; None when it goes on."""
        if self.early is not None and place.stall >= self.patience:
            return "early_stopping"
        if self.goal is not None and self.goal.met(place.latest):
            return "stop_when"
        return None

    def told(self, place: Place) -> str:
        """The reason as a sentence; empty without one."""
        reason = self.reason(place)
        if reason == "early_stopping" and self.early is not None:
            lead = "nothing" if place.lead is None else f"{place.lead:.6g}"
            by = f" by more than {self.min_delta:g}" if self.min_delta else ""
            times = f"{place.stall} measurement{'s' * (place.stall != 1)}"
            return f"stopped early: {self.early.name} was not better than {lead}{by} in {times}"
        if reason == "stop_when" and self.goal is not None:
            value = Watched(self.goal.name, True).value(place.latest)
            return f"stopped: {self.goal.name} is {value:.6g}, {self.goal.sign} {self.goal.bound:g}"
        return ""


def monitors(recipe: Recipe) -> tuple[str | None, str | None]:
    """The metric that decides what is best, and the one that early stopping watches; the second serves for both."""
    early = None if recipe.early_stopping is None else recipe.early_stopping.monitor
    return recipe.checkpoint.monitor or early, early
