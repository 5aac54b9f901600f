"""What the device in use says of the compiler's passes."""

from __future__ import annotations

import pytest

from paddlecli import settings
from paddlecli.engine.passes import passes_for
from paddlecli.errors import UsageError
from paddlecli.runtime import native


@pytest.mark.parametrize("device", ["auto", "cpu", "cuda", "cuda:1"])
@pytest.mark.parametrize(
    ("catalogue", "tiles"),
    [(("conv2d.forward(x)", "conv2d_tiled.forward(x)"), True), (("conv2d.forward(x)",), False)],
    ids=["with", "without"],
)
def test_the_catalogue_decides(
    device: str, catalogue: tuple[str, ...], tiles: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(native, "installed", lambda kind: True)
    monkeypatch.setattr(native, "signatures", lambda kind: asked.append(kind) or catalogue)
    with settings.flags(device=device):
        assert passes_for().tiles is tiles
    assert asked == ["cuda" if "cuda" in device else "cpu"]


@pytest.mark.parametrize(("device", "tiles"), [("auto", True), ("cpu", True), ("cuda", False)])
def test_without_a_library(device: str, tiles: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "installed", lambda kind: False)
    with settings.flags(device=device):
        assert passes_for().tiles is tiles


def test_this_core_has_tiles() -> None:
    with settings.flags(device="cpu"):
        assert passes_for().tiles


def test_no_device() -> None:
    with settings.flags(device="gpu"), pytest.raises(UsageError, match="unknown device 'gpu'"):
        passes_for()
