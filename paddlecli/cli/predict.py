"""`paddlecli predict`: a trained run applied to files, stdin or values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from paddlecli.cli import options as o

_Run = Annotated[
    str,
    typer.Argument(
        metavar="RUN", help="A run directory, an id, a recipe's name, `last`, or a model folder."
    ),
]
_Inputs = Annotated[
    list[str] | None,
    typer.Argument(metavar="INPUT", help="Files, folders, patterns, - for stdin."),
]
_Text = Annotated[
    list[str] | None, typer.Option("--text", help="A text, for networks that take one; repeatable.")
]
_Field = Annotated[
    list[str] | None,
    typer.Option("--field", metavar="NAME=VALUE", help="A value; all together are one input."),
]
_Output = Annotated[Path | None, typer.Option(help="Write JSON lines to this file.")]
_Preprocessed = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Write what the network sees of each input.")
]


def command(
    run: _Run,
    inputs: _Inputs = None,
    text: _Text = None,
    field: _Field = None,
    output: _Output = None,
    save_preprocessed: _Preprocessed = None,
    batch_size: o.BatchSize = None,
    threads: o.Threads = None,
    device: o.Device = None,
    code: o.Code = None,
    as_json: o.JsonLines = False,
    quiet: o.Quiet = False,
    verbose: o.Verbose = 0,
) -> None:
    """Apply a trained run to inputs: one record each, in order. Exit code 4 if any failed."""
    from paddlecli import settings
    from paddlecli.cli.output import tell
    from paddlecli.engine import api
    from paddlecli.engine.modeldir import described
    from paddlecli.engine.report import listed

    with settings.flags(debug=verbose or None):
        found = api.predict(
            run, inputs or (), fields=field or (), texts=text or (), batch_size=batch_size,
            save_preprocessed=save_preprocessed, code=code or (), threads=threads, device=device,
        )  # fmt: skip
    if not quiet:
        tell(f"model: {described(found.model.note)}")
        if "unofficial" in found.model.preprocessing:
            tell(f"note: {found.model.preprocessing['unofficial']}")
    with _writer(output, as_json) as write:
        for prediction in found:
            write(prediction.as_dict())
    if found.metrics() and not quiet:
        tell(f"{found.measured} labelled inputs: {listed(found.metrics())}")
    found.demand_all()


@contextmanager
def _writer(output: Path | None, as_json: bool) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Where records go: a file, or stdout as JSON lines or as text."""
    from paddlecli.engine.files import json_line, saving

    if output is None:
        yield lambda record: typer.echo(json_line(record) if as_json else _line(record))
        return
    with (
        saving(output, "make room, or give another --output"),
        output.open("w", encoding="utf-8") as file,
    ):

        def write(record: dict[str, Any]) -> None:
            file.write(json_line(record) + "\n")
            if as_json:
                typer.echo(json_line(record))

        yield write


def _line(record: dict[str, Any]) -> str:
    """A record for people."""
    notes = f"  ({'; '.join(record['notes'])})" if record.get("notes") else ""
    if "error" in record:
        why = str(record["error"]).removeprefix(f"{record['input']}: ")
        return f"{record['input']}: error: {why}"
    if "text" in record:
        found = record.get("sentences", [record])
        scored = (
            f"  {s['score']:8.3f}  {s['text'] or '(nothing)'}"
            if "score" in s
            else f"  {s['text'] or '(nothing)'}"
            for s in found
        )
        return "\n".join([f"{record['input']}{notes}", *scored])
    ranked = record.get("probabilities") or record.get("scores")
    if ranked:
        kind = "probability" if "probabilities" in record else "score"
        first, *rest = (f"{r['label']} {r[kind]:.4f}" for r in ranked)
        others = f"  then {', '.join(rest)}" if rest else ""
        return f"{record['input']}: {first}{others}{notes}"
    if "chunks" in record:
        chunks = "  ".join(f"[{c['label']} {c['words']}]" for c in record["chunks"])
        return f"{record['input']}: {chunks or 'nothing is marked'}{notes}"
    if "labels" in record:
        return f"{record['input']}: {' '.join(record['labels'])}{notes}"
    known = ("input", "prediction", "notes")
    unit = "".join(f"  {v:.2f} {k}" for k, v in record.items() if k not in known)
    return f"{record['input']}: {record['prediction']}{unit}{notes}"
