"""`paddlecli evaluate`: a trained run measured on a split of its data."""

from __future__ import annotations

from typing import Annotated

import typer

from paddlecli.cli import options as o

_Split = Annotated[str | None, typer.Option(help="Split; the one training evaluated if left out.")]
_Min = Annotated[
    list[str] | None,
    typer.Option("--min", metavar="METRIC=X", help="Exit code 9 if it is below X; repeatable."),
]
_Max = Annotated[
    list[str] | None,
    typer.Option("--max", metavar="METRIC=X", help="Exit code 9 if it is above X; repeatable."),
]


def command(
    run: o.Run,
    split: _Split = None,
    minimum: _Min = None,
    maximum: _Max = None,
    batch_size: o.BatchSize = None,
    threads: o.Threads = None,
    device: o.Device = None,
    code: o.Code = None,
    cache_dir: o.CacheDir = None,
    offline: o.Offline = False,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
    verbose: o.Verbose = 0,
) -> None:
    """Measure a trained run: the same numbers that training reported."""
    from paddlecli import settings
    from paddlecli.cli.output import aside, pairs, print_json, tell
    from paddlecli.engine import api

    with (
        settings.flags(debug=verbose or None, cache_dir=cache_dir, offline=offline or None),
        aside(as_json),
    ):
        found = api.evaluate(
            run, split, batch_size=batch_size, least=pairs("--min", minimum or ()), most=pairs("--max", maximum or ()),
            code=code or (), threads=threads, device=device, say=(lambda text: None) if quiet else tell,
        )  # fmt: skip
    if as_json:
        print_json(found.as_dict())
    else:
        typer.echo(found.text())
    found.demand()
