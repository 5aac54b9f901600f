"""`paddlecli predict`: a trained run applied to files, stdin or values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paddlecli.cli.options import Code, Device

if TYPE_CHECKING:
    from paddlecli.data.records import Record


def command(
    run: Annotated[
        str,
        typer.Argument(metavar="RUN", help="A run directory, an id, `last`, or a model folder."),
    ],
    inputs: Annotated[
        list[str] | None,
        typer.Argument(metavar="INPUT", help="Files, folders, patterns, - for stdin."),
    ] = None,
    text: Annotated[
        list[str] | None, typer.Option(help="A text, for networks that take one.")
    ] = None,
    field: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A value; all together are one input."),
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Write JSON lines to this file.")] = None,
    save_preprocessed: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write what the network sees of each input.")
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads; results do not change.")
    ] = None,
    device: Device = None,
    code: Code = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines on stdout.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No remarks on stderr.")] = False,
) -> None:
    """Apply a trained run to inputs: one record each, in order. Exit code 4 if any failed."""
    from paddlecli import settings
    from paddlecli.cli.output import tell
    from paddlecli.config.plugins import load_code
    from paddlecli.data.inputs import read_inputs
    from paddlecli.engine.modeldir import described
    from paddlecli.engine.predict import Predictor, model_of
    from paddlecli.engine.report import listed
    from paddlecli.errors import DataError

    load_code(code or ())
    model = model_of(run)
    records = read_inputs(model.preprocessing, inputs or (), field or (), text or ())
    if save_preprocessed is not None:
        records = _saving(records, save_preprocessed)
    with settings.flags(threads=threads, device=device):
        predictor = Predictor(model)
    if not quiet:
        tell(f"model: {described(model.note)}")
    total = failed = 0
    with _writer(output, as_json) as write:
        for prediction in predictor.run(records):
            total += 1
            failed += prediction.error is not None
            write(prediction.as_dict())
    if predictor.metrics() and not quiet:
        tell(f"{predictor.measured} labelled inputs: {listed(predictor.metrics())}")
    if failed:
        raise DataError(f"{failed} of {total} inputs could not be predicted; their records say why")


def _saving(records: Iterator[Record], folder: Path) -> Iterator[Record]:
    from paddlecli.data.inputs import save_preprocessed

    for number, record in enumerate(records, 1):
        if record.error is None:
            save_preprocessed(record, folder, number)
        yield record


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
        return f"{record['input']}: error: {record['error']}"
    ranked = record.get("probabilities") or record.get("scores")
    if ranked:
        kind = "probability" if "probabilities" in record else "score"
        first, *rest = (f"{r['label']} {r[kind]:.4f}" for r in ranked)
        others = f"  then {', '.join(rest)}" if rest else ""
        return f"{record['input']}: {first}{others}{notes}"
    if "labels" in record:
        return f"{record['input']}: {' '.join(record['labels'])}{notes}"
    return f"{record['input']}: {record['prediction']}{notes}"
