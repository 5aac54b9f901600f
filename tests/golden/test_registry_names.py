"""The names that recipes may use: none goes away, and none changes, without an edit of `registry.json`.

A new name need not be written there (an op is three files and no edit elsewhere); once people use it, it should be.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from paddlecli.config.registry import KINDS

NAMES: dict[str, list[str]] = json.loads((Path(__file__).parent / "registry.json").read_text())


def test_every_kind_is_listed() -> None:
    assert NAMES.keys() == KINDS.keys()


@pytest.mark.parametrize("kind", NAMES)
def test_no_name_is_lost(kind: str) -> None:
    assert NAMES[kind] == sorted(NAMES[kind]) and NAMES[kind]
    assert not set(NAMES[kind]) - set(KINDS[kind].names())
