"""The command `evaluate`: training's numbers, exactly."""

from __future__ import annotations

from pathlib import Path

import pytest

from .runs import call, recipe, run, strict


@pytest.fixture
def trained(tmp_path: Path) -> dict[str, float]:
    """A finished run in `out`; what it reported of its test split."""
    found = strict(call(tmp_path, "train", recipe(tmp_path), "--run-dir", "out", "--json").stdout)
    metrics: dict[str, float] = found["metrics"]["test"]
    return metrics


def test_same_numbers(tmp_path: Path, trained: dict[str, float]) -> None:
    for threads in ("1", "2"):
        found = strict(run(tmp_path, "evaluate", "out", "--json", "--threads", threads).stdout)
        assert found == {
            "schema": 1, "run_dir": "out", "model": "last, step 24", "split": "test", "samples": 30, "metrics": trained,
        }  # fmt: skip


def test_other_split_and_plain_text(tmp_path: Path, trained: dict[str, float]) -> None:
    assert (
        strict(call(tmp_path, "evaluate", "out", "--split", "train", "--json").stdout)["samples"]
        == 120
    )
    lines = call(tmp_path, "evaluate", "out").stdout.splitlines()
    assert lines[0] == "test: 30 samples" and lines[1].startswith("loss: ")
    assert (
        "no split nothing" in call(tmp_path, "evaluate", "out", "--split", "nothing", code=4).stderr
    )


def test_last_and_id(tmp_path: Path) -> None:
    found = strict(call(tmp_path, "train", recipe(tmp_path), "--json").stdout)
    for name in (
        "last",
        Path(found["run_dir"]).name,
        Path(found["run_dir"]).name[-4:],
        found["run_dir"],
    ):
        assert (
            strict(call(tmp_path, "evaluate", name, "--json").stdout)["metrics"]
            == found["metrics"]["test"]
        )


def test_minimum(tmp_path: Path, trained: dict[str, float]) -> None:
    call(tmp_path, "evaluate", "out", "--min", f"accuracy={trained['accuracy'] - 0.01}")
    done = call(tmp_path, "evaluate", "out", "--json", "--min", "accuracy=1.01", code=9)
    assert strict(done.stdout)["metrics"] == trained, "the numbers come nevertheless"
    unknown = call(tmp_path, "evaluate", "out", "--min", "acuracy=1", code=2)
    assert "did you mean `accuracy`?" in unknown.stderr and unknown.stdout == ""
    by = 1.01 - trained["accuracy"]
    assert f"accuracy is {trained['accuracy']:.6g}, below 1.01 by {by:.4g}" in done.stderr
    several = call(
        tmp_path, "evaluate", "out", "-q", "--min", "test.accuracy=1.01", "--min", "accuracy=0",
        "--max", "loss=0", code=9,
    ).stderr  # fmt: skip
    assert (
        several.count("accuracy is") == 1 and f"loss is {trained['loss']:.6g}, above 0" in several
    )
    call(tmp_path, "evaluate", "out", "--max", f"loss={trained['loss'] + 1}")
    call(tmp_path, "evaluate", "out", "--split", "train", "--min", "test.accuracy=0", code=2)
    call(tmp_path, "evaluate", "out", "--min", "accuracy", code=2)


def test_nothing_saved(tmp_path: Path) -> None:
    call(tmp_path, "evaluate", "last", code=5)
    (tmp_path / "empty").mkdir()
    call(tmp_path, "evaluate", "./empty", code=5)


def test_damaged_model(tmp_path: Path, trained: dict[str, float]) -> None:
    path = tmp_path / "out" / "model" / "model.safetensors"
    data = path.read_bytes()
    path.unlink()  # it shares its blocks with the checkpoint
    path.write_bytes(data[: len(data) // 2])
    assert "model.safetensors: damaged" in call(tmp_path, "evaluate", "out", code=5).stderr


@pytest.mark.parametrize("size", ["1", "7", "30"])
def test_batch_size(tmp_path: Path, trained: dict[str, float], size: str) -> None:
    """No number depends on it but the mean over batches."""
    found = strict(call(tmp_path, "evaluate", "out", "--json", "--batch-size", size).stdout)
    assert {k: v for k, v in found["metrics"].items() if "batch_mean" not in k} == {
        k: v for k, v in trained.items() if "batch_mean" not in k
    }


def test_the_recipes_name_is_its_last_run(tmp_path: Path) -> None:
    call(tmp_path, "train", recipe(tmp_path), "-q", "--epochs", "1")
    second = strict(call(tmp_path, "train", recipe(tmp_path), "--json", "-q").stdout)
    assert (
        strict(call(tmp_path, "evaluate", "shapes", "--json").stdout)["run_dir"]
        == second["run_dir"]
    )
    assert "did you mean `shapes`?" in call(tmp_path, "evaluate", "shape", code=5).stderr
