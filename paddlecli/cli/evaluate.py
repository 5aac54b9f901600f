"""`paddlecli evaluate`: a trained run measured on a split of its data."""

from __future__ import annotations

from typing import Annotated

import typer

from paddlecli.cli.options import Code, Device


def command(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run directory, an id, or `last`.")],
    split: Annotated[
        str | None, typer.Option(help="Split; the one training evaluated if left out.")
    ] = None,
    minimum: Annotated[
        list[str] | None,
        typer.Option("--min", metavar="METRIC=X", help="Exit with 9 when the metric is below X."),
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads; results do not change.")
    ] = None,
    device: Device = None,
    code: Code = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on stdout.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Nothing but the result.")] = False,
) -> None:
    """Measure a trained run: the same numbers that training reported."""
    from paddlecli import settings
    from paddlecli.cli.output import pairs, print_json, tell
    from paddlecli.config.plugins import load_code
    from paddlecli.engine import rundir
    from paddlecli.engine.evaluate import demand, evaluate
    from paddlecli.engine.files import flagged

    demands = pairs("--min", minimum or ())
    loaded = load_code(code or ())
    with settings.flags(threads=threads, device=device):
        found = evaluate(
            rundir.find(run), split, say=(lambda text: None) if quiet else tell, code=loaded
        )
    if as_json:
        result = {
            "schema": 1,
            "split": found.split,
            "samples": found.samples,
            "metrics": found.metrics,
        }
        print_json(flagged(result))
    else:
        typer.echo(f"{found.split}: {found.samples} samples")
        for name, value in sorted(
            found.metrics.items(), key=lambda item: (item[0] != "loss", item[0])
        ):
            typer.echo(f"{name}: {value:.9g}")
    demand(found.metrics, demands)
