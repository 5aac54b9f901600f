"""`paddlecli bench`: training steps or forward passes timed on generated data."""

from __future__ import annotations

from typing import Annotated

import typer

from paddlecli.cli import options as o

_Steps = Annotated[int, typer.Option(min=1, help="Steps to time, after a warm-up.")]
_Predict = Annotated[bool, typer.Option("--predict", help="Time forward passes that predict.")]
_Profile = Annotated[bool, typer.Option("--profile", help="Print the time of every kernel.")]


def command(
    name: o.RecipeName = None,
    config: o.Config = None,
    override: o.Override = None,
    set_file: o.SetFile = None,
    steps: _Steps = 200,
    batch_size: o.BatchSize = None,
    seed: o.Seed = None,
    threads: o.Threads = None,
    device: o.Device = None,
    code: o.Code = None,
    predict: _Predict = False,
    profile: _Profile = False,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
    verbose: o.Verbose = 0,
) -> None:
    """Time training steps on generated data of a recipe's shapes."""
    from paddlecli import settings
    from paddlecli.cli.output import print_json, tell
    from paddlecli.engine import api
    from paddlecli.engine.bench import bench, table

    flags = {"train.batch_size": batch_size, "train.seed": seed}
    overrides = o.changes(set_file, override, flags)
    recipe = api.load_recipe(o.recipe_of(config, name), overrides, code=code or ())
    with settings.flags(threads=threads, device=device, debug=verbose or None):
        found = bench(recipe, steps, profile=profile or verbose > 1, predict=predict)
    if as_json:
        print_json(found.as_dict())
    else:
        typer.echo(found.text())
    if found.profile and not quiet:
        tell(table(found.profile))
