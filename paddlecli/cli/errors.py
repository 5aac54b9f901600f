"""Errors on the command line: one form for people, one for `--json`, one exit code each.

Codes are those of `paddlecli.errors`; besides, 1 is a bug and 141 means that the reader of stdout
went away (`| head -1`), as for any program that SIGPIPE ends.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from paddlecli import settings
from paddlecli.cli.output import end_streams
from paddlecli.errors import Interrupted, PaddleCliError, UsageError, expected

_COLORS = {"error": "1;31", "hint": "36"}
_WORD = re.compile(r"^\s*(error|hint):", re.MULTILINE)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""What moves the cursor, or turns the direction of writing."""
BUG = 1
BROKEN_PIPE = 141


def report(error: BaseException, arguments: Sequence[str]) -> int:
    """Print `error` on stderr and return the exit code.

    arguments: the command line, for `--json` and `--debug` before `--`.
    """
    try:
        code = _report(error, _options(arguments))
        end_streams()
    except OSError as broken:
        # nobody can be told: stderr is gone too, and Python must not try again when it ends
        with contextlib.suppress(OSError):
            end_streams()
        return BROKEN_PIPE if isinstance(broken, BrokenPipeError) else _code(error)
    return code


def _code(error: BaseException) -> int:
    known = _expected(error)
    return BUG if known is None else known.exit_code


def _report(error: BaseException, options: Sequence[str]) -> int:
    if _is_broken_pipe(error):
        return BROKEN_PIPE
    if isinstance(error, SystemExit) and _from_user(error) is None:
        return error.code if isinstance(error.code, int) else BUG
    known = _expected(error)
    if known is None and not isinstance(error, Exception):
        raise error
    if "--debug" in options:
        _print_traceback(error)
    if "--json" in options:
        _print_json(known, error)
    elif known is not None:
        _tell(f"error: {known}" if _one_line(known) else str(known))
    elif "--debug" not in options:
        _tell(_bug(error))
    return known.exit_code if known is not None else BUG


def _tell(text: str) -> None:
    """Lines on stderr; on a terminal with colours the word at their start stands out. What a
    recipe's text could do to a terminal is shown, not done."""
    text = _CONTROL.sub(lambda m: m[0].encode("unicode_escape").decode(), text)
    if settings.color(sys.stderr):
        text = _WORD.sub(lambda m: f"\x1b[{_COLORS[m[1]]}m{m[0]}\x1b[0m", text)
    sys.stderr.write(f"{text}\n")


def _options(arguments: Sequence[str]) -> list[str]:
    given = list(arguments)
    return given[: given.index("--")] if "--" in given else given


def _one_line(error: PaddleCliError) -> bool:
    return not getattr(error, "faults", ()) and not getattr(error, "trace", "")


def _expected(error: BaseException) -> PaddleCliError | None:
    """The error as one of the tree's; None for a bug."""
    return expected(error) or _from_click(error) or _from_user(error)


def _from_user(error: BaseException) -> PaddleCliError | None:
    """The error of a user's own function, where code was loaded."""
    plugins = sys.modules.get("paddlecli.config.plugins")
    told = isinstance(error, Exception | SystemExit)
    return plugins.raised_by_user(error) if plugins and told else None


def _from_click(error: BaseException) -> PaddleCliError | None:
    """Typer's own errors about the command line, told by what they can do."""
    if type(error).__name__ == "Abort":
        return Interrupted("interrupted")
    message = getattr(error, "format_message", None)
    if message is None or getattr(error, "exit_code", None) is None:
        return None
    if type(error).__name__ == "NoArgsIsHelpError":
        return UsageError(f"a command is missing\n\n{message()}")
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "paddlecli"
    option = getattr(error, "option_name", None)
    if context is not None and hasattr(error, "possibilities") and option:
        return _unknown_option(str(option), context.command, path)
    return UsageError(str(message()), hint=f"{path} --help")


def _unknown_option(option: str, command: Any, path: str) -> UsageError:
    """Near names come from all of the command's options; Typer looks at the long ones only."""
    from paddlecli.config.nodes import close_names

    options = {name for p in command.params for name in (*p.opts, *p.secondary_opts)}
    near = close_names(option, {name for name in options if name.startswith("-")})
    meant = f"did you mean `{near[0]}`? " if near else ""
    return UsageError(f"there is no option `{option}`", hint=f"{meant}{path} --help lists them")


def _is_broken_pipe(error: BaseException) -> bool:
    return isinstance(error, BrokenPipeError) or (
        isinstance(error, SystemExit) and isinstance(error.__context__, BrokenPipeError)
    )


def _print_json(known: PaddleCliError | None, error: BaseException) -> None:
    found: dict[str, Any]
    if known is not None:
        found = known.as_dict()
    else:
        message = f"{type(error).__name__}: {error}"
        found = {
            "error": {"code": BUG, "kind": "bug", "message": message, "hint": None, "where": []}
        }
    _tell(json.dumps(found, sort_keys=True, allow_nan=False))


def _print_traceback(error: BaseException) -> None:
    """The frames without their local variables, which may hold secrets."""
    traceback.print_exception(type(error), error, error.__traceback__, file=sys.stderr)


def _bug(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return (
        f"error: this is a bug in paddlecli: {type(error).__name__}: {error}{place}\n"
        "hint: run it again with --debug for the traceback, and report it"
    )
