"""`paddlecli recipe copy|schema|new`: what writes a file of the user's."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Annotated

import typer

from paddlecli import assets
from paddlecli.cli.options import Code, Json
from paddlecli.cli.output import print_json, tell
from paddlecli.errors import UsageError

Name = Annotated[
    str,
    typer.Argument(metavar="RECIPE", help="A shipped recipe's name, ./FILE.yaml, or - (stdin)."),
]


def copy_command(
    recipe: Name,
    file: Annotated[
        str | None,
        typer.Argument(metavar="FILE", help="File or folder to write, or - (stdout)."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over a file that exists.")] = False,
    code: Code = None,
    as_json: Json = False,
) -> None:
    """Copy a recipe to a file of yours, to be edited: comments stay, what it extends still holds."""
    from paddlecli.config.copying import copy_of
    from paddlecli.config.plugins import load_code

    load_code(code or ())
    if file == "-":
        typer.echo(copy_of(recipe, Path("recipe.yaml"), recipe), nl=False)
        return
    target = _target(file, f"{_stem(recipe)}.yaml")
    written = str(target) if target.is_absolute() or len(target.parts) > 1 else f"./{target}"
    _write(target, copy_of(recipe, target, written), force)
    if as_json:
        print_json({"schema": 1, "file": str(target)})
    else:
        typer.echo(written)


def _stem(recipe: str) -> str:
    """The last part of a recipe's name or path."""
    return Path(recipe).stem if assets.is_path(recipe) else recipe.rpartition("/")[2]


def _target(given: str | None, name: str) -> Path:
    """The file to write: as given, `name` in a folder, or `name` here."""
    if given == "":
        raise UsageError("FILE is empty", hint=f"leave it out for ./{name}")
    path = Path(given or name).expanduser()
    return path / name if path.is_dir() or str(given).endswith("/") else path


def _free(target: Path, force: bool) -> None:
    if target.exists() and not force:
        raise UsageError(f"{target}: exists", hint="give another FILE, or --force to write over it")


def _write(target: Path, text: str, force: bool) -> None:
    """A new file, whole or not at all."""
    from paddlecli.engine.files import replace, saving

    _free(target, force)
    with saving(target, "make room, or give another FILE"):
        target.parent.mkdir(parents=True, exist_ok=True)
    replace(target, text.encode())


def schema_command(
    fragment: Annotated[
        bool, typer.Option("--fragment", help="Of files for `extends`, which need not be whole.")
    ] = False,
    output: Annotated[
        str | None, typer.Option(metavar="FILE", help="File to write instead of stdout.")
    ] = None,
    code: Code = None,
    as_json: Json = False,
) -> None:
    """Print the recipe language as a JSON schema (draft-07), for editors.

    With --code the names of your own code are in it.
    """
    from paddlecli.config.plugins import load_code

    load_code(code or ())
    if output is not None:
        _write(_target(output, assets.SCHEMA), schema_text(fragment), force=True)
    else:
        typer.echo(schema_text(fragment), nl=False)


def schema_text(fragment: bool = False) -> str:
    """The schema as its file holds it."""
    from paddlecli.config.json_schema import json_schema

    return json.dumps(json_schema(fragment=fragment), indent=1, ensure_ascii=False) + "\n"


def new_command(
    data: Annotated[
        str, typer.Option("--data", metavar="FILE|FOLDER", help="Your table, texts or pictures.")
    ],
    target: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column to predict; guessed by its name."),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(metavar="TASK", help="regression or classification; guessed from the target."),
    ] = None,
    output: Annotated[
        str | None, typer.Option(metavar="FILE", help="File or folder to write the recipe to.")
    ] = None,
    encoding: Annotated[str, typer.Option(help="Of text files, for example latin-1.")] = "utf-8",
    force: Annotated[bool, typer.Option("--force", help="Write over a file that exists.")] = False,
    as_json: Json = False,
) -> None:
    """Write a first recipe for data of your own, which trains at once.

    A table (csv, tsv, jsonl), a file with lines of `label TAB text`, or a folder with one folder a
    class, of pictures or of text files. What was seen and guessed stands in the recipe's comments.
    """
    from paddlecli.data.own.look import look
    from paddlecli.engine import newrecipe

    if data == "":
        raise UsageError("--data is empty", hint="give a file or a folder")
    if task not in (None, "regression", "classification"):
        raise UsageError(f"--task {task}: expected regression or classification")
    source = Path(data).expanduser()
    path = _target(output, f"{_file_name(source)}.yaml")
    _free(path, force)
    shown = str(path) if path.is_absolute() or len(path.parts) > 1 else f"./{path}"
    found = look(source, target, task, encoding)  # type: ignore[arg-type]
    _write(path, newrecipe.write(found, path, shlex.quote(shown), data), force)
    if as_json:
        print_json({
            "schema": 1, "file": str(path), "task": found.task, "target": found.target, "rows": found.rows,
            "data": found.data, "classes": dict(found.classes), "notes": list(found.notes),
        })  # fmt: skip
        return
    typer.echo(shown)
    for line in (found.what, *found.notes):
        tell(line)
    tell(f"train  paddlecli train --config {shlex.quote(shown)}")


def _file_name(source: Path) -> str:
    """A recipe's name after its data: plain letters."""
    name = source.resolve().stem if source.suffix else source.resolve().name
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-_") or "recipe"
