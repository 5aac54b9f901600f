"""Every test here runs in an empty folder, with only the names of `world.py` registered."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from paddlecli.config import plugins, registry

from .world import WORLD


@pytest.fixture(autouse=True)
def world() -> Iterator[None]:
    """Only the names above are registered, and no code of a user is loaded."""
    with ExitStack() as stack:
        stack.enter_context(plugins.isolated())
        for found in registry.KINDS.values():
            stack.enter_context(found.isolated())
        for found, functions in WORLD.items():
            for name, function in functions.items():
                found.register(name)(function)
        yield


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests run in an empty folder; files are shown relative to it."""
    monkeypatch.chdir(tmp_path)
