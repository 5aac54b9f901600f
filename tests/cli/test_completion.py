"""`completion`: what the tab key offers, asked as the scripts ask, and the scripts in the shells that are here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paddlecli import assets
from paddlecli.cli import app
from paddlecli.cli.candidates import _KINDS, FILES, FOLDERS, registered, sources_of
from paddlecli.cli.completion import SCRIPTS, answer
from paddlecli.config.registry import KINDS

from .test_help import HEAVY, ROOT

NOTHING = {
    "predict --text", "predict --field", "evaluate --min", "evaluate --max", "runs --metric",
    "train --name", "train --max-time", "recipe new --target", "recipe new --name", "dataset head --split",
    "recipe new --encoding", "recommend --user", "embeddings --table", "embeddings --method",
    "embeddings WORD", "embeddings WORD...",
}  # fmt: skip
"""Values that nobody can know."""
RECIPES = [*assets.recipe_names()]


def offered(*words: str, shell: str = "fish") -> list[str]:
    """The words of an answer."""
    return [line.partition("\t")[0] for line in answer(shell, words)]


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (
        "digits/20260101T000000Z-aaaa",
        "digits/20260102T000000Z-bbbb",
        "words/20260103T000000Z-cccc",
    ):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "run.json").write_text("{}")
    (tmp_path / "runs" / "notes").mkdir()
    monkeypatch.setenv("PADDLECLI_RUNS_DIR", str(tmp_path / "runs"))
    return tmp_path


RUNS = [
    "last",
    "digits",
    "words",
    "20260103T000000Z-cccc",
    "20260102T000000Z-bbbb",
    "20260101T000000Z-aaaa",
]


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ([""], list(app.COMMANDS)),
        (["ev"], ["evaluate"]),
        (["nonsense", ""], []),
        (["recipe", "sho"], ["show"]),
        (["train", "--reci"], []),
        (["train", "--resu"], ["--resume"]),
        (["train", "--quiet", "--resu"], ["--resume"]),
        (["train", ""], [*RECIPES, FILES]),
        (["train", "fit_a"], ["fit_a_line", FILES]),
        (["train", "fit_a_line", ""], []),
        (["train", "--config", "fit_a"], ["fit_a_line", FILES]),
        (["train", "-c", "fit_a"], ["fit_a_line", FILES]),
        (["train", "--config=fit_a"], ["--config=fit_a_line", FILES]),
        (["train", "--config=fit_a_line", ""], [*RECIPES, FILES]),
        (["train", "--epochs", "3", "fit_a"], ["fit_a_line", FILES]),
        (["train", "--epochs", ""], []),
        (["train", "-q", "fit_a"], ["fit_a_line", FILES]),
        (["train", "--", "fit_a"], ["fit_a_line", FILES]),
        (["train", "-o", "train.ep"], ["train.epochs="]),
        (["train", "-o", "train.epochs=3", "-o", "train.batch"], ["train.batch_size="]),
        (["train", "--device", "c"], ["cpu", "cuda"]),
        (["train", "--code", ""], [FILES]),
        (["train", "--run-dir", ""], [FOLDERS]),
        (["train", "--resume", ""], [*RUNS, FOLDERS]),
        (["train", "--resume", "--quie"], ["--quiet"]),
        (["train", "--resume", "--quiet", "--forc"], ["--force"]),
        (["evaluate", "2026010"], [*RUNS[3:], FOLDERS]),
        (["evaluate", "dig"], ["digits", FOLDERS]),
        (["evaluate", "last", "--split", ""], ["train", "valid", "test"]),
        (["predict", "last", ""], [FILES]),
        (["predict", "last", "a.png", ""], [FILES]),
        (["runs", "compare", "last", "dig"], ["digits", FOLDERS]),
        (["recipe", "validate", "fit_a_line", "fit_a"], ["fit_a_line", FILES]),
        (["recipe", "diff", "dig"], ["digits", FILES, FOLDERS]),
        (["dataset", "path", "mni"], ["mnist"]),
        (["dataset", "download", "mnist", "mni"], ["mnist"]),
        (["model", "show", "lin"], ["linear"]),
        (["plan", "fit_a_line", "--stage", "f"], ["fused"]),
        (["layer", "show", "batch"], ["batch_norm"]),
        (["loss", "show", "hinge"], ["hinge_loss"]),
        (["optimizer", "show", "ada"], ["adadelta", "adagrad", "adam", "adamax", "adamw"]),
        (["schedule", "show", "co"], ["constant", "cosine"]),
        (["metric", "show", "chu"], ["chunk_eval"]),
        (["transform", "show", "rot"], ["rotate"]),
        (["transform", "list", "--js"], ["--json"]),
        (["completion", ""], ["bash", "zsh", "fish", "powershell"]),
    ],
    ids=lambda value: "_".join(value) if isinstance(value, list) and len(value) < 6 else None,
)  # fmt: skip
def test_offered(words: list[str], wanted: list[str], runs: Path) -> None:
    assert offered(*words) == wanted


def test_options_and_commands_say_what_they_are() -> None:
    assert "train\tTrain a recipe.\n" in answer("zsh", [""])
    assert "--json\tPrint one JSON object on stdout.\n" in answer("zsh", ["train", "--js"])


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["train", "--config", "=", "fit_a"], ["fit_a_line", FILES]),
        (["train", "--config", "="], [*RECIPES, FILES]),
        (["train", "--config=fit_a"], ["--config=fit_a_line", FILES]),
        (["train", "-o", "train.seed", "=", "3", "fit_a"], ["fit_a_line", FILES]),
        (["train", "-o", "train.se"], ["train.seed="]),
    ],
    ids=["value", "nothing", "whole", "setting", "key"],
)
def test_bash_cuts_words_at_equal_signs(words: list[str], wanted: list[str]) -> None:
    assert offered(*words, shell="bash") == wanted


def test_powershell_marks_the_last_word() -> None:
    assert offered("recipe", "+", shell="powershell")[:2] == ["list", "cat"]
    assert offered("recipe", "+va", shell="powershell") == ["validate"]


@pytest.mark.parametrize("kind", _KINDS)
def test_names_read_from_sources(kind: str) -> None:
    """They are those that importing everything finds."""
    assert registered(kind) == KINDS[kind].names()


def test_a_broken_runs_folder_is_no_error(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PADDLECLI_RUNS_DIR", str(runs / "runs" / "digits" / "none"))
    assert offered("evaluate", "") == ["last", FOLDERS]
    monkeypatch.setenv("PADDLECLI_THREADS", "many")
    assert offered("evaluate", "") == ["last", FOLDERS]


def parameters() -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every parameter with a value that is no number, of every command that is there."""
    top = app.build()
    for name in top.list_commands(None):
        command = top.get_command(None, name)
        below = getattr(command, "commands", None)
        for path, one in (
            [((name,), command)] if below is None else [((name, n), c) for n, c in below.items()]
        ):
            for p in one.params:
                number = p.type_descriptor.annotation in (int, float)
                if not (number or getattr(p, "is_flag", False) or getattr(p, "count", False)):
                    yield path, p


def test_every_parameter_has_an_answer() -> None:
    """A new option or argument completes to something, or stands in the list of those that cannot."""
    without = {
        f"{' '.join(path)} {p.metavar if p.opts == [p.name] else p.opts[0]}"
        for path, p in parameters()
        if not sources_of(path, p)
    }
    known = {n for n in without if n in NOTHING or n.replace(n.split()[1] + " ", "", 1) in NOTHING}
    assert without - known == set()


@pytest.mark.parametrize(
    "words",
    [["tr"], ["train", ""], ["train", "--"], ["dataset", "info", ""], ["evaluate", ""], ["train", "-o", "train."],
     *([kind, "show", ""] for kind in _KINDS)],
    ids="_".join,
)  # fmt: skip
def test_nothing_heavy_is_loaded(words: list[str]) -> None:
    code = (
        "import sys; from paddlecli.cli.app import main; code = main(sys.argv[1:]); "
        f"print([m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr); sys.exit(code)"
    )
    command = [sys.executable, "-c", code, "completion", "bash", "--", *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, "[]\n")
    assert done.stdout


# -- the scripts -----------------------------------------------------------------------------------
@pytest.mark.parametrize("shell", SCRIPTS)
def test_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["completion", shell]) == 0
    shown = capsys.readouterr()
    assert shown.out == SCRIPTS[shell]
    assert shown.err == ""
    assert f"completion {shell} -- " in shown.out


def test_unknown_shell(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["completion", "tcsh"]) == 2
    assert "'bash', 'zsh', 'fish', 'powershell'" in capsys.readouterr().err


@pytest.fixture
def world(runs: Path) -> dict[str, str]:
    """A folder with two files, and this program on the path."""
    (runs / "bin").mkdir()
    program = runs / "bin" / "paddlecli"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m paddlecli "$@"\n')
    program.chmod(0o755)
    (runs / "my recipe.yaml").touch()
    (runs / "my folder").mkdir()
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "HOME": str(runs), "NO_COLOR": "1"}


def shell(name: str, script: str, world: dict[str, str]) -> list[str]:
    """Lines that a shell's script prints."""
    program = shutil.which(name)
    if program is None:
        pytest.skip(f"{name} is not on this machine")
    done = subprocess.run(
        [program, *(["--no-config"] if name == "fish" else []), "-c", script],
        capture_output=True, text=True, env=world, cwd=world["HOME"], check=False, timeout=60,
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout.splitlines()


BASH = """
eval "$(paddlecli completion bash)"
compopt() {{ :; }}  # it works within a completion only
COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_paddlecli paddlecli
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
FISH = "paddlecli completion fish | source; complete -C '{line}'"
ZSH = """
compdef() {{ :; }}
_files() {{ print "files $*" }}
_describe() {{ print -l -- $named }}
compadd() {{ print -l -- $keys }}
eval "$(paddlecli completion zsh)"
words=({words}); CURRENT=$#words
_paddlecli
"""


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("paddlecli ev", ["evaluate"]),
        ("paddlecli train fit_a", ["fit_a_line"]),
        ("paddlecli train --config = fit_a", ["fit_a_line"]),
        ("paddlecli train my", ["my folder", "my recipe.yaml"]),
        ("paddlecli train --run-dir my", ["my folder"]),
        ("paddlecli train -o train.se", ["train.seed="]),
        ("paddlecli evaluate w", ["words"]),
        ("paddlecli metric show acc", ["accuracy"]),
    ],
)  # fmt: skip
def test_bash(words: str, wanted: list[str], world: dict[str, str]) -> None:
    assert sorted(shell("bash", BASH.format(words=words), world)) == wanted


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("paddlecli ev", ["evaluate\tMeasure a trained run on a split of its data."]),
        ("paddlecli train --config=fit_a", ["--config=fit_a_line"]),
        ("paddlecli train my", ["my folder/", "my recipe.yaml"]),
        ("paddlecli evaluate ", [*RUNS, "bin/", "my folder/", "runs/"]),
        ("paddlecli metric show acc", ["accuracy"]),
    ],
)
def test_fish(line: str, wanted: list[str], world: dict[str, str]) -> None:
    found = shell("fish", FISH.format(line=line), world)
    found = [f.replace("\\ ", " ").removesuffix("\t").removesuffix("\tDirectory") for f in found]
    assert sorted(found) == sorted(wanted)


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("paddlecli ev", ["evaluate:Measure a trained run on a split of its data."]),
        ("paddlecli train --config=fit_a", ["files ", "--config=fit_a_line"]),
        ("paddlecli train --run-dir my", ["files -/"]),
        ("paddlecli train -o train.se", ["train.seed="]),
        ("paddlecli evaluate w", ["files -/", "words"]),
        ("paddlecli metric show acc", ["accuracy"]),
    ],
)
def test_zsh(words: str, wanted: list[str], world: dict[str, str]) -> None:
    assert shell("zsh", ZSH.format(words=words), world) == wanted
