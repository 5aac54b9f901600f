"""`doctor`: what it finds in a sound installation, and what it says of one that is not."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from paddlecli import settings
from paddlecli.cli import app
from paddlecli.engine import api, doctor, doctor_machine
from paddlecli.errors import NumericalError, UserCodeError
from paddlecli.runtime import native

from .test_help import ROOT

NAMES = [
    "python", "packages", "core", "instruction set", "cuda", "processor", "memory", "cache directory",
    "runs directory", "settings", "environment", "recipes", "plug-ins", "training",
]  # fmt: skip


@pytest.fixture(autouse=True)
def sound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders of its own; a core that fits, whatever kernels it has; room enough."""
    for name in settings.unknown_variables():
        monkeypatch.delenv(name)
    for name in ("PADDLECLI_THREADS", "PADDLECLI_ISA", "PADDLECLI_DEVICE", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PADDLECLI_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PADDLECLI_RUNS_DIR", str(tmp_path / "runs"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(native, "mismatches", list)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=50e9))
    monkeypatch.setattr(doctor_machine, "_meminfo", lambda key: 8_000_000_000)
    return tmp_path


def examined(capsys: pytest.CaptureFixture[str], seconds: float = 0) -> tuple[int, dict[str, Any]]:
    """The exit code, and the checks by name."""
    code = app.main(["doctor", "--json", "--seconds", str(seconds)])
    shown = capsys.readouterr()
    assert shown.err == ""
    found = json.loads(shown.out)
    assert found["schema"] == 1
    assert found["status"] == ("fault" if code else "ok")
    return code, {check["name"]: check for check in found["checks"]}


def test_a_sound_installation(sound: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = set(Path(tempfile.gettempdir()).glob("paddlecli-doctor-*"))
    code, checks = examined(capsys, 1)
    assert code == 0
    assert list(checks) == NAMES
    assert {c["status"] for c in checks.values()} <= {"ok", "warning"}
    assert checks["training"]["status"] == "ok"
    values = checks["training"]["values"]
    assert values["samples_per_second"] > 0
    assert values["loss"] is None or values["loss"] < doctor.CHANCE
    assert checks["cache directory"]["values"]["rule"] == "PADDLECLI_CACHE_DIR"
    assert checks["cache directory"]["values"]["exists"] is False
    assert not (sound / "cache").exists()
    assert not (sound / "runs").exists()
    assert set(Path(tempfile.gettempdir()).glob("paddlecli-doctor-*")) == before


def test_text(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PADDLECLI_THREDS", "4")
    assert app.main(["doctor", "--seconds", "0"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("ok       python           CPython 3.")
    at = next(i for i, line in enumerate(lines) if "  environment  " in line)
    assert (
        lines[at]
        == "warning  environment      not obeyed: PADDLECLI_THREDS (meant PADDLECLI_THREADS?)"
    )
    assert lines[at + 1].strip().startswith("cure: unset them, or use one of PADDLECLI_CACHE_DIR,")
    assert lines[-1].startswith("13 checks: 0 faults, ")


def test_the_rule_of_a_folder(
    capsys: pytest.CaptureFixture[str], sound: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PADDLECLI_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(sound / "xdg"))
    found = examined(capsys)[1]["cache directory"]["values"]
    assert found["rule"] == "default: the system's cache folder/paddlecli"
    assert found["path"] == str(settings.cache_dir())
    file = sound / "config" / "paddlecli" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(f'cache_dir = "{sound / "mine"}"\n')
    found = examined(capsys)[1]["cache directory"]["values"]
    assert (found["rule"], found["path"]) == (str(file), str(sound / "mine"))


def fault(
    capsys: pytest.CaptureFixture[str], name: str, code: int, seconds: float = 0
) -> dict[str, Any]:
    """The check of that name, which is the first fault and has that code."""
    found, checks = examined(capsys, seconds)
    first = next(c for c in checks.values() if c["status"] == "fault")
    assert (first["name"], first["code"], found) == (name, code, code)
    assert first["cure"]
    result: dict[str, Any] = first
    return result


def test_no_core(sound: Path) -> None:
    """In a process of its own: this one's library is in use."""
    environment = {**os.environ, "PADDLECLI_CORE": str(sound), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "paddlecli", "doctor", "--seconds", "0"],
        capture_output=True, text=True, env=environment, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (7, "")
    assert "fault    core             the core library is missing: " in done.stdout
    assert "cure: install paddlecli, or build core/" in done.stdout


def test_another_core(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "mismatches", lambda: ["only in Python: x.forward() -> ()", "more"])
    found = fault(capsys, "core", 7)
    assert ": 2 kernels are not this program's: only in Python: x.forward()" in found["text"]


def test_a_folder_that_cannot_be_made(
    capsys: pytest.CaptureFixture[str], sound: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (sound / "file").touch()
    monkeypatch.setenv("PADDLECLI_RUNS_DIR", str(sound / "file" / "runs"))
    found = fault(capsys, "runs directory", 7)
    assert found["text"].endswith(f"{sound / 'file'} cannot be written")
    assert "PADDLECLI_RUNS_DIR" in found["cure"]


@pytest.mark.parametrize(("free", "status"), [(1.9e9, "warning"), (0.09e9, "fault")])
def test_little_room(
    free: float, status: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=free))
    code, checks = examined(capsys)
    assert [checks[f"{n} directory"]["status"] for n in ("cache", "runs")] == [status, status]
    assert code == (7 if status == "fault" else 0)


def test_little_memory(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_machine, "_meminfo", lambda key: 300_000_000)
    code, checks = examined(capsys)
    assert (code, checks["memory"]["status"]) == (0, "warning")
    assert checks["memory"]["text"].startswith("0.3 GB free of ")


def test_a_setting_that_cannot_be_read(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PADDLECLI_THREADS", "many")
    code, checks = examined(capsys)
    assert code == 2
    assert checks["settings"]["text"] == "PADDLECLI_THREADS: expected a whole number, got 'many'"


def test_more_threads_than_cores(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PADDLECLI_THREADS", "9999")
    assert examined(capsys)[1]["processor"]["status"] == "warning"


def test_cuda_that_is_wanted_and_not_there(
    capsys: pytest.CaptureFixture[str], sound: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = native.library_path
    nothing = sound / "libpaddlecore_cuda.so"
    monkeypatch.setattr(native, "library_path", lambda b: nothing if b == "cuda" else found(b))
    assert examined(capsys)[1]["cuda"]["status"] in ("ok", "warning")
    monkeypatch.setenv("PADDLECLI_DEVICE", "cuda")
    fault(capsys, "cuda", 7)


def test_packages(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    rules = {"numpy": ">=1.26", "no-such-package": ">=1"}
    monkeypatch.setattr(doctor, "_requirements", lambda: (rules, {}))
    assert fault(capsys, "packages", 7)["text"] == "missing: no-such-package (>=1)"
    monkeypatch.setattr(doctor, "_requirements", lambda: ({"numpy": "<1.0"}, {}))
    code, checks = examined(capsys)
    assert (code, checks["packages"]["status"]) == (0, "warning")


def test_requirements() -> None:
    needed, further = doctor._requirements()
    assert {"numpy", "cffi", "typer"} <= needed.keys()
    assert "onnx" in further
    assert "pytest" not in {**needed, **further}


@pytest.mark.parametrize(
    ("version", "rule", "holds"),
    [("1.26.4", ">=1.26", True), ("2.0rc1", ">=1.26,<2", False), ("0.29.2", ">=0.29,<0.30", True), ("1.2", "", True),
     ("1.2", "==1.2.0", True), ("1.2", "!=1.2", False), ("1.2", ">1.2", False), ("1.1", "<=1.2", True)],
)  # fmt: skip
def test_versions(version: str, rule: str, holds: bool) -> None:
    assert doctor.fits(version, rule) is holds


def test_a_plugin_that_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(files: Any = ()) -> Any:
        raise UserCodeError("plugin mine failed: KeyError", "trace", hint="uninstall it")

    monkeypatch.setattr("paddlecli.config.plugins.load_code", failing)
    assert fault(capsys, "plug-ins", 3)["cure"] == "uninstall it"


def test_a_training_that_learns_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics = {"train": {"loss": math.log(5)}}
    result = SimpleNamespace(metrics=metrics, steps=10, seconds=1.0, samples_per_second=320.0)
    monkeypatch.setattr(api, "fit", lambda *args, **options: result)
    found = fault(capsys, "training", 1, seconds=1)
    assert (
        found["text"]
        == "320 samples/s over 10 steps, loss 1.6094: nothing was learned, 1.3863 is chance"
    )


def test_a_training_that_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*args: Any, **options: Any) -> Any:
        raise NumericalError("the loss is NaN", hint="look")

    monkeypatch.setattr(api, "fit", failing)
    assert fault(capsys, "training", 6, seconds=1)["text"] == "the loss is NaN"


def test_a_bug_in_a_check_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "features", lambda: 1 / 0)
    found = fault(capsys, "instruction set", 1)
    assert found["text"] == "ZeroDivisionError: division by zero"


def test_secrets_of_proxies_are_not_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://me:xyzzy@proxy:8080")
    shown = examined(capsys)[1]["environment"]
    assert shown["values"]["HTTPS_PROXY"] == "http://...@proxy:8080"
    assert "xyzzy" not in json.dumps(shown)
