"""`paddlecli train`: a recipe to a trained model, or a run continued."""

from __future__ import annotations

from contextlib import redirect_stdout, suppress
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from paddlecli.cli import options as o

if TYPE_CHECKING:
    from paddlecli.engine.dryrun import DryRun
    from paddlecli.engine.report import Result

CLASS = o.OptionalValues

_Resume = Annotated[
    str | None,
    typer.Option(metavar="[RUN]", help="Continue a run; without RUN the (recipe's) last one."),
]
_RunDir = Annotated[
    str | None, typer.Option(metavar="FOLDER", help="Folder to write; a fresh one if left out.")
]
_Name = Annotated[
    str | None, typer.Option("--name", help="Name of the runs' folder (-o name=...).")
]
_Force = Annotated[bool, typer.Option("--force", help="Move a used run directory aside.")]
_Epochs = Annotated[int | None, typer.Option(help="Epochs (-o train.epochs=N).")]
_LimitBatches = Annotated[
    int | None, typer.Option(help="Batches an epoch (-o train.limit_batches=N).")
]
_Overfit = Annotated[
    int | None,
    typer.Option(metavar="N", help="Learn the first N batches only (-o train.overfit=N)."),
]
_InitFrom = Annotated[
    str | None,
    typer.Option(metavar="RUN|FILE", help="Start from weights (-o train.init_from=...)."),
]
_AllowPartial = Annotated[
    bool, typer.Option("--allow-partial", help="Take the weights that fit, leave the others.")
]
_MaxTime = Annotated[
    str | None, typer.Option(metavar="DURATION", help="Save and stop after 90s, 20m, 2h ...")
]
_Streamed = Annotated[
    bool, typer.Option("--streamed", help="Gather batches outside the core; same result.")
]
_Profile = Annotated[bool, typer.Option("--profile", help="Print the time of every kernel.")]
_DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Check everything up to step 1; write nothing.")
]
_LogFile = Annotated[
    str | None, typer.Option(metavar="FILE", help="Add all that is said to this file too.")
]
_NoProgress = Annotated[bool, typer.Option("--no-progress", help="Summary only, no progress.")]


def command(
    name: o.RecipeName = None,
    config: o.Config = None,
    override: o.Override = None,
    set_file: o.SetFile = None,
    resume: _Resume = None,
    run_dir: _RunDir = None,
    run_name: _Name = None,
    force: _Force = False,
    epochs: _Epochs = None,
    batch_size: o.BatchSize = None,
    seed: o.Seed = None,
    limit_batches: _LimitBatches = None,
    overfit: _Overfit = None,
    init_from: _InitFrom = None,
    allow_partial: _AllowPartial = False,
    max_time: _MaxTime = None,
    threads: o.Threads = None,
    device: o.Device = None,
    code: o.Code = None,
    cache_dir: o.CacheDir = None,
    offline: o.Offline = False,
    streamed: _Streamed = False,
    profile: _Profile = False,
    dry_run: _DryRun = False,
    log_file: _LogFile = None,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
    no_progress: _NoProgress = False,
    verbose: o.Verbose = 0,
) -> int:
    """Train a recipe, or continue a run with --resume."""
    from paddlecli import settings
    from paddlecli.cli.output import aside, duration
    from paddlecli.engine import api
    from paddlecli.engine.display import choose
    from paddlecli.errors import UsageError

    overrides = o.changes(set_file, override, {
        "train.epochs": epochs, "train.batch_size": batch_size, "train.seed": seed, "name": run_name,
        "train.limit_batches": limit_batches, "train.overfit": overfit, "train.init_from": init_from,
        "train.allow_partial": "true" if allow_partial else None,
    })  # fmt: skip
    with (
        settings.flags(debug=verbose or None, cache_dir=cache_dir, offline=offline or None),
        aside(as_json) as stdout,
    ):
        if dry_run:
            if resume is not None:
                raise UsageError("--dry-run checks a new training", hint="leave out --resume")
            source = o.recipe_of(config, name)
            plan = api.check(source, overrides, code=code or (), threads=threads, device=device)
            _print_plan(plan, as_json, stdout)
            return 0
        return api.fit(
            o.given_recipe(config, name), overrides, resume=o.value_of(resume), run_dir=run_dir,
            force=force, code=code or (), threads=threads, device=device, max_seconds=duration(max_time), streamed=streamed,
            profile=profile, display=choose(quiet, not no_progress), log_file=log_file,
            told=lambda result: _report(result, as_json, quiet, stdout),
        ).exit_code  # fmt: skip


def _print_plan(plan: DryRun, as_json: bool, stdout: TextIO) -> None:
    from paddlecli.cli.output import print_json, tell

    with redirect_stdout(stdout):
        print_json(plan.as_dict()) if as_json else tell(plan.text())


def _report(result: Result, as_json: bool, quiet: bool, stdout: TextIO) -> None:
    from paddlecli.cli.output import end_streams

    try:
        with redirect_stdout(stdout):
            _print(result, as_json, quiet)
    except OSError:
        with suppress(OSError):
            end_streams()
        # a run that a closed terminal ended says so by its exit code, where nobody reads
        if not result.exit_code:
            raise


def _print(result: Result, as_json: bool, quiet: bool) -> None:
    from paddlecli.cli.output import print_json, tell

    if as_json:
        print_json(result.as_dict())
    if not quiet:
        tell(result.text())
    if result.profile:
        from paddlecli.engine.bench import table

        tell(table(result.profile))
