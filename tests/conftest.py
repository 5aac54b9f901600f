"""For all tests: programs that they start anywhere use the core that the tests themselves use, and compile each file of
Python once."""

from __future__ import annotations

import os
import sys

import hypothesis
import pytest

from paddlecli.errors import ResourceError
from paddlecli.runtime import native


def pytest_configure(config: pytest.Config) -> None:
    """Environment of all programs that are started, and examples that may take as long as a busy machine makes them."""
    hypothesis.settings.register_profile("tests", deadline=None)
    hypothesis.settings.load_profile("tests")
    _keep_bytecode(config)
    try:
        # a program started in the checkout would look for a core beside its sources
        os.environ.setdefault("PADDLECLI_CORE", str(native.folder()))
    except ResourceError:
        return  # no core here: tests/null needs none, the others say so


def _keep_bytecode(config: pytest.Config) -> None:
    """Hundreds of programs are started; where Python may not write compiled files beside sources, each would compile a hundred
    and fifty. They go to pytest's cache instead; test processes of pytest-xdist are started with this too."""
    cache: pytest.Cache | None = getattr(config, "cache", None)  # `-p no:cacheprovider`: none
    if sys.dont_write_bytecode and cache is not None:
        os.environ["PYTHONPYCACHEPREFIX"] = str(cache.mkdir("bytecode"))
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes (archives, pictures) name a test by their argument: what they hold may differ from run to run."""
    return argname if isinstance(val, bytes) else None
