"""The commands `runs list|show|compare|best`."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios
from pathlib import Path

import pytest

from .runs import call, command, environment, recipe, run, strict


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, and one that is damaged."""
    place = tmp_path_factory.mktemp("runs")
    name = recipe(place)
    for epochs in ("3", "6"):
        call(
            place, "train", name, "-q", "--epochs", epochs, "--run-dir", f"runs/shapes/run{epochs}"
        )
    (place / "runs" / "shapes" / "broken").mkdir()
    (place / "runs" / "shapes" / "broken" / "run.json").write_text("{")
    return place


def test_list(folder: Path) -> None:
    done = call(folder, "runs", "list")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[0] == ["ID", "RECIPE", "STATUS", "STEPS", "METRIC", "TIME", "SIZE"]
    assert [line[:4] for line in lines[1:3]] == [
        ["run6", "shapes", "completed", "48"],
        ["run3", "shapes", "completed", "24"],
    ]
    assert lines[3][:3] == ["broken", "shapes", "damaged"]
    assert "run.json: cannot be read" in done.stderr
    found = strict(call(folder, "runs", "list", "--json").stdout)
    assert [r["id"] for r in found["runs"]] == ["run6", "run3", "broken"] and found["schema"] == 1
    assert "problem" in found["runs"][2] and found["runs"][0]["metrics"]["test"]["loss"] > 0
    for arguments, ids in (
        (("--status", "damaged"), ["broken"]), (("-n", "1"), ["run6"]), (("--recipe", "none"), []),
        (("--runs-dir", "runs/shapes"), ["run6", "run3", "broken"]),
    ):  # fmt: skip
        listed = strict(call(folder, "runs", "list", "--json", *arguments).stdout)
        assert [r["id"] for r in listed["runs"]] == ids
    assert "no runs" in call(folder, "runs", "list", "--recipe", "none").stderr
    call(folder, "runs", "list", "--runs-dir", "nowhere", code=5)


def test_show(folder: Path) -> None:
    done = call(folder, "runs", "show", "run6")
    for text in ("status       completed", "trained      6 epochs, 48 steps", "seed         5", "EPOCH", "test.accuracy",
                 "step-00000048", "last", f"paddlecli evaluate {folder}/runs/shapes/run6", f"paddlecli train --resume {folder}/runs/shapes/run6",
                 "command      paddlecli train ./recipe.yaml -q --epochs 6"):  # fmt: skip
        assert text in done.stdout, text
    assert "▁" not in done.stdout and done.stderr == "", "no curve where stdout is no terminal"
    found = strict(call(folder, "runs", "show", "run6", "--json").stdout)
    assert found["facts"]["seed"] == 5 and len(found["history"]) == 6
    broken = call(folder, "runs", "show", "broken")
    assert "status       damaged" in broken.stdout and "cannot be read" in broken.stderr
    call(folder, "runs", "show", "nothing", code=5)
    assert call(folder, "runs", "show", "run3", "--runs-dir", "runs/shapes").stdout


@pytest.mark.parametrize(("language", "drawn"), [("C.UTF-8", True), ("C", False)])
def test_curve_on_a_terminal(folder: Path, language: str, drawn: bool) -> None:
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 70, 0, 0))
    env = environment(
        folder, TERM="xterm", LC_ALL=language, PYTHONCOERCECLOCALE="0", PYTHONUTF8="0"
    )
    env.pop("COLUMNS", None)
    process = subprocess.Popen(
        command("runs", "show", "run6"),
        cwd=folder,
        env=env,
        stdout=follower,
        stderr=subprocess.PIPE,
    )
    os.close(follower)
    seen = b""
    while True:
        try:
            piece = os.read(leader, 65536)
        except OSError:
            break
        if not piece:
            break
        seen += piece
    os.close(leader)
    assert process.wait(timeout=60) == 0
    assert process.stderr is not None and process.stderr.read() == b""
    process.stderr.close()
    assert ("▁" in seen.decode()) == drawn
    assert all(len(line) <= 70 for line in seen.decode().splitlines() if set(line) & set("▁█"))


def test_compare(folder: Path) -> None:
    lines = [
        line.split() for line in call(folder, "runs", "compare", "run3", "run6").stdout.splitlines()
    ]
    assert lines[0] == ["run3", "run6"]
    assert ["train.epochs", "3", "6"] in lines and any(line[0] == "test.loss" for line in lines)
    assert not any(line[0] == "train.batch_size" for line in lines)
    found = strict(call(folder, "runs", "compare", "run3", "run6", "--json").stdout)
    assert found["settings"] == {"train.epochs": [3, 6]}
    call(folder, "runs", "compare", "run3", code=2)
    call(folder, "runs", "compare", "run3", "broken", code=5)


def test_best(folder: Path) -> None:
    """Stdout is the directory alone, for `$(...)`."""
    found = strict(call(folder, "runs", "list", "--json").stdout)["runs"][:2]
    losses = {r["path"]: r["metrics"]["test"]["loss"] for r in found}
    best = min(losses, key=lambda path: losses[path])
    done = call(folder, "runs", "best", "--metric", "test.loss")
    assert (
        done.stdout == f"{best}\n"
        and f"test.loss {losses[best]:.6g}, the best of 2 runs" in done.stderr
    )
    assert call(folder, "runs", "best", "--metric", "test.loss", "-q").stderr == ""
    assert (
        call(folder, "runs", "best", "--metric", "test.loss", "--mode", "max", "-q").stdout
        != done.stdout
    )
    ranked = strict(call(folder, "runs", "best", "--metric", "test.loss", "--json").stdout)["runs"]
    assert [r["value"] for r in ranked] == sorted(losses.values())
    assert "`test.loss`" in call(folder, "runs", "best", "--metric", "test.los", code=5).stderr
    call(folder, "runs", "best", "--metric", "test.loss", "--mode", "up", code=2)
    call(folder, "runs", "best", "--metric", "test.loss", "--recipe", "none", code=5)


def test_head(folder: Path) -> None:
    """A reader that goes away is no traceback, and quick."""
    line = " ".join(command("runs", "list"))
    done = subprocess.run(["sh", "-c", f"{line} | head -1"], cwd=folder, env=environment(folder), capture_output=True, text=True,
                          check=False)  # fmt: skip
    assert done.stdout.startswith("ID") and "Traceback" not in done.stderr


def test_no_numpy_for_a_list(folder: Path) -> None:
    code = "import sys; from paddlecli.cli.app import main; main(sys.argv[1:]); print([m for m in ('numpy', 'cffi', 'rich') if m in sys.modules], file=sys.stderr)"
    import sys

    done = subprocess.run([sys.executable, "-c", code, "runs", "list", "--recipe", "shapes"], cwd=folder, env=environment(folder),
                          capture_output=True, text=True, check=True)  # fmt: skip
    assert done.stderr.splitlines()[-1] == "[]"
    run(folder, "runs", "list")
