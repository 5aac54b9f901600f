"""`paddlecli recommend`: the films that a trained recommender rates best for a user."""

from __future__ import annotations

from typing import Annotated

import typer

from paddlecli.cli import options as o

_User = Annotated[str, typer.Option("--user", metavar="ID", help="The user's number.")]
_Top = Annotated[int, typer.Option("--top", min=1, help="How many are listed.")]

_Rated = Annotated[
    bool,
    typer.Option("--include-rated", help="Rank films too that the user rated in the training."),
]


def command(
    run: o.Run,
    user: _User,
    top: _Top = 10,
    include_rated: _Rated = False,
    batch_size: o.BatchSize = None,
    threads: o.Threads = None,
    device: o.Device = None,
    code: o.Code = None,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Rank the films that a user has not rated, the best first."""
    from paddlecli import settings
    from paddlecli.cli.output import print_json, table, tell
    from paddlecli.config.plugins import load_code
    from paddlecli.engine.predict import model_of
    from paddlecli.engine.recommend import recommend

    files = load_code(code or ())
    with settings.flags(device=device):
        found = recommend(model_of(run, files), user, top, threads, batch_size, include_rated)
    if not quiet:
        for note in found.notes:
            tell(f"note: {note}")
    if as_json:
        lines = [line.as_dict() for line in found.best]
        print_json({"schema": 1, "for": found.given, "of": found.total, "notes": list(found.notes),
                    "best": lines})  # fmt: skip
        return
    if not quiet:
        tell(f"{found.given}: the best {len(found.best)} of {found.total}")
    if not found.best:
        return
    keys = [k for k in found.best[0].answer if k != "prediction"] or ["prediction"]
    rows = [
        (str(line.rank), *(f"{line.answer[k]:.4g}" for k in keys), str(line.id), line.name)
        for line in found.best
    ]
    head = ("", *(k.upper() for k in keys), "ID", "NAME")
    for text in table(rows, head, right=tuple(range(len(keys) + 2))):
        typer.echo(text)
