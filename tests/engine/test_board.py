"""TensorBoard events: fed by the run's own events, with what lies behind a checkpoint hidden after a resume."""

from __future__ import annotations

import importlib.util
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from paddlecli.engine.board import scalars
from paddlecli.engine.eventlog import read
from paddlecli.engine.fit import Options, fit, resume
from paddlecli.engine.rundir import RunDir

from .tiny_runs import MakeRecipe

HAVE = importlib.util.find_spec("tensorboardX") is not None


class Stub:
    """Keeps what it is told."""

    made: list[Stub]

    def __init__(self, folder: str, purge_step: int | None = None, **settings: Any) -> None:
        self.folder, self.purge, self.closed = folder, purge_step, False
        self.scalars: list[tuple[str, float, int]] = []
        self.made.append(self)

    def add_scalar(self, tag: str, value: float, step: int) -> None:
        self.scalars.append((tag, value, step))

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def stubs(monkeypatch: pytest.MonkeyPatch) -> list[Stub]:
    """The writers that are made."""
    module = types.ModuleType("tensorboardX")
    Stub.made = []
    module.SummaryWriter = Stub  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tensorboardX", module)
    return Stub.made


def expected(run: Path, after: int = 0) -> list[tuple[str, float, int]]:
    found = [
        (e["step"], e.pop("event"), e) for e in read(run / "metrics.jsonl") if e["step"] > after
    ]
    return [
        (tag, value, step)
        for step, event, values in found
        for tag, value in scalars(event, {k: v for k, v in values.items() if k != "step"})
    ]


def test_the_events_are_those_of_the_metrics_file(
    stubs: list[Stub], tiny: MakeRecipe, tmp_path: Path
) -> None:
    fit(tiny(), Options(run_dir=tmp_path / "out"))
    (board,) = stubs
    assert (board.folder, board.purge, board.closed) == (str(tmp_path / "out" / "tb"), None, True)
    assert sorted(board.scalars) == sorted(expected(tmp_path / "out"))
    tags = {tag for tag, _, _ in board.scalars}
    assert {"step/loss", "step/learning_rate", "train/loss", "test/loss", "test/accuracy"} <= tags
    assert not any(tag.endswith(("/epoch", "/batches", "/split")) for tag in tags)


def test_a_resume_hides_what_lies_behind_it(
    stubs: list[Stub], tiny: MakeRecipe, tmp_path: Path
) -> None:
    fit(tiny("train.epochs=2"), Options(run_dir=tmp_path / "out"))
    resume(RunDir(tmp_path / "out"), ["train.epochs=4"])
    first, second = stubs
    assert second.folder == first.folder
    assert second.purge == 21, "2 epochs of 10 steps stay"
    assert sorted(second.scalars) == sorted(expected(tmp_path / "out", 20))


def test_without_the_package(
    tiny: MakeRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    said: list[str] = []
    show: Any = types.SimpleNamespace(
        say=said.append, progress=lambda m: None, result=lambda t: None, close=lambda: None
    )
    run = RunDir(tmp_path / "out")
    fit(tiny("train.epochs=1"), Options(run_dir=run.path), show)
    resume(run, ["train.epochs=2"], display=show)
    assert not (run.path / "tb").exists()
    assert run.log.read_text().count("TensorBoard") == 1
    assert not any("ensor" in line for line in said)


@pytest.mark.skipif(not HAVE, reason="tensorboardX is not installed")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_files_of_the_real_writer(tiny: MakeRecipe, tmp_path: Path) -> None:
    from tensorboardX.proto.event_pb2 import Event

    run = RunDir(tmp_path / "out")
    fit(tiny("train.epochs=2"), Options(run_dir=run.path))
    resume(run, ["train.epochs=3"])
    files = sorted((run.path / "tb").iterdir(), key=lambda p: p.stat().st_mtime_ns)
    assert len(files) == 2
    found = [[Event.FromString(r) for r in records(p.read_bytes())] for p in files]
    values = [
        (v.tag, v.simple_value, e.step) for events in found for e in events for v in e.summary.value
    ]
    assert len(values) == len(expected(run.path))
    assert sorted((t, s) for t, _, s in values) == sorted((t, s) for t, _, s in expected(run.path))
    starts = [e.step for e in found[1] if e.HasField("session_log")]
    assert starts == [21]


def records(data: bytes) -> list[bytes]:
    """The records of an event file: length, its checksum, bytes, their checksum."""
    found = []
    while data:
        size = int.from_bytes(data[:8], "little")
        found.append(data[12 : 12 + size])
        data = data[16 + size :]
    return found
