"""What a training measures: who evaluates, and whether all that the recipe watches is measured at all."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from math import prod

from paddlecli import ops
from paddlecli.compiler.artifact import Artifact, EntryInfo
from paddlecli.config.nodes import Path, close_names
from paddlecli.config.recipe import Recipe
from paddlecli.config.schema import Mode
from paddlecli.data.columns import Dataset
from paddlecli.engine.averages import FINITE, reporters
from paddlecli.engine.evaluation import Evaluator
from paddlecli.engine.machine import Machine
from paddlecli.engine.outside import outside_of
from paddlecli.engine.prepare import Prepared, evaluated
from paddlecli.engine.watch import Goal, Watch, Watched, monitors, usual_mode
from paddlecli.errors import ConfigError


def evaluator_of(prepared: Prepared, data: Dataset, machine: Machine) -> Evaluator | None:
    """None where the network has nothing to evaluate or the data have no such split."""
    name, split = prepared.graph.roles.get("evaluate"), evaluated(prepared.recipe, data)
    if name is None or split is None:
        return None
    entry = prepared.artifact.entries[name]
    recipe = prepared.recipe
    found = outside_of(recipe, entry.outputs)
    return Evaluator(machine, entry, prepared.spec, split, recipe.train.batch_size, found)


def watch_of(prepared: Prepared, splits: Collection[str]) -> Watch:
    """What the recipe asks to watch, compared with what will be measured; the split `test`, the default, may be missing.

    Args:
        splits: names of the splits of the data.

    Raises:
        ConfigError: `train.eval_split` is no split of the data, something is watched that is never measured, or of a metric
            nobody can tell whether more of it is better.
    """
    recipe = prepared.recipe
    split = recipe.train.eval_split
    if split not in splits and split != "test":
        raise ConfigError(
            f"train.eval_split: {prepared.spec.name} has no split {split}", hint=f"there are {', '.join(splits)}",
            where=[recipe.where(("train", "eval_split"))],
        )  # fmt: skip
    known = _measured(prepared, splits)
    early, goal = recipe.early_stopping, recipe.train.stop_when
    best_name, early_name = monitors(recipe)
    mode = early.mode if early is not None and best_name == early_name else None
    section = "checkpoint" if recipe.checkpoint.monitor is not None else "early_stopping"
    best = _watched(recipe, best_name, recipe.checkpoint.mode or mode, known, (section, "monitor"))
    if early is None:
        return Watch(best, goal=_goal(recipe, goal, known))
    mode = early.mode or (recipe.checkpoint.mode if best_name == early_name else None)
    watched = _watched(recipe, early_name, mode, known, ("early_stopping", "monitor"))
    return Watch(best, watched, early.patience, early.min_delta, _goal(recipe, goal, known))


def _watched(
    recipe: Recipe, name: str | None, mode: Mode | None, known: dict[str, Mode | None], path: Path
) -> Watched | None:
    if name is None:
        return None
    _check_measured(recipe, name, known, path)
    found = mode or known[name]
    if found is None:
        section = str(path[0])
        raise ConfigError(
            f"{section}.mode: nobody can tell whether more or less of {name} is better",
            hint=f"say `mode: max` or `mode: min` in `{section}` (-o {section}.mode=max)",
            where=[recipe.where((section, "mode"))],
        )
    return Watched(name, found == "min")


def _goal(recipe: Recipe, text: str | None, known: dict[str, Mode | None]) -> Goal | None:
    if text is None:
        return None
    goal = Goal.of(text)
    _check_measured(recipe, goal.name, known, ("train", "stop_when"))
    return goal


def _check_measured(recipe: Recipe, name: str, known: dict[str, Mode | None], path: Path) -> None:
    where = [recipe.where(path)]
    key = ".".join(map(str, path))
    if name not in known:
        near = " or ".join(f"`{n}`" for n in close_names(name, list(known)))
        hint = f"there are {', '.join(known)}" + (f"; did you mean {near}?" if near else "")
        raise ConfigError(f"{key}: {name} is not measured", hint=hint, where=where)
    if path[0] != "checkpoint" and not recipe.train.eval_every and not name.startswith("train."):
        raise ConfigError(
            f"{key}: {name} is measured only at the end, as train.eval_every is 0",
            hint="set train.eval_every to 1",
            where=where,
        )


def _measured(prepared: Prepared, splits: Collection[str]) -> dict[str, Mode | None]:
    """`split.metric` of all that training and evaluation report, and which way is better."""
    found, recipe, artifact = {}, prepared.recipe, prepared.artifact
    for prefix, entries in reporters(prepared.calls):
        for name, mode in measured_by(artifact, entries):
            found[f"train.{prefix}{name}"] = mode
    role, split = prepared.graph.roles.get("evaluate"), recipe.train.eval_split
    if role is None or not (split in splits or recipe.train.overfit):
        return found
    entry = artifact.entries[role]
    modes = dict(measured_by(artifact, [entry]))
    modes |= {k: v for o in outside_of(recipe, entry.outputs) for k, v in o.modes().items()}
    means = {f"{n}_batch_mean": modes.get(n) for n in entry.fetches if n != FINITE}
    return found | {f"{split}.{n}": mode for n, mode in sorted({**modes, **means}.items())}


def measured_by(
    artifact: Artifact, entries: Sequence[EntryInfo]
) -> Iterator[tuple[str, Mode | None]]:
    """Names of the numbers that entries report together, and which way each is better where that is known: less of a
    loss, more of an accuracy."""
    losses = {name for e in entries for name in e.fetches if name != "finite"}
    yield from ((n, None if n.startswith("gradient_norm") else "min") for n in sorted(losses))
    for metric, info in entries[0].metrics.items():
        state = artifact.metric_states[info.state]
        nothing = [0] * prod(state.shape)
        for name in ops.get(info.op).report(metric, nothing, info.attrs, info.values):  # type: ignore[attr-defined]
            alone = info.values[0] if len(info.values) == 1 else info.op
            value = name.removeprefix(metric).lstrip("_") or alone
            if name not in losses:  # a loss is also counted, for its exact mean
                yield name, usual_mode(value)
