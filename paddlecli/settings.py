"""Settings that are not hyper-parameters, and the only place that reads the environment.

Each is looked up when it is asked for, in this order: command line flag, environment variable,
the user's file `$XDG_CONFIG_HOME/paddlecli/config.toml`, built-in default. `TABLE` is the whole
list; the documentation is made from it. Variables obeyed by the libraries in use are not here:
HTTP_PROXY, HTTPS_PROXY, NO_PROXY, SSL_CERT_FILE, CUDA_VISIBLE_DEVICES, COLUMNS, TMPDIR.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TextIO

from paddlecli.errors import UsageError

Source = Literal["command line", "environment", "config file", "default"]


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table. `kind` says how text is read: text, path, whole, yes_no or a list of
    the allowed words; `default` is what holds when nobody says anything."""

    name: str
    variable: str
    kind: str
    default: str
    help: str


TABLE: tuple[Setting, ...] = (
    Setting("cache_dir", "PADDLECLI_CACHE_DIR", "path", "the system's cache folder/paddlecli",
            "where data sets and prepared data are kept"),
    Setting("runs_dir", "PADDLECLI_RUNS_DIR", "path", "runs",
            "folder that run directories are made in"),
    Setting("offline", "PADDLECLI_OFFLINE", "yes_no", "false",
            "never use the network; missing data are an error"),
    Setting("mirror", "PADDLECLI_MIRROR", "text", "",
            "file:// or http(s):// address tried first for data: <mirror>/<data set>/<file>"),
    Setting("device", "PADDLECLI_DEVICE", "text", "auto", "cpu, cuda, cuda:1 or auto"),
    Setting("threads", "PADDLECLI_THREADS", "whole", "0",
            "threads of the core; 0 means OMP_NUM_THREADS, else every core the process may use"),
    Setting("isa", "PADDLECLI_ISA", "baseline|avx2|avx512|neon|auto", "auto",
            "instruction set of the kernels"),
    Setting("core_folder", "PADDLECLI_CORE", "path", "paddlecli/_core",
            "folder of a core library built from core/, instead of the installed one"),
    Setting("log_level", "PADDLECLI_LOG_LEVEL", "debug|info|warning|error", "info",
            "what is written to stderr"),
    Setting("debug", "PADDLECLI_DEBUG", "whole", "0",
            "1 plan and bytes, 2 also time by kernel, 3 also the graph after each pass, "
            "4 also poisoned dead buffers and finite checks"),
)  # fmt: skip

_BY_NAME = {s.name: s for s in TABLE}
_YES = {"1", "true", "yes", "on"}
_NO = {"", "0", "false", "no", "off"}
_flags: ContextVar[dict[str, Any] | None] = ContextVar("flags", default=None)


def environment(name: str) -> str | None:
    """The value of an environment variable, None where it is unset."""
    return os.environ.get(name)


def unknown_variables() -> list[str]:
    """Variables that are set, look like this program's, and are none of them."""
    known = {s.variable for s in TABLE}
    return sorted(n for n in os.environ if n.startswith("PADDLECLI_") and n not in known)


@contextmanager
def flags(**values: Any) -> Iterator[None]:
    """Let the command line's flags win inside the `with`; None means the flag was not given."""
    for name in values:
        _BY_NAME[name]
    given = {k: v for k, v in values.items() if v is not None}
    token = _flags.set({**(_flags.get() or {}), **given})
    try:
        yield
    finally:
        _flags.reset(token)


def lookup(name: str) -> tuple[Any, Source]:
    """The value of a setting (None: nobody said anything) and who gave it.

    Raises UsageError where the text cannot be read as the setting's kind.
    """
    setting = _BY_NAME[name]
    given = (_flags.get() or {}).get(name)
    if given is not None:
        return _parse(setting, str(given), f"--{name.replace('_', '-')}"), "command line"
    text = environment(setting.variable)
    if text:
        return _parse(setting, text, setting.variable), "environment"
    from_file = _user_file().get(name)
    if from_file is not None:
        return _parse(setting, str(from_file), f"{user_file()}: {name}"), "config file"
    return None, "default"


def _parse(setting: Setting, text: str, source: str) -> Any:
    text = text.strip()
    if setting.kind == "path":
        return Path(text).expanduser()
    if setting.kind == "yes_no":
        return _yes_no(text, source)
    if setting.kind == "whole":
        if not text.isdecimal():
            raise UsageError(f"{source}: expected a whole number, got {text!r}")
        return int(text)
    if "|" in setting.kind and text.lower() not in setting.kind.split("|"):
        raise UsageError(f"{source}: expected {setting.kind.replace('|', ', ')}, got {text!r}")
    return text.lower() if "|" in setting.kind else text


def _yes_no(text: str, source: str) -> bool:
    if text.lower() in _YES:
        return True
    if text.lower() in _NO:
        return False
    raise UsageError(f"{source}: expected 1 or 0, got {text!r}")


def user_file() -> Path:
    """The user's own settings file; it need not exist."""
    home = environment("XDG_CONFIG_HOME") or environment("APPDATA")
    base = Path(home) if home else Path("~/.config").expanduser()
    return base / "paddlecli" / "config.toml"


def _user_file() -> dict[str, Any]:
    import tomllib

    path = user_file()
    try:
        with path.open("rb") as file:
            found = tomllib.load(file)
    except OSError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {error}") from None
    unknown = sorted(set(found) - set(_BY_NAME))
    if unknown:
        raise UsageError(
            f"{path}: unknown setting {unknown[0]!r}", hint=f"known: {', '.join(_BY_NAME)}"
        )
    return found


def cache_dir() -> Path:
    """Folder for data sets and prepared data. Nothing is created here."""
    found = lookup("cache_dir")[0]
    if found is not None:
        return Path(found)
    import platformdirs

    return Path(platformdirs.user_cache_dir("paddlecli", appauthor=False))


def runs_dir() -> Path:
    """Folder that run directories are made in, `runs` by default."""
    return Path(lookup("runs_dir")[0] or "runs")


def offline() -> bool:
    """Whether the network must not be used."""
    return bool(lookup("offline")[0])


def mirror() -> str | None:
    """Address tried first for data sets, without a slash at its end."""
    found: str | None = lookup("mirror")[0]
    return found.rstrip("/") if found else None


def device() -> str:
    """`cpu`, `cuda`, `cuda:N` or `auto`."""
    return lookup("device")[0] or "auto"


def isa() -> str:
    """Instruction set asked for, `auto` by default."""
    return lookup("isa")[0] or "auto"


def core_folder() -> Path | None:
    """Folder of a core built by hand; None for the one that is installed."""
    found = lookup("core_folder")[0]
    return None if found is None else Path(found)


def threads() -> int:
    """Threads of the core, at least 1: the setting, else OMP_NUM_THREADS, else usable cores."""
    found = lookup("threads")[0]
    if found:
        return int(found)
    first = (environment("OMP_NUM_THREADS") or "").split(",")[0].strip()
    if first.isdecimal() and int(first) > 0:
        return int(first)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def log_level() -> str:
    """`debug`, `info`, `warning` or `error`."""
    return lookup("log_level")[0] or "info"


def debug() -> int:
    """How much of the compiler and the core is shown, 0 to 4."""
    return int(lookup("debug")[0] or 0)


def color(stream: TextIO) -> bool:
    """Whether to colour a stream: NO_COLOR wins, then FORCE_COLOR, CLICOLOR=0, TERM=dumb, a TTY."""
    if environment("NO_COLOR"):
        return False
    if environment("FORCE_COLOR"):
        return environment("FORCE_COLOR") != "0"
    return environment("CLICOLOR") != "0" and interactive(stream)


def interactive(stream: TextIO) -> bool:
    """Whether a stream is a terminal that understands cursor movement."""
    return stream.isatty() and environment("TERM") != "dumb"
