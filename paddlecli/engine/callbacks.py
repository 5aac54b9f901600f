"""Callbacks: Python that a recipe lets the training call between steps.

    callbacks:
      - stop_file: {}
      - my_callback: {every: 500}

A callback is a registered class (a subclass of :class:`Callback`); its keyword-only parameters are what
the recipe may give. It is called in the main thread, between requests to the core, never inside one. It
sees the training and may write files and end it, but changes no number: with and without callbacks a
training has the same bits. What it raises ends the training like any other error.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paddlecli.config.recipe import Recipe
from paddlecli.config.registry import CALLBACKS
from paddlecli.config.types import Count, Name
from paddlecli.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from paddlecli.engine.loop import Trainer
    from paddlecli.ops.spec import Spec

STATE = "callbacks"
"""Key of a checkpoint's state: what callbacks remember."""


class Callback:
    """Base of callbacks: every method does nothing, a subclass overrides what it needs.

    Attributes:
        every: `after_step` is called after each step whose number it divides; 0 for never.
    """

    every: int = 0

    def on_start(self, training: Progress) -> None:
        """Before the first step of this process, also when a run is continued."""

    def after_step(self, training: Progress) -> None:
        """After a step that `every` divides; before the events of an epoch that ends there."""

    def after_evaluation(self, training: Progress, metrics: Mapping[str, float]) -> None:
        """After the evaluation of a split, which `training.metrics` holds too."""

    def after_checkpoint(self, training: Progress, folder: Path) -> None:
        """After a checkpoint was written to a folder."""

    def on_end(self, training: Progress, status: str) -> None:
        """Once, after the last checkpoint; `completed`, `stopped`, `interrupted` or `failed`."""

    def state(self) -> dict[str, Any]:
        """What it remembers, as JSON can hold it; kept in every checkpoint."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Takes back what `state` gave, before `on_start` of a run that is continued."""


class Progress:
    """A training as callbacks see it."""

    def __init__(self, trainer: Trainer) -> None:
        self._trainer = trainer
        self.stopped = ""
        """Why a callback has ended the training; empty if none has."""

    @property
    def recipe(self) -> Recipe:
        """The recipe that is trained."""
        return self._trainer.recipe

    @property
    def run_dir(self) -> Path:
        """The run directory; files of one's own may be written there."""
        return self._trainer.means.run.path

    @property
    def step(self) -> int:
        """Steps done since the start of the training."""
        return self._trainer.place.step

    @property
    def steps(self) -> int:
        """Steps of the whole training."""
        return self._trainer.due.steps

    @property
    def epoch(self) -> int:
        """Epochs that are done."""
        return self._trainer.place.epoch

    @property
    def batch(self) -> int:
        """Batches of the present epoch that are done."""
        return self._trainer.place.batch

    @property
    def losses(self) -> Mapping[str, float]:
        """What the newest step reported (`loss`, gradient norms), by name; empty before the first."""
        return self._trainer.newest

    @property
    def metrics(self) -> Mapping[str, Mapping[str, float]]:
        """The newest metrics by split."""
        return self._trainer.place.latest

    def parameters(self) -> dict[str, NDArray[np.generic]]:
        """Copies of all parameters and states, by name."""
        return self._trainer.means.machine.arrays(self._trainer.prepared.graph)[0]

    def output(self, name: str | None = None) -> tuple[str, Spec]:
        """An output that `predict` gives, the one that the recipe reports or the first if none is named: its
        name and its symbolic shape.

        Raises:
            ConfigError: there is none of that name.
        """
        graph = self._trainer.prepared.graph
        entry = graph.entries.get(graph.roles.get("predict", ""))
        have = {} if entry is None else entry.outputs
        wanted = name or self.recipe.predict.output or next(iter(have), "")
        if wanted not in have:
            raise ConfigError(
                f"no output `{wanted}`" if wanted else "the network has no outputs to predict",
                hint=f"there are {', '.join(have)}" if have else "name some under `outputs`",
            )
        return wanted, have[wanted].spec

    def outputs(self, count: int) -> Mapping[str, NDArray[np.generic]]:
        """What `predict` would give now for the first `count` samples of the split that is evaluated (of the
        train split if none is), by output; noise is drawn as for a first step. Empty after a signal."""
        return self._trainer.outputs(count)

    def log(self, event: str, values: Mapping[str, Any]) -> None:
        """An event of a kind of its own in `metrics.jsonl`, as JSON can hold it."""
        self._trainer.means.log.add(event, self.step, values)

    def say(self, text: str) -> None:
        """A line for the log, and for whoever watches."""
        self._trainer.means.run.say(text)
        self._trainer.means.display.say(text)

    def stop(self, why: str) -> None:
        """Ends the training after this call: it is saved, reported as stopped, and may be continued."""
        self.stopped = self.stopped or why


class Callbacks:
    """All callbacks of a training."""

    def __init__(self, trainer: Trainer, callbacks: Sequence[Callback]) -> None:
        self._callbacks = callbacks
        self._stepping = [c for c in callbacks if c.every]
        self._progress = Progress(trainer)

    @property
    def stopped(self) -> str:
        """Why one of them has ended the training; empty if none has."""
        return self._progress.stopped

    def until(self, step: int) -> int | None:
        """Steps from `step` to the next one that a callback wants to see; None without any."""
        return min((c.every - step % c.every for c in self._stepping), default=None)

    def start(self) -> None:
        """Before the first step."""
        for c in self._callbacks:
            c.on_start(self._progress)

    def stepped(self, step: int) -> None:
        """After steps up to number `step`."""
        for c in self._stepping:
            if step % c.every == 0:
                c.after_step(self._progress)

    def evaluated(self, metrics: Mapping[str, float]) -> None:
        """After an evaluation."""
        for c in self._callbacks:
            c.after_evaluation(self._progress, metrics)

    def saved(self, folder: Path) -> None:
        """After a checkpoint."""
        for c in self._callbacks:
            c.after_checkpoint(self._progress, folder)

    def end(self, status: str) -> None:
        """After everything else. Where the training failed, that error is the one to tell."""
        for c in self._callbacks:
            try:
                c.on_end(self._progress, status)
            except Exception as error:
                if status != "failed":
                    raise
                self._progress.say(f"on_end: {type(error).__name__}: {error}")

    def state(self) -> dict[str, Any]:
        """What they remember, as the key of a checkpoint's state; nothing without callbacks.

        Raises:
            ConfigError: it cannot be JSON.
        """
        found = [[type(c).__name__, s] for c in self._callbacks if (s := c.state())]
        if not found:
            return {}
        try:
            json.dumps(found, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ConfigError(f"the state of a callback cannot be kept as JSON: {error}") from error
        return {STATE: found}


def make(recipe: Recipe) -> tuple[Callback, ...]:
    """The recipe's callbacks.

    Raises:
        ConfigError: one of them is none.
    """
    found = []
    for index, call in enumerate(recipe.callbacks):
        made = CALLBACKS.get(call.call).function(**CALLBACKS.bind(call.call, call.arguments))
        every = getattr(made, "every", None)
        if not isinstance(made, Callback) or not isinstance(every, int) or every < 0:
            what = (
                f"`every` is {every!r}, must be a number of steps or 0"
                if isinstance(made, Callback)
                else f"gave {type(made).__name__}, not a Callback"
            )
            where = [recipe.where(("callbacks", index))]
            raise ConfigError(f"the callback `{call.call}`: {what}", where=where)
        found.append(made)
    return tuple(found)


def restore(callbacks: Sequence[Callback], state: Mapping[str, Any]) -> None:
    """Gives callbacks back what those of their class, in the same order, remembered in a checkpoint's
    state; one that is new begins anew."""
    found = list(state.get(STATE, ()))
    for callback in callbacks:
        own = next((s for s in found if s[0] == type(callback).__name__), None)
        if own is not None:
            found.remove(own)
            callback.restore(own[1])


# ---- callbacks for everybody ----
@CALLBACKS.register("stop_file")
class StopFile(Callback):
    """Ends the training when a file of this name appears in the run directory (`touch RUN/stop`), looked
    for every so many steps and at every evaluation."""

    def __init__(self, *, file: Name = "stop", every: Count = 100) -> None:
        self.file, self.every = file, every

    def after_step(self, training: Progress) -> None:
        """Looks for the file."""
        if (training.run_dir / self.file).exists():
            training.stop(f"the file {self.file} is there")

    def after_evaluation(self, training: Progress, metrics: Mapping[str, float]) -> None:
        """Looks for the file."""
        self.after_step(training)


@CALLBACKS.register("parameter_norms")
class ParameterNorms(Callback):
    """Writes the root mean square of every parameter to `parameter_norms.jsonl` in the run directory, a
    line every so many steps: what grows or dies shows there."""

    def __init__(self, *, every: Count = 100) -> None:
        self.every = every
        self._file: Callable[[Progress], Path] = lambda t: t.run_dir / "parameter_norms.jsonl"

    def on_start(self, training: Progress) -> None:
        """Drops the lines behind the step that a run is continued from."""
        file = self._file(training)
        if file.is_file():
            lines = file.read_text("utf-8").splitlines(keepends=True)
            kept = [line for line in lines if json.loads(line)["step"] <= training.step]
            file.write_text("".join(kept), "utf-8")

    def after_step(self, training: Progress) -> None:
        """Writes a line."""
        import numpy as np

        norms = {
            name: float(np.sqrt(np.mean(np.square(value, dtype=np.float64))))
            for name, value in training.parameters().items()
            if value.dtype.kind == "f" and value.size
        }
        with self._file(training).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"step": training.step, **norms}) + "\n")
