"""Options that several commands have, spelt and explained once; and `--resume`, whose value may be left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

Code = Annotated[
    list[str] | None,
    typer.Option("--code", metavar="FILE.py", help="Your own code; may be repeated."),
]
Device = Annotated[
    str | None,
    typer.Option("--device", metavar="DEVICE", help="cpu, cuda, cuda:N or auto (the CPU)."),
]
Threads = Annotated[
    int | None, typer.Option("--threads", min=1, help="Threads of the core; same results.")
]
Override = Annotated[
    list[str] | None,
    typer.Option("--override", "-o", metavar="KEY=VALUE", help="Change a setting; repeatable."),
]
SetFile = Annotated[
    list[str] | None,
    typer.Option(
        "--set-file", metavar="KEY=FILE", help="Set a key to what a file holds; repeatable."
    ),
]
Config = Annotated[
    str | None,
    typer.Option("--config", "-c", help="Recipe: a shipped name, a file, or - for stdin."),
]
RecipeName = Annotated[
    str | None,
    typer.Argument(metavar="RECIPE", help="A shipped recipe's name or a file (as --config)."),
]
Run = Annotated[
    str,
    typer.Argument(metavar="RUN", help="A run directory, an id, a recipe's name, or `last`."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
JsonLines = Annotated[bool, typer.Option("--json", help="Print JSON lines on stdout.")]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="No remarks on stderr but warnings and errors.")
]
Verbose = Annotated[
    int,
    typer.Option(
        "--verbose",
        "-v",
        count=True,
        show_default=False,
        help="-v sizes, -vv times by kernel, -vvv the graphs.",
    ),
]
Seed = Annotated[int | None, typer.Option("--seed", help="Seed (-o train.seed=N).")]
BatchSize = Annotated[
    int | None, typer.Option("--batch-size", min=1, help="Samples that are run together.")
]
CacheDir = Annotated[
    str | None, typer.Option("--cache-dir", metavar="FOLDER", help="Where data sets are kept.")
]
Offline = Annotated[bool, typer.Option("--offline", help="Never use the network.")]


def given_recipe(config: str | None, name: str | None) -> str | None:
    """The recipe of a command line that takes `NAME` or `--config NAME`; None without one.

    Raises:
        UsageError: both were given.
    """
    from paddlecli.errors import UsageError

    if config is not None and name is not None:
        raise UsageError("the recipe is given twice", hint="as RECIPE or with --config")
    return config if config is not None else name


def recipe_of(config: str | None, name: str | None) -> str:
    """The recipe of a command line that needs one.

    Raises:
        UsageError: neither or both were given.
    """
    from paddlecli.errors import UsageError

    found = given_recipe(config, name)
    if found is None:
        raise UsageError(
            "a recipe is missing", hint="give a name that `paddlecli recipe list` shows, or a file"
        )
    return found


def changes(
    set_file: Sequence[str] | None,
    override: Sequence[str] | None,
    flags: Mapping[str, object] | None = None,
) -> list[str]:
    """All changes to a recipe: `--set-file` first, then `-o`, each in its order; then flags that stand for a setting, by its
    key, those that were given."""
    told = [f"{key}={value}" for key, value in (flags or {}).items() if value is not None]
    if not set_file and not told:
        return list(override or ())
    from paddlecli.config.compose import Flag, FromFile

    return [*map(FromFile, set_file or ()), *(override or ()), *map(Flag, told)]


LEFT_OUT = "\0"
"""Value of an option of `OptionalValues` that was given without one; no command line can hold it."""


class OptionalValues(TyperCommand):
    """A command with options whose value may be left out: `--resume` beside `--resume RUN`.

    Typer knows options with a value and flags. Here an option of `optional` that is followed by nothing, or by another option,
    gets the value `LEFT_OUT`. Texts that are given empty (`--resume ""`) stay empty.
    """

    optional = ("--resume",)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As Typer does, with the values filled in."""
        return super().parse_args(ctx, list(_filled(args, self.optional)))


def _filled(args: Sequence[str], optional: Sequence[str]) -> list[str]:
    own = list(args).index("--") if "--" in args else len(args)
    found = []
    for place, word in enumerate(args):
        following = args[place + 1] if place + 1 < own else "-"
        bare = place < own and word in optional and following.startswith("-")
        found.append(f"{word}={LEFT_OUT}" if bare else word)
    return found


def value_of(given: str | None) -> str | bool:
    """What stands behind an option of `OptionalValues`: its value, True without one, False where it is not there."""
    return given == LEFT_OUT or (False if given is None else given)
