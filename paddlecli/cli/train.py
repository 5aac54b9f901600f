"""`paddlecli train`: a recipe to a trained model, or a run continued."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from paddlecli.cli.options import Code, Device

if TYPE_CHECKING:
    from paddlecli.engine.fit import Options
    from paddlecli.engine.report import Result


def command(
    name: Annotated[
        str | None,
        typer.Argument(metavar="RECIPE", help="A shipped recipe's name or a file (as --config)."),
    ] = None,
    config: Annotated[
        str | None,
        typer.Option("--config", "-c", help="Recipe: a shipped name, a file, or - for stdin."),
    ] = None,
    override: Annotated[
        list[str] | None,
        typer.Option("--override", "-o", metavar="KEY=VALUE", help="Change a setting."),
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="Continue a run: a path, an id, or the word `last`."),
    ] = None,
    run_dir: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Folder to write; a fresh one if left out.")
    ] = None,
    run_name: Annotated[
        str | None, typer.Option("--name", help="Name of the runs' folder (-o name=...).")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Move a used run directory aside.")
    ] = False,
    epochs: Annotated[int | None, typer.Option(help="Epochs (-o train.epochs=N).")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed (-o train.seed=N).")] = None,
    limit_batches: Annotated[
        int | None, typer.Option(help="Batches an epoch (-o train.limit_batches=N).")
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads; results do not change.")
    ] = None,
    device: Device = None,
    code: Code = None,
    max_time: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Save and stop after 90s, 30m, 2h ...")
    ] = None,
    streamed: Annotated[
        bool, typer.Option("--streamed", help="Gather batches outside the core; same result.")
    ] = False,
    profile: Annotated[
        bool, typer.Option("--profile", help="Print the time of every kernel.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check everything up to step 1; write nothing.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on stdout.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no summary.")] = False,
    no_progress: Annotated[
        bool, typer.Option("--no-progress", help="Summary only, no progress.")
    ] = False,
) -> int:
    """Train a recipe, or continue a run with --resume."""
    from paddlecli import settings
    from paddlecli.cli.output import duration, recipe_name
    from paddlecli.config.plugins import load_code
    from paddlecli.engine.fit import Options
    from paddlecli.errors import UsageError

    flags = {
        "train.epochs": epochs,
        "train.seed": seed,
        "train.limit_batches": limit_batches,
        "name": run_name,
    }
    overrides = [*(override or ()), *(f"{k}={v}" for k, v in flags.items() if v is not None)]
    if run_dir == "":
        raise UsageError("--run-dir is empty", hint="leave it out for a fresh folder")
    options = Options(
        run_dir=None if run_dir is None else Path(run_dir), force=force, streamed=streamed, max_seconds=duration(max_time), profile=profile,
        code=load_code(code or ()),
    )  # fmt: skip
    with settings.flags(threads=threads, device=device):
        if resume is not None:
            if config is not None or name is not None or run_dir is not None or force or dry_run:
                raise UsageError("--resume takes the run's own recipe and directory",
                                 hint="leave out RECIPE, --config, --run-dir, --force and --dry-run")  # fmt: skip
            return _train(resume, "", overrides, options, as_json, quiet, no_progress)
        source = recipe_name(config, name)
        if dry_run:
            return _check(source, overrides, as_json)
        return _train(None, source, overrides, options, as_json, quiet, no_progress)


def _train(
    run: str | None, source: str, overrides: list[str], options: Options, as_json: bool, quiet: bool,
    no_progress: bool,
) -> int:  # fmt: skip
    from dataclasses import replace

    from paddlecli.config.load import load_recipe
    from paddlecli.engine import display, rundir
    from paddlecli.engine.fit import fit, resume

    shown = display.choose(quiet, not no_progress)
    told = replace(options, told=lambda result: _report(result, as_json, quiet))
    if run is not None:
        return resume(rundir.find(run), overrides, told, shown).exit_code
    return fit(load_recipe(source, overrides), told, shown).exit_code


def _report(result: Result, as_json: bool, quiet: bool) -> None:
    from paddlecli.cli.output import print_json, tell

    if as_json:
        print_json(result.as_dict())
    if not quiet:
        tell(result.text())
    if result.profile:
        from paddlecli.engine.bench import table

        tell(table(result.profile))


def _check(source: str, overrides: list[str], as_json: bool) -> int:
    from paddlecli.cli.output import print_json, tell
    from paddlecli.config.load import load_recipe
    from paddlecli.engine.dryrun import check

    found = check(load_recipe(source, overrides))
    if as_json:
        print_json(found.as_dict())
    else:
        tell(found.text())
    return 0
