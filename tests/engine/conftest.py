"""Small recipes as fixtures; every test trains in a folder of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddlecli.config.load import load_recipe

from .tiny_runs import MLP, MakeRecipe


@pytest.fixture
def recipe_file(tmp_path: Path) -> Path:
    """The small recipe as a file."""
    path = tmp_path / "tiny.yaml"
    path.write_text(MLP)
    return path


@pytest.fixture
def tiny(recipe_file: Path) -> MakeRecipe:
    """The small recipe with overrides: `tiny("train.epochs=2")`."""
    return lambda *overrides: load_recipe(recipe_file, overrides)


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of a test lie in its own folder; nobody's settings reach it."""
    monkeypatch.setenv("PADDLECLI_RUNS_DIR", str(tmp_path / "runs"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("PADDLECLI_THREADS", "OMP_NUM_THREADS", "PADDLECLI_DEBUG"):
        monkeypatch.delenv(name, raising=False)
