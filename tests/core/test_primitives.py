"""The C tests of the primitives (tests/core/*.c), at every instruction-set level of this machine."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_primitives(tmp_path: Path) -> None:
    if not shutil.which("cmake") or not shutil.which("ninja"):
        pytest.skip("building the C tests needs cmake and ninja on the PATH")
    build = str(tmp_path / "build")
    configure = ["cmake", "-S", str(ROOT / "core"), "-B", build, "-G", "Ninja", "-DPK_TESTS=ON"]
    options = ["-DPK_CUDA=OFF", f"-DPython_EXECUTABLE={sys.executable}"]
    run = ["ctest", "--test-dir", build, "--output-on-failure"]
    for command in ([*configure, *options], ["cmake", "--build", build], run):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert "100% tests passed" in done.stdout
