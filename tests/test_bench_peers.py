"""The comparison with peers: which turns count, which peer is asked for, what is said of the others."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent / "bench"))
import bench_peers as bp
from calibration import State

GOOD, SHARED_CORE, FAR = State(2, 1.99, 0.95), State(2, 1.1, 0.95), State(2, 1.99, 0.56)
CASE = {"speed": 1.3, "memory": 0.5, "least_mb": 0.0, "against": "", "variants": ["eager", "compile"]}  # fmt: skip


def turn(side: str, ms: float, before: State = GOOD, behind: State = GOOD) -> bp.Turn:
    return bp.Turn(side, ms, 70.0 if side == "ours" else 300.0, 1.0, before, behind)


def compared(monkeypatch: pytest.MonkeyPatch, turns: list[bp.Turn], **case: Any) -> dict[str, Any]:
    """What is found of these turns."""
    settings = bp.Settings({"torch": "python"}, 2, 1, 1.0, ())
    monkeypatch.setattr(bp.Settings, "child", lambda *_: {**CASE, **case})
    monkeypatch.setattr(bp, "turns_of", lambda *_: turns)
    return bp.compare("word2vec", settings)


def test_only_turns_of_one_state_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Faster turns of a bad state, before or behind, are shown and not taken."""
    turns = [
        turn("ours", 1.0, before=FAR), turn("torch eager", 2.0, behind=SHARED_CORE), turn("jax jit", 4.0),
        turn("ours", 2.0), turn("torch eager", 3.0), turn("jax jit", 5.0),
    ]  # fmt: skip
    row = compared(monkeypatch, turns)
    assert row["speed"] == 1.5 and row["against"] == "torch eager" and row["met"]
    told = bp.lines(row)
    assert "(1.0000 [1.99 0.56])" in told and "(2.0000 [1.10 0.95])" in told
    assert "2 of 6 turns that do not count" in told


def test_no_ratio_without_every_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """The peer that has no good turn might have been the fastest."""
    turns = [turn("ours", 2.0), turn("torch eager", 3.0), turn("jax jit", 2.1, before=FAR)]
    row = compared(monkeypatch, turns)
    assert row["speed"] is None and not row["met"]
    assert "no comparison" in bp.lines(row)


def test_a_goal_against_one_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The faster one is reported beside it."""
    turns = [turn("ours", 1.0), turn("torch eager", 3.0), turn("jax jit", 1.5)]
    row = compared(monkeypatch, turns, against="torch eager")
    assert row["speed"] == 3.0 and row["met"]
    assert "fastest peer is jax jit: 1.5000 ms, 1.50 times ours (reported, no goal)" in bp.lines(
        row
    )


def test_every_jax_network_has_a_case() -> None:
    networks = {p.stem for p in (bp.PEERS / "jax").glob("*.py") if not p.stem.startswith("_")}
    assert networks and networks <= set(bp.NAMES)


def test_a_machine_without_a_good_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked to, it counts what there is, and the states stand behind the times."""
    turns = [
        bp.Turn(t.side, t.ms, t.mb, 1.0, FAR, FAR, any_state=True)
        for t in (turn("ours", 1.0), turn("torch eager", 3.0))
    ]
    row = compared(monkeypatch, turns)
    assert row["speed"] == 3.0 and "3.0000 [1.99 0.56]" in bp.lines(row)
