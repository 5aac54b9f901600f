"""`paddlecli model list|show|summary`: networks by name, and what they cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from paddlecli.cli.options import BatchSize, Code, Device, Json, Override, SetFile, changes

if TYPE_CHECKING:
    from paddlecli.config.recipe import Recipe
    from paddlecli.engine.summary import Summary
    from paddlecli.graph.ir import Graph

app = typer.Typer(
    help="List, show and measure networks.",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

BACKBONES, PICTURES = "paddlecli.models.backbones.", "bench/resnet18"
"""Networks that take any pictures, and the recipe whose pictures `--model` gives those that no recipe
trains."""


@app.command("list")
def list_command(code: Code = None, as_json: Json = False) -> None:
    """List the networks that recipes may name."""
    from paddlecli.cli.output import print_json, table
    from paddlecli.cli.registry import listed

    found = listed("model", code or ())
    if as_json:
        print_json({"schema": 1, "kind": "model", "models": found})
    else:
        typer.echo("\n".join(table((e["name"], e["summary"]) for e in found)))


@app.command("show")
def show_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="One that `list` lists.")],
    code: Code = None,
    as_json: Json = False,
) -> None:
    """Show a network: what it is, its arguments, the recipes that train it."""
    from paddlecli.cli.output import print_json
    from paddlecli.cli.registry import blocks, described
    from paddlecli.config.shipped import users_of

    found = {**described("model", name, code or ()), "recipes": users_of(name)}
    if as_json:
        print_json({"schema": 1, **found})
        return
    recipes = f"recipes  {', '.join(found['recipes']) or 'none that ships'}"
    typer.echo("\n\n".join([*blocks(found), recipes]))


@app.command("summary")
def summary_command(
    source: Annotated[
        str | None,
        typer.Argument(metavar="RECIPE|RUN", help="A recipe, a run directory, or `last`."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", metavar="NAME", help="A network by its name, without a recipe."),
    ] = None,
    override: Override = None,
    set_file: SetFile = None,
    batch_size: BatchSize = None,
    length: Annotated[
        int | None, typer.Option(min=1, help="Rows of every sequence, for ragged inputs.")
    ] = None,
    device: Device = None,
    code: Code = None,
    as_json: Json = False,
) -> None:
    """Print the layers of a network: shapes, parameters, work and memory.

    A multiply-add counts as two operations, and only products count.
    """
    from paddlecli import settings
    from paddlecli.cli.output import print_json
    from paddlecli.config.plugins import load_code
    from paddlecli.engine.summary import summarize
    from paddlecli.errors import UsageError

    if (source is None) == (model is None):
        raise UsageError("give a recipe, a run, or --model NAME", hint="paddlecli model list")
    loaded = load_code(code or ())
    if source is None:
        recipe, graph = _by_name(str(model), changes(set_file, override))
    else:
        recipe, graph = _of(source, changes(set_file, override), loaded)
    with settings.flags(device=device):
        found = summarize(recipe, graph, batch_size, length)
    if as_json:
        print_json(found.as_dict())
    else:
        typer.echo("\n".join(_lines(found)))


def _of(source: str, overrides: list[str], code: Any) -> tuple[Recipe, Graph]:
    """Settings and network of a recipe, or of a run: there the stored network is the one."""
    from paddlecli.cli import sources
    from paddlecli.engine import modeldir
    from paddlecli.engine.prepare import fields_of
    from paddlecli.models.build import build

    run, recipe = sources.run_of(source), sources.load(source, overrides, code)
    if run is not None and (run.model / modeldir.GRAPH).is_file():
        return recipe, modeldir.read_graph(run.model)
    return recipe, build(recipe, fields_of(recipe))


def _by_name(name: str, overrides: list[str]) -> tuple[Recipe, Graph]:
    """A registered network with its own defaults, on the data of the first recipe that trains it and
    whose fields are known without files of the user's."""
    from paddlecli.config import shipped
    from paddlecli.config.compose import Preset
    from paddlecli.config.load import load_recipe
    from paddlecli.config.registry import MODELS
    from paddlecli.engine.prepare import fields_of
    from paddlecli.errors import DataError, UsageError
    from paddlecli.models.build import build

    pictures = MODELS.get(name).module.startswith(BACKBONES)
    own = any(o.startswith(("data=", "data.")) for o in overrides)
    alone = [Preset(o) for o in ("~model", f"model.name={name}", f"name={name}")]
    if any(o.startswith(("data=", "data.name=")) for o in overrides):
        alone.append(Preset("~data"))
    users = shipped.users_of(name)
    for user in users or ([shipped.BASE] if own else [PICTURES] if pictures else []):
        recipe = load_recipe(user, [*alone, *overrides])
        try:
            fields = fields_of(recipe)
        except DataError:
            if own:
                raise
            continue
        return recipe, build(recipe, fields)
    listed = ", ".join(users)
    why = f"only recipes for data of your own train `{name}` ({listed})" if users else ""
    raise UsageError(
        f"{why or f'no shipped recipe trains `{name}`'}, so its inputs are not known",
        hint="give a data set with -o data.name=NAME, or summarize a recipe of yours",
    )


_HEAD = ("layer", "kind", "output", "parameters", "FLOPs", "FLOPs/step", "kept")


def _lines(found: Summary) -> list[str]:
    """The table for people, exact where a number is a count, three digits where it is an amount."""
    from paddlecli.cli.output import table

    length = f", sequences of {found.length:,}" if found.length else ""
    lines = [f"{found.name}: batch of {found.batch_size:,}{length}", ""]
    rows = [
        (
            layer.path or "-", layer.kind, layer.output.removeprefix("f32"), _count(layer.parameters),
            amount(layer.flops), amount(layer.step_flops), amount(layer.activation_bytes, "B"),
        )
        for layer in found.layers
    ]  # fmt: skip
    lines += [*table(rows, _HEAD, range(3, 7)), ""]
    t, memory = found.totals, found.memory
    frozen = f"{t['frozen']:,} frozen" if t["frozen"] else "all trainable"
    if not found.trained:
        frozen = "nothing trains them here"
    step = f", {amount(t['step_flops'])} a training step" if found.trained else ""
    kept = (
        f", of it {amount(t['activation_bytes'], 'B')} kept for gradients" if found.trained else ""
    )
    return [
        *lines,
        f"parameters  {t['parameters']:,} ({frozen}), {amount(memory.weights, 'B')} of weights in a saved model",
        f"FLOPs       {amount(t['flops'])} a sample forward{step} (multiply-add = 2, products only)",
        f"memory      {amount(memory.plan, 'B')} for inputs and temporaries{kept}",
        f"            {amount(memory.state, 'B')} for parameters, gradients, optimizer and other state",
    ]


def _count(number: int) -> str:
    return f"{number:,}" if number else "-"


def amount(number: int, unit: str = "") -> str:
    """`627 M`, `1.72 MB`: three digits; `-` for nothing."""
    value, prefix = float(number), ""
    for larger in "kMGTP":
        if abs(value) < 999.5:
            break
        value, prefix = value / 1000, larger
    if not number:
        return "-"
    text = f"{value:.0f}" if not prefix else f"{value:.3g}"
    return f"{text} {prefix}{unit}".rstrip()
