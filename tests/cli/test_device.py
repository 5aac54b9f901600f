"""`--device` and PADDLECLI_DEVICE."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from paddlecli.runtime import native

from .runs import call, recipe, run


@pytest.mark.parametrize("device", ["cpu", "auto"])
def test_the_cpu(tmp_path: Path, device: str) -> None:
    call(tmp_path, "train", recipe(tmp_path), "--device", device, "--run-dir", "out", "-q")
    assert json.loads((tmp_path / "out" / "run.json").read_text())["core"]["device"] == "cpu"
    call(tmp_path, "evaluate", "out", "--device", device, "-q")
    call(tmp_path, "predict", "out", "--device", device, "--field", "x=[1,2,3,4,5,6]", "-q")
    call(tmp_path, "bench", recipe(tmp_path), "--device", device, "--steps", "2")


def test_no_cuda_library(tmp_path: Path) -> None:
    core = tmp_path / "core"
    core.mkdir()
    for name in (native.library_name(), "_ffi.py"):
        (core / name).symlink_to(native.folder() / name)
    env = {"PADDLECLI_CORE": str(core)}
    # a process that has the library once keeps it
    ask = run if native.library_path("cuda").is_file() else call
    run(tmp_path, "train", recipe(tmp_path), "--run-dir", "out", "-q", env=env)
    for arguments in (
        ("train", recipe(tmp_path), "--run-dir", "other"), ("train", recipe(tmp_path), "--dry-run"),
        ("train", "--resume", "out"), ("evaluate", "out"), ("predict", "out", "--field", "x=[1,2,3,4,5,6]"),
        ("bench", recipe(tmp_path), "--steps", "2"), ("model", "summary", recipe(tmp_path)),
    ):  # fmt: skip
        message = ask(tmp_path, *arguments, "--device", "cuda:0", code=7, env=env).stderr
        assert f"{core / native.library_name('cuda')} is missing" in message
        assert "--device cpu" in message
    assert not (tmp_path / "other").exists()
    run(tmp_path, "train", recipe(tmp_path), code=7, env={**env, "PADDLECLI_DEVICE": "cuda"})
    ask(tmp_path, "train", recipe(tmp_path), "--device", "cpu", "-q",
        env={**env, "PADDLECLI_DEVICE": "cuda"})  # fmt: skip


@pytest.mark.skipif(
    not native.library_path("cuda").is_file(), reason="this build has no CUDA library"
)
def test_no_such_card(tmp_path: Path) -> None:
    message = run(tmp_path, "train", recipe(tmp_path), "--device", "cuda:99", code=7).stderr
    assert "cuda" in message and "--device cpu" in message
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("device", ["gpu", "cpu:1", "cuda:x", "cuda:-1"])
def test_no_device(tmp_path: Path, device: str) -> None:
    message = call(tmp_path, "train", recipe(tmp_path), "--device", device, code=2).stderr
    assert device in message and "auto" in message
    assert not (tmp_path / "runs").exists()
