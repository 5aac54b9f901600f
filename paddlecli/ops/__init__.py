"""The ops: one file each, found by name.

``paddlecli/ops/<op>.py`` holds an :class:`~paddlecli.ops.base.Op` instance called ``OP``; its kernels are in
``core/ops/<op>.c`` (and ``.cu``). Nothing lists the ops: :func:`get` imports the file of that name.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from paddlecli.ops.base import Op

_NOT_OPS = frozenset({"base", "spec"})


@cache
def names() -> tuple[str, ...]:
    """Names of all ops, sorted: the files of this folder that do not start with an underscore."""
    found = (m.name for m in pkgutil.iter_modules(__path__))
    return tuple(sorted(n for n in found if n not in _NOT_OPS and not n.startswith("_")))


@cache
def get(name: str) -> Op:
    """The op of that name.

    Raises:
        KeyError: there is no file ``paddlecli/ops/<name>.py``.
    """
    if name not in names():
        raise KeyError(name)
    op = importlib.import_module(f"{__name__}.{name}").OP
    if not isinstance(op, Op) or op.name != name:
        raise TypeError(f"paddlecli/ops/{name}.py: OP must be an Op named {name!r}")
    return op
