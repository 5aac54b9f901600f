"""Settings back to YAML that reads the same under YAML 1.2 and carries every value."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from pydantic import BaseModel

from paddlecli.config.yaml_text import PLAIN_FORMS

if TYPE_CHECKING:
    from paddlecli.config.recipe import Recipe


def complete(recipe: Recipe) -> dict[str, Any]:
    """Every set value and every default, as plain data. Unset (None) fields of the schema are left
    out; None given to an argument of something registered stays."""
    return {k: v for k, v in plain_section(recipe).items() if k != "extends"}


def plain_section(value: Any) -> Any:
    """A section's set values by their written names, arguments included."""
    if isinstance(value, BaseModel):
        fields = type(value).model_fields
        known = {(f.alias or n): getattr(value, n) for n, f in fields.items()}
        kept = {k: plain_section(v) for k, v in known.items() if v is not None}
        return {**kept, **{k: plain_section(v) for k, v in (value.model_extra or {}).items()}}
    if isinstance(value, dict):
        return {k: plain_section(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain_section(v) for v in value]
    return value


def writable(value: Any) -> Any:
    """A default as YAML can hold it. Raises TypeError for one that it cannot."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [writable(v) for v in value]
    if isinstance(value, dict):
        return {str(k): writable(v) for k, v in value.items()}
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"the default {value!r} of a registered function cannot be written as YAML")


class _Dumper(yaml.SafeDumper):
    """PyYAML's dumper, taught when text must be quoted under YAML 1.2."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _escaped(value: Any) -> Any:
    """Values (not keys: those refer to nothing) with `$${` for `${`."""
    if isinstance(value, str):
        return value.replace("${", "$${")
    if isinstance(value, dict):
        return {k: _escaped(v) for k, v in value.items()}
    return [_escaped(v) for v in value] if isinstance(value, list | tuple) else value


def _text(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    style = '"' if not value.isprintable() else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


def _number(dumper: _Dumper, value: float) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:float", repr(value))


def _sequence(dumper: _Dumper, value: list[Any]) -> yaml.SequenceNode:
    short = not any(isinstance(v, dict | list) for v in value)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=short)


_Dumper.yaml_implicit_resolvers = {}
for _tag, _form in PLAIN_FORMS.items():
    _Dumper.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", _form, None)
_Dumper.add_representer(str, _text)
_Dumper.add_representer(float, _number)
_Dumper.add_representer(list, _sequence)


def to_yaml(value: Any) -> str:
    """`value` as block YAML in its own order; text that holds `${` is escaped as `$${`."""
    text: str = yaml.dump(
        _escaped(value),
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=100,
        default_flow_style=False,
    )
    return text
