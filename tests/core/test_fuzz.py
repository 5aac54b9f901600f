"""Thousands of mutated plans under the address and undefined-behaviour sanitizers: the core refuses or runs them, and lives."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "runtime"))
import plans  # noqa: E402

COUNT = int(os.environ.get("PADDLECLI_FUZZ_COUNT", "4000"))
OPTIONS = {
    "ASAN_OPTIONS": "allocator_may_return_null=1:detect_leaks=1:max_allocation_size_mb=2048",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
}


@pytest.fixture(scope="session")
def fuzzer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, built once; PADDLECLI_FUZZ_BUILD keeps its build folder."""
    if not shutil.which("cmake") or not shutil.which("ninja"):
        pytest.skip("building the fuzzer needs cmake and ninja on the PATH")
    kept = os.environ.get("PADDLECLI_FUZZ_BUILD")
    build = Path(kept) if kept else tmp_path_factory.mktemp("fuzz")
    level = "neon" if os.uname().machine in ("aarch64", "arm64") else "baseline"
    configure = ["cmake", "-S", str(ROOT / "core"), "-B", str(build), "-G", "Ninja", "-DPK_TESTS=ON", f"-DPK_LEVELS={level}",
                 "-DPK_SANITIZE=address,undefined", f"-DPython_EXECUTABLE={sys.executable}"]  # fmt: skip
    for command in (configure, ["cmake", "--build", str(build), "--target", "fuzz_plan"]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return build / "tests" / "fuzz_plan"


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_the_core_survives_mutated_plans(fuzzer: Path, tmp_path: Path, seed: int) -> None:
    files = []
    for name, make in plans.CORPUS.items():
        files.append(tmp_path / f"{name}.plan")
        files[-1].write_bytes(make())
    environment = {**os.environ, **OPTIONS, "FUZZ_SAVE": str(tmp_path / "last.plan")}
    command = [str(fuzzer), str(COUNT), str(seed), *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-6000:]}"
    found = re.search(r"plans (\d+) past_header (\d+) valid (\d+) ran (\d+)", done.stdout)
    assert found is not None, done.stdout
    count, past, valid, ran = map(int, found.groups())
    assert count == COUNT and past >= count / 2, f"only {past} of {count} plans got past the header"
    assert valid >= count / 20 and ran >= count / 40, f"only {valid} were valid and {ran} ran"
