"""The ops: one file each, found by name.

``paddlecli/ops/<op>.py`` holds an :class:`~paddlecli.ops.base.Op` instance called ``OP``; its kernels are in
``core/ops/<op>.c`` (and ``.cu``). Nothing lists the ops: :func:`get` imports the file of that name.
Users' code adds ops of its own, whose kernels are in a library that it names (:func:`add_op`).
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from pathlib import Path

from paddlecli.errors import ConfigError
from paddlecli.ops.base import Op

_NOT_OPS = frozenset({"base", "spec"})
_own: dict[str, tuple[Op, Path]] = {}


@cache
def _shipped() -> frozenset[str]:
    """The files of this folder that do not start with an underscore."""
    found = (m.name for m in pkgutil.iter_modules(__path__))
    return frozenset(n for n in found if n not in _NOT_OPS and not n.startswith("_"))


@cache
def names() -> tuple[str, ...]:
    """Names of all ops, sorted."""
    return tuple(sorted(_shipped() | _own.keys()))


def add_op(op: Op, library: str | Path) -> Op:
    """Adds a user's op, as its code file does while it is imported.

    Args:
        op: the Python half; adding an op of the same module again replaces it.
        library: the compiled half, made with ``pk_library.h``; it is loaded when a plan is made.

    Raises:
        ConfigError: the name is taken, or there is no such file.
    """
    from paddlecli.config.plugins import needs

    path = Path(library).expanduser().resolve()
    known = _own[op.name][0] if op.name in _own else None
    if op.name in _shipped() or (known and type(known).__module__ != type(op).__module__):
        raise ConfigError(f"there is an op `{op.name}` already")
    if not path.is_file():
        raise ConfigError(f"{path}: the library of the op `{op.name}` does not exist")
    _own[op.name] = op, path
    needs(path)
    names.cache_clear()
    get.cache_clear()
    return op


def libraries() -> tuple[Path, ...]:
    """The libraries that ops were added with."""
    return tuple(dict.fromkeys(path for _, path in _own.values()))


def of_library(library: Path) -> tuple[Op, ...]:
    """The ops that were added with a library."""
    return tuple(op for op, path in _own.values() if path == library)


@cache
def get(name: str) -> Op:
    """The op of that name.

    Raises:
        KeyError: there is no file ``paddlecli/ops/<name>.py``.
    """
    if name not in names():
        raise KeyError(name)
    if name in _own:
        return _own[name][0]
    op = importlib.import_module(f"{__name__}.{name}").OP
    if not isinstance(op, Op) or op.name != name:
        raise TypeError(f"paddlecli/ops/{name}.py: OP must be an Op named {name!r}")
    return op
