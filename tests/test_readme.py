"""Every command of the README and of the pages in docs/ runs, in the order of its page; recipes in the README
are valid; every page is linked; tables are those of the code."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from cli.runs import inside

from paddlecli import errors, settings

TOP = Path(__file__).parent.parent
README = (TOP / "README.md").read_text(encoding="utf-8")
DOCS = sorted((TOP / "docs").glob("*.md"))
SHARED = Path(os.environ.get("PADDLECLI_TEST_SHARED", TOP.parent / "shared"))
ELSEWHERE = {
    "extending.md": "tests/cli/test_extending.py",
    "fine-tuning.md": "tests/engine/test_finetuning.py",
    "pretrained.md": "tests/cli/test_convert.py",
}
"""Pages whose commands need files that a test of their own writes."""
DOWNLOAD = "paddlecli dataset download mnist"


def commands(page: Path) -> list[tuple[str, int]]:
    """The commands of a page and the exit codes that it states (`# exit code 3` behind a command)."""
    found = []
    for block in re.findall(
        r"^```console\n(.*?)^```", page.read_text(encoding="utf-8"), re.S | re.M
    ):
        for line in re.findall(r"^\$ (.*)$", block, re.M):
            command, _, code = line.partition("  # exit code ")
            found.append((command, int(code or 0)))
    return found


PAGES = [p for p in (TOP / "README.md", *DOCS) if p.name not in ELSEWHERE and commands(p)]


def test_commands_are_found() -> None:
    assert {p.name for p in PAGES} >= {"README.md", "command-line.md"}
    assert len(commands(TOP / "README.md")) >= 12
    assert 3 in {code for _, code in commands(TOP / "README.md")}
    for name, test in ELSEWHERE.items():
        assert name in (TOP / test).read_text(encoding="utf-8")


def _needs_mnist(command: str) -> bool:
    return "mnist" in command or "recognize_digits/softmax" in command


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_every_command_runs(page: Path, tmp_path: Path) -> None:
    """One after the other in one folder, as a reader would type them: those of the README as processes, others in this one."""
    environment = {**os.environ, "PADDLECLI_RUNS_DIR": str(tmp_path / "runs"), "NO_COLOR": "1"}
    if (SHARED / "data" / "mnist").is_dir():
        environment["PADDLECLI_MIRROR"] = (SHARED / "data").resolve().as_uri()
    missing = False
    for command, code in commands(page):
        if missing and _needs_mnist(command):
            continue
        words = shlex.split(command)
        assert words[0] == "paddlecli", command
        if page.name != "README.md" and command != DOWNLOAD:
            inside(tmp_path, environment, words[1:], code)
            continue
        done = subprocess.run(
            [sys.executable, "-m", "paddlecli", *words[1:]], cwd=tmp_path, env=environment, capture_output=True, text=True,
            timeout=300,
        )  # fmt: skip
        if command == DOWNLOAD and done.returncode == 8:
            missing = True
            continue
        assert done.returncode == code, f"{command}\n{done.stdout}{done.stderr}"
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


def test_links_lead_somewhere_and_to_every_page() -> None:
    for page in (TOP / "README.md", TOP / "CONTRIBUTING.md", *DOCS):
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name}: {link}"
    for page in DOCS:
        assert f"(docs/{page.name})" in README, f"the README links to no {page.name}"


# -- tables ----------------------------------------------------------------------------------------
def rows(page: Path, heading: str) -> list[list[str]]:
    """Cells of the table below a heading."""
    part = page.read_text(encoding="utf-8").split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("| ")][2:]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]


def test_the_table_of_settings_is_that_of_the_code() -> None:
    found = rows(TOP / "docs" / "command-line.md", "Settings of the program")
    shown = [[*row[:3], row[3].replace("`", "")] for row in found]
    assert shown == [[s.name, s.variable, s.default, s.help] for s in settings.TABLE]


def test_the_exit_codes_are_those_of_the_errors() -> None:
    classes = [c for c in vars(errors).values() if isinstance(c, type)]
    tree = [c for c in classes if issubclass(c, errors.PaddleCliError)]
    known = {c.exit_code for c in tree if c is not errors.PaddleCliError} | {0, 1, 141}
    page = {int(row[0]) for row in rows(TOP / "docs" / "command-line.md", "Exit codes")}
    assert page == known
    sentence = README.split("Exit codes:")[1].split("\n\n")[0]
    assert {int(n) for n in re.findall(r"\b\d+\b", sentence)} == known | {143, 129}
