"""For all tests: programs that they start anywhere use the core that the tests themselves use."""

from __future__ import annotations

import os

from paddlecli.errors import ResourceError
from paddlecli.runtime import native


def pytest_configure() -> None:
    """A program started in the checkout would look for a core beside its sources."""
    try:
        os.environ.setdefault("PADDLECLI_CORE", str(native.folder()))
    except ResourceError:
        return  # no core here: tests/null needs none, the others say so


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes (archives, pictures) name a test by their argument: what they hold may differ from run to run."""
    return argname if isinstance(val, bytes) else None
