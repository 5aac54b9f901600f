"""`paddlecli predict`: a trained run applied to files, stdin or values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from paddlecli.cli import options as o

if TYPE_CHECKING:
    from paddlecli.engine.predict import Predictions

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
_From = Annotated[
    list[str] | None,
    typer.Option(
        "--from-file", metavar="FILE", help="Inputs from a file, one a line; - for stdin."
    ),
]
_Recursive = Annotated[
    bool, typer.Option(help="Look for files in the folders inside a folder too.")
]
_Top = Annotated[
    int | None, typer.Option("--top", min=1, help="Classes that are listed (the recipe's number).")
]
_Csv = Annotated[bool, typer.Option("--csv", help="Print CSV on stdout.")]
_Output = Annotated[
    Path | None, typer.Option(help="Write to this file: CSV if it ends in .csv, else JSON lines.")
]
_Metrics = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write metrics and confusions as JSON.")
]
_OnError = Annotated[
    Literal["skip", "stop"], typer.Option(help="What follows an input that cannot be predicted.")
]
_Preprocessed = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Write what the network sees of each input.")
]
_Samples = Annotated[
    int | None,
    typer.Option(min=1, help="Instead of inputs: so many, of a network that makes them up."),
]
_Seed = Annotated[int, typer.Option(min=0, help="Start of its random numbers.")]
_Pictures = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Write each output that is a picture, as PNG."),
]
_Grid = Annotated[Path | None, typer.Option(metavar="FILE", help="Write all of them into one PNG.")]


def command(
    run: _Run,
    inputs: _Inputs = None,
    text: _Text = None,
    field: _Field = None,
    from_file: _From = None,
    recursive: _Recursive = True,
    top: _Top = None,
    output: _Output = None,
    metrics: _Metrics = None,
    save_preprocessed: _Preprocessed = None,
    samples: _Samples = None,
    seed: _Seed = 0,
    pictures: _Pictures = None,
    grid: _Grid = None,
    on_error: _OnError = "skip",
    batch_size: o.BatchSize = None,
    threads: o.Threads = None,
    device: o.Device = None,
    code: o.Code = None,
    as_json: o.JsonLines = False,
    as_csv: _Csv = False,
    quiet: o.Quiet = False,
    verbose: o.Verbose = 0,
) -> None:
    """Apply a trained run to inputs: one record each, in order. Exit code 4 if any failed.

    Pictures in folders that are named after classes are also measured against them.
    """
    from paddlecli import settings
    from paddlecli.cli.output import aside, tell
    from paddlecli.engine import api
    from paddlecli.engine.modeldir import described

    _check_outputs(as_json, as_csv, metrics)
    with aside() as stdout:
        with settings.flags(debug=verbose or None):
            found = api.predict(
                run, inputs or (), fields=field or (), texts=text or (), batch_size=batch_size,
                save_preprocessed=save_preprocessed, lists=from_file or (), recursive=recursive, top=top,
                samples=samples, seed=seed, pictures=pictures, grid=grid, code=code or (), threads=threads,
                device=device,
            )  # fmt: skip
        if not quiet:
            tell(f"model: {described(found.model.note)}")
            if "unofficial" in found.model.preprocessing:
                tell(f"note: {found.model.preprocessing['unofficial']}")
        form = "json" if as_json else "csv" if as_csv else "text"
        with _writer(output, form, lambda line: typer.echo(line, file=stdout)) as write:
            for prediction in found:
                write(prediction.as_dict())
                if prediction.error is not None and on_error == "stop":
                    break
    if metrics is not None:
        from paddlecli.engine.files import json_page, replace

        replace(metrics, json_page(found.as_dict()))
    if not quiet:
        _tell_measured(found)
    found.demand_all()


def _check_outputs(as_json: bool, as_csv: bool, metrics: Path | None) -> None:
    from paddlecli.errors import UsageError

    if as_json and as_csv:
        raise UsageError("--json and --csv both say what stdout is", hint="choose one")
    if metrics is not None and not metrics.parent.is_dir():
        raise UsageError(f"--metrics {metrics}: there is no folder {metrics.parent}")


def _tell_measured(found: Predictions) -> None:
    """What came of inputs with labels, on stderr."""
    from paddlecli.cli.output import tell
    from paddlecli.engine.report import listed

    if found.metrics():
        tell(f"{found.measured} labelled inputs: {listed(found.metrics())}")
    for line in found.confusion.lines() if found.confusion is not None else ():
        tell(line)


Write = Callable[[dict[str, Any]], None]


@contextmanager
def _writer(output: Path | None, form: str, show: Callable[[str], None]) -> Iterator[Write]:
    """Where records go: a file, and what shows lines of JSON, CSV or, without a file, text."""
    from paddlecli.cli.csv_records import CsvRecords
    from paddlecli.engine.files import json_line, saving

    @contextmanager
    def written(form: str, put: Callable[[str], None]) -> Iterator[Write]:
        if form != "csv":
            yield lambda record: put(json_line(record) if form == "json" else _line(record))
            return
        table = CsvRecords(put)
        yield table.write
        table.finish()

    if output is None:
        with written(form, show) as write:
            yield write
        return
    kind = "csv" if output.suffix.lower() == ".csv" else "json"
    with (
        saving(output, "make room, or give another --output"),
        output.open("w", encoding="utf-8", newline="") as file,
        written(kind, lambda line: print(line, file=file)) as write,
        written(form, (lambda line: None) if form == "text" else show) as tell,
    ):

        def both(record: dict[str, Any]) -> None:
            write(record)
            tell(record)

        yield both


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
    if "shape" in record:
        return f"{record['input']}: {_picture(record)}{notes}"
    known = ("input", "prediction", "notes")
    unit = "".join(f"  {v:.2f} {k}" for k, v in record.items() if k not in known)
    return f"{record['input']}: {record['prediction']}{unit}{notes}"


def _picture(record: dict[str, Any]) -> str:
    """What is known of a picture, and where it was written."""
    if "classes" in record:
        found = ", ".join(f"{name} {share:.1%}" for name, share in record["classes"].items())
    else:
        found = ", ".join(f"{k} {record[k]:.4g}" for k in ("min", "mean", "max"))
    size = "x".join(map(str, record["shape"][-2:]))
    where = f"  {record['picture']}" if "picture" in record else ""
    return f"{size}, {found}{where}"
