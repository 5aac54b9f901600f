"""Data on stdout, the rest on stderr, each a terminal or not by itself; strange names, narrow screens,
readers that go away."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cli.runs import DIGITS, call, command, environment, recipe, run, strict
from cli.terminal import shown

ESCAPE = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")
COLOR = re.compile(rb"\x1b\[[0-9;]+m")
BYTES = b"r\xff\xe9[bold].yaml"
"""A file's name that is no UTF-8 and looks like markup."""


def train(folder: Path, *more: str) -> list[str]:
    return ["train", recipe(folder), *more]


# -- which stream --------------------------------------------------------------------------------------------------------------
def test_stdout_of_a_training_holds_the_result_alone(tmp_path: Path) -> None:
    done = run(tmp_path, *train(tmp_path, "--json"))
    assert strict(done.stdout)["status"] == "completed"
    assert len(done.stdout.splitlines()) == 1
    assert "completed after 3 epochs" in done.stderr
    assert run(tmp_path, *train(tmp_path)).stdout == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ["recipe", "list"],
        ["recipe", "show", "fit_a_line"],
        ["model", "list"],
        ["model", "summary", "fit_a_line"],
        ["dataset", "head", "uci_housing"],
    ],
    ids=" ".join,
)
def test_data_go_to_stdout_and_the_same_on_a_terminal(arguments: list[str], tmp_path: Path) -> None:
    piped = shown(tmp_path, *arguments)
    assert (piped.code, piped.err) == (0, b"")
    assert piped.out and not ESCAPE.search(piped.out)
    screen = shown(tmp_path, *arguments, out=True, columns=400)
    assert screen.out == piped.out


# -- each stream by itself -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("err", [False, True], ids=["stderr piped", "stderr a terminal"])
@pytest.mark.parametrize("out", [False, True], ids=["stdout piped", "stdout a terminal"])
def test_each_stream_is_tested_for_a_terminal(out: bool, err: bool, tmp_path: Path) -> None:
    """The live line depends on stderr alone, and stdout never has escapes."""
    found = shown(tmp_path, *train(tmp_path, "--json"), out=out, err=err)
    assert found.code == 0
    assert strict(found.out.decode())["status"] == "completed"
    assert bool(ESCAPE.search(found.err)) == err
    assert b"completed after 3 epochs" in ESCAPE.sub(b"", found.err)


@pytest.mark.parametrize(
    ("env", "colors"),
    [
        ({}, True),
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": ""}, True),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        ({"CLICOLOR": "0"}, False),
        ({"TERM": "dumb"}, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": "0"}, False),
    ],
    ids=lambda v: (
        " ".join(f"{k}={w}" for k, w in v.items()) or "plain" if isinstance(v, dict) else ""
    ),
)
def test_colors_of_errors_on_a_terminal(env: dict[str, str], colors: bool, tmp_path: Path) -> None:
    found = shown(tmp_path, "recipe", "cat", "fit_a_lin", "--debugs", err=True, env=env)
    assert found.code == 2
    assert bool(COLOR.search(found.err)) == colors
    assert re.match(rb"error: .*--debugs", ESCAPE.sub(b"", found.err))


def test_errors_in_a_pipe_have_colors_only_when_forced(tmp_path: Path) -> None:
    assert not ESCAPE.search(shown(tmp_path, "trian").err)
    assert COLOR.search(shown(tmp_path, "trian", env={"FORCE_COLOR": "1"}).err)


@pytest.mark.parametrize(
    ("env", "escapes", "colors"),
    [({"TERM": "dumb"}, False, False), ({"NO_COLOR": "1"}, True, False), ({}, True, None)],
    ids=["dumb", "NO_COLOR", "plain"],
)
def test_the_live_line(
    env: dict[str, str], escapes: bool, colors: bool | None, tmp_path: Path
) -> None:
    """A dumb terminal gets plain lines; without colours the line is still drawn again."""
    found = shown(tmp_path, *train(tmp_path), err=True, env=env, columns=150)
    assert found.code == 0
    assert bool(ESCAPE.search(found.err)) == escapes
    if colors is not None:
        painted = [c for c in COLOR.findall(found.err) if c != b"\x1b[0m"]
        assert bool([c for c in painted if re.search(rb"[34][0-9]|9[0-7]", c)]) == colors
    if not escapes:
        assert b"\r" not in found.err


def test_no_progress_leaves_no_escapes(tmp_path: Path) -> None:
    found = shown(tmp_path, *train(tmp_path, "--no-progress"), err=True)
    assert not ESCAPE.search(found.err) and b"completed" in found.err
    assert shown(tmp_path, *train(tmp_path, "--quiet"), err=True).err == b""


# -- narrow terminals ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("columns", [30])
@pytest.mark.parametrize(
    "arguments", [["recipe", "list"], ["model", "list"], ["dataset", "list"]], ids=" ".join
)
def test_lists_fit_a_narrow_terminal(arguments: list[str], columns: int, tmp_path: Path) -> None:
    lines = shown(tmp_path, *arguments, out=True, columns=columns).out.decode().splitlines()
    assert lines and max(map(len, lines)) <= columns
    assert len(lines) == len(shown(tmp_path, *arguments).out.splitlines())


def test_columns_wins_over_the_terminal(tmp_path: Path) -> None:
    found = shown(tmp_path, "recipe", "list", out=True, columns=200, env={"COLUMNS": "30"})
    assert max(map(len, found.out.decode().splitlines())) <= 30


@pytest.mark.parametrize("columns", [1, 30])
def test_a_training_on_a_narrow_terminal(columns: int, tmp_path: Path) -> None:
    found = shown(tmp_path, *train(tmp_path), err=True, columns=columns)
    assert found.code == 0
    assert b"Traceback" not in found.err


def test_help_on_a_narrow_terminal(tmp_path: Path) -> None:
    found = shown(tmp_path, "train", "--help", out=True, columns=40)
    assert found.code == 0 and b"--resume" in found.out


# -- readers that go away, full disks ------------------------------------------------------------------------------------------
def piped(
    folder: Path, arguments: list[str], reader: str, env: dict[str, str] | None = None
) -> tuple[int, str]:
    """Exit code of the command and what the whole pipe wrote on stderr."""
    line = " ".join(map(quoted, command(*arguments)))
    script = f"set -o pipefail; {line} {reader}"
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=environment(folder, **(env or {})), capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    return done.returncode, done.stderr


def quoted(word: str) -> str:
    import shlex

    return shlex.quote(word)


@pytest.mark.parametrize(
    "arguments",
    [
        ["recipe", "schema"],
        ["plan", "bench/cifar_vgg16_bn", "--stage", "memory"],
        ["model", "summary", "bench/cifar_resnet32"],
    ],
    ids=" ".join,
)
def test_head_ends_a_command_quietly(arguments: list[str], tmp_path: Path) -> None:
    """As SIGPIPE would: no traceback, no message, exit code 141 where there was more to write."""
    code, err = piped(tmp_path, arguments, "| head -1")
    assert code in (0, 141)
    assert err == ""


def test_a_reader_that_takes_nothing(tmp_path: Path) -> None:
    code, err = piped(tmp_path, ["recipe", "schema"], "| true")
    assert (code, err) == (141, "")


def test_both_streams_into_a_reader_that_goes_away(tmp_path: Path) -> None:
    code, _ = piped(tmp_path, train(tmp_path), "2>&1 | true")
    assert code == 141
    code, err = piped(tmp_path, ["trian"], "2>&1 | true")
    assert code in (2, 141) and err == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_behind_stdout_is_told_once(tmp_path: Path) -> None:
    code, err = piped(tmp_path, ["recipe", "schema"], "> /dev/full")
    assert code == 7
    assert err.startswith("error: no space left on the disk")
    assert "Exception ignored" not in err and err.count("\n") <= 2


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_streams(closed: str, tmp_path: Path) -> None:
    code, err = piped(tmp_path, ["recipe", "list"], closed)
    assert (code, err) == (0, "")
    code, err = piped(tmp_path, ["recipe", "cat", "fit_a_lin"], closed)
    assert code == 3 and "Traceback" not in err


# -- strange names -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
@pytest.mark.parametrize("name", ["数 [red]x[bold].yaml", "é.yaml"])
def test_names_that_are_not_ascii(name: str, locale: str, tmp_path: Path) -> None:
    recipe(tmp_path, DIGITS, name)
    env = {"LC_ALL": locale}
    assert run(tmp_path, "recipe", "validate", f"./{name}", env=env).stdout == f"./{name}: valid\n"
    (tmp_path / name).write_text(DIGITS + "trian: {}\n", encoding="utf-8")
    assert f"{name}:" in run(tmp_path, "recipe", "validate", f"./{name}", env=env, code=3).stderr


def test_an_encoding_that_lacks_the_letters(tmp_path: Path) -> None:
    """What the terminal cannot show is escaped; nothing fails."""
    recipe(tmp_path, DIGITS, "数.yaml")
    env = {"PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0", "LC_ALL": "C.UTF-8"}
    done = run(tmp_path, "recipe", "validate", "./数.yaml", env=env)
    assert done.stdout == "./\\u6570.yaml: valid\n"


@pytest.mark.skipif(sys.platform == "darwin", reason="this system's file names are UTF-8")
@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_bytes_that_are_no_text(locale: str, tmp_path: Path) -> None:
    """A name of bytes is printed as the same bytes, and in JSON so that it reads back."""
    path = os.fsencode(tmp_path) + b"/" + BYTES
    Path(os.fsdecode(path)).write_text(DIGITS, encoding="utf-8")
    env = {"LC_ALL": locale}
    found = shown(tmp_path, "recipe", "validate", b"./" + BYTES, env=env)
    assert (found.code, found.err) == (0, b"")
    assert found.out == b"./" + BYTES + b": valid\n"
    text = shown(tmp_path, "recipe", "validate", b"./" + BYTES, "--json", env=env).out
    assert os.fsencode(json.loads(text)["valid"][0]) == b"./" + BYTES
    Path(os.fsdecode(path)).write_text("model: {name: lin}\n", encoding="utf-8")
    found = shown(tmp_path, "recipe", "validate", b"./" + BYTES, env=env)
    assert found.code == 3 and b"unknown model `lin`" in found.err and b"Traceback" not in found.err
    found = shown(tmp_path, "recipe", "validate", b"./" + BYTES, "--json", env=env)
    assert json.loads(found.err)["error"]["code"] == 3


@pytest.mark.skipif(sys.platform == "darwin", reason="this system's file names are UTF-8")
def test_a_training_from_a_name_of_bytes(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + BYTES)).write_text(DIGITS, encoding="utf-8")
    found = shown(tmp_path, "train", b"./" + BYTES, "--run-dir", b"run\xfe", "--json")
    assert found.code == 0, found.err
    folder = Path(strict(found.out.decode())["run_dir"])
    assert os.fsencode(folder) == b"run\xfe"
    arguments = strict((tmp_path / folder / "run.json").read_text(encoding="utf-8"))["arguments"]
    assert os.fsencode(arguments[1]) == b"./" + BYTES
    for again in (
        ["evaluate", b"run\xfe"],
        ["train", "--resume", b"run\xfe", "-o", "train.epochs=4"],
    ):
        found = shown(tmp_path, *again, "--json")
        assert found.code == 0, found.err


def test_markup_in_texts_is_shown_as_it_is(tmp_path: Path) -> None:
    text = DIGITS.replace("name: shapes", "name: shapes\n").replace(
        "description: two kinds", 'description: "[bold red]two[/bold red] :smile: kinds'
    ).replace("tell apart\n", 'tell apart"\n')  # fmt: skip
    (tmp_path / "r.yaml").write_text(text)
    done = run(tmp_path, "recipe", "show", "./r.yaml")
    assert "[bold red]two[/bold red] :smile: kinds" in done.stdout
    folder = tmp_path / "[red]runs[/red]"
    found = shown(tmp_path, "train", "./r.yaml", "--run-dir", str(folder), err=True, columns=200)
    assert b"[red]runs[/red]" in ESCAPE.sub(b"", found.err)


# -- exit codes ----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        (0, ["recipe", "validate", "fit_a_line"]),
        (2, ["recipe", "validate"]),
        (2, ["train", "fit_a_line", "--max-time", "soon"]),
        (3, ["train", "fit_a_line", "-o", "train.epoch=3"]),
        (4, ["dataset", "import", "mnist", "./missing"]),
        (5, ["evaluate", "last"]),
        (6, ["train", "fit_a_line", "-o", "optimizer.learning_rate=1e30", "--quiet"]),
        (7, ["train", "fit_a_line", "--device", "cuda:99"]),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else str(v),
)
def test_exit_codes(code: int, arguments: list[str], tmp_path: Path) -> None:
    env = {"PADDLECLI_OFFLINE": "1", "PADDLECLI_CACHE_DIR": str(tmp_path / "cache")}
    done = run(tmp_path, *arguments, code=code, env=env)
    assert (done.stderr == "") == (code == 0)
    if "--quiet" not in arguments:
        told = call(tmp_path, *arguments, "--json", code=code, env=env)
        if code:
            assert json.loads(told.stderr.splitlines()[-1])["error"]["code"] == code


def test_a_network_that_cannot_be_reached_ends_with_8(tmp_path: Path) -> None:
    nowhere = "http://127.0.0.1:9"
    env = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), nowhere)
    env |= {"PADDLECLI_CACHE_DIR": str(tmp_path / "cache"), "NO_PROXY": "", "no_proxy": ""}
    done = run(tmp_path, "dataset", "download", "mnist", env=env, code=8)
    assert done.stdout == "" and "127.0.0.1" in done.stderr


def test_a_metric_below_its_bound_ends_with_9(tmp_path: Path) -> None:
    call(tmp_path, *train(tmp_path, "--quiet"))
    call(tmp_path, "evaluate", "last", "--min", "accuracy=0.1")
    run(tmp_path, "evaluate", "last", "--min", "accuracy=2", code=9)


def test_what_own_code_prints_does_not_mix_with_data(tmp_path: Path) -> None:
    """On import, in a callback, in a metric: stdout of commands that print data is theirs alone."""
    (tmp_path / "talk.py").write_text(
        'from paddlecli.config.registry import CALLBACKS, METRICS\n'
        'from paddlecli.engine.callbacks import Callback\n'
        'from paddlecli.models.outside import PythonMetric\n'
        'print("imported")\n'
        '@CALLBACKS.register("talk")\n'
        'class Talk(Callback):\n'
        '    def after_evaluation(self, training, metrics):\n'
        '        print("evaluated")\n'
        '@METRICS.register("count")\n'
        'class Count(PythonMetric):\n'
        '    better = "max"\n'
        '    rows = 0\n'
        '    def add(self, prediction, label):\n'
        '        self.rows += len(label)\n'
        '    def result(self):\n'
        '        print("counted")\n'
        '        return self.rows\n'
    )  # fmt: skip
    text = DIGITS.replace("metrics: [accuracy]", "metrics: [accuracy, count]\ncallbacks: [talk]")
    words = ("--code", "talk.py", "--json")
    done = run(tmp_path, "train", recipe(tmp_path, text), "--run-dir", "out", *words)
    assert strict(done.stdout)["status"] == "completed"
    assert {"imported", "evaluated", "counted"} <= set(done.stderr.split())
    (tmp_path / "rows.jsonl").write_text('{"x": [1, 2, 3, 4, 5, 6]}\n')
    for asked in (("evaluate", "out"), ("predict", "out", "rows.jsonl")):
        done = run(tmp_path, *asked, *words)
        assert isinstance(strict(done.stdout), dict) and "imported" in done.stderr
