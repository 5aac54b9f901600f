"""Two recipes compared, setting by setting, each with where its value came from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Literal

from paddlecli.config.nodes import Origin, Path, dotted
from paddlecli.config.recipe import Recipe

Kind = Literal["added", "removed", "changed"]


@dataclass(frozen=True, slots=True)
class Side:
    """A setting of one of the two recipes."""

    path: Path
    value: Any
    origin: Origin

    @property
    def key(self) -> str:
        """The dotted path."""
        return dotted(self.path)

    def as_dict(self) -> dict[str, Any]:
        """The form used by `--json`."""
        return {"key": self.key, "value": self.value, "origin": self.origin.as_dict()}


@dataclass(frozen=True, slots=True)
class Change:
    """One difference; `a` is None for what only the second recipe has, `b` for what only the first
    has."""

    a: Side | None
    b: Side | None

    @property
    def kind(self) -> Kind:
        """Seen from the first recipe."""
        return "added" if self.a is None else "removed" if self.b is None else "changed"


def diff(a: Recipe, b: Recipe) -> list[Change]:
    """All differences of the resolved settings, defaults included, in the order of the recipes.

    Lists of layers and metrics are aligned first: a layer put in between is one addition.
    """
    return list(_Walk(a, b).values((), a.as_dict(), (), b.as_dict()))


class _Walk:
    def __init__(self, a: Recipe, b: Recipe) -> None:
        self.a, self.b = a, b

    def values(self, at: Path, a: Any, bt: Path, b: Any) -> Iterator[Change]:
        if isinstance(a, dict) and isinstance(b, dict):
            for key in [*a, *(k for k in b if k not in a)]:
                if key not in b:
                    yield from self.only((*at, key), a[key], first=True)
                elif key not in a:
                    yield from self.only((*bt, key), b[key], first=False)
                else:
                    yield from self.values((*at, key), a[key], (*bt, key), b[key])
        elif isinstance(a, list) and isinstance(b, list) and _structured(a) and _structured(b):
            yield from self.lists(at, a, bt, b)
        elif json.dumps(a) != json.dumps(b):
            yield Change(Side(at, a, self.a.origin(at)), Side(bt, b, self.b.origin(bt)))

    def lists(self, at: Path, a: list[Any], bt: Path, b: list[Any]) -> Iterator[Change]:
        first, second = ([json.dumps(item, sort_keys=True) for item in items] for items in (a, b))
        found = SequenceMatcher(None, first, second, autojunk=False).get_opcodes()
        for _, start, stop, begin, end in found:
            common = min(stop - start, end - begin)
            for k in range(common):
                i, j = start + k, begin + k
                yield from self.values((*at, i), a[i], (*bt, j), b[j])
            for i in range(start + common, stop):
                yield from self.only((*at, i), a[i], first=True)
            for j in range(begin + common, end):
                yield from self.only((*bt, j), b[j], first=False)

    def only(self, path: Path, value: Any, first: bool) -> Iterator[Change]:
        if isinstance(value, dict) and value:
            for key, below in value.items():
                yield from self.only((*path, key), below, first)
            return
        if isinstance(value, list) and value and _structured(value):
            for index, below in enumerate(value):
                yield from self.only((*path, index), below, first)
            return
        side = Side(path, value, (self.a if first else self.b).origin(path))
        yield Change(side, None) if first else Change(None, side)


def _structured(value: list[Any]) -> bool:
    return all(isinstance(item, dict) for item in value)
