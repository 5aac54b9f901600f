"""What is settled before step 1, in the order in which mistakes are cheapest: recipe, fields, network, plan, data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from paddlecli.compiler.artifact import Artifact
from paddlecli.compiler.optimizer import optimizers
from paddlecli.compiler.pipeline import compile_graph
from paddlecli.config.recipe import Recipe
from paddlecli.config.schema_network import Input, WrittenModel
from paddlecli.data.columns import Dataset, Split
from paddlecli.data.loader import Loader
from paddlecli.data.opening import describe, open_dataset
from paddlecli.data.spec import DatasetSpec, FieldSpec, Role
from paddlecli.engine.callbacks import Callback, make
from paddlecli.engine.passes import passes_for
from paddlecli.engine.report import plural
from paddlecli.engine.requests import Call, iteration
from paddlecli.errors import ConfigError
from paddlecli.graph.ir import Graph
from paddlecli.models.build import build, telling

_SHOWN = 6
_NO_DATA = ConfigError(
    "the recipe names no data set", hint="write `data: {name: ...}`, or give -o data.name=NAME"
)


@dataclass(frozen=True)
class Prepared:
    """A recipe that can be trained.

    Attributes:
        spec: the fields of the data.
        graph: the network, forward entries only.
        artifact: the compiled training.
        calls: what one iteration runs, in the first epoch at least.
        phases: (complete epochs, calls) for each place from which an iteration runs something else, the first included.
    """

    recipe: Recipe
    spec: DatasetSpec
    graph: Graph
    artifact: Artifact
    calls: tuple[Call, ...]
    callbacks: tuple[Callback, ...] = ()
    phases: tuple[tuple[int, tuple[Call, ...]], ...] = ()

    def calls_in(self, epoch: int) -> tuple[Call, ...]:
        """What an iteration runs behind so many complete epochs."""
        return next((c for first, c in reversed(self.phases) if first <= epoch), self.calls)

    def alike_until(self, epoch: int) -> int | None:
        """Complete epochs at which iterations next begin to run something else; None: never."""
        return next((first for first, _ in self.phases if first > epoch), None)

    @property
    def parameters(self) -> int:
        """Numbers that training may change or that are frozen."""
        return sum(_size(p.shape) for p in self.artifact.parameters.values())

    def learning(self) -> str:
        """Which parameters are frozen and how many train, and what is averaged; empty where all train and nothing is."""
        said = []
        for first, names in self._trained():
            if first > self.recipe.train.epochs:
                said.append(
                    f"what trains from epoch {first} on stays frozen: it is behind the last one"
                )
                break
            frozen = [n for n in self.artifact.parameters if n not in names]
            if frozen:
                count = sum(_size(self.artifact.parameters[n].shape) for n in frozen)
                said.append(
                    f"{'' if first == 1 else f'from epoch {first} on '}{self.parameters - count:,} of them train; "
                    f"frozen: {', '.join(_layers(frozen, names))} ({plural(count, 'parameter')})"
                )
            elif first > 1:
                said.append(f"from epoch {first} on all train")
        ema = self.recipe.train.ema
        if ema is not None:
            said.append(f"averages of the weights (decay {ema.decay:g}) are evaluated and saved")
        return "; ".join(said)

    def _trained(self) -> Iterator[tuple[int, set[str]]]:
        """(epoch, names of the parameters that are trained from it on), the first is 1."""
        entries = self.graph.entries
        phases = self.graph.roles.get("phases", ())
        for first, updating in [(e, [entries[n]]) for e, n in phases] or [(1, [*entries.values()])]:
            yield first, {p for e in updating for u in e.updates for p in u.parameters}


def _layers(frozen: Iterable[str], trained: Iterable[str]) -> list[str]:
    """Names of the outermost layers whose parameters are all frozen, or of single parameters; at most `_SHOWN`."""
    inside = {above for n in trained for above in _above(n)}
    outermost = (next((a for a in _above(n) if a not in inside), n) for n in frozen)
    found = list(dict.fromkeys(outermost))
    return found if len(found) <= _SHOWN else [*found[:_SHOWN], f"{len(found) - _SHOWN} more"]


def _above(name: str) -> list[str]:
    """`a`, `a/b`, `a/b/w` of `a/b/w`."""
    parts = name.split("/")
    return ["/".join(parts[: i + 1]) for i in range(len(parts))]


def _size(shape: tuple[int, ...]) -> int:
    total = 1
    for dim in shape:
        total *= dim
    return total


def fields_of(recipe: Recipe) -> DatasetSpec:
    """The fields of the recipe's data set, or without one the inputs that its network declares; no file is opened.

    Raises:
        ConfigError: the recipe has neither.
    """
    if recipe.data is not None:
        return describe(recipe.data.name, recipe.data.arguments)
    if isinstance(recipe.model, WrittenModel):
        return DatasetSpec(
            "inputs", "", tuple(_field(n, i) for n, i in recipe.model.inputs.items()), {}
        )
    raise _NO_DATA


def _field(name: str, declared: Input) -> FieldSpec:
    axis = declared.ragged if isinstance(declared.ragged, str) else name
    role: Role = "label" if declared.role == "label" else "input"
    axes = (axis,) if declared.ragged else ()
    return FieldSpec(name, role, tuple(declared.shape), declared.dtype, axes, declared.below)


def data_of(recipe: Recipe, frozen: Mapping[str, Any] | None = None) -> Dataset:
    """The recipe's data set, opened; with the scales, categories and vocabularies of a trained model's `preprocessing` where
    they are given.

    Raises:
        DataError: it is not on this machine (says which command fetches it), or damaged.
    """
    if recipe.data is None:
        raise _NO_DATA
    return open_dataset(recipe.data.name, recipe.data.arguments, frozen)


def loader_of(recipe: Recipe, data: Dataset) -> Loader:
    """The batches that training takes, epoch after epoch."""
    train = recipe.train
    shuffle = "none" if train.overfit else train.shuffle
    return Loader(
        data["train"], train.batch_size, shuffle=shuffle, buffer=train.shuffle_buffer or 0, seed=train.seed,
        drop_last=train.drop_last, limit=train.overfit or train.limit_batches,
        bucket=0 if train.overfit else train.bucket or 0,
    )  # fmt: skip


def evaluated(recipe: Recipe, data: Dataset) -> Split | None:
    """What training evaluates: `train.eval_split`, with `train.overfit` the training samples under its name; None where the
    data have no such split."""
    name = recipe.train.eval_split
    if recipe.train.overfit:
        rows = loader_of(recipe, data).order(0)
        return Split(name, data["train"].take(rows))
    return data.splits.get(name)


def prepare(recipe: Recipe, spec: DatasetSpec, graph: Graph | None = None) -> Prepared:
    """Network, plan and calls of a training.

    Args:
        recipe: what to train.
        spec: the fields of its data.
        graph: a stored network, when a run is resumed; else it is built from the recipe.

    Raises:
        ConfigError: something does not fit.
    """
    if recipe.optimizer is None:
        raise ConfigError(
            f"{recipe.source or recipe.name}: the recipe names no optimizer, so it cannot be trained",
            hint="write `optimizer: {name: ..., learning_rate: ...}`, or give -o optimizer.name=NAME",
        )
    whole = build(recipe, spec) if graph is None else graph
    parts = recipe.train.accumulate
    with telling(recipe):
        passes = passes_for(recipe)
        artifact = compile_graph(whole, optimizers(recipe), recipe.train.seed, passes, parts > 1)
    calls = iteration(artifact, recipe.train.loop, parts)
    later = tuple(
        (epoch - 1, iteration(artifact, [name], 1)) for epoch, name in whole.roles.get("phases", ())
    )
    return Prepared(recipe, spec, whole, artifact, calls, make(recipe), later)
