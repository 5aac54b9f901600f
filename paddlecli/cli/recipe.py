"""`paddlecli recipe list|cat|show|validate`: look at recipes without running them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paddlecli import assets
from paddlecli.cli.options import Code
from paddlecli.errors import ConfigError, Fault

if TYPE_CHECKING:
    from paddlecli.config.recipe import Recipe

app = typer.Typer(
    help="List, show and check recipes.",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

Name = Annotated[
    str,
    typer.Argument(metavar="RECIPE", help="A shipped recipe's name, ./FILE.yaml, or - (stdin)."),
]
Names = Annotated[
    list[str], typer.Argument(metavar="RECIPE...", help="Names, ./FILE.yaml, or - (stdin).")
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "-o", "--override", metavar="KEY=VALUE", help="Change a setting; may be repeated."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def list_recipes() -> list[dict[str, str]]:
    """Name and description of every shipped recipe. Loads neither the schema nor numpy."""
    return [{"name": n, "description": _description(n)} for n in assets.recipe_names()]


def _description(name: str) -> str:
    """The recipe's `description`, or that of the first recipe it extends which has one."""
    from paddlecli.config.yaml_text import Source, decode, parse

    path = assets.find("recipes", name)
    source = Source(name)
    root = parse(source) if path is not None and decode(path.read_bytes(), source) else None
    if root is None:
        return ""
    own = root.child("description")
    if own is not None:
        return str(own.value)
    extended = root.child("extends")
    bases = [str(n.value) for n in extended.items] if extended is not None else []
    return next(filter(None, (_description(b) for b in bases)), "")


def read_text(name: str) -> tuple[str, str]:
    """File and text of a shipped recipe or of a path, as it stands. Raises ConfigError."""
    from pathlib import Path

    from paddlecli.config.load import find_recipe

    path = find_recipe(name, Path.cwd())
    if isinstance(path, Fault):
        raise ConfigError.of([path], name)
    return str(path), path.read_text(encoding="utf-8-sig")


def load(name: str, overrides: Sequence[str] | None, code: Sequence[str] | None) -> Recipe:
    """The checked recipe, with the user's own code loaded before."""
    from paddlecli.config.load import load_recipe
    from paddlecli.config.plugins import load_code

    load_code(code or ())
    return load_recipe(name, overrides or ())


def check_all(
    names: Sequence[str], overrides: Sequence[str] | None, code: Sequence[str] | None
) -> list[str]:
    """Names of the recipes, all valid. Raises ConfigError with the faults of all that are not."""
    faults: list[Fault] = []
    wrong: list[str] = []
    for name in names:
        try:
            load(name, overrides, code)
        except ConfigError as error:
            if not error.faults:
                raise
            faults.extend(error.faults)
            wrong.append(name)
    if faults:
        # recipes share fragments: a fault in one of those is told once
        raise ConfigError.of(list(dict.fromkeys(faults)), ", ".join(wrong))
    return list(names)


def origins(recipe: Recipe) -> Iterator[dict[str, Any]]:
    """One record a resolved value: its key, the value and where it came from."""
    from paddlecli.config.nodes import dotted

    for path, value, origin in recipe.origins():
        yield {
            "key": dotted(path),
            "value": value,
            "origin": {
                "kind": origin.kind,
                "file": origin.file,
                "line": origin.line,
                "column": origin.column,
                "text": str(origin),
            },
        }


def _print_json(value: dict[str, Any]) -> None:
    typer.echo(json.dumps({"schema": 1, **value}, sort_keys=True, allow_nan=False))


@app.command("list")
def list_command(as_json: Json = False) -> None:
    """List the shipped recipes."""
    found = list_recipes()
    if as_json:
        _print_json({"recipes": found})
        return
    width = max((len(r["name"]) for r in found), default=0)
    for recipe in found:
        typer.echo(f"{recipe['name']:{width}}  {recipe['description']}".rstrip())


@app.command("cat")
def cat_command(recipe: Name, as_json: Json = False) -> None:
    """Print a recipe's file as it stands."""
    path, text = read_text(recipe)
    if as_json:
        _print_json({"file": path, "text": text})
        return
    typer.echo(text, nl=False)


@app.command("show")
def show_command(
    recipe: Name,
    override: Overrides = None,
    code: Code = None,
    origin: Annotated[
        bool, typer.Option("--origin", help="Print where each value came from.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Print a recipe with everything it extends, all defaults and overrides, resolved."""
    loaded = load(recipe, override, code)
    if origin:
        _show_origins(loaded, as_json)
        return
    if as_json:
        _print_json({"recipe": loaded.as_dict()})
        return
    typer.echo(loaded.to_yaml(), nl=False)


def _show_origins(recipe: Recipe, as_json: bool) -> None:
    found = list(origins(recipe))
    if as_json:
        _print_json({"values": found})
        return
    lines = [f"{r['key']}: {json.dumps(r['value'], ensure_ascii=False)}" for r in found]
    width = min(max(map(len, lines)), 60)
    for line, record in zip(lines, found, strict=True):
        typer.echo(f"{line:{width}}  # {record['origin']['text']}")


@app.command("validate")
def validate_command(
    recipe: Names, override: Overrides = None, code: Code = None, as_json: Json = False
) -> None:
    """Check recipes: keys, types, ranges and names. Exit code 3 and all faults for a wrong one."""
    names = check_all(recipe, override, code)
    if as_json:
        _print_json({"valid": names})
        return
    for name in names:
        typer.echo(f"{name}: valid")
