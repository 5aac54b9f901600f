"""Checkpoints are whole or not there, whatever happens while one is written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from paddlecli.engine.checkpoint import BEST, LAST, MODEL, Snapshot, Store, list_folders, load
from paddlecli.errors import ResourceError, RunError


def snapshot(step: int, value: float | None = None, size: int = 100) -> Snapshot:
    """Arrays and state that all say `step`."""
    state = {"step": step} | ({} if value is None else {"value": value})
    return Snapshot(
        {"w": np.full(size, step, np.float32)}, {"w@m": np.full(size, step, np.float64)}, state
    )


def consistent(found: Snapshot) -> int:
    """The step that every part of the checkpoint says."""
    assert set(found.model["w"].tolist()) == {float(found.step)}
    assert set(found.optimizer["w@m"].tolist()) == {float(found.step)}
    return found.step


def refuse(text: str) -> None:
    """For stores that must not warn."""
    raise AssertionError(text)


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    store = Store(tmp_path / "c", keep_last=2)
    folder = store.save(snapshot(7))
    assert folder.name == "step-00000007"
    assert (tmp_path / "c" / LAST).read_text() == "step-00000007\n"
    found = store.newest(refuse)
    assert found is not None and consistent(found) == 7


def test_newest_of_none(tmp_path: Path) -> None:
    assert Store(tmp_path / "c", keep_last=1).newest(refuse) is None


def test_keep_last(tmp_path: Path) -> None:
    store = Store(tmp_path / "c", keep_last=2)
    for step in (1, 2, 3, 4):
        store.save(snapshot(step))
    assert [p.name for p in list_folders(tmp_path / "c")] == ["step-00000003", "step-00000004"]


@pytest.mark.parametrize("smaller", [True, False])
def test_keep_best(tmp_path: Path, smaller: bool) -> None:
    sign = 1 if smaller else -1
    store = Store(tmp_path / "c", keep_last=1, keep_best=2, smaller_is_better=smaller)
    for step, value in ((1, 5.0), (2, 1.0), (3, 4.0), (4, 3.0), (5, 9.0)):
        store.save(snapshot(step, sign * value))
    assert [p.name for p in list_folders(tmp_path / "c")] == [
        "step-00000002",
        "step-00000004",
        "step-00000005",
    ]
    assert (tmp_path / "c" / BEST).read_text() == "step-00000002\n"
    again = Store(tmp_path / "c", keep_last=1, keep_best=2, smaller_is_better=smaller)
    again.resume_at(5)
    assert again.best() == "step-00000002", "a new process knows the best one"


@pytest.mark.parametrize(
    "file", ["model.safetensors", "optimizer.safetensors", "state.json", "manifest.json"]
)
@pytest.mark.parametrize("damage", ["cut", "flip", "remove"])
def test_damaged_is_passed_over(tmp_path: Path, file: str, damage: str) -> None:
    store = Store(tmp_path / "c", keep_last=3)
    store.save(snapshot(1))
    path = store.save(snapshot(2)) / file
    data = bytearray(path.read_bytes())
    if damage == "remove":
        path.unlink()
    else:
        data[len(data) // 2] ^= 1
        path.write_bytes(data if damage == "flip" else data[: len(data) // 2])
    if file == "manifest.json" and damage == "flip":
        data[data.index(b"sha256") + 12] ^= 1
        path.write_bytes(data)
    told: list[str] = []
    found = store.newest(told.append)
    assert found is not None and consistent(found) == 1
    assert len(told) == 1 and "step-00000002" in told[0]
    store.resume_at(1)
    assert [p.name for p in list_folders(tmp_path / "c")] == ["step-00000001"]


def test_all_damaged(tmp_path: Path) -> None:
    """Nobody's training is started over because its checkpoints cannot be read."""
    store = Store(tmp_path / "c", keep_last=3)
    for step in (1, 2):
        (store.save(snapshot(step)) / MODEL).write_bytes(b"")
    told: list[str] = []
    with pytest.raises(RunError, match=r"step-00000001.*there is no checkpoint before it"):
        store.newest(told.append)
    assert len(told) == 1 and "step-00000002" in told[0]


def test_damage_names_the_file(tmp_path: Path) -> None:
    folder = Store(tmp_path / "c", keep_last=1).save(snapshot(1))
    data = bytearray((folder / MODEL).read_bytes())
    data[-1] ^= 255
    (folder / MODEL).write_bytes(data)
    with pytest.raises(RunError, match=r"model\.safetensors.*checksum"):
        load(folder)


def test_same_step_twice(tmp_path: Path) -> None:
    store = Store(tmp_path / "c", keep_last=2)
    store.save(snapshot(3, 1.0))
    store.save(snapshot(3, 2.0))
    assert [p.name for p in list_folders(tmp_path / "c")] == ["step-00000003"]
    found = store.newest(refuse)
    assert found is not None and found.state["value"] == 2.0


def test_set_aside_at_the_moment_of_a_kill(tmp_path: Path) -> None:
    folder = Store(tmp_path / "c", keep_last=2).save(snapshot(3))
    folder.rename(folder.with_name(folder.name + ".old"))
    assert [p.name for p in list_folders(tmp_path / "c")] == ["step-00000003"]


SAVE_FOR_EVER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from engine.test_checkpoint import snapshot
from paddlecli.engine.checkpoint import Store
store = Store(Path(sys.argv[1]), keep_last=2)
found = store.newest(print)
step = found.step if found else 0
print("ready", flush=True)
while True:
    step += 1
    store.save(snapshot(step, size=20_000))
"""


def test_kill_while_saving(tmp_path: Path) -> None:
    """SIGKILL at many moments of a loop of saves: there is always a whole newest checkpoint, and it never goes back."""
    folder, last = tmp_path / "c", 0
    command = [sys.executable, "-c", SAVE_FOR_EVER, str(folder), str(Path(__file__).parent.parent)]
    for round_ in range(8):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        time.sleep(0.05 + 0.0137 * round_)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        found = Store(folder, keep_last=2).newest(refuse)
        step = 0 if found is None else consistent(found)
        assert step >= last
        last = step
    assert last > 8


FULL_DISK = """
import resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from engine.test_checkpoint import snapshot
from paddlecli.engine.checkpoint import Store
from paddlecli.errors import ResourceError
store = Store(Path(sys.argv[1]), keep_last=1)
store.save(snapshot(1))
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
try:
    store.save(snapshot(2, size=50_000))
except ResourceError as error:
    print(error)
    sys.exit(error.exit_code)
"""


def test_no_room(tmp_path: Path) -> None:
    """A write that the system refuses is a ResourceError, and what was saved before is intact."""
    command = [
        sys.executable,
        "-c",
        FULL_DISK,
        str(tmp_path / "c"),
        str(Path(__file__).parent.parent),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == ResourceError.exit_code, done.stderr
    assert "the disk is full" in done.stdout
    found = Store(tmp_path / "c", keep_last=1).newest(refuse)
    assert found is not None and consistent(found) == 1
    assert sorted(p.name for p in (tmp_path / "c").iterdir()) == [LAST, "step-00000001"]
