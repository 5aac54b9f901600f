"""`paddlecli plan`: what is built from a recipe, stage by stage."""

from __future__ import annotations

from typing import Annotated

import typer

from paddlecli.cli.options import Code

STAGES = ("graph", "gradients", "fused", "memory")


def command(
    name: Annotated[
        str, typer.Argument(metavar="RECIPE", help="A shipped recipe's name or a file.")
    ],
    stage: Annotated[str, typer.Option(help=f"One of {', '.join(STAGES)}.")] = STAGES[0],
    override: Annotated[
        list[str] | None,
        typer.Option("--override", "-o", metavar="KEY=VALUE", help="Change a setting."),
    ] = None,
    code: Code = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on stdout.")
    ] = False,
) -> None:
    """Print what is built from a recipe: its network, gradients, fused steps, memory plan."""
    from paddlecli.cli.output import print_json
    from paddlecli.compiler.optimizer import optimizers
    from paddlecli.compiler.pipeline import stages
    from paddlecli.config.load import load_recipe
    from paddlecli.config.plugins import load_code
    from paddlecli.engine.prepare import fields_of
    from paddlecli.errors import UsageError
    from paddlecli.models.build import build

    if stage not in STAGES:
        raise UsageError(f"--stage {stage}: expected one of {', '.join(STAGES)}")
    load_code(code or ())
    recipe = load_recipe(name, override or ())
    text = stages(build(recipe, fields_of(recipe)), optimizers(recipe))[stage]
    if as_json:
        print_json({"schema": 1, "recipe": recipe.name, "stage": stage, "text": text})
    else:
        typer.echo(text, nl=not text.endswith("\n"))
