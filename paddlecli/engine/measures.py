"""What a training measures: who evaluates, and whether all that the recipe watches is measured at all."""

from __future__ import annotations

from paddlecli.data.columns import Dataset
from paddlecli.engine.averages import keys_of, reporters
from paddlecli.engine.evaluation import Evaluator
from paddlecli.engine.machine import Machine
from paddlecli.engine.prepare import Prepared
from paddlecli.errors import ConfigError


def evaluator_of(prepared: Prepared, data: Dataset, machine: Machine) -> Evaluator | None:
    """None where the network has nothing to evaluate or the data have no such split."""
    name, split = prepared.graph.roles.get("evaluate"), prepared.recipe.train.eval_split
    if name is None or split not in data.splits:
        return None
    entry = prepared.artifact.entries[name]
    return Evaluator(machine, entry, prepared.spec, data[split], prepared.recipe.train.batch_size)


def check(prepared: Prepared, data: Dataset, machine: Machine) -> None:
    """Compares what the recipe asks to watch with what will be there; the split `test`, the default, may be missing.

    Raises:
        ConfigError: `train.eval_split` is no split of the data, or `checkpoint.monitor` is never measured.
    """
    recipe = prepared.recipe
    split = recipe.train.eval_split
    if split not in data.splits and split != "test":
        raise ConfigError(
            f"train.eval_split: {data.spec.name} has no split {split}", hint=f"there are {', '.join(data.splits)}",
            where=[recipe.where(("train", "eval_split"))],
        )  # fmt: skip
    watched = recipe.checkpoint.monitor
    names = _measured(prepared, data, machine)
    if watched is not None and watched not in names:
        raise ConfigError(
            f"checkpoint.monitor: {watched} is not measured", hint=f"there are {', '.join(names)}",
            where=[recipe.where(("checkpoint", "monitor"))],
        )  # fmt: skip


def _measured(prepared: Prepared, data: Dataset, machine: Machine) -> list[str]:
    """`split.metric` of all that training and evaluation report."""
    means = set(keys_of(prepared.calls).values())
    counted = {
        p + name for p, entries in reporters(prepared.calls) for name in machine.metrics(entries[0])
    }
    names = [f"train.{name}" for name in sorted(means | counted)]
    evaluator = evaluator_of(prepared, data, machine)
    if evaluator is not None:
        names += [f"{evaluator.split.name}.{name}" for name in sorted(evaluator.names())]
    return names
