"""`paddlecli runs`: list, show and compare run directories, find the best."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paddlecli.cli.options import Json, Quiet, Run

if TYPE_CHECKING:
    from paddlecli.engine.runinfo import RunInfo
    from paddlecli.engine.runs import Comparison, Details

app = typer.Typer(
    help="List, show and compare run directories, find the best.",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_RunsDir = Annotated[
    str | None,
    typer.Option("--runs-dir", metavar="FOLDER", help="Folder that the runs are in (or below)."),
]
_Recipe = Annotated[str | None, typer.Option("--recipe", help="Only runs of this recipe.")]
_Status = Annotated[
    str | None, typer.Option("--status", help="Only completed, stopped, failed, killed ... runs.")
]
_Count = Annotated[
    int | None, typer.Option("-n", "--count", min=1, help="Only so many, the latest.")
]
_Metric = Annotated[
    str, typer.Option("--metric", metavar="SPLIT.NAME", help="Such as test.accuracy.")
]
_Mode = Annotated[str | None, typer.Option("--mode", help="min or max, where nobody can tell.")]
_Names = Annotated[
    list[str],
    typer.Argument(metavar="RUN...", help="Run directories, ids, recipes' names, or `last`."),
]
_TAIL = 12  # rows of the table of epochs that are shown


@app.command("list")
def list_command(
    recipe: _Recipe = None,
    status: _Status = None,
    count: _Count = None,
    runs_dir: _RunsDir = None,
    as_json: Json = False,
) -> None:
    """List the runs, the latest first."""
    from paddlecli import settings
    from paddlecli.cli.output import print_json, table, tell
    from paddlecli.engine.runs import catalogue

    with settings.flags(runs_dir=runs_dir):
        place = settings.runs_dir()
        found = catalogue(None if runs_dir is None else place, recipe, status)[:count]
    if as_json:
        print_json({"schema": 1, "runs_dir": str(place), "runs": [run.as_dict() for run in found]})
        return
    if not found:
        tell(f"no runs in {place}")
        return
    head = ("ID", "RECIPE", "STATUS", "STEPS", "METRIC", "TIME", "SIZE")
    for line in table(map(_row, found), head, right=(3, 5, 6)):
        typer.echo(line)
    for run in found:
        if run.problem:
            tell(f"{run.identity}: {run.problem}")


def _row(run: RunInfo) -> tuple[str, ...]:
    from paddlecli.engine.display import clock

    best = run.headline()
    return (
        run.identity,
        run.recipe,
        run.status,
        f"{run.steps:,}",
        "" if best is None else f"{best[0]} {best[1]:.5g}",
        "" if run.seconds is None else clock(run.seconds),
        _size(run.bytes),
    )


def _size(count: int) -> str:
    size, units = float(count), ("B", "kB", "MB", "GB")
    for unit in units:
        if size < 1000 or unit == units[-1]:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    raise AssertionError


@app.command("show")
def show_command(run: Run, runs_dir: _RunsDir = None, as_json: Json = False) -> None:
    """Show all of a run: what it is, its metrics, its checkpoints, what can be done with it."""
    from paddlecli import settings
    from paddlecli.cli.output import print_json, tell
    from paddlecli.engine import rundir
    from paddlecli.engine.runs import details

    with settings.flags(runs_dir=runs_dir):
        found = details(rundir.find(run))
    if as_json:
        print_json(found.as_dict())
        return
    for line in _shown(found):
        typer.echo(line)
    if found.info.problem:
        tell(f"warning: {found.info.problem}")


def _shown(found: Details) -> Iterator[str]:
    yield from _facts(found)
    drawn = _drawn(found)
    if drawn:
        yield from ("", "training loss", *drawn)
    if found.epochs:
        yield ""
        yield from _history(found)
    if found.checkpoints:
        yield ""
        yield from _checkpoints(found)
    commands = list(_commands(found))
    if commands:
        yield from ("", *commands)


def _facts(found: Details) -> Iterator[str]:
    info, facts = found.info, dict(found.facts)
    core, data = facts.get("core") or {}, facts.get("data") or {}
    best = info.best
    rows: list[tuple[str, Any]] = [
        ("run", info.path),
        ("recipe", info.recipe),
        ("status", _status(found)),
        ("started", facts.get("started")),
        ("resumed", facts.get("resumed")),
        ("ended", facts.get("finished")),
        ("trained", f"{info.epochs:,} epochs, {info.steps:,} steps"),
        ("parameters", f"{facts['parameters']:,}" if "parameters" in facts else None),
        ("data", " ".join([str(data.get("name", "")), *(f"{k} {v:,}" for k, v in (data.get("samples") or {}).items())])),
        ("machine", f"{core.get('backend')}/{core.get('level')}, {core.get('threads')} threads, {facts.get('platform')}" if core else None),
        ("versions", ", ".join(f"{k} {v}" for k, v in (facts.get("versions") or {}).items())),
        ("seed", facts.get("seed")),
        ("changed", ", ".join(facts.get("changed") or ())),
        ("started from", (facts.get("init_from") or {}).get("file")),
        ("code", ", ".join(str(c.get("path")) for c in facts.get("code") or ())),
        ("command", shlex.join(["paddlecli", *map(str, facts["arguments"])]) if facts.get("arguments") else None),
        ("best", None if best is None else f"{best.get('metric')} {best.get('value'):.6g} at step {best.get('step'):,} (epoch {best.get('epoch')})"),
        ("model", found.saved or "nothing was saved yet"),
        ("size", _size(info.bytes)),
    ]  # fmt: skip
    yield from (f"{name:12} {value}" for name, value in rows if value not in (None, ""))


def _status(found: Details) -> str:
    error = found.facts.get("error")
    return found.info.status + (f": {str(error).splitlines()[0]}" if error else "")


def _drawn(found: Details) -> list[str]:
    """The curve, where stdout is a terminal that can show it."""
    from shutil import get_terminal_size

    from paddlecli import settings
    from paddlecli.engine.curve import BLOCKS, curve

    if not settings.interactive(sys.stdout):
        return []
    try:
        BLOCKS.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return []
    return curve(found.losses, width=max(10, min(72, get_terminal_size().columns - 12)))


def _history(found: Details) -> Iterator[str]:
    from paddlecli.cli.output import table

    shown = found.epochs[-_TAIL:]
    names = list(dict.fromkeys(k for row in shown for k in row if k not in ("epoch", "step")))
    rows = [
        [str(row["epoch"]), f"{row['step']:,}", *(_number(row, name) for name in names)]
        for row in shown
    ]
    if len(shown) < len(found.epochs):
        yield f"the last {len(shown)} of {len(found.epochs)} epochs"
    yield from table(rows, ["EPOCH", "STEP", *names], right=range(len(names) + 2))


def _number(row: Any, name: str) -> str:
    if name not in row:
        return "-"
    return "nan" if row[name] is None else f"{row[name]:.5g}"


def _checkpoints(found: Details) -> Iterator[str]:
    from paddlecli.cli.output import table

    rows = [(c.name, _size(c.bytes), ", ".join(c.marks)) for c in found.checkpoints]
    yield from table(rows, ("CHECKPOINT", "SIZE", ""), right=(1,))


def _commands(found: Details) -> Iterator[str]:
    from paddlecli.engine.report import commands

    run = shlex.quote(str(found.info.path))
    yield from commands(run, found.roles if found.saved else frozenset())
    if found.info.status != "damaged":
        yield f"go on     paddlecli train --resume {run}"
    yield f"again     paddlecli train --config {run}/config.yaml"


@app.command("compare")
def compare_command(runs: _Names, runs_dir: _RunsDir = None, as_json: Json = False) -> None:
    """Show runs beside each other: the settings that differ, and their metrics."""
    from paddlecli import settings
    from paddlecli.cli.output import print_json
    from paddlecli.engine import rundir
    from paddlecli.engine.runs import compare

    with settings.flags(runs_dir=runs_dir):
        found = compare([rundir.find(run) for run in runs])
    if as_json:
        print_json(found.as_dict())
        return
    for line in _beside(found):
        typer.echo(line)


def _beside(found: Comparison) -> Iterable[str]:
    from paddlecli.cli.output import table

    rows: list[list[str]] = [
        ["recipe", *(run.recipe for run in found.runs)],
        ["status", *(run.status for run in found.runs)],
        ["steps", *(f"{run.steps:,}" for run in found.runs)],
    ]
    rows += [[key, *map(_plain, values)] for key, values in found.settings.items()]
    rows += [
        [name, *("-" if v is None else f"{v:.6g}" for v in values)]
        for name, values in found.metrics.items()
    ]
    return table(rows, ["", *(run.identity for run in found.runs)])


def _plain(value: Any) -> str:
    import json

    if value is None:
        return "-"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@app.command("best")
def best_command(
    metric: _Metric,
    recipe: _Recipe = None,
    mode: _Mode = None,
    runs_dir: _RunsDir = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Print the directory of the run whose saved parameters have the best value of a metric."""
    from paddlecli import settings
    from paddlecli.cli.output import print_json, tell
    from paddlecli.engine.runs import best, catalogue
    from paddlecli.errors import UsageError

    if mode not in (None, "min", "max"):
        raise UsageError(f"--mode {mode}: expected min or max")
    with settings.flags(runs_dir=runs_dir):
        place = None if runs_dir is None else settings.runs_dir()
        ranked = best(catalogue(place, recipe), metric, mode)  # type: ignore[arg-type]
    if as_json:
        print_json({
            "schema": 1,
            "metric": metric,
            "runs": [{**run.as_dict(), "value": run.value(metric)} for run in ranked],
        })  # fmt: skip
        return
    typer.echo(str(ranked[0].path))
    if not quiet:
        others = f", the best of {len(ranked)} runs" if len(ranked) > 1 else ""
        tell(f"{metric} {ranked[0].value(metric):.6g}{others}")
