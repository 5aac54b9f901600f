"""Maps from the names of arrays that other programs write to those of networks here.

networks: [regular expressions]   # for which networks the map is taken without `--map`
arrays:                           # the first rule that fits an array holds
  - {name: '(.*)/weight', rank: 2, to: '\\1/w', transpose: [1, 0]}
  - {name: '.*/num_batches_tracked', leave: true}
transforms: [steps]               # how pictures were prepared there
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from paddlecli import assets
from paddlecli.config.nodes import Node, close_names
from paddlecli.config.yaml_text import parse_file
from paddlecli.errors import ConfigError, Fault, UsageError


def _regular(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"no regular expression: {error}") from None
    return text


Pattern = Annotated[str, AfterValidator(_regular)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Rule(_Strict):
    """What becomes of the arrays whose whole name fits a regular expression."""

    name: Pattern
    """Dots of the file count as `/`."""
    rank: int | None = Field(None, ge=0)
    """The rule is for arrays of so many dimensions alone."""
    to: str | None = None
    """The name here; `\\1` is the first group of `name`."""
    transpose: tuple[int, ...] | None = None
    """For each dimension here the one of the file that it is."""
    blocks: tuple[int, ...] | None = None
    """The last dimension is cut into so many equal blocks: for each block here the one of the file that it is."""
    add: bool = False
    """Where another array became the same, the two are added."""
    leave: bool = False
    """The array has no place here."""

    @model_validator(mode="after")
    def _one_end(self) -> Rule:
        if (self.to is None) != self.leave:
            raise ValueError("either `to` or `leave: true`")
        groups = re.compile(self.name).groups
        if any(int(n) > groups for n in re.findall(r"\\(\d+)", self.to or "")):
            raise ValueError(f"`to` asks for more groups than the {groups} of `name`")
        for what, order in (("dimension", self.transpose), ("block", self.blocks)):
            if order is not None and sorted(order) != list(range(len(order))):
                raise ValueError(f"{list(order)} does not name every {what} once")
        return self

    def fits(self, name: str, rank: int) -> bool:
        """Whether it is for an array."""
        same = self.rank is None or self.rank == rank
        return same and re.fullmatch(self.name, name.replace(".", "/")) is not None

    def target(self, name: str) -> str:
        """The name here of an array that fits."""
        match = re.fullmatch(self.name, name.replace(".", "/"))
        assert match is not None and self.to is not None
        return match.expand(self.to)


class ImportMap(_Strict):
    """A map."""

    networks: tuple[Pattern, ...] = ()
    arrays: tuple[Rule, ...]
    transforms: tuple[Any, ...] = ()

    def rule(self, name: str, rank: int) -> Rule | None:
        """The first rule that fits an array, None without any."""
        return next((r for r in self.arrays if r.fits(name, rank)), None)


def names() -> list[str]:
    """The maps that ship."""
    prefix = f"{assets.IMPORT_MAPS}/"
    return [n.removeprefix(prefix) for n in assets.names("configs") if n.startswith(prefix)]


def for_network(network: str) -> tuple[str, ImportMap] | None:
    """The map that ships for a network, with its name."""
    for name in names():
        found = load(name)
        if any(re.fullmatch(pattern, network) for pattern in found.networks):
            return name, found
    return None


def load(text: str) -> ImportMap:
    """A map that ships, by its name, or one in a file.

    Raises:
        UsageError: no such map.
        ConfigError: lists every fault with its place.
    """
    path = Path(text).expanduser()
    if not assets.is_path(text) and not path.is_file():
        shipped = assets.find("configs", f"{assets.IMPORT_MAPS}/{text}")
        if shipped is None:
            near = close_names(text, names())
            raise UsageError(
                f"--map {text}: no such map",
                hint=f"did you mean {near[0]}?"
                if near
                else f"a file, or one of: {', '.join(names())}",
            )
        path = shipped
    return read(path)


def read(path: Path) -> ImportMap:
    """The map in a file. Raises as `load`."""
    try:
        tree, faults = parse_file(path, "map")
    except OSError as error:
        raise UsageError(f"--map {path}: {error.strerror or error}") from None
    if tree is None:
        raise ConfigError.of(faults, str(path))
    try:
        return ImportMap.model_validate_json(json.dumps(tree.plain()))
    except ValidationError as error:
        found = [_fault(e["loc"], e["type"], e["msg"], tree) for e in error.errors()]
        raise ConfigError.of(found, str(path)) from None


def _fault(place: Sequence[int | str], kind: str, message: str, tree: Node) -> Fault:
    """A validation error with its place in the file."""
    node, path = tree, []
    for part in place:
        below = node.child(part)
        if below is not None:
            node = below
            path.append(part)
    if kind == "extra_forbidden":
        return Fault(
            f"unknown key `{place[-1]}`", (node.key or node.origin).where(tuple(path)),
            nearest=close_names(str(place[-1]), [*ImportMap.model_fields, *Rule.model_fields]),
        )  # fmt: skip
    if kind == "missing":
        message = f"the key `{place[-1]}` is missing"
    return Fault(message.removeprefix("Value error, "), node.origin.where(tuple(path)))
