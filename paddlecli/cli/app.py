"""The command `paddlecli`: finds the command's file, runs it, turns errors into exit codes.

`COMMANDS` is the one list. A command's module is imported only when that command is called, and
holds either `command`, a function with Typer annotations, or `app`, a `typer.Typer` for a command
with subcommands, or `group`, which makes one of the command's name. Commands import what is slow (the schema, rich, numpy, yaml) inside functions.
`-h`, `--version` and `--debug` exist on every level; they are added here.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from paddlecli import __version__
from paddlecli.cli.completion import answer, is_question
from paddlecli.cli.errors import report
from paddlecli.cli.output import end_streams, prepare_streams
from paddlecli.errors import UsageError


class Command(NamedTuple):
    """One row of the list: the module under `paddlecli.cli` and the line shown in the help."""

    module: str
    help: str


COMMANDS: dict[str, Command] = {
    "train": Command("train", "Train a recipe."),
    "evaluate": Command("evaluate", "Measure a trained run on a split of its data."),
    "predict": Command("predict", "Apply a trained run to files, text or values."),
    "recommend": Command("recommend", "Rank all films for a user with a trained recommender."),
    "embeddings": Command("embeddings", "Neighbours, analogies and pictures of learned vectors."),
    "dataset": Command("dataset", "List, show and download data sets."),
    "recipe": Command("recipe", "List, show, compare, check and write recipes."),
    "model": Command("model", "List, show and measure networks."),
    "convert": Command("convert", "Take over weights that another program wrote."),
    "runs": Command("runs", "List, show and compare run directories."),
    "layer": Command("registry", "List and show layers."),
    "loss": Command("registry", "List and show losses."),
    "optimizer": Command("registry", "List and show optimizers."),
    "schedule": Command("registry", "List and show learning-rate schedules."),
    "metric": Command("registry", "List and show metrics."),
    "transform": Command("registry", "List and show transforms of data."),
    "plan": Command("plan", "Print what is built from a recipe, stage by stage."),
    "bench": Command("bench", "Time training steps on generated data."),
    "doctor": Command("doctor", "Check this installation and this machine."),
    "completion": Command("completion", "Print a script for the shell's tab key."),
}


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"paddlecli {__version__}")
        raise typer.Exit


def _common(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Show the version and exit.",
            is_eager=True,
            expose_value=False,
            callback=_show_version,
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of errors.", expose_value=False)
    ] = False,
) -> None:
    """The options of every level; `--debug` is acted on by `main`."""


def _typer(**settings: Any) -> typer.Typer:
    return typer.Typer(
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        **settings,
    )


def _click(function: Callable[..., Any], name: str, cls: type[TyperCommand] = TyperCommand) -> Any:
    """The click command of a function with Typer annotations."""
    app = _typer()
    app.command(name=name, cls=cls)(function)
    return typer.main.get_command(app)


def _with_common(command: Any) -> Any:
    """Add the common options to a command and to all below it."""
    have = {option for parameter in command.params for option in parameter.opts}
    for parameter in _click(_common, "common").params:
        if not have & set(parameter.opts):
            command.params.append(parameter)
    for below in getattr(command, "commands", {}).values():
        _with_common(below)
    return command


class _Group(TyperGroup):
    """A level with commands below it: near names for one that is not there."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """As Typer does; an unknown name is an error that says which there are."""
        name, known = (args[0] if args else ""), self.list_commands(ctx)
        if name and not name.startswith("-") and name not in known:
            from paddlecli.config.nodes import close_names

            near, path = close_names(name, known), ctx.command_path.partition(" ")[2]
            own = f"{path} " if path else ""
            meant = f"did you mean `{own}{near[0]}`?" if near else f"commands: {', '.join(known)}"
            raise UsageError(f"there is no command `{own}{name}`", hint=meant)
        return super().resolve_command(ctx, args)


class _Commands(_Group):
    """The top level: names and help lines from the list, modules on demand."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The commands in the order of the list."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import the command's module and make its click command; None for an unknown name."""
        row = COMMANDS.get(cmd_name)
        if row is None:
            return None
        module = _module(cmd_name, f"paddlecli.cli.{row.module}")
        below = module.group(cmd_name) if hasattr(module, "group") else getattr(module, "app", None)
        if below is not None:
            below.info.cls = _Group
            command = typer.main.get_group(below)
            command.rich_markup_mode = None
            command.name = cmd_name
        else:
            command = _click(module.command, cmd_name, getattr(module, "CLASS", TyperCommand))
        return _with_common(command)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The list with its help lines; nothing is imported for it."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, row.help) for name, row in COMMANDS.items()])


def _module(command: str, name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise UsageError(f"the command `{command}` is not part of this build") from None


def build() -> Any:
    """The click command of the whole program."""
    app = _typer(cls=_Commands, no_args_is_help=True)

    @app.callback()
    def top() -> None:
        """Train, evaluate and use neural networks described in YAML recipes."""

    return _with_common(typer.main.get_command(app))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; nothing is raised but bugs under --debug."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    prepare_streams()
    try:
        code: Any = None
        if is_question(given):
            typer.echo("".join(answer(given[1], given[3:])), nl=False)
        else:
            code = build().main(args=given, prog_name="paddlecli", standalone_mode=False)
        end_streams()
    except BaseException as error:
        return report(error, given)
    return code if isinstance(code, int) else 0
