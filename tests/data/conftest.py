"""Fixtures of the data tests: a cache of their own, real data where they are present."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from paddlecli.data.cards import Card
from paddlecli.data.fetching import reaching, transfer


@pytest.fixture(autouse=True)
def cache_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache and home, no mirror, no index, no waiting between attempts."""
    for name in ("PADDLECLI_MIRROR", "PADDLECLI_OFFLINE", "PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX"):
        monkeypatch.delenv(name, raising=False)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PADDLECLI_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(transfer, "_FIRST_PAUSE", 0.01)
    monkeypatch.setattr(transfer, "_LONGEST_PAUSE", 0.05)
    monkeypatch.setattr(reaching, "_REACHED", {})
    monkeypatch.setattr(reaching, "_SILENT", {})
    return tmp_path / "cache"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data; tests that need it skip where it is absent."""
    given = os.environ.get("PADDLECLI_TEST_SHARED")
    folder = Path(given) if given else Path(__file__).resolve().parents[3] / "shared"
    if not (folder / "data").is_dir():
        pytest.skip(f"no real data at {folder} (PADDLECLI_TEST_SHARED)")
    return folder / "data"


@pytest.fixture
def make_card() -> Callable[..., Card]:
    """A card from Python values; what is left out is filled in."""

    def make(**values: object) -> Card:
        base = {"name": "toy", "title": "toy", "description": "a toy", "licence": "none",
                "citation": "none", "reader": "csv"}  # fmt: skip
        import json

        return Card.model_validate_json(json.dumps({**base, **values}))

    return make
