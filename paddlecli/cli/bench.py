"""`paddlecli bench`: training steps timed on generated data."""

from __future__ import annotations

from typing import Annotated

import typer

from paddlecli.cli.options import Code, Device


def command(
    name: Annotated[
        str, typer.Argument(metavar="RECIPE", help="A shipped recipe's name or a file.")
    ],
    steps: Annotated[int, typer.Option(min=1, help="Steps to time, after a warm-up.")] = 200,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads of the core.")] = None,
    device: Device = None,
    profile: Annotated[
        bool, typer.Option("--profile", help="Print the time of every kernel.")
    ] = False,
    override: Annotated[
        list[str] | None,
        typer.Option("--override", "-o", metavar="KEY=VALUE", help="Change a setting."),
    ] = None,
    code: Code = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on stdout.")
    ] = False,
) -> None:
    """Time training steps on generated data of a recipe's shapes."""
    from paddlecli import settings
    from paddlecli.cli.output import print_json, tell
    from paddlecli.config.load import load_recipe
    from paddlecli.config.plugins import load_code
    from paddlecli.engine.bench import bench, table

    load_code(code or ())
    recipe = load_recipe(name, override or ())
    with settings.flags(threads=threads, device=device):
        found = bench(recipe, steps, profile=profile)
    if as_json:
        print_json(found.as_dict())
    else:
        typer.echo(
            f"{found.recipe}: {found.ms_per_step_median:.4g} ms a step (batch {found.batch_size}), "
            f"{found.samples_per_second:,.0f} samples/s, {found.threads} threads, {found.backend}/{found.level}\n"
            f"peak memory {found.peak_rss_mb:.0f} MB, start-up {found.startup_seconds:.2f} s"
        )
    if profile:
        tell(table(found.profile))
