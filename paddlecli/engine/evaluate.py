"""`evaluate`: a saved model measured on a split of its data, by training's own code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paddlecli.compiler.pipeline import compile_graph
from paddlecli.config.nodes import close_names
from paddlecli.config.plugins import CodeFile
from paddlecli.config.recipe import Recipe
from paddlecli.data.columns import Dataset, Split
from paddlecli.engine import modeldir, stored
from paddlecli.engine.evaluation import Evaluator, Measured
from paddlecli.engine.files import flagged
from paddlecli.engine.interrupts import Signals, Worker
from paddlecli.engine.machine import Machine
from paddlecli.engine.outside import outside_of
from paddlecli.engine.passes import passes_for
from paddlecli.engine.prepare import data_of, evaluated
from paddlecli.engine.rundir import RunDir
from paddlecli.errors import ConfigError, Interrupted, MetricError, UsageError

Bounds = Mapping[str, float]


@dataclass(frozen=True)
class Evaluation:
    """What `evaluate` found.

    Attributes:
        run_dir: the run; `model` says which of its parameters were measured.
        split: the split; `samples` how many it has.
        metrics: by name.
        missed: a sentence for each demand that a metric does not meet.
    """

    run_dir: Path
    model: str
    split: str
    samples: int
    metrics: Mapping[str, float]
    missed: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The object that `evaluate --json` prints."""
        return flagged({
            "schema": 1,
            "run_dir": str(self.run_dir),
            "model": self.model,
            "split": self.split,
            "samples": self.samples,
            "metrics": self.metrics,
        })  # fmt: skip

    def text(self) -> str:
        """Lines with all digits that count; the loss first."""
        order = sorted(self.metrics, key=lambda name: (name != "loss", name))
        numbers = (f"{name}: {self.metrics[name]:.9g}" for name in order)
        return "\n".join([f"{self.split}: {self.samples} samples", *numbers])

    def demand(self) -> None:
        """Raises MetricError where a demand is missed."""
        if self.missed:
            raise MetricError("; ".join(self.missed))


def evaluate(
    run: RunDir,
    split: str | None = None,
    *,
    batch_size: int | None = None,
    least: Bounds | None = None,
    most: Bounds | None = None,
    threads: int | None = None,
    say: Callable[[str], None] = lambda text: None,
    code: Sequence[CodeFile] = (),
) -> Evaluation:
    """The metrics of a run's saved parameters.

    Args:
        run: the run.
        split: the one that training evaluates if None; with `train.overfit` those are the training samples.
        batch_size: of the recipe if None; no metric but `<loss>_batch_mean` depends on it.
        least: demanded values, `accuracy` or `test.accuracy`; `most` likewise. `Evaluation.missed` says what came of them.
        say: is told what a user should know.
        code: the user code that was loaded for it.

    Raises:
        RunError: nothing was saved yet, or `model/` is damaged.
        DataError: the data are missing, or have no such split.
        ConfigError: the network has nothing to evaluate.
        UsageError: a metric is demanded that is not measured; nothing was run.
    """
    with stored.asking_for_code(run, code):
        model = modeldir.open_model(run.model)
    name = model.graph.roles.get("evaluate")
    if name is None:
        raise ConfigError(f"{run.path}: this network has no loss to evaluate")
    with stored.asking_for_code(run, code):
        recipe = stored.recipe_of(run, unused=stored.TRAINING)
        outside = outside_of(recipe, model.graph.entries[name].outputs)
        data = data_of(recipe, model.preprocessing)
    for line in (*stored.changes(run, code), *_other_data(run, data)):
        say(line)
    chosen = _split(recipe, data, split)
    if split is None and recipe.train.overfit:
        say(
            f"note: train.overfit evaluates the training samples; --split {chosen.name} takes the split itself"
        )
    artifact = compile_graph(modeldir.restricted(model.graph, ("evaluate",)), passes=passes_for())
    machine = Machine(artifact, threads=threads)
    machine.write(model.values)
    size = batch_size or recipe.train.batch_size
    evaluator = Evaluator(machine, artifact.entries[name], data.spec, chosen, size, outside)
    demands = [
        *_demands("--min", least or {}, evaluator),
        *_demands("--max", most or {}, evaluator),
    ]
    found = modeldir.described(model.note)
    say(f"model: {found}")
    measured = _measured(machine, evaluator)
    missed = [d for d in (_missed(measured.metrics, *demand) for demand in demands) if d]
    return Evaluation(
        run.path, found, measured.split, measured.samples, measured.metrics, tuple(missed)
    )


def _other_data(run: RunDir, data: Dataset) -> Sequence[str]:
    remarks = tuple(f"note: {remark}" for remark in data.spec.remarks)
    if run.read("run.json").get("data", {}).get("fingerprint") == data.fingerprint:
        return remarks
    return (
        *remarks,
        f"warning: {data.spec.name} has changed since the run was trained; its numbers cannot be compared",
    )


def _split(recipe: Recipe, data: Dataset, name: str | None) -> Split:
    found = evaluated(recipe, data) if name is None else None
    return data[name or recipe.train.eval_split] if found is None else found


def _measured(machine: Machine, evaluator: Evaluator) -> Measured:
    worker = Worker()
    try:
        with Signals(machine.interrupt) as signals:
            found = evaluator.measure(worker.call, lambda: bool(signals.signal))
            if found is None:
                raise Interrupted(
                    "stopped before the evaluation was done", exit_code=signals.exit_code
                )
            return found
    finally:
        worker.close()


def _demands(option: str, bounds: Bounds, evaluator: Evaluator) -> Sequence[tuple[str, str, float]]:
    """(option, metric, bound) of each demand, the split's name taken off the metric."""
    known = sorted(evaluator.names())
    found = []
    for written, bound in bounds.items():
        name = written.removeprefix(f"{evaluator.split.name}.")
        if name not in known:
            near = " or ".join(f"`{n}`" for n in close_names(name, known))
            hint = f"did you mean {near}?" if near else f"there are {', '.join(known)}"
            raise UsageError(
                f"{option} {written}: not measured on {evaluator.split.name}", hint=hint
            )
        found.append((option, name, bound))
    return found


def _missed(metrics: Mapping[str, float], option: str, name: str, bound: float) -> str:
    """What to say of a demand that is not met; empty for one that is. NaN meets none."""
    value, most = metrics[name], option == "--max"
    if (value <= bound) if most else (value >= bound):
        return ""
    side = "above" if most else "below"
    by = f" by {abs(value - bound):.4g}" if value == value else ""
    return f"{name} is {value:.6g}, {side} {bound:g}{by}"
