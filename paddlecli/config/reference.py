"""The reference page of recipe keys, made from the schema:

    python -m paddlecli.config.reference docs/recipe-keys.md

What is registered (layers, losses ...) is not in it: a new op would make the page stale, and
`paddlecli layer show NAME` and its like tell the arguments as they are.
"""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from paddlecli.config import shape
from paddlecli.config.describe import field_texts
from paddlecli.config.dump import writable
from paddlecli.config.recipe import Recipe
from paddlecli.config.sections import Called, Named

PAGE = "docs/recipe-keys.md"
_HEAD = f"""\
# Keys of a recipe

<!-- Generated: python -m paddlecli.config.reference {PAGE} -->

A recipe is one YAML file. This page lists every key: its type and range, its value where it is left
out, and what it does. `paddlecli recipe schema` gives the same to editors, `paddlecli recipe show
RECIPE --origin` prints the values that a recipe ends up with and where each came from, `paddlecli
recipe validate RECIPE` checks one.

## How values are read

- Unquoted text is read as YAML 1.2 says: `1e-3` is a number, `true` and `false` are the only yes and
  no (`no`, `on` and `off` are text), `017` is 17, dates are text. Tags, merge keys (`<<`) and second
  documents are refused; anchors and aliases are copies. A file is UTF-8, at most 1 MiB.
- Types are strict: no text for a number, no 1.0 for a whole number, no NaN, no infinity. An unknown
  key, a key that comes twice and an unknown name are errors, all reported at once with their places.
- `${{a.b}}` stands for the value of another key, of the whole recipe with its defaults;
  `${{env:NAME}}` for an environment variable, `${{env:NAME:default}}` with a value where it is not
  set. `$${{` is a plain `${{`. Inside `[ ]` and `{{ }}` such text is quoted. In the layers of a block
  `$name` stands for one of its arguments.
- A relative path starts at the folder of the file that it stands in; given with `-o` it starts at
  the working directory.

## What wins

Defaults, then `extends` (the later file over the earlier one), then the file itself, then
`--set-file`, then `-o`. Mappings are merged key by key, everything else is replaced as a whole. A
section that calls something else than the inherited one (another `name`, another loss, `clip` or
`regularizer`) replaces it. `name` is not inherited.

- `extends: [data/mnist, ./mine.yaml]`: a bare name is a shipped fragment or recipe, a path starts at
  the file's own folder.
- `-o key.key=value`: the first `=` splits; a setting that takes text takes the rest literally (but
  `null`, where it may be left out), any other reads it as YAML. `-o metrics.0=...` changes an item of a list, the number behind the last one
  adds one; `-o ~key.key` removes a key; a key with a dot is quoted:
  `-o 'expect."test.loss".min=1'`.
- `--set-file key.key=FILE`: a setting that takes text gets what the file holds, without the last
  line end; any other reads the file as YAML, and its errors point into the file.

Both replace what stands at the key as a whole, a section too: `-o train={{epochs: 3}}` leaves all
other settings of `train` at their defaults, `-o train.epochs=3` leaves them as they are.
"""
_SHOW = {
    "model": "paddlecli model show NAME", "data set": "paddlecli dataset info NAME",
    "layer": "paddlecli layer show NAME", "loss": "paddlecli loss show NAME",
    "metric": "paddlecli metric show NAME", "optimizer": "paddlecli optimizer show NAME",
    "schedule": "paddlecli schedule show NAME",
}  # fmt: skip


def reference() -> str:
    """The page, Markdown."""
    places = _places()
    titles = {model: f"`{at[0]}`" if at[0] else "The recipe" for model, at in places.items()}
    parts = [_HEAD]
    for model, found in places.items():
        parts.append("\n".join(_section(model, found, titles)))
    return "\n".join(parts)


def _places() -> dict[type[BaseModel], list[str]]:
    """All sections in the order of the schema, and the keys that each may stand at."""
    found: dict[type[BaseModel], list[str]] = {}

    def visit(model: type[BaseModel], at: str) -> None:
        known = found.setdefault(model, [])
        if at not in known:
            known.append(at)
        if len(known) > 1:
            return
        for name, field in model.model_fields.items():
            key = field.alias or name
            for below, path in _inside(field.annotation, f"{at}.{key}" if at else key):
                visit(below, path)

    visit(Recipe, "")
    return {model: sorted(at, key=lambda a: (a.count("."), a)) for model, at in found.items()}


def _inside(annotation: Any, at: str) -> Iterator[tuple[type[BaseModel], str]]:
    """Sections in a type, with their keys: `model.inputs.<name>`, `metrics[]`."""
    target = shape.bare(annotation)
    origin, inside = get_origin(target), get_args(target)
    if isinstance(target, type) and issubclass(target, BaseModel):
        yield target, at
    elif origin is dict:
        yield from _inside(inside[1], f"{at}.<name>")
    elif origin in (list, tuple):
        yield from _inside(inside[0], f"{at}[]")
    elif origin in (Union, types.UnionType):
        for branch in inside:
            yield from _inside(branch, at)


def _section(
    model: type[BaseModel], at: list[str], titles: dict[type[BaseModel], str]
) -> Iterator[str]:
    yield f"## {titles[model]}" + (f" ({model.__name__})" if at[0] == "model" else "")
    yield ""
    yield " ".join((model.__doc__ or "").split())
    if len(at) > 1:
        yield f"Also at {', '.join(f'`{a}`' for a in at[1:])}."
    if issubclass(model, Named | Called):
        kind, command = model.kind, _SHOW.get(model.kind)
        where = "Beside these keys" if issubclass(model, Named) else "Below the name"
        more = f" (`{command}`)" if command else ""
        yield f"{where} stand the arguments of the {kind}{more}."
    yield ""
    if not model.model_fields:
        return
    yield "| key | type | default | meaning |"
    yield "| --- | --- | --- | --- |"
    for name, field in model.model_fields.items():
        words = _words(shape.field_type(field), titles)
        cells = [f"`{field.alias or name}`", words, _default(model, name, field)]
        text = " ".join(field_texts(model).get(name, "").split())
        yield "| " + " | ".join(c.replace("|", "\\|") for c in [*cells, text]) + " |"
    yield ""


def _words(annotation: Any, titles: dict[type[BaseModel], str]) -> str:
    """A type in words; sections are links."""
    found: list[str] = []
    for branch in _branches(annotation):
        target = shape.bare(branch)
        origin, inside = get_origin(target), get_args(target)
        if target in titles:
            found.append(_link(titles[target], target))
        elif origin is dict and inside[1] is not Any:
            found.append(f"a mapping of names to {_words(inside[1], titles)}")
        elif origin in (list, tuple) and _sections(inside[0]):
            found.append(f"a list of {_words(inside[0], titles)}")
        else:
            found.append(shape.describe([branch]))
    return " or ".join(dict.fromkeys(filter(None, found)))


def _branches(annotation: Any) -> list[Any]:
    """All alternatives of a type, whatever picks among them."""
    target = shape.bare(annotation)
    if get_origin(target) in (Union, types.UnionType):
        return [b for a in get_args(target) if a is not type(None) for b in _branches(a)]
    return [annotation]


def _sections(annotation: Any) -> bool:
    return next(_inside(annotation, ""), None) is not None


def _link(title: str, model: type[BaseModel]) -> str:
    heading = title + (f" ({model.__name__})" if title == "`model`" else "")
    kept = (c for c in heading.lower() if c.isalnum() or c in " -_")
    return f"[{title}](#{''.join(kept).replace(' ', '-')})"


def _default(model: type[BaseModel], name: str, field: FieldInfo) -> str:
    if model is Recipe and name == "name":
        return "the file's name"
    if field.is_required():
        return "**needed**"
    value = field.get_default(call_default_factory=True)
    if value is None or isinstance(value, BaseModel):
        return ""
    return f"`{json.dumps(writable(value), ensure_ascii=False)}`"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(reference(), encoding="utf-8")
