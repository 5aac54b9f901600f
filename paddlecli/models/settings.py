"""Settings of parameters by patterns of their names: first values, rates, decay, clipping, what is
frozen.

Patterns are those of a shell (``*`` stands for any text, ``/`` included). They are taken in order,
each changes what it says, so of several that match the last one wins, key by key.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from paddlecli.config.nodes import close_names
from paddlecli.config.recipe import Recipe
from paddlecli.config.schema_network import ParameterSettings
from paddlecli.errors import Fault
from paddlecli.graph.ir import Graph, ParameterInfo, Tensor

SHOWN = 8
"""Names that a fault lists."""


@dataclass
class Frozen:
    """Which layers stay as they are, as ``model.parameters`` says; asked while layers are written.

    Attributes:
        epoch: the one whose training step is written.
        norms: parameters of the batch norms that asked.
    """

    settings: Mapping[str, ParameterSettings] = field(default_factory=dict)
    epoch: int = 1
    norms: set[str] = field(default_factory=set)

    def keeps(self, *parameters: Tensor) -> bool:
        """Whether a batch norm with these parameters leaves its running statistics alone, and uses
        them: it does where all are frozen, unless the recipe says ``batch_norm: update``."""
        self.norms |= {p.name for p in parameters}
        return all(self._keeps(p) for p in parameters)

    def _keeps(self, parameter: Tensor) -> bool:
        trainable, mode = parameter.info is None or parameter.info.trainable, "keep"
        for pattern, said in self.settings.items():
            if fnmatch.fnmatchcase(parameter.name, pattern):
                trainable = trainable if said.trainable is None else said.trainable
                if said.trainable_from is not None:
                    trainable = said.trainable_from <= self.epoch
                mode = said.batch_norm or mode
        return not trainable and mode == "keep"


def epochs(recipe: Recipe) -> list[int]:
    """The epochs from which a training step updates more parameters than before, the first one, 1,
    included."""
    return sorted({1, *(s.trainable_from or 1 for s in recipe.model.parameters.values())})


def apply(graph: Graph, recipe: Recipe, norms: Iterable[str] = ()) -> list[Fault]:
    """Changes the parameters of a graph as ``model.parameters`` says.

    Args:
        norms: the parameters of batch norms.

    Returns:
        A fault for each pattern that matches no parameter, or speaks of batch norms and matches none.
    """
    faults = []
    for pattern, settings in recipe.model.parameters.items():
        found = [n for n in graph.parameters if fnmatch.fnmatchcase(n, pattern)]
        if not found:
            faults.append(_unmatched(graph, pattern, recipe))
        elif settings.batch_norm is not None and not set(found) & set(norms):
            where = replace(recipe.where(("model", "parameters", pattern, "batch_norm")), key="")
            faults.append(Fault(f"no batch norm is among the parameters of `{pattern}`", where))
        for name in found:
            tensor = graph.parameters[name]
            tensor.info = replace(tensor.info or ParameterInfo({}), **dict(_changes(settings)))
    return faults


def _changes(settings: ParameterSettings) -> Iterator[tuple[str, Any]]:
    call, decay = settings.initializer, settings.regularizer
    if call is not None:
        yield "initializer", {"name": call.call, **call.arguments}
    if settings.learning_rate_factor is not None:
        yield "rate", settings.learning_rate_factor
    if decay is not None:
        given: Mapping[str, float | None] = {"l1": decay.l1, "l2": decay.l2}
        yield "regularizer", {k: v for k, v in given.items() if v is not None}
    if settings.clip is not None:
        yield "clip", settings.clip
    if settings.trainable is not None:
        yield "trainable", settings.trainable
        yield "since", 1
    if settings.trainable_from is not None:
        yield "trainable", True
        yield "since", settings.trainable_from


def _unmatched(graph: Graph, pattern: str, recipe: Recipe) -> Fault:
    where = replace(recipe.where(("model", "parameters", pattern)), key="")
    names = list(graph.parameters)
    listed = ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
    states = [n for n in graph.states if fnmatch.fnmatchcase(n, pattern)]
    hint = f"{states[0]} is a running statistic, no parameter" if states else ""
    expected = f"a pattern of {listed}" if names else "the network has no parameters"
    text = f"no parameter matches `{pattern}`"
    wider = {f"*/{n.rpartition('/')[2]}" for n in names} | {
        f"{n.partition('/')[0]}/*" for n in names
    }
    near = close_names(pattern, names if "*" not in pattern else wider)
    return Fault(text, where, expected, near, hint)
