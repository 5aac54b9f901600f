"""Help, versions, exit codes and errors of the command line as a whole."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

import paddlecli
from paddlecli.cli import app
from paddlecli.errors import DataError, Interrupted, NumericalError

ROOT = Path(paddlecli.__file__).resolve().parent.parent
# Typer itself loads pydantic to read arguments, so that one is not in the list
HEAVY = ("numpy", "rich", "yaml", "cffi", "_cffi_backend", "PIL", "safetensors")
LIMIT_S = 0.3


def exists(name: str) -> bool:
    return importlib.util.find_spec(f"paddlecli.cli.{app.COMMANDS[name].module}") is not None


def levels() -> list[list[str]]:
    """The top, every command that is there, and every subcommand."""
    found: list[list[str]] = [[]]
    for name in filter(exists, app.COMMANDS):
        found.append([name])
        command = app.build().get_command(None, name)
        found.extend([name, below] for below in getattr(command, "commands", {}))
    return found


LEVELS = levels()
IDS = [" ".join(level) or "top" for level in LEVELS]


def run(*arguments: str, python: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", "COLUMNS": "80"}
    command = [sys.executable, *python, "-m", "paddlecli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@pytest.mark.parametrize("option", ["-h", "--help"])
@pytest.mark.parametrize("level", LEVELS, ids=IDS)
def test_help(level: list[str], option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main([*level, option]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith(f"Usage: {' '.join(['paddlecli', *level])}")
    assert "-h, --help" in shown.out
    assert "--version" in shown.out
    assert shown.err == ""


@pytest.mark.parametrize("level", LEVELS, ids=IDS)
def test_version(level: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main([*level, "--version"]) == 0
    assert capsys.readouterr().out == f"paddlecli {paddlecli.__version__}\n"


def processor_time() -> float:
    """Seconds of the finished child processes; unlike the clock's, another program's load does
    not add to them."""
    used = os.times()
    return used.children_user + used.children_system


@pytest.mark.parametrize("level", LEVELS, ids=IDS)
def test_help_is_quick_and_loads_nothing_heavy(level: list[str]) -> None:
    code = (
        "import sys; from paddlecli.cli.app import main; code = main(sys.argv[1:]); "
        f"print([m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr); sys.exit(code)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    times: list[float] = []
    for _ in range(5):
        start = processor_time()
        done = subprocess.run(
            [sys.executable, "-c", code, *level, "-h"],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
        times.append(processor_time() - start)
        assert (done.returncode, done.stderr) == (0, "[]\n")
        if min(times) < LIMIT_S:
            break
    assert min(times) < LIMIT_S, times


def test_help_lists_all_commands_without_loading_any(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["--help"]) == 0
    shown = capsys.readouterr().out
    for name, row in app.COMMANDS.items():
        assert f"  {name} " in shown
        assert row.help in shown


def test_without_arguments_the_help_is_shown_as_an_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert app.main([]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "Usage: paddlecli" in shown.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trian"], "error: there is no command `trian`\nhint: did you mean `train`?\n"),
        (["xyz"], "error: there is no command `xyz`\nhint: commands: train, evaluate,"),
        (["--nope"], "error: there is no option `--nope`\nhint: paddlecli --help lists them\n"),
        (["train", "--epoch", "3"], "hint: did you mean `--epochs`? paddlecli train --help lists"),
        (
            ["dataset", "list", "--jsno"],
            "hint: did you mean `--json`? paddlecli dataset list --help",
        ),
        (["recipe", "show"], "error: Missing argument 'RECIPE'"),
        (
            ["recipe", "lst"],
            "there is no command `recipe lst`\nhint: did you mean `recipe list`?\n",
        ),
        (["recipe", "list", "--nope"], "hint: paddlecli recipe list --help"),
    ],
)
def test_usage_errors(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.main(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert message in shown.err
    assert "Traceback" not in shown.err


# one command that does what a test wants

Install = Callable[[BaseException], None]


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Install:
    """Install a command `fail` that raises what it is given."""

    def install(error: BaseException) -> None:
        def command(json: bool = typer.Option(False, "--json")) -> None:
            secret = "secret value"  # noqa: F841
            raise error

        module = types.ModuleType("paddlecli.cli.fail")
        module.command = command  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "paddlecli.cli.fail", module)
        monkeypatch.setitem(app.COMMANDS, "fail", app.Command("fail", "Fail."))

    return install


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (DataError("no file", hint="get it"), 4, "error: no file\nhint: get it\n"),
        (NumericalError("loss is NaN"), 6, "error: loss is NaN\n"),
        (Interrupted("saved", exit_code=143), 143, "error: saved\n"),
        (KeyboardInterrupt(), 130, ""),
        (MemoryError(), 7, "error: out of memory\n"),
        (OSError(28, "No space left on device", "x.bin"), 7, "error: no space left on the disk: x"),
        (typer.Exit(9), 9, ""),
        (typer.Abort(), 130, "error: interrupted\n"),
        (SystemExit(5), 5, ""),
        (
            ZeroDivisionError("oops"),
            1,
            "error: this is a bug in paddlecli: ZeroDivisionError: oops",
        ),
    ],
)
def test_exit_codes(
    error: BaseException,
    code: int,
    text: str,
    failing: Install,
    capsys: pytest.CaptureFixture[str],
) -> None:
    failing(error)
    assert app.main(["fail"]) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(text)
    assert "Traceback" not in shown.err


def test_debug_shows_the_traceback_without_locals(
    failing: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(DataError("no file"))
    assert app.main(["fail", "--debug"]) == 4
    shown = capsys.readouterr().err
    assert "Traceback (most recent call last)" in shown
    assert "raise error" in shown
    assert "secret value" not in shown.replace('secret = "secret value"', "")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (DataError("no file", hint="get it"),
         {"code": 4, "kind": "data", "message": "no file", "hint": "get it", "where": []}),
        (ZeroDivisionError("x"),
         {"code": 1, "kind": "bug", "message": "ZeroDivisionError: x", "hint": None, "where": []}),
    ],
)  # fmt: skip
def test_json_errors(
    error: BaseException,
    expected: dict[str, object],
    failing: Install,
    capsys: pytest.CaptureFixture[str],
) -> None:
    failing(error)
    assert app.main(["fail", "--json"]) == expected["code"]
    shown = capsys.readouterr()
    assert shown.out == ""
    assert json.loads(shown.err) == {"error": expected}


def test_a_missing_module_breaks_only_its_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(app.COMMANDS, "later", app.Command("later", "Comes later."))
    assert app.main(["later"]) == 2
    assert "the command `later` is not part of this build" in capsys.readouterr().err
    assert app.main(["--help"]) == 0


def test_python_dash_m() -> None:
    done = run("--version")
    assert (done.returncode, done.stdout) == (0, f"paddlecli {paddlecli.__version__}\n")


def test_a_reader_that_goes_away_is_no_traceback() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "paddlecli", "--help"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=environment) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 141
