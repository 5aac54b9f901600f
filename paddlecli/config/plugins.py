"""Users' own code: `--code FILE.py`, and packages with the entry-point group `paddlecli.plugins`.

Both register names in the registries while they are imported. What they raise, then or later, is
shown with the part of the traceback that lies in the user's own files.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paddlecli.errors import ConfigError, UserCodeError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "paddlecli.plugins"
_LARGEST = 1 << 20
"""Bytes of a file that is searched for a registration; a longer one is passed over."""


@dataclass(frozen=True, slots=True)
class CodeFile:
    """A file of user code: its absolute path, and the sha256 of its content in hexadecimal."""

    path: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Plugin:
    """An installed plug-in: its name, and the distribution it comes from with its version."""

    name: str
    distribution: str
    version: str

    def __str__(self) -> str:
        return f"the plug-in {self.name} ({self.distribution} {self.version})"


@dataclass(slots=True)
class _Loaded:
    """What was imported: files by path with what they are, plug-ins by name, and where user code
    lies: files, and folders of packages. `needed`: by code file, other files that it named while it
    was imported."""

    files: dict[str, CodeFile] = field(default_factory=dict)
    plugins: dict[str, Plugin] = field(default_factory=dict)
    places: set[str] = field(default_factory=set)
    needed: dict[str, list[CodeFile]] = field(default_factory=dict)
    importing: str = ""


_loaded = _Loaded()


def load_code(files: Sequence[str | Path] = ()) -> tuple[CodeFile, ...]:
    """Import the installed plug-ins, then each file in order, as a module of its own; all once. A
    file whose content has changed since is imported anew, and what it registered is forgotten.

    Returns what the files are, and the libraries that they named, for the record of a run.
    Raises ConfigError for a file that is missing, UserCodeError for what user code raises.
    """
    from importlib.metadata import entry_points

    for point in entry_points(group=GROUP):
        if point.name not in _loaded.plugins:
            _load_plugin(point)
    found: dict[str, CodeFile] = {}
    for file in files:
        if not str(file):
            raise ConfigError("--code is empty", "give a Python file, `NAME.py`")
        path = Path(file).expanduser().resolve()
        if not path.is_file():
            why = "is a folder" if path.is_dir() else "the file does not exist"
            raise ConfigError(f"--code {file}: {why}", "give a Python file, `NAME.py`")
        if path.suffix != ".py":
            raise ConfigError(f"--code {file}: expected a Python file, `NAME.py`")
        found[str(path)] = _load_file(path, str(file))
    libraries = (f for key in found for f in _loaded.needed.get(key, ()))
    return tuple({**found, **{f.path: f for f in libraries}}.values())


def loaded_files() -> tuple[str, ...]:
    """Paths of the code files that are loaded, for another process that is to know the same."""
    return tuple(_loaded.files)


def needs(library: Path) -> None:
    """Notes that the code file which is being imported needs a library: the run's record has it too."""
    if _loaded.importing:
        _loaded.needed.setdefault(_loaded.importing, []).append(_described(library))


def _described(path: Path) -> CodeFile:
    return CodeFile(str(path), hashlib.sha256(path.read_bytes()).hexdigest())


def plugins() -> tuple[Plugin, ...]:
    """The installed plug-ins that were loaded."""
    return tuple(_loaded.plugins.values())


def _load_plugin(point: EntryPoint) -> None:
    dist = point.dist
    name, version = ("", "") if dist is None else (dist.name, dist.version)
    plugin = Plugin(point.name, name, version)
    hint = f"pip uninstall {name}, or install a version that works" if name else None
    _guarded(str(plugin), point.load, hint)
    module = sys.modules.get(point.module.partition(".")[0])
    paths = list(getattr(module, "__path__", ()))
    _loaded.places.update(paths or [str(getattr(module, "__file__", ""))])
    _loaded.plugins[point.name] = plugin


def _load_file(path: Path, shown: str) -> CodeFile:
    key, file = str(path), _described(path)
    if _loaded.files.get(key) != file:
        _loaded.files.pop(key, None)
        _loaded.needed.pop(key, None)
        _loaded.places.add(key)
        _loaded.importing = key
        try:
            _guarded(shown, partial(_import_file, path), None)
        finally:
            _loaded.importing = ""
        _loaded.files[key] = file
    return file


def _import_file(path: Path) -> None:
    name = _module_name(path)
    _forget(name)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        _forget(name)
        if isinstance(error, ModuleNotFoundError) and _beside(path, error.name):
            hint = (
                f"{error.name}.py lies beside it, but a code file stands alone: put both into one "
                f"file, or install them as a package with the entry-point group {GROUP}"
            )
            message = f"{path.name} failed: {error}"
            raise UserCodeError(message, user_trace(error), hint) from error
        raise


def _module_name(path: Path) -> str:
    return f"paddlecli_user_{path.stem}_{hashlib.sha256(os.fsencode(path)).hexdigest()[:12]}"


def _forget(module: str) -> None:
    from paddlecli.config.registry import KINDS

    for registry in KINDS.values():
        registry.forget(module)


def _beside(path: Path, name: str | None) -> bool:
    return bool(name) and (path.parent / f"{name}.py").is_file()


def _guarded(what: str, load: Callable[[], Any], hint: str | None) -> None:
    try:
        load()
    except (KeyboardInterrupt, UserCodeError):
        raise
    except ConfigError as error:
        raise UserCodeError(f"{what}: {error.message}", user_trace(error), error.hint) from error
    except BaseException as error:
        message = f"{what} failed: {type(error).__name__}: {error}"
        raise UserCodeError(message, user_trace(error), hint) from error


@contextmanager
def isolated() -> Iterator[None]:
    """Nothing counts as loaded at the start of the `with`; afterwards all is as before, and what
    files registered in it is forgotten."""
    global _loaded
    saved, _loaded = _loaded, _Loaded()
    try:
        yield
    finally:
        for file in _loaded.files:
            _forget(_module_name(Path(file)))
        _loaded = saved


# ---- what to tell ----
def raised_by_user(error: BaseException) -> UserCodeError | None:
    """What to tell when a function of a loaded file raised; None where no such file took part."""
    for depth, (frame, line) in enumerate(traceback.walk_tb(error.__traceback__)):
        file = frame.f_code.co_filename
        if is_users(file):
            message = f"{Path(file).name}, line {line}: {type(error).__name__}: {error}"
            return UserCodeError(message, user_trace(error, depth))
    return None


def is_users(file: str) -> bool:
    """Whether a source file is one of the user's: given with --code, or of a plug-in."""
    return file in _loaded.places or any(file.startswith(f"{p}/") for p in _loaded.places)


def user_trace(error: BaseException, above: int = 0) -> str:
    """The traceback without the first `above` frames and without those of this package and of
    Python's import machinery; of the errors behind it those that have frames left."""
    found = traceback.TracebackException.from_exception(error, capture_locals=False)
    _trim(found, above)
    return "".join(found.format())


def _trim(found: traceback.TracebackException, above: int) -> None:
    package = str(Path(__file__).resolve().parent.parent)
    kept = [
        frame
        for frame in found.stack[above:]
        if not frame.filename.startswith((package, "<frozen importlib"))
        and "importlib" not in Path(frame.filename).parts
    ]
    found.stack = traceback.StackSummary.from_list(kept)
    for name in ("__cause__", "__context__"):
        behind = getattr(found, name)
        if behind is not None:
            _trim(behind, 0)
            if not behind.stack:
                setattr(found, name, None)


def place_of(function: Callable[..., Any]) -> str:
    """Where a registered function is written, for messages: `own.py:12`, or its module."""
    target = getattr(function, "__init__", None) if isinstance(function, type) else function
    code = getattr(target, "__code__", None)
    if code is not None and is_users(code.co_filename):
        return f"{Path(code.co_filename).name}:{code.co_firstlineno}"
    module = str(getattr(function, "__module__", "?"))
    file = str(getattr(sys.modules.get(module), "__file__", ""))
    return Path(file).name if is_users(file) else module


def hint(kind: str, name: str) -> str:
    """How to make a name of one's own known: which files were loaded, and the `--code` to add where
    a file of the working directory registers it."""
    given = [*(Path(p).name for p in _loaded.files), *map(str, _loaded.plugins.values())]
    loaded = f"{', '.join(given)} registered no {kind} `{name}`; " if given else ""
    for file in _registering(name, Path.cwd()):
        if str(file.resolve()) not in _loaded.files:
            return f"{loaded}{file.name} registers `{name}`: add --code {file.name}"
    return f"{loaded}your own comes with --code FILE.py that registers `{name}`"


def _registering(name: str, folder: Path) -> Iterator[Path]:
    """Python files of a folder that seem to register a name; nothing is run."""
    wanted = re.compile(rf"""\.register\(\s*(['"]){re.escape(name)}\1""")
    for file in _python_files(folder):
        try:
            if file.stat().st_size <= _LARGEST and wanted.search(
                file.read_text("utf-8", "replace")
            ):
                yield file
        except OSError:
            continue


def _python_files(folder: Path) -> Iterable[Path]:
    try:
        return sorted(folder.glob("*.py"))[:200]
    except OSError:
        return ()
