"""The dialect itself, and that nvcc takes every kernel file."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
CORE = HERE.parents[1] / "core"
SOURCE = HERE / "dialect.cu"
INCLUDES = [f"-I{CORE / folder}" for folder in ("cuda", "include", "cpu")]


def call(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


def needs(tool: str) -> str:
    found = shutil.which(tool)
    if found is None:
        pytest.skip(f"{tool} is missing")
    return found


def test_dialect_emulated(tmp_path: Path) -> None:
    """Barriers, warp functions, gates and faults; threads that wait for ever are reported."""
    program = str(tmp_path / "dialect")
    flags = ["-std=c++17", "-O1", "-DPK_LEVEL=cuda", f"-I{CORE / 'cuda/emulate'}", *INCLUDES]
    emulation = str(CORE / "cuda/emulate/emulate.cpp")
    built = call(
        needs("g++"), *flags, "-x", "c++", str(SOURCE), emulation, "-lpthread", "-o", program
    )
    assert built.returncode == 0, built.stderr
    done = call(program)
    assert done.returncode == 0, done.stdout
    assert call(program, "stuck").stdout == "10 threads of block 0 wait for ever\n"


@pytest.mark.gpu
def test_dialect_on_a_device(tmp_path: Path) -> None:
    """The same on a GPU."""
    program = str(tmp_path / "dialect")
    flags = [
        "-std=c++17",
        "-O2",
        "-arch=native",
        "-DPK_LEVEL=cuda",
        f"-I{CORE / 'cuda/device'}",
        *INCLUDES,
    ]
    if not Path("/dev/nvidiactl").exists():
        pytest.skip("there is no GPU")
    built = call(needs("nvcc"), *flags, str(SOURCE), "-o", program)
    assert built.returncode == 0, built.stderr
    done = call(program)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_nvcc(request: pytest.FixtureRequest) -> None:
    """The CUDA library builds without a warning; the build is kept in the cache of pytest."""
    for tool in ("nvcc", "cmake", "ninja"):
        needs(tool)
    assert request.config.cache is not None
    place = Path(request.config.cache.mkdir("cuda-nvcc"))
    made = call("cmake", "-S", str(CORE), "-B", str(place), "-G", "Ninja", "-DPK_CUDA=ON")
    assert made.returncode == 0, made.stderr
    built = call("ninja", "-C", str(place), "paddlecore_cuda")
    assert built.returncode == 0, built.stdout[-3000:]
    assert "warning" not in built.stdout
