"""The emulated CUDA library, built once and kept in pytest's cache."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlecli.runtime import native

CORE = Path(__file__).resolve().parents[2] / "core"


@pytest.fixture(scope="session")
def emulated(request: pytest.FixtureRequest) -> Iterator[str]:
    """The backend's name, once its library is there. The core is built from the checkout where it is not installed."""
    name = "cuda-emulated"
    if native.library_path(name).is_file():
        yield name
        return
    missing = [tool for tool in ("g++", "cmake", "ninja") if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"the emulated CUDA library needs {', '.join(missing)}")
    place = Path(request.config.cache.mkdir("cuda-emulated"))
    options = ["-DPK_CUDA=OFF", "-DPK_CUDA_EMULATE=ON"]
    for command in (
        ["cmake", "-S", str(CORE), "-B", str(place), "-G", "Ninja", *options],
        ["ninja", "-C", str(place), "paddlecore_cuda_emulated"],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    patch = pytest.MonkeyPatch()
    found = native.library_path
    patch.setattr(
        native, "library_path", lambda b: place / native.library_name(b) if b == name else found(b)
    )
    yield name
    patch.undo()
