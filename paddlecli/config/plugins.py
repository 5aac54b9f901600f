"""Users' own code: `--code FILE.py`, and packages with the entry-point group `paddlecli.plugins`.

Both register names in the registries while they are imported. What they raise is shown with the
part of the traceback that lies in the user's own files.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from paddlecli.errors import ConfigError, UserCodeError

GROUP = "paddlecli.plugins"
_loaded: set[str] = set()


@dataclass(frozen=True, slots=True)
class CodeFile:
    """A file of user code: its absolute path, and the sha256 of its content in hexadecimal."""

    path: str
    sha256: str


def load_code(files: Sequence[str | Path] = ()) -> tuple[CodeFile, ...]:
    """Import the installed plug-ins, then each file in order, as a module of its own; all once.

    Returns what the files are, for the record of a run.
    Raises ConfigError for a file that is missing, UserCodeError for what user code raises.
    """
    from importlib.metadata import entry_points

    for point in entry_points(group=GROUP):
        _once(f"{GROUP}:{point.name}", f"plugin {point.name}", point.load)
    found: dict[str, CodeFile] = {}
    for file in files:
        path = Path(file).expanduser().resolve()
        if not path.is_file():
            raise ConfigError(f"--code {file}: the file does not exist")
        if path.suffix != ".py":
            raise ConfigError(f"--code {file}: expected a Python file, `NAME.py`")
        _once(str(path), str(file), partial(_import_file, path))
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        found[str(path)] = CodeFile(str(path), sha256)
    return tuple(found.values())


def _import_file(path: Path) -> None:
    name = f"paddlecli_user_{path.stem}_{abs(hash(str(path))):x}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise


def _once(key: str, what: str, load: Callable[[], Any]) -> None:
    if key in _loaded:
        return
    try:
        load()
        _loaded.add(key)
    except KeyboardInterrupt:
        raise
    except ConfigError as error:
        raise UserCodeError(f"{what}: {error.message}", user_trace(error), error.hint) from error
    except BaseException as error:
        message = f"{what} failed: {type(error).__name__}: {error}"
        raise UserCodeError(message, user_trace(error)) from error


def raised_by_user(error: BaseException) -> UserCodeError | None:
    """What to tell when a function of a loaded file raised; None where no such file took part."""
    for depth, (frame, line) in enumerate(traceback.walk_tb(error.__traceback__)):
        file = frame.f_code.co_filename
        if file in _loaded:
            message = f"{Path(file).name}, line {line}: {type(error).__name__}: {error}"
            return UserCodeError(message, user_trace(error, depth))
    return None


def user_trace(error: BaseException, above: int = 0) -> str:
    """The traceback without the first `above` frames and without those of this package and of
    Python's import machinery."""
    package = str(Path(__file__).resolve().parent.parent)
    found = traceback.TracebackException.from_exception(error, capture_locals=False)
    kept = [
        frame
        for frame in found.stack[above:]
        if not frame.filename.startswith((package, "<frozen importlib"))
        and "importlib" not in Path(frame.filename).parts
    ]
    found.stack = traceback.StackSummary.from_list(kept)
    found.__cause__ = found.__context__ = None
    return "".join(found.format())
