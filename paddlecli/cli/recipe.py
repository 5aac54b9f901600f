"""`paddlecli recipe`: look at recipes without running them, copy, compare and write them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paddlecli import assets
from paddlecli.cli import recipe_files
from paddlecli.cli.options import Code, Json, Override, SetFile, changes
from paddlecli.cli.output import tell
from paddlecli.cli.recipe_files import Name
from paddlecli.errors import ConfigError, Fault

if TYPE_CHECKING:
    from paddlecli.config.diff import Change
    from paddlecli.config.recipe import Recipe

app = typer.Typer(
    help="List, show, compare, check and write recipes.",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

Names = Annotated[
    list[str], typer.Argument(metavar="RECIPE...", help="Names, ./FILE.yaml, or - (stdin).")
]


def list_recipes() -> list[dict[str, str]]:
    """Name and description of every shipped recipe. Loads neither the schema nor numpy."""
    from paddlecli.config.shipped import written

    return [
        {"name": name, "description": str(written(name, "description") or "")}
        for name in assets.recipe_names()
    ]


def read_text(name: str) -> tuple[str, str]:
    """File and text of a shipped recipe or of a path, as it stands. Raises ConfigError."""
    from paddlecli.config.load import find_recipe
    from paddlecli.config.yaml_text import Source, decode, read
    from paddlecli.errors import Where

    path = find_recipe(name, Path.cwd())
    if isinstance(path, Fault):
        raise ConfigError.of([path], name)
    source = Source(str(path))
    try:
        raw = read(path)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigError.of(
            [Fault(f"cannot read the file: {reason}", Where(str(path)))], name
        ) from None
    if not decode(raw, source):
        raise ConfigError.of(source.text_faults, name)
    return str(path), raw.decode("utf-8-sig")


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
            _check_network(load(name, overrides, code))
        except ConfigError as error:
            if not error.faults:
                raise
            faults.extend(error.faults)
            wrong.append(name)
    if faults:
        # recipes share fragments: a fault in one of those is told once
        raise ConfigError.of(list(dict.fromkeys(faults)), ", ".join(wrong))
    return list(names)


def _check_network(recipe: Recipe) -> None:
    """Raises ConfigError where layers do not fit each other or the data, or something is watched that
    is not measured; nothing is said where the data's fields cannot be told without their files."""
    from paddlecli.config.schema_network import WrittenModel
    from paddlecli.engine.measures import watch_of
    from paddlecli.engine.prepare import fields_of, prepare
    from paddlecli.errors import DataError
    from paddlecli.models.build import build

    if recipe.data is None and not isinstance(recipe.model, WrittenModel):
        return
    try:
        fields = fields_of(recipe)
    except DataError:
        return
    watched = (recipe.early_stopping, recipe.checkpoint.monitor, recipe.train.stop_when)
    if recipe.optimizer is None or not any(watched) or not fields.sizes:
        build(recipe, fields)
    else:
        watch_of(prepare(recipe, fields), fields.sizes)


def origins(recipe: Recipe) -> Iterator[dict[str, Any]]:
    """One record a resolved value: its key, the value and where it came from."""
    from paddlecli.config.nodes import dotted

    for path, value, origin in recipe.origins():
        yield {"key": dotted(path), "value": value, "origin": origin.as_dict()}


def _print_json(value: dict[str, Any]) -> None:
    from paddlecli.cli.output import print_json

    print_json({"schema": 1, **value})


@app.command("list")
def list_command(as_json: Json = False) -> None:
    """List the shipped recipes."""
    found = list_recipes()
    if as_json:
        _print_json({"recipes": found})
        return
    from paddlecli.cli.output import table

    typer.echo("\n".join(table((r["name"], r["description"]) for r in found)))


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
    override: Override = None,
    set_file: SetFile = None,
    code: Code = None,
    origin: Annotated[
        bool, typer.Option("--origin", help="Print where each value came from.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Print a recipe with everything it extends, all defaults and overrides, resolved."""
    loaded = load(recipe, changes(set_file, override), code)
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
    recipe: Names,
    override: Override = None,
    set_file: SetFile = None,
    code: Code = None,
    as_json: Json = False,
) -> None:
    """Check recipes: keys, types, ranges, names, and that the layers fit each other and the data.
    Exit code 3 and all faults of the first stage that has any."""
    names = check_all(recipe, changes(set_file, override), code)
    if as_json:
        _print_json({"valid": names})
        return
    for name in names:
        typer.echo(f"{name}: valid")


app.command("copy")(recipe_files.copy_command)


@app.command("diff")
def diff_command(
    first: Annotated[str, typer.Argument(metavar="A", help="A recipe, a run, or `last`.")],
    second: Annotated[
        str | None, typer.Argument(metavar="B", help="Another one; A itself if left out.")
    ] = None,
    override: Annotated[
        list[str] | None,
        typer.Option("-o", "--override", metavar="KEY=VALUE", help="Change a setting of B."),
    ] = None,
    override_first: Annotated[
        list[str] | None,
        typer.Option("-a", "--override-a", metavar="KEY=VALUE", help="Change a setting of A."),
    ] = None,
    set_file: SetFile = None,
    code: Code = None,
    as_json: Json = False,
) -> None:
    """Compare two recipes or runs, setting by setting, with where each value came from.

    Exit code 0 whether they differ or not.
    """
    from paddlecli.cli import sources
    from paddlecli.config.diff import diff
    from paddlecli.config.plugins import load_code

    loaded = load_code(code or ())
    a = sources.load(first, override_first or (), loaded)
    b = sources.load(second or first, changes(set_file, override), loaded)
    found = diff(a, b)
    if as_json:
        _print_json(_diff_json(found, a, b))
        return
    for line in _diff_lines(found):
        typer.echo(line)
    if not found:
        tell("no setting differs")


def _diff_json(found: Sequence[Change], a: Recipe, b: Recipe) -> dict[str, Any]:
    by_kind: dict[str, list[Any]] = {"added": [], "removed": [], "changed": []}
    for change in found:
        if change.a is not None and change.b is not None:
            both = {"a": change.a.as_dict(), "b": change.b.as_dict()}
            by_kind["changed"].append({"key": change.b.key, **both})
        elif (side := change.a or change.b) is not None:
            by_kind[change.kind].append(side.as_dict())
    return {"a": a.source, "b": b.source, "same": not found, **by_kind}


def _diff_lines(found: Sequence[Change]) -> list[str]:
    rows = []
    for change in found:
        a, b = change.a, change.b
        values = " -> ".join(
            json.dumps(s.value, ensure_ascii=False) for s in (a, b) if s is not None
        )
        places = " -> ".join(str(s.origin) for s in (a, b) if s is not None)
        side = b or a
        assert side is not None
        sign = {"added": "+", "removed": "-", "changed": "~"}[change.kind]
        rows.append((f"{sign} {side.key}: {values}", places))
    width = min(max((len(r[0]) for r in rows), default=0), 60)
    return [f"{text:{width}}  # {place}" for text, place in rows]


app.command("schema")(recipe_files.schema_command)
app.command("new")(recipe_files.new_command)
