"""`paddlecli plan`: what is built from a recipe, stage by stage."""

from __future__ import annotations

from typing import Annotated

import typer

from paddlecli.cli import options as o

STAGES = ("graph", "gradients", "fused", "memory")

_Stage = Annotated[str, typer.Option("--stage", help=f"One of {', '.join(STAGES)}.")]


def command(
    name: o.RecipeName = None,
    config: o.Config = None,
    stage: _Stage = STAGES[0],
    override: o.Override = None,
    set_file: o.SetFile = None,
    device: o.Device = None,
    code: o.Code = None,
    as_json: o.Json = False,
) -> None:
    """Print what is built from a recipe: its network, gradients, fused steps, memory plan."""
    from paddlecli import settings
    from paddlecli.cli.output import print_json
    from paddlecli.compiler.optimizer import optimizers
    from paddlecli.compiler.pipeline import stages
    from paddlecli.engine import api
    from paddlecli.engine.passes import passes_for
    from paddlecli.engine.prepare import fields_of
    from paddlecli.errors import UsageError
    from paddlecli.models.build import build, telling

    if stage not in STAGES:
        raise UsageError(f"--stage {stage}: expected one of {', '.join(STAGES)}")
    source, overrides = o.recipe_of(config, name), o.changes(set_file, override)
    recipe = api.load_recipe(source, overrides, code=code or ())
    with telling(recipe), settings.flags(device=device):
        graph, passes = build(recipe, fields_of(recipe)), passes_for(recipe)
        text = stages(graph, optimizers(recipe), passes, recipe.train.accumulate > 1)[stage]
    if as_json:
        print_json({"schema": 1, "recipe": recipe.name, "stage": stage, "text": text})
    else:
        typer.echo(text, nl=not text.endswith("\n"))
