"""`evaluate`: a saved model measured on a split of its data, by training's own code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from paddlecli.compiler.pipeline import compile_graph
from paddlecli.config.plugins import CodeFile
from paddlecli.engine import modeldir, stored
from paddlecli.engine.evaluation import Evaluator, Measured
from paddlecli.engine.interrupts import Signals, Worker
from paddlecli.engine.machine import Machine
from paddlecli.engine.prepare import data_of
from paddlecli.engine.rundir import RunDir
from paddlecli.errors import ConfigError, Interrupted, MetricError, UsageError


def evaluate(
    run: RunDir, split: str | None = None, threads: int | None = None, say: Callable[[str], None] = lambda text: None,
    code: Sequence[CodeFile] = (),
) -> Measured:  # fmt: skip
    """The metrics of a run's saved parameters; `split` is the one that training evaluates if None, `code` the user code that
    was loaded for it.

    Raises:
        RunError: nothing was saved yet, or `model/` is damaged.
        DataError: the data are missing, or have no such split.
        ConfigError: the network has nothing to evaluate.
    """
    model = modeldir.open_model(run.model)
    name = model.graph.roles.get("evaluate")
    if name is None:
        raise ConfigError(f"{run.path}: this network has no loss to evaluate")
    with stored.asking_for_code(run, code):
        recipe = stored.recipe_of(run)
        data = data_of(recipe)
    for line in stored.changes(run, code):
        say(line)
    if run.read("run.json").get("data", {}).get("fingerprint") != data.fingerprint:
        say(
            f"warning: {data.spec.name} has changed since the run was trained; its numbers cannot be compared"
        )
    chosen = data[split or recipe.train.eval_split]
    artifact = compile_graph(modeldir.restricted(model.graph, ("evaluate",)))
    machine = Machine(artifact, threads=threads)
    machine.write(model.values)
    say(f"model: {modeldir.described(model.note)}")
    evaluator = Evaluator(
        machine, artifact.entries[name], data.spec, chosen, recipe.train.batch_size
    )
    worker = Worker()
    try:
        with Signals(machine.interrupt) as signals:
            found = evaluator.measure(worker.call)
            if found is None:
                raise Interrupted(
                    "stopped before the evaluation was done", exit_code=signals.exit_code
                )
            return found
    finally:
        worker.close()


def demand(metrics: Mapping[str, float], demands: Mapping[str, float]) -> None:
    """Compares metrics with the least values that a user demands.

    Raises:
        UsageError: a demanded metric was not measured.
        MetricError: one is below its least value, or no number.
    """
    for name in demands:
        if name not in metrics:
            raise UsageError(
                f"--min {name}: not measured", hint=f"there are {', '.join(sorted(metrics))}"
            )
    below = [
        f"{n} is {metrics[n]:.6g}, below {least:g}"
        for n, least in demands.items()
        if not metrics[n] >= least
    ]
    if below:
        raise MetricError("; ".join(below))
