"""How far a training is: what a checkpoint's state.json holds beside the arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from paddlecli.engine.averages import Averages, as_json
from paddlecli.errors import RunError

FORMAT = 2


@dataclass
class Best:
    """The best monitored value so far, and what was measured with it."""

    value: float
    step: int
    epoch: int
    metrics: dict[str, dict[str, float]]


@dataclass
class Place:
    """Where in the training.

    Attributes:
        step: iterations done.
        epoch: complete epochs.
        batch: batches done of the epoch in progress.
        closed: the end that `train.max_steps` made inside an epoch was reported.
        samples: samples trained on so far.
        latest: newest metrics by split.
        measured: step of the newest evaluation, -1 before the first.
        best: by the monitor.
        lead: the value that early stopping compares with.
        stall: measurements in a row that were no better than it.
        schedules: what learning rate schedules remember.
        averages: sums over the epoch in progress.
    """

    step: int = 0
    epoch: int = 0
    batch: int = 0
    closed: bool = False
    samples: int = 0
    latest: dict[str, dict[str, float]] = field(default_factory=dict)
    measured: int = -1
    best: Best | None = None
    lead: float | None = None
    stall: int = 0
    schedules: dict[str, dict[str, Any]] = field(default_factory=dict)
    averages: Averages = field(default_factory=Averages)

    def state(self) -> dict[str, Any]:
        """Plain data."""
        found = {k: v for k, v in vars(self).items() if k not in ("best", "averages", "latest")}
        best = None
        if self.best is not None:
            best = {**asdict(self.best), "metrics": _encoded(self.best.metrics)}
        latest = _encoded(self.latest)
        return {
            "format": FORMAT,
            **found,
            "lead": None if self.lead is None else as_json(self.lead),
            "latest": latest,
            "best": best,
            "averages": self.averages.state(),
        }

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> Place:
        """The place that a checkpoint was saved at.

        Raises:
            RunError: written by another version.
        """
        if state.get("format") != FORMAT:
            raise RunError(
                f"the checkpoint's state has format {state.get('format')}, this version reads {FORMAT}"
            )
        known = {
            k: state[k]
            for k in (
                "step",
                "epoch",
                "batch",
                "closed",
                "samples",
                "measured",
                "stall",
                "schedules",
            )
        }
        lead = state["lead"]
        averages = Averages()
        averages.restore(state["averages"])
        best = state["best"]
        if best is not None:
            best = Best(**{**best, "metrics": _decoded(best["metrics"])})
        return cls(
            **known,
            latest=_decoded(state["latest"]),
            best=best,
            lead=None if lead is None else float(lead),
            averages=averages,
        )


def _encoded(metrics: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float | str]]:
    return {split: {k: as_json(v) for k, v in values.items()} for split, values in metrics.items()}


def _decoded(metrics: Mapping[str, Mapping[str, float | str]]) -> dict[str, dict[str, float]]:
    return {split: {k: float(v) for k, v in values.items()} for split, values in metrics.items()}


def better(value: float, best: float | None, smaller: bool) -> bool:
    """Whether a monitored value beats the best one; NaN never does."""
    if value != value:
        return False
    return best is None or (value < best if smaller else value > best)
