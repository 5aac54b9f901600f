"""Where runs are, and that no two processes write in one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from paddlecli.engine import rundir
from paddlecli.errors import RunError, UsageError


def make(name: str, started: str) -> rundir.RunDir:
    run = rundir.RunDir(rundir.new_path("r").with_name(name))
    run.path.mkdir(parents=True)
    run.update(started=started)
    return run


def test_find_by_path_id_part_and_last() -> None:
    first = make("20260101T000000Z-aaaa", "2026-01-01T00:00:00Z")
    second = make("20250101T000000Z-bbbb", "2026-01-01T00:00:05Z")
    assert rundir.find(str(first.path)).path == first.path
    assert rundir.find("20260101T000000Z-aaaa").path == first.path
    assert rundir.find("aaaa").path == first.path
    assert rundir.find("last").path == second.path, "the one started last, whatever it is called"
    with pytest.raises(UsageError, match="2 runs fit"):
        rundir.find("T000000Z")
    with pytest.raises(RunError, match="no run called"):
        rundir.find("cccc")


def test_a_recipes_run_goes_by_its_name_and_by_its_files() -> None:
    run = rundir.RunDir(rundir.new_path("understand_sentiment-conv"))
    run.path.mkdir(parents=True)
    run.update(started="2026-01-01T00:00:00Z")
    for text in ("understand_sentiment-conv", "understand_sentiment/conv"):
        assert rundir.find(text).path == run.path
    with pytest.raises(RunError, match="there is no run of word2vec-skipgram"):
        rundir.find("word2vec/skipgram")
    with pytest.raises(RunError, match="no such run directory"):
        rundir.find("understand_sentiment/convv")


def test_a_damaged_run_hides_no_other() -> None:
    good = make("20260101T000000Z-aaaa", "2026-01-01T00:00:00Z")
    bad = make("20270101T000000Z-bbbb", "2027-01-01T00:00:00Z")
    (bad.path / "run.json").write_text("{")
    assert rundir.find("last").path == good.path


def test_last_of_none() -> None:
    with pytest.raises(RunError, match="no run"):
        rundir.find("last")


@pytest.mark.parametrize("text", ["", "./missing", "/nowhere/at/all"])
def test_find_nothing(text: str) -> None:
    with pytest.raises((RunError, UsageError)):
        rundir.find(text)


def test_a_folder_that_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    with pytest.raises(RunError, match="is no run directory"):
        rundir.find(str(tmp_path / "x"))


def test_used_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "mine.txt").write_text("precious")
    with pytest.raises(RunError, match="not empty"):
        rundir.fresh(tmp_path / "x", force=False)
    assert (tmp_path / "x" / "mine.txt").read_text() == "precious"


def test_force_moves_aside(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "mine.txt").write_text("precious")
    run = rundir.fresh(tmp_path / "x", force=True)
    assert not run.used()
    aside = next(tmp_path.glob("x.old-*"))
    assert (aside / "mine.txt").read_text() == "precious"
    run.release()


def test_a_file_is_no_run_directory(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    with pytest.raises(RunError, match="is a file"):
        rundir.fresh(tmp_path / "x", force=True)


HOLD = """
import sys
from pathlib import Path
from paddlecli.engine import rundir
run = rundir.fresh(Path(sys.argv[1]), force=False)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("force", [False, True])
def test_two_processes(tmp_path: Path, force: bool) -> None:
    path = tmp_path / "x"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    with pytest.raises(RunError, match="another process"):
        rundir.fresh(path, force)
    holder.communicate("")
    rundir.fresh(path, force).release()
