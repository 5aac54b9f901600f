"""Every command of the README runs, in its order, and every recipe in it is valid."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
SHARED = Path(
    os.environ.get("PADDLECLI_TEST_SHARED", Path(__file__).parent.parent.parent / "shared")
)
BLOCKS = re.findall(r"```console\n(.*?)```", README, re.S)
COMMANDS = [line[2:] for block in BLOCKS for line in block.splitlines() if line.startswith("$ ")]
FAILS = {"paddlecli train --config fit_a_line -o train.epoch=3": 3}
"""Commands that the README shows failing, and their exit code."""


def _needs_mnist(command: str) -> bool:
    return "mnist" in command or "recognize_digits/softmax" in command


def test_commands_are_found() -> None:
    assert len(COMMANDS) >= 10
    assert set(FAILS) <= set(COMMANDS)


def test_every_command_runs(tmp_path: Path) -> None:
    """One after the other in one folder, as a reader would type them."""
    environment = {**os.environ, "PADDLECLI_RUNS_DIR": str(tmp_path / "runs"), "NO_COLOR": "1"}
    if (SHARED / "data" / "mnist").is_dir():
        environment["PADDLECLI_MIRROR"] = (SHARED / "data").resolve().as_uri()
    missing = False
    for command in COMMANDS:
        if missing and _needs_mnist(command):
            continue
        words = command.split()
        assert words[0] == "paddlecli", command
        done = subprocess.run(
            [sys.executable, "-m", "paddlecli", *words[1:]], cwd=tmp_path, env=environment, capture_output=True, text=True,
            timeout=300,
        )  # fmt: skip
        if command == "paddlecli dataset download mnist" and done.returncode == 8:
            missing = True
            continue
        assert done.returncode == FAILS.get(command, 0), f"{command}\n{done.stdout}{done.stderr}"
        assert "Traceback" not in done.stderr, command
    if missing:
        pytest.skip("MNIST cannot be reached from here: its commands did not run, all others did")


def test_recipes_are_valid(tmp_path: Path) -> None:
    for number, text in enumerate(re.findall(r"```yaml\n(.*?)```", README, re.S)):
        path = tmp_path / f"recipe{number}.yaml"
        path.write_text(text, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "paddlecli", "recipe", "validate", str(path)],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stdout + done.stderr
