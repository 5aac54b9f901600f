"""What all tests share: where optional outside data may lie."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder with golden numbers and real data; tests that need it skip, and say so, where it is missing."""
    place = Path(
        os.environ.get("PADDLECLI_TEST_SHARED", Path(__file__).resolve().parents[2] / "shared")
    )
    if not place.is_dir():
        pytest.skip(f"no shared test data at {place} (PADDLECLI_TEST_SHARED names the folder)")
    return place
