"""The learning rates of a training: one schedule an optimizer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from paddlecli.compiler.artifact import Artifact
from paddlecli.config.recipe import Recipe
from paddlecli.engine.schedule import Run, Schedule, make_schedule
from paddlecli.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Columns = Sequence[tuple[int, str]]
"""Of a step's arguments those that are learning rates: place, optimizer."""


def rate_columns(artifact: Artifact) -> Columns:
    """Where the learning rates stand among a step's arguments."""
    found = enumerate(artifact.arguments)
    return [(i, a.of) for i, a in found if a.kind == "learning_rate"]


def told(columns: Columns, arguments: NDArray[np.float64]) -> dict[str, float]:
    """The learning rates among the arguments of a step, as they are reported."""
    several = len(columns) > 1
    return {
        f"learning_rate.{of}" if several else "learning_rate": float(arguments[column])
        for column, of in columns
    }


class LearningRates:
    """Called with (first step, number of steps), gives each optimizer's rates."""

    def __init__(self, recipe: Recipe, total_steps: int, steps_per_epoch: int) -> None:
        run = Run(total_steps, steps_per_epoch)
        self._schedules: dict[str, Schedule] = {
            name or "default": make_schedule(optimizer, run)
            for name, optimizer in recipe.optimizers().items()
        }

    def __call__(self, first: int, count: int) -> dict[str, NDArray[np.float64]]:
        return {name: schedule.rates(first, count) for name, schedule in self._schedules.items()}

    @property
    def watching(self) -> bool:
        """Whether rates depend on what is measured on the way."""
        return any(schedule.monitor for schedule in self._schedules.values())

    def observe(self, measured: Mapping[str, Mapping[str, float]]) -> None:
        """Tells the schedules that watch a metric what was just measured, by split.

        Raises:
            ConfigError: a watched metric of a measured split does not exist.
        """
        for schedule in self._schedules.values():
            split, _, metric = (schedule.monitor or "").partition(".")
            if split in measured:
                if metric not in measured[split]:
                    known = ", ".join(f"{split}.{name}" for name in measured[split])
                    raise ConfigError(
                        f"the schedule watches {schedule.monitor}, which is not measured",
                        hint=known,
                    )
                schedule.observe(measured[split][metric])

    def state(self) -> dict[str, dict[str, Any]]:
        """What the schedules remember."""
        return {name: schedule.state_dict() for name, schedule in self._schedules.items()}

    def restore(self, state: Mapping[str, Mapping[str, Any]]) -> None:
        """Takes what `state` gave."""
        for name, schedule in self._schedules.items():
            if name in state:
                schedule.load_state_dict(state[name])
