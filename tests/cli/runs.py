"""Running the command as a user does."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

DIGITS = """
name: shapes
description: two kinds of small pictures that are easy to tell apart
data:
  name: generated
  samples: 120
  test_samples: 30
  fields:
    - {name: x, shape: [6]}
    - {name: y, shape: [1], dtype: int64, classes: 3, role: label}
model:
  inputs:
    x: {shape: [6]}
    y: {shape: [1], dtype: int64, below: 3, role: label}
  layers:
    - fc: {size: 8, activation: relu}
    - fc: {size: 3}
      name: logits
    - softmax: {}
      name: probability
  loss:
    softmax_with_cross_entropy: {}
    from: [logits, y]
  outputs: {probability: probability}
optimizer: {name: adam, learning_rate: 0.01}
metrics: [accuracy]
train: {epochs: 3, batch_size: 16, seed: 5, log_every: 2}
predict: {labels: [red, green, blue], top: 2}
expect:
  test.loss: [0, 100]
  test.accuracy: {min: 1.5}
"""


def command(*arguments: str) -> list[str]:
    """The command line of `paddlecli`."""
    return [sys.executable, "-m", "paddlecli", *arguments]


def environment(folder: Path, **more: str) -> dict[str, str]:
    """Settings and runs of a test lie in its own folder."""
    kept = {
        k: v
        for k, v in os.environ.items()
        if not k.startswith("PADDLECLI_") or k == "PADDLECLI_CORE"
    }
    own = {
        "PADDLECLI_RUNS_DIR": str(folder / "runs"),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "HOME": str(folder),
    }
    return {**kept, **own, **more}


def run(
    folder: Path, *arguments: str, code: int = 0, stdin: bytes | None = None, env: Mapping[str, str] | None = None,
    users: bool = False,
) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """Runs a command in `folder` and checks its exit code; a traceback is right where it is of a user's own code alone."""
    done = subprocess.run(
        command(*arguments), capture_output=True, cwd=folder, env=environment(folder, **(env or {})), input=stdin or b"",
        timeout=300, check=False,
    )  # fmt: skip
    out, err = done.stdout.decode(), done.stderr.decode()
    assert done.returncode == code, f"exit code {done.returncode}, expected {code}\n{out}\n{err}"
    assert ("Traceback" in err) == users
    return subprocess.CompletedProcess(done.args, done.returncode, out, err)


def call(
    folder: Path, *arguments: str, code: int = 0, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """As `run`, in this process: a tenth of the time, for what does not depend on streams, signals or imports."""
    return inside(folder, environment(folder, **(env or {})), arguments, code)


def inside(
    folder: Path, env: Mapping[str, str], arguments: Sequence[str], code: int = 0
) -> subprocess.CompletedProcess[str]:
    """Runs a command in this process, in `folder` and with this whole environment."""
    from paddlecli.cli.app import main

    out, err, before = io.StringIO(), io.StringIO(), Path.cwd()
    os.chdir(folder)
    try:
        with (
            mock.patch.dict(os.environ, env, clear=True),
            mock.patch.object(sys, "argv", ["paddlecli", *arguments]),
            redirect_stdout(out),
            redirect_stderr(err),
        ):
            found = main(arguments)
    finally:
        os.chdir(before)
    text = f"exit code {found}, expected {code}\n{out.getvalue()}\n{err.getvalue()}"
    assert found == code, text
    assert "Traceback" not in err.getvalue(), text
    return subprocess.CompletedProcess(arguments, found, out.getvalue(), err.getvalue())


def strict(text: str) -> Any:
    """JSON without NaN or infinity."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} in JSON")

    return json.loads(text, parse_constant=refuse)


def recipe(folder: Path, text: str = DIGITS, name: str = "recipe.yaml") -> str:
    """Writes a recipe and returns how the command line calls it."""
    (folder / name).write_text(text)
    return f"./{name}"
