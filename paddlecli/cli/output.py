"""What commands share: data on stdout, everything else on stderr; texts turned into values."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import typer

from paddlecli.errors import UsageError

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?[smhd])+|\d+(?:\.\d+)?")


def print_json(found: Mapping[str, Any]) -> None:
    """One object on one line of stdout, keys sorted; NaN and infinity must have been dealt with."""
    typer.echo(json.dumps(found, sort_keys=True, ensure_ascii=False, allow_nan=False))


def tell(text: str) -> None:
    """A line on stderr."""
    typer.echo(text, err=True)


def duration(text: str | None) -> float | None:
    """`2h`, `1h30m`, `90` (seconds) as seconds.

    Raises:
        UsageError: not a duration.
    """
    if text is None:
        return None
    if not _DURATION.fullmatch(text):
        raise UsageError(f"--max-time {text!r}: expected a duration such as 90s, 30m or 1h30m")
    if text[-1] not in _UNITS:
        return float(text)
    return sum(float(n) * _UNITS[unit] for n, unit in re.findall(r"(\d+(?:\.\d+)?)([smhd])", text))


def pairs(option: str, texts: Sequence[str]) -> dict[str, float]:
    """`NAME=NUMBER` texts as a mapping.

    Raises:
        UsageError: malformed, or a name given twice.
    """
    found: dict[str, float] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        try:
            number = float(value)
        except ValueError:
            number = float("nan")
        if not sign or not name or number != number:
            raise UsageError(f"{option} {text!r}: expected NAME=NUMBER")
        if name in found:
            raise UsageError(f"{option} {name} is given twice")
        found[name] = number
    return found


def recipe_name(config: str | None, name: str | None) -> str:
    """The recipe of a command line that takes `NAME` or `--config NAME`.

    Raises:
        UsageError: neither or both were given.
    """
    if (config is None) == (name is None):
        reason = "a recipe is missing" if config is None else "the recipe is given twice"
        raise UsageError(
            reason, hint="paddlecli train --config NAME; `paddlecli recipe list` shows the names"
        )
    return str(config if config is not None else name)
