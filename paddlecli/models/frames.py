"""What the writer of a recipe's layers keeps while it goes on past faults."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from paddlecli.config.nodes import close_names
from paddlecli.config.plugins import place_of
from paddlecli.errors import ConfigError, Fault, Where
from paddlecli.graph.builder import fault
from paddlecli.graph.ir import Origin, Tensor
from paddlecli.models.network import Network
from paddlecli.ops.spec import Spec

Names = dict[str, Tensor]
Path = tuple[str | int, ...]

UNKNOWN = Tensor("?", Spec(()), "unknown")
"""Stands for what a layer with a fault would have given."""


class Unread(Exception):
    """A layer reads what a layer with a fault did not give: nothing can be said about it."""


class TooLarge(ConfigError):
    """A network that nobody can mean; no further fault is looked for."""


@dataclass
class Frame:
    """What one list of layers sees.

    Attributes:
        names: tensors by name.
        lines: where the layers stand that gave them their names.
        given: the arguments of the block that the list belongs to.
        uses: the uses of blocks that lead here, the innermost first.
        inside: names of those blocks, the outermost first.
    """

    names: Names
    lines: dict[str, Origin] = field(default_factory=dict)
    given: Mapping[str, Any] = field(default_factory=dict)
    uses: tuple[Origin, ...] = ()
    inside: tuple[str, ...] = ()

    def below(self) -> Frame:
        """For a group: it sees everything, what it names stays in it."""
        return Frame(dict(self.names), dict(self.lines), self.given, self.uses, self.inside)


def located(error: ConfigError, origin: Origin, uses: Sequence[Origin]) -> Iterator[Fault]:
    """The faults of an error; one that knows no place gets that of the layer."""
    used = tuple(Where(o.file, o.line, o.column, o.path) for o in uses)
    for found in error.faults or fault(origin, str(error)).faults:
        where = found.where if found.where.file else fault(origin, "").faults[0].where
        yield Fault(found.message, where, found.expected, found.nearest, found.hint, used)


def look_up(net: Network, name: str, names: Names, reader: str) -> Tensor:
    """The tensor of that name, for a layer, a loss or a metric ``reader``.

    Raises:
        ConfigError: nothing has the name.
        Unread: a layer with a fault should have given it.
    """
    if names.get(name) is UNKNOWN or names.get(name.partition(".")[0]) is UNKNOWN:
        raise Unread
    if name not in names:
        near = close_names(name, set(names))
        why = f"[{reader}] reads {name!r}, but nothing before it has that name"
        raise fault(net.origin, why, f"one of {_listed(names)}", near)
    return names[name]


def named(net: Network, source: str | Sequence[str], names: Names, reader: str) -> list[Tensor]:
    """Several tensors by name; see :func:`look_up`."""
    wanted = [source] if isinstance(source, str) else list(source)
    return [look_up(net, name, names, reader) for name in wanted]


def tensors_read(function: Callable[..., Any]) -> tuple[int, float, str]:
    """How many tensors a layer, loss or metric reads at least and at most, and their names."""
    found = list(inspect.signature(function).parameters.values())[1:]
    takes = [p for p in found if p.kind is p.POSITIONAL_OR_KEYWORD]
    more = [p.name for p in found if p.kind is p.VAR_POSITIONAL]
    least, names = sum(p.default is p.empty for p in takes), [p.name for p in takes]
    return least, math.inf if more else len(takes), ", ".join([*names, *(f"{m} ..." for m in more)])


def count(net: Network, name: str, function: Callable[..., Any], args: Sequence[Tensor]) -> None:
    """A layer, loss or metric gets as many tensors as it has parameters for them."""
    least, most, listed = tensors_read(function)
    if not least <= len(args) <= most:
        text = f"[{name}] reads {most} tensors ({listed}), `from` gives {len(args)}"
        raise fault(net.origin, text)


def given_by(net: Network, name: str, function: Callable[..., Any], result: object) -> Names:
    """What a layer returned, by name: tensors by their names, or in order; one alone is the layer's.

    Raises:
        ConfigError: it is something else, as a layer of a user's may return.
    """
    if isinstance(result, Mapping):
        found: dict[str, object] = {str(k): t for k, t in result.items()}
    elif isinstance(result, tuple | list):
        found = {str(i): t for i, t in enumerate(result)}
    else:
        found = {"": result}
    wrong = [type(t).__name__ for t in found.values() if not isinstance(t, Tensor)]
    if wrong or not found:
        gave = wrong[0] if wrong else f"an empty {type(result).__name__}"
        text = f"[{name}] must return a tensor, or several, not {gave}"
        raise fault(net.origin, f"{text}: it is written in {place_of(function)}")
    return {k: t for k, t in found.items() if isinstance(t, Tensor)}


def _listed(names: Names) -> str:
    return ", ".join(sorted(names)) or "none"
