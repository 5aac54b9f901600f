"""Files get a new content at one stroke; what is no plain file keeps its name."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from paddlecli.engine.files import replace
from paddlecli.errors import RunError


def test_a_pipe_is_written_into(tmp_path: Path) -> None:
    # A pipe stands for every device: renaming a file over `/dev/full` would take it from the machine.
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()), daemon=True)
    reader.start()
    replace(pipe, b"some bytes")
    reader.join(10)
    assert stat.S_ISFIFO(pipe.stat().st_mode) and found == [b"some bytes"]


def test_a_link_stays_one(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    replace(link, b"new")
    assert link.is_symlink() and target.read_bytes() == b"new"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link", "target"]


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="cannot be written: Is a directory"):
        replace(tmp_path, b"")
