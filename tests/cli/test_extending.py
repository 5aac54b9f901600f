"""docs/extending.md: every block is written to a file, every command is run."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import pytest

from paddlecli.cli.app import main
from paddlecli.config import plugins
from paddlecli.config.registry import KINDS

from .runs import environment, run, strict

PAGE = Path(__file__).resolve().parents[2] / "docs" / "extending.md"
TEXT = PAGE.read_text()
COMMANDS = [
    line.removeprefix("$ ")
    for block in re.findall(r"```console\n(.*?)```", TEXT, re.S)
    for line in block.splitlines()
]
COMPILER = shutil.which("cc")
DATA = {
    "points.txt": "0.3 0.4 0.5;0.6 0.8 1.0\n-0.5 1.2 1.3;0.8 -0.6 1.0\n",
    "houses.csv": "area,rooms,price\n"
    + "".join(f"{20 + 3 * i},{1 + i % 5},{100 + 9 * i}\n" for i in range(30)),
}


def blocks(folder: Path) -> None:
    """Writes the page's files."""
    code = "\n".join(re.findall(r"```python\n(.*?)```", TEXT, re.S))
    (folder / "mine.py").write_text(code)
    for name, text in re.findall(r"```\w+ (\S+)\n(.*?)```", TEXT, re.S):
        (folder / name).write_text(text)
    for name, text in DATA.items():
        (folder / name).write_text(text)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which every command of the page was run, in order, as it stands there."""
    folder = tmp_path_factory.mktemp("extending")
    blocks(folder)
    with plugins.isolated(), chdir(folder):
        for command in COMMANDS:
            if "cube" not in command:
                assert main(shlex.split(command)[1:]) == 0, command
    return folder


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
def test_an_op_with_kernels_in_c(tmp_path: Path) -> None:
    """Compiled by the page's command, and trained in a process of its own, since a library stays loaded."""
    blocks(tmp_path)
    compiling, training = (command for command in COMMANDS if "cube" in command)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environ = {**environment(tmp_path), "PATH": path}
    subprocess.run(["bash", "-c", compiling], cwd=tmp_path, env=environ, check=True)
    run(tmp_path, *shlex.split(training)[1:])


def test_there_is_an_example_of_every_kind() -> None:
    registered = set(re.findall(r"@(\w+)\.register\(", TEXT))
    others = {"data set": "DATASETS", "loss": "LOSSES"}
    assert registered == {others.get(kind, f"{kind.upper()}S") for kind in KINDS}


def test_what_the_recipe_expects_is_met(done: Path) -> None:
    """The whole page at work: layers, metrics, optimizer, schedule, callback, data set."""
    summary = json.loads((done / "rings" / "summary.json").read_text())
    assert summary["best"]["metrics"]["test"]["median_percent"] < 12
    assert summary["best"]["metric"] == "test.median_percent"
    lines = [json.loads(x) for x in (done / "rings" / "metrics.jsonl").read_text().splitlines()]
    rates = {x["step"]: x["learning_rate"] for x in lines if x["event"] == "step"}
    assert rates[200] == pytest.approx(0.1) and rates[300] == pytest.approx(0.05)
    assert len((done / "rings" / "diary.txt").read_text().splitlines()) == 8
    assert (done / "points" / "model" / "model.safetensors").is_file()


def test_the_saved_network_needs_no_code_to_predict(done: Path) -> None:
    found = strict(
        run(done, "predict", "rings", "--field", "point=[0.6,0.8]", "--json", "-q").stdout
    )
    assert found["prediction"] == pytest.approx(1.0, abs=0.2)


def test_a_fault_of_a_row_is_the_row_s(done: Path) -> None:
    """What a transform finds is told like a fault of a shipped one."""
    arguments = (
        "predict",
        "houses",
        "--code",
        "mine.py",
        "--field",
        "area=-4",
        "--field",
        "rooms=3",
    )
    answer = run(done, *arguments, "--json", code=4)
    assert "-4 has no square root" in strict(answer.stdout)["error"]
