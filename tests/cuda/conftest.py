"""The backends that CUDA kernels are tested on: emulated on the host, and a GPU where there is one.

The emulated library is built once and kept in pytest's cache, where the core's folder has none.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock

from paddlecli.errors import ResourceError
from paddlecli.runtime import native
from paddlecli.runtime.device import device

CORE = Path(__file__).resolve().parents[2] / "core"
BACKENDS = ("cuda-emulated", pytest.param("cuda", marks=pytest.mark.gpu))


def build(place: Path) -> None:
    """The emulated library in a folder, from the checkout."""
    missing = [tool for tool in ("g++", "cmake", "ninja") if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"the emulated CUDA library needs {', '.join(missing)}")
    options = ["-G", "Ninja", "-DPK_CUDA=OFF", "-DPK_CUDA_EMULATE=ON"]
    for command in (
        ["cmake", "-S", str(CORE), "-B", str(place), *options],
        ["ninja", "-C", str(place), "paddlecore_cuda_emulated"],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]


@pytest.fixture(scope="session", params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
    """A backend's name, once its library is there."""
    name: str = request.param
    if name == "cuda":
        try:
            device(name)
        except ResourceError as error:
            pytest.skip(str(error).splitlines()[0])
    if native.library_path(name).is_file():
        yield name
        return
    assert request.config.cache is not None
    place = Path(request.config.cache.mkdir("cuda-emulated"))
    with FileLock(place.with_suffix(".lock")):  # test processes share the build
        build(place)
    found = native.library_path
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            native,
            "library_path",
            lambda b: place / native.library_name(b) if b == name else found(b),
        )
        yield name
