"""`paddlecli embeddings`: what a run learned about words and other things that have vectors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from paddlecli.cli.options import Code, Json, Quiet, Run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from paddlecli.engine.embeddings import Near, Table

app = typer.Typer(
    help="Neighbours, analogies and pictures of learned vectors.",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_Word = Annotated[str, typer.Argument(metavar="WORD", help="A word, or what else has a vector.")]
_Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="WORD...",
        help="Words; the first ones, in dictionaries the most frequent, if left out.",
    ),
]
_Top = Annotated[int, typer.Option("--top", min=1, help="How many are listed.")]
_Table = Annotated[
    str | None,
    typer.Option("--table", metavar="NAME", help="Which table, where there are several."),
]
_Picture = Annotated[
    Path, typer.Option("--output", metavar="FILE.png", help="Where the picture goes.")
]
_Method = Annotated[str, typer.Option("--method", metavar="METHOD", help="pca or tsne.")]
_Count = Annotated[int, typer.Option("--count", min=2, help="How many, when none are named.")]
_File = Annotated[Path, typer.Option("--output", metavar="FILE", help="Where the vectors go.")]


def _table(run: str, name: str | None, code: Sequence[str] | None) -> Table:
    from paddlecli.config.plugins import load_code
    from paddlecli.engine.embeddings import table_of
    from paddlecli.engine.predict import model_of

    return table_of(model_of(run, load_code(code or ())), name)


def _print(found: Sequence[Near], table: Table, as_json: bool) -> None:
    from paddlecli.cli.output import print_json

    if as_json:
        print_json({**_head(table), "nearest": [n.as_dict() for n in found]})
        return
    for near in found:
        typer.echo(f"{near.cosine:7.4f}  {near.name}")


def _head(table: Table) -> dict[str, object]:
    """What the JSON of all these commands begins with; `of` is what a row is about, such as `word` or `film`."""
    return {"schema": 1, "table": table.name, "of": table.what}


@app.command("neighbors")
def neighbors(
    run: Run, word: _Word, top: _Top = 10, table: _Table = None, code: Code = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """The words, films or others whose vectors are nearest to one's, by cosine."""
    found = _table(run, table, code)
    _print(found.neighbors(word, top), found, as_json)


@app.command("similarity")
def similarity(
    run: Run, one: _Word, other: _Word, table: _Table = None, code: Code = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """The cosine of two words' vectors."""
    from paddlecli.cli.output import print_json

    found = _table(run, table, code)
    cosine = found.similarity(one, other)
    if as_json:
        print_json({**_head(found), "names": [one, other], "cosine": cosine})
    else:
        typer.echo(f"{cosine:.4f}")


@app.command("analogy")
def analogy(
    run: Run, one: _Word, other: _Word, third: _Word, top: _Top = 10, table: _Table = None,
    code: Code = None, as_json: Json = False,
) -> None:  # fmt: skip
    """Words that are to the third what the second is to the first."""
    found = _table(run, table, code)
    _print(found.analogy(one, other, third, top), found, as_json)


@app.command("project")
def project(
    run: Run, words: _Words = None, output: _Picture = Path("embeddings.png"),
    method: _Method = "pca", count: _Count = 200, table: _Table = None, code: Code = None,
    as_json: Json = False, quiet: Quiet = False,
) -> None:  # fmt: skip
    """A picture of words in two dimensions, and their points."""
    from paddlecli.cli.output import print_json, tell
    from paddlecli.engine.embeddings import neighbourly, picture, principal
    from paddlecli.errors import UsageError

    ways = {"pca": principal, "tsne": neighbourly}
    if method not in ways:
        raise UsageError(f"--method {method}: expected {' or '.join(ways)}")
    found = _table(run, table, code)
    names, vectors = found.chosen(words or (), count)
    if len(names) < 2:
        raise UsageError(f"a picture needs two {found.what}s or more")
    points = ways[method](vectors)
    picture(names, points, output)
    if as_json:
        shown = [
            {"name": n, "x": x, "y": y} for n, (x, y) in zip(names, points.tolist(), strict=True)
        ]
        print_json({**_head(found), "picture": str(output), "points": shown})
    elif not quiet:
        tell(f"{len(names)} {found.what}s of the table {found.name}: {output}")


@app.command("export")
def export_command(
    run: Run, output: _File = Path("vectors.txt"), table: _Table = None, code: Code = None,
    as_json: Json = False, quiet: Quiet = False,
) -> None:  # fmt: skip
    """Write all vectors in word2vec's text format."""
    from paddlecli.cli.output import print_json, tell
    from paddlecli.engine.embeddings import export

    found = _table(run, table, code)
    export(found, output)
    size, width = found.vectors.shape
    if as_json:
        print_json({**_head(found), "file": str(output), "vectors": size, "width": width})
    elif not quiet:
        tell(f"{size} vectors of {width} numbers: {output}")
