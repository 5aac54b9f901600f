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
