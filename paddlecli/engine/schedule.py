"""Learning rates: named schedules, each a float64 function of a tick (a step or an epoch).

A schedule is bound to the length of the run and the recipe's rate, and then gives the rate of any
step; all but ``reduce_on_plateau`` have no memory, so a resumed run needs nothing but the step. A
warm-up rises linearly first; the schedule begins at its own tick 0 after it. Formulas: the
original's; ticks count from 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, Protocol

from paddlecli.config.plugins import place_of
from paddlecli.config.registry import SCHEDULES
from paddlecli.config.types import Count, Natural, NonNegative, Positive
from paddlecli.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np

    Rates = np.ndarray[Any, np.dtype[np.float64]]

By = Literal["step", "epoch"]


@dataclass(frozen=True)
class Run:
    """Length of a run: all its steps, and those of one epoch."""

    total_steps: int
    steps_per_epoch: int

    def ticks(self, by: By) -> int:
        """Its length in steps or (started) epochs."""
        return (
            self.total_steps
            if by == "step"
            else -(-self.total_steps // max(self.steps_per_epoch, 1))
        )


@dataclass(frozen=True)
class Curve:
    """A schedule without memory: the rate at each tick. A `level` one has the same rate at all."""

    rate: Callable[[int], float]
    by: By = "step"
    level: bool = False


class Settings(Protocol):
    """What is read of the recipe's optimizer section (``paddlecli.config.schema.Optimizer``)."""

    @property
    def learning_rate(self) -> float: ...
    @property
    def schedule(self) -> Any: ...  # name, arguments, warmup (steps, start); or None


class Schedule:
    """The rate of every step of a run: ``schedule(step)``, or ``rates(start, count)`` for a
    request."""

    def __init__(
        self,
        curve: Curve | Plateau,
        run: Run,
        rate: float,
        warmup_steps: int = 0,
        warmup_start: float = 0.0,
    ) -> None:
        self._curve, self._run, self._rate = curve, run, rate
        self._warmup_steps, self._warmup_start = warmup_steps, warmup_start

    def __call__(self, step: int) -> float:
        """The learning rate of step ``step`` (from 0)."""
        if step < self._warmup_steps:
            return (
                self._warmup_start + (self._rate - self._warmup_start) * step / self._warmup_steps
            )
        step -= self._warmup_steps
        if isinstance(self._curve, Plateau):
            return self._curve.rate
        tick = step if self._curve.by == "step" else step // max(self._run.steps_per_epoch, 1)
        return _checked(self._curve.rate(tick), self._curve.rate)

    def rates(self, start: int, count: int) -> Rates:
        """The rates of steps start .. start + count - 1, float64 [count]."""
        import numpy as np

        if isinstance(self._curve, Curve) and self._curve.level and start >= self._warmup_steps:
            return np.full(count, self(start))
        return np.fromiter((self(s) for s in range(start, start + count)), np.float64, count)

    @property
    def monitor(self) -> str | None:
        """The metric to :meth:`observe` after each evaluation (``test.loss``); None where the
        schedule watches none."""
        return self._curve.monitor if isinstance(self._curve, Plateau) else None

    def observe(self, value: float) -> None:
        """Tells the newest value of the watched metric."""
        if isinstance(self._curve, Plateau):
            self._curve.observe(value)

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint saves; empty for a schedule without memory."""
        return self._curve.state_dict() if isinstance(self._curve, Plateau) else {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from what :meth:`state_dict` gave."""
        if isinstance(self._curve, Plateau):
            self._curve.load_state_dict(state)


def make_schedule(settings: Settings, run: Run) -> Schedule:
    """The schedule of a recipe's optimizer section; a constant rate where it has none.

    Raises:
        ConfigError: no schedule has that name, or its arguments do not fit.
    """
    section, rate = settings.schedule, settings.learning_rate
    if section is None:
        return Schedule(constant(run, rate), run, rate)
    warmup = section.warmup
    steps, start = (0, 0.0) if warmup is None else (warmup.steps, warmup.start)
    rest = Run(max(run.total_steps - steps, 0), run.steps_per_epoch)
    arguments = SCHEDULES.bind(section.name, section.arguments)
    function = SCHEDULES.get(section.name).function
    curve = function(rest, rate, **arguments)
    if not isinstance(curve, Curve | Plateau):
        got = f"must return a Curve, not {type(curve).__name__}"
        raise ConfigError(
            f"the schedule `{section.name}` {got}: it is written in {place_of(function)}"
        )
    return Schedule(curve, run, rate, steps, start)


def _checked(rate: Any, function: Callable[[int], float]) -> float:
    """A rate that a schedule, of a user's perhaps, gave.

    Raises:
        ConfigError: it is no number that a step can take.
    """
    if isinstance(rate, Real) and 0 <= (number := float(rate)) < math.inf:
        return number
    text = f"a schedule gave the learning rate {rate!r}: a finite number, at least 0, is needed"
    raise ConfigError(f"{text}; it is written in {place_of(function)}")


# ---- the schedules: (length after the warm-up, the recipe's rate, *, arguments) -> curve ----


@SCHEDULES.register("constant")
def constant(run: Run, rate: float) -> Curve:
    """The same rate always; for a warm-up without anything after it.

    rate"""
    return Curve(lambda t: rate, level=True)


@SCHEDULES.register("cosine")
def cosine(
    run: Run, rate: float, *, steps: Count | None = None, end: NonNegative = 0.0, by: By = "step"
) -> Curve:
    """Half a cosine from the rate to `end` over `steps` ticks, the whole run if left out; it rises
    again after that.

    end + (rate - end) * (1 + cos(pi * t / steps)) / 2"""
    length = steps or max(run.ticks(by), 1)
    return Curve(lambda t: end + (rate - end) * (1.0 + math.cos(math.pi * t / length)) / 2.0, by)


@SCHEDULES.register("noam")
def noam(
    run: Run, rate: float, *, d_model: Count, warmup_steps: Count, first: Natural = 1
) -> Curve:
    """A straight rise over `warmup_steps`, then a fall with the root of the step (Vaswani et al.
    2017); t counts from `first` (0 is the 2.x form: no move at step 0).

    rate * d_model^-1/2 * min(t^-1/2, t * warmup_steps^-3/2)"""

    def at(step: int) -> float:
        t = step + first
        if t == 0:
            return 0.0
        return rate / math.sqrt(d_model) * min(1.0 / math.sqrt(t), t / math.sqrt(warmup_steps**3))

    return Curve(at)


@SCHEDULES.register("exponential")
def exponential(
    run: Run,
    rate: float,
    *,
    decay_rate: Positive,
    decay_steps: Count = 1,
    staircase: bool = False,
    by: By = "step",
) -> Curve:
    """A factor of `decay_rate` every `decay_steps` ticks, little by little; `staircase` takes whole
    exponents only.

    rate * decay_rate^(t / decay_steps)"""
    return Curve(lambda t: rate * decay_rate ** _part(t, decay_steps, staircase), by)


@SCHEDULES.register("natural_exp")
def natural_exp(
    run: Run,
    rate: float,
    *,
    decay_rate: NonNegative,
    decay_steps: Count = 1,
    staircase: bool = False,
    by: By = "step",
) -> Curve:
    """An exponential fall; `staircase` takes whole quotients only.

    rate * e^(-decay_rate * t / decay_steps)"""
    return Curve(lambda t: rate * math.exp(-decay_rate * _part(t, decay_steps, staircase)), by)


@SCHEDULES.register("inverse_time")
def inverse_time(
    run: Run,
    rate: float,
    *,
    decay_rate: NonNegative,
    decay_steps: Count = 1,
    staircase: bool = False,
    by: By = "step",
) -> Curve:
    """A fall with the inverse of time; `staircase` takes whole quotients only.

    rate / (1 + decay_rate * t / decay_steps)"""
    return Curve(lambda t: rate / (1.0 + decay_rate * _part(t, decay_steps, staircase)), by)


@SCHEDULES.register("polynomial")
def polynomial(
    run: Run,
    rate: float,
    *,
    steps: Count | None = None,
    end: NonNegative = 1e-4,
    power: Positive = 1.0,
    cycle: bool = False,
    by: By = "step",
) -> Curve:
    """From the rate to `end` over `steps` ticks, the whole run if left out, straight where `power` is
    1; then `end`, or with `cycle` again from above over the next multiple of `steps`.

    (rate - end) * (1 - t / steps)^power + end"""
    length = steps or max(run.ticks(by), 1)

    def at(t: int) -> float:
        whole = length * max(-(-t // length), 1) if cycle else length
        return (rate - end) * math.pow(1.0 - min(t, whole) / whole, power) + end

    return Curve(at, by)


@SCHEDULES.register("piecewise")
def piecewise(
    run: Run,
    rate: float,
    *,
    boundaries: tuple[Count, ...],
    values: tuple[NonNegative, ...],
    by: By = "step",
) -> Curve:
    """Given `values` between given ticks, the `boundaries`; the first value is the recipe's
    learning_rate.

    values[i] before tick boundaries[i], the last value after all of them"""
    _ascending("piecewise", "boundaries", boundaries)
    if len(values) != len(boundaries) + 1:
        raise ConfigError(
            f"schedule `piecewise`: {len(boundaries)} boundaries need {len(boundaries) + 1} values "
            f"and not {len(values)}"
        )
    if values[0] != rate:
        raise ConfigError(
            f"schedule `piecewise` starts with {values[0]}, but learning_rate is {rate}"
        )
    return Curve(lambda t: values[sum(t >= b for b in boundaries)], by)


@SCHEDULES.register("step")
def step_decay(
    run: Run, rate: float, *, step_size: Count, gamma: Positive = 0.1, by: By = "epoch"
) -> Curve:
    """A factor of `gamma` every `step_size` ticks.

    rate * gamma^(t // step_size)"""
    return Curve(lambda t: rate * gamma ** (t // step_size), by)


@SCHEDULES.register("multistep")
def multistep(
    run: Run, rate: float, *, milestones: tuple[Count, ...], gamma: Positive = 0.1, by: By = "epoch"
) -> Curve:
    """A factor of `gamma` at each of the `milestones`.

    rate * gamma^(number of milestones reached)"""
    _ascending("multistep", "milestones", milestones)
    return Curve(lambda t: rate * gamma ** sum(t >= m for m in milestones), by)


@SCHEDULES.register("reduce_on_plateau")
def reduce_on_plateau(
    run: Run,
    rate: float,
    *,
    monitor: str = "test.loss",
    mode: Literal["min", "max"] = "min",
    factor: Positive = 0.1,
    patience: Natural = 10,
    threshold: NonNegative = 1e-4,
    threshold_mode: Literal["rel", "abs"] = "rel",
    cooldown: Natural = 0,
    min_rate: NonNegative = 0.0,
) -> Plateau:
    """Multiplies the rate by `factor` when `monitor` has not got better by `threshold` for more
    than `patience` evaluations.

    max(rate * factor, min_rate) after each of these; better: below best * (1 - threshold), or best - threshold
    where `threshold_mode` is abs (mode max: above, with +)"""
    if factor >= 1:
        raise ConfigError(f"schedule `reduce_on_plateau`: factor {factor} must be below 1")
    return Plateau(
        rate, monitor, mode, factor, patience, threshold, threshold_mode, cooldown, min_rate
    )


@dataclass
class Plateau:
    """The state of ``reduce_on_plateau``: what it has seen, and the rate that follows from it."""

    rate: float
    monitor: str
    mode: str
    factor: float
    patience: int
    threshold: float
    threshold_mode: str
    cooldown: int
    min_rate: float
    best: float | None = None
    bad: int = 0
    resting: int = 0

    def observe(self, value: float) -> None:
        """Takes the newest value; a value that is not finite counts as not better."""
        if self.resting > 0:
            self.resting -= 1
            return
        if self._better(value):
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        if self.bad > self.patience:
            self.resting, self.bad = self.cooldown, 0
            lower = max(self.rate * self.factor, self.min_rate)
            if self.rate - lower > 1e-8:
                self.rate = lower

    def _better(self, value: float) -> bool:
        if self.best is None:
            return math.isfinite(value)
        margin = self.threshold * (abs(self.best) if self.threshold_mode == "rel" else 1.0)
        return value < self.best - margin if self.mode == "min" else value > self.best + margin

    def state_dict(self) -> dict[str, Any]:
        """The rate, the best value and the two counters."""
        return {"rate": self.rate, "best": self.best, "bad": self.bad, "resting": self.resting}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Sets what :meth:`state_dict` gave."""
        self.rate, self.best, self.bad, self.resting = (
            state[k] for k in ("rate", "best", "bad", "resting")
        )


def _part(t: int, length: int, staircase: bool) -> float:
    return t // length if staircase else t / length


def _ascending(schedule: str, what: str, values: tuple[int, ...]) -> None:
    if any(a >= b for a, b in pairwise(values)):
        raise ConfigError(f"schedule `{schedule}`: {what} must ascend, not {list(values)}")
