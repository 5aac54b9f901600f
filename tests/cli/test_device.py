"""`--device` and PADDLECLI_DEVICE."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from .runs import recipe, run

CUDA = (Path(os.environ.get("PADDLECLI_CORE", "none")) / "libpaddlecore_cuda.so").exists()


@pytest.mark.parametrize("device", ["cpu", "auto"])
def test_the_cpu(tmp_path: Path, device: str) -> None:
    run(tmp_path, "train", recipe(tmp_path), "--device", device, "--run-dir", "out", "-q")
    assert json.loads((tmp_path / "out" / "run.json").read_text())["core"]["device"] == "cpu"
    run(tmp_path, "evaluate", "out", "--device", device, "-q")
    run(tmp_path, "predict", "out", "--device", device, "--field", "x=[1,2,3,4,5,6]", "-q")
    run(tmp_path, "bench", recipe(tmp_path), "--device", device, "--steps", "2")


@pytest.mark.skipif(CUDA, reason="this build has the CUDA library")
def test_no_cuda_library(tmp_path: Path) -> None:
    run(tmp_path, "train", recipe(tmp_path), "--run-dir", "out", "-q")
    for arguments in (
        ("train", recipe(tmp_path), "--run-dir", "other"), ("train", recipe(tmp_path), "--dry-run"),
        ("train", "--resume", "out"), ("evaluate", "out"), ("predict", "out", "--field", "x=[1,2,3,4,5,6]"),
        ("bench", recipe(tmp_path), "--steps", "2"),
    ):  # fmt: skip
        message = run(tmp_path, *arguments, "--device", "cuda:0", code=7).stderr
        assert "cuda" in message and "libpaddlecore_cuda" in message and "missing" in message
        assert "--device cpu" in message
    assert not (tmp_path / "other").exists()
    run(tmp_path, "train", recipe(tmp_path), code=7, env={"PADDLECLI_DEVICE": "cuda"})
    run(tmp_path, "train", recipe(tmp_path), "--device", "cpu", "-q", env={"PADDLECLI_DEVICE": "cuda"})


@pytest.mark.parametrize("device", ["gpu", "cpu:1", "cuda:x", "cuda:-1"])
def test_no_device(tmp_path: Path, device: str) -> None:
    message = run(tmp_path, "train", recipe(tmp_path), "--device", device, code=2).stderr
    assert device in message and "auto" in message
    assert not (tmp_path / "runs").exists()
