"""The command `bench`: what it prints. How fast things are is measured in tests/bench."""

from __future__ import annotations

from pathlib import Path

import pytest

from .runs import call, recipe, run, strict


@pytest.mark.parametrize("name", ["bench/fit_a_line", "fit_a_line", "recognize_digits/softmax"])
def test_numbers(tmp_path: Path, name: str) -> None:
    found = strict(run(tmp_path, "bench", name, "--steps", "30", "--threads", "1", "--json").stdout)
    assert found["schema"] == 1 and found["threads"] == 1 and found["steps"] == 30
    assert 0 < found["ms_per_step_least"] <= found["ms_per_step_median"]
    speed = 1000 * found["batch_size"] / found["ms_per_step_median"]
    assert found["samples_per_second"] == pytest.approx(speed)
    assert 10 < found["peak_rss_mb"] < 1000 and 0 < found["startup_seconds"] < 60
    assert found["allocations_in_steps"] == 0


@pytest.mark.parametrize(("name", "most"), [("bench/mnist_mlp", 80), ("bench/mnist_lenet", 95)])
def test_memory(tmp_path: Path, name: str, most: int) -> None:
    """Data are generated in pieces, and nothing is imported that is not used."""
    found = strict(run(tmp_path, "bench", name, "--steps", "5", "--threads", "1", "--json").stdout)
    assert found["peak_rss_mb"] < most


def test_profile(tmp_path: Path) -> None:
    done = call(tmp_path, "bench", recipe(tmp_path), "--steps", "20", "--profile", "--json")
    rows = strict(done.stdout)["profile"]
    assert rows and all(r["calls"] % 20 == 0 for r in rows) and all(r["seconds"] >= 0 for r in rows)
    assert "kernel" in done.stderr


def test_predict(tmp_path: Path) -> None:
    """Forward passes alone; the recipe need not be one that trains."""
    text = (tmp_path / recipe(tmp_path)).read_text()
    untrained = recipe(tmp_path, text.replace("optimizer: {name: adam, learning_rate: 0.01}\n", ""))
    done = call(tmp_path, "bench", untrained, "--predict", "--steps", "20", "--profile", "--json")
    found = strict(done.stdout)
    assert found["steps"] == 20 and found["ms_per_step_median"] > 0
    kernels = [row["name"].split()[0] for row in found["profile"]]
    assert kernels and all(k.endswith(".forward") for k in kernels)


def test_no_optimizer(tmp_path: Path) -> None:
    text = (
        (tmp_path / recipe(tmp_path))
        .read_text()
        .replace("optimizer: {name: adam, learning_rate: 0.01}\n", "")
    )
    assert "optimizer" in call(tmp_path, "bench", recipe(tmp_path, text), code=3).stderr
