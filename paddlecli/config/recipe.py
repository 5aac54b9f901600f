"""The loaded recipe: all settings of a run, and where each of them came from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field, PrivateAttr

from paddlecli.config.nodes import DEFAULT, Origin, Path, dotted
from paddlecli.config.schema import (
    AnyOptimizer,
    Bounds,
    CallbackCall,
    Checkpoint,
    Data,
    EarlyStopping,
    MetricCall,
    MetricName,
    Optimizer,
    Predict,
    Train,
)
from paddlecli.config.schema_network import Model
from paddlecli.config.sections import Section
from paddlecli.config.types import Name
from paddlecli.errors import Fault, Where


class Recipe(Section):
    """A training run, described completely. Made by `load_recipe`, which knows where every value
    came from; two recipes are equal when their values are."""

    name: Annotated[
        str,
        Field(
            pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$",
            title="letters, digits, `.`, `_` and `-`",
        ),
    ]
    """Name of the recipe and of the folder its runs are in; the file's name if left out."""
    description: str = ""
    """One sentence."""
    extends: tuple[Name, ...] = ()
    """Fragments or recipes that this one starts from, later ones win; empty once it is loaded."""
    model: Model
    """The network: a registered one by its name, or written out."""
    data: Data | None = None
    """The data set; nothing can be trained without one, but `bench` and `plan` do."""
    train: Train = Train()
    """The loop."""
    optimizer: AnyOptimizer | None = None
    """The update rule, or several by name; nothing can be trained without one."""
    metrics: tuple[MetricCall, ...] = ()
    """What is measured beside the loss."""
    checkpoint: Checkpoint = Checkpoint()
    """When the run is saved."""
    early_stopping: EarlyStopping | None = None
    """When the training ends before its last epoch."""
    callbacks: tuple[CallbackCall, ...] = ()
    """Python that is called between steps: `stop_file`, or your own."""
    expect: dict[MetricName, Bounds] = Field(default_factory=dict)
    """Results that a good run reaches, by split and metric; shown at the end, not enforced."""
    predict: Predict = Predict()
    """What `predict` reports."""

    _origins: dict[Path, Origin] = PrivateAttr(default_factory=dict)
    _mappings: frozenset[Path] = PrivateAttr(default=frozenset())
    _source: str = PrivateAttr(default="")
    _changed: tuple[str, ...] = PrivateAttr(default=())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Recipe) and self.as_dict() == other.as_dict()

    def __hash__(self) -> int:
        return hash(json.dumps(self.as_dict(), sort_keys=True))

    @property
    def source(self) -> str:
        """The file or the shipped recipe's name that this was loaded from."""
        return self._source

    @property
    def changed(self) -> tuple[str, ...]:
        """The keys that overrides set or removed."""
        return self._changed

    def origin(self, path: Path) -> Origin:
        """Where the value at `path` came from; the default's origin for one that nobody wrote."""
        if path in self._origins:
            return self._origins[path]
        holder = next((path[:d] for d in range(len(path), -1, -1) if path[:d] in self._origins), ())
        written = holder in self._origins and holder not in self._mappings
        return self._origins[holder] if written else DEFAULT

    def where(self, path: Path) -> Where:
        """The place to blame for the value at `path`: its own, or the section that lacks it."""
        for depth in range(len(path), -1, -1):
            found = self._origins.get(path[:depth], DEFAULT)
            if found.kind != "default":
                return found.where(path)
        return DEFAULT.where(path)

    def quoted(self, fault: Fault) -> Fault:
        """A fault of the network with its source line and the key that stands there; the layer's
        path, which it carried as its key, goes into the message."""
        text, key = self._written_at(fault.where)
        layer = fault.where.key
        named = not layer or layer in fault.message
        message = fault.message if named else f"{fault.message} (in `{layer}`)"
        where = replace(fault.where, text=text, key=key)
        uses = tuple(
            replace(u, text=t, key=k) for u in fault.uses for t, k in [self._written_at(u)]
        )
        return replace(fault, message=message, where=where, uses=uses)

    def _written_at(self, where: Where) -> tuple[str, str]:
        """The source line of a place, and the key whose value begins there."""
        if not where.file:
            return "", ""
        at = (where.file, where.line)
        here = [(p, o) for p, o in self._origins.items() if (o.file, o.line) == at]
        text = next((o.text for _, o in here), where.text)
        return text, next((dotted(p) for p, o in here if o.column == where.column), "")

    def origins(self) -> Iterator[tuple[Path, Any, Origin]]:
        """Every resolved value that is not a mapping or a list of mappings: path, value, origin."""
        yield from _leaves((), self.as_dict(), self)

    def optimizers(self) -> Mapping[str, Optimizer]:
        """The optimizers by name; a single one has the name `""`."""
        if self.optimizer is None:
            return {}
        return {"": self.optimizer} if isinstance(self.optimizer, Optimizer) else self.optimizer

    def as_dict(self) -> dict[str, Any]:
        """All values, defaults included, as plain dicts, lists and scalars; unset ones left out."""
        from paddlecli.config.dump import complete

        return complete(self)

    def to_yaml(self) -> str:
        """The complete recipe as YAML; loading it gives an equal Recipe."""
        from paddlecli.config.dump import to_yaml

        return to_yaml(self.as_dict())


def _leaves(path: Path, value: Any, recipe: Recipe) -> Iterator[tuple[Path, Any, Origin]]:
    if isinstance(value, dict) and value:
        for key, below in value.items():
            yield from _leaves((*path, key), below, recipe)
    elif isinstance(value, list) and any(isinstance(v, dict) for v in value):
        for index, below in enumerate(value):
            yield from _leaves((*path, index), below, recipe)
    else:
        yield path, value, recipe.origin(path)
