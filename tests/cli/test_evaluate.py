"""The command `evaluate`: training's numbers, exactly."""

from __future__ import annotations

from pathlib import Path

import pytest

from .runs import recipe, run, strict


@pytest.fixture
def trained(tmp_path: Path) -> dict[str, float]:
    """A finished run in `out`; what it reported of its test split."""
    found = strict(run(tmp_path, "train", recipe(tmp_path), "--run-dir", "out", "--json").stdout)
    metrics: dict[str, float] = found["metrics"]["test"]
    return metrics


def test_same_numbers(tmp_path: Path, trained: dict[str, float]) -> None:
    for threads in ("1", "2"):
        found = strict(run(tmp_path, "evaluate", "out", "--json", "--threads", threads).stdout)
        assert found == {"schema": 1, "split": "test", "samples": 30, "metrics": trained}


def test_other_split_and_plain_text(tmp_path: Path, trained: dict[str, float]) -> None:
    assert (
        strict(run(tmp_path, "evaluate", "out", "--split", "train", "--json").stdout)["samples"]
        == 120
    )
    lines = run(tmp_path, "evaluate", "out").stdout.splitlines()
    assert lines[0] == "test: 30 samples" and lines[1].startswith("loss: ")
    assert (
        "no split nothing" in run(tmp_path, "evaluate", "out", "--split", "nothing", code=4).stderr
    )


def test_last_and_id(tmp_path: Path) -> None:
    found = strict(run(tmp_path, "train", recipe(tmp_path), "--json").stdout)
    for name in (
        "last",
        Path(found["run_dir"]).name,
        Path(found["run_dir"]).name[-4:],
        found["run_dir"],
    ):
        assert (
            strict(run(tmp_path, "evaluate", name, "--json").stdout)["metrics"]
            == found["metrics"]["test"]
        )


def test_minimum(tmp_path: Path, trained: dict[str, float]) -> None:
    run(tmp_path, "evaluate", "out", "--min", f"accuracy={trained['accuracy'] - 0.01}")
    done = run(tmp_path, "evaluate", "out", "--json", "--min", "accuracy=1.01", code=9)
    assert strict(done.stdout)["metrics"] == trained, "the numbers come nevertheless"
    run(tmp_path, "evaluate", "out", "--min", "bleu=1", code=2)
    run(tmp_path, "evaluate", "out", "--min", "accuracy", code=2)


def test_nothing_saved(tmp_path: Path) -> None:
    run(tmp_path, "evaluate", "last", code=5)
    (tmp_path / "empty").mkdir()
    run(tmp_path, "evaluate", "./empty", code=5)


def test_damaged_model(tmp_path: Path, trained: dict[str, float]) -> None:
    path = tmp_path / "out" / "model" / "model.safetensors"
    data = path.read_bytes()
    path.unlink()  # it shares its blocks with the checkpoint
    path.write_bytes(data[: len(data) // 2])
    assert "model.safetensors: damaged" in run(tmp_path, "evaluate", "out", code=5).stderr
