"""The command `predict`: one record an input, in order, whatever some of them are."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from .runs import call, recipe, run, strict


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run."""
    folder = tmp_path_factory.mktemp("trained")
    call(folder, "train", recipe(folder), "--run-dir", "out", "-q")
    return folder / "out"


@pytest.fixture
def rows(trained: Path, tmp_path: Path) -> list[list[float]]:
    """The run in `out` and a file `rows.jsonl` of inputs."""
    shutil.copytree(trained, tmp_path / "out")
    values: list[list[float]] = np.random.default_rng(0).normal(size=(100, 6)).round(3).tolist()
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps({"x": v}) + "\n" for v in values))
    return values


def lines(text: str) -> list[dict[str, object]]:
    return [strict(line) for line in text.splitlines()]


def test_records(tmp_path: Path, rows: list[list[float]]) -> None:
    found = lines(call(tmp_path, "predict", "out", "rows.jsonl", "--json").stdout)
    assert [r["input"] for r in found] == [f"rows.jsonl:{i + 1}" for i in range(100)]
    for record in found:
        ranked = record["probabilities"]
        assert isinstance(ranked, list) and len(ranked) == 2
        assert record["label"] == ranked[0]["label"] and record["label"] in ("red", "green", "blue")
        assert record["probability"] == ranked[0]["probability"] >= ranked[1]["probability"]


def test_alone_and_together(tmp_path: Path, rows: list[list[float]]) -> None:
    """A sample's answer has the same bits whatever shares its batch."""
    together = lines(call(tmp_path, "predict", "out", "rows.jsonl", "--json").stdout)
    (tmp_path / "one.jsonl").write_text(json.dumps({"x": rows[77]}))
    alone = lines(call(tmp_path, "predict", "out", "one.jsonl", "--json", "--threads", "2").stdout)
    assert alone[0]["probabilities"] == together[77]["probabilities"]


def test_bad_inputs_do_not_disturb_the_others(tmp_path: Path, rows: list[list[float]]) -> None:
    good = json.dumps({"x": rows[0]})
    (tmp_path / "mixed.jsonl").write_text(
        f"{good}\nnot json\n" + json.dumps({"x": [1.0]}) + f"\n{good}\n"
    )
    done = call(
        tmp_path, "predict", "out", "mixed.jsonl", "missing.jsonl", "rows.jsonl", "--json", code=4
    )
    found = lines(done.stdout)
    assert len(found) == 4 + 1 + 100
    assert ["error" in r for r in found[:5]] == [False, True, True, False, True]
    assert found[0]["probabilities"] == found[3]["probabilities"]
    assert all("error" not in r for r in found[5:])
    assert "3 of 105 inputs" in done.stderr


def test_ways_to_give_inputs(tmp_path: Path, rows: list[list[float]]) -> None:
    expected = lines(call(tmp_path, "predict", "out", "rows.jsonl", "--json").stdout)[0][
        "probabilities"
    ]
    line = json.dumps({"x": rows[0]})
    by_stdin = run(tmp_path, "predict", "out", "-", "--json", stdin=line.encode())
    by_field = call(tmp_path, "predict", "out", "--field", f"x={json.dumps(rows[0])}", "--json")
    call(tmp_path, "predict", "out", "rows.jsonl", "--output", "answers.jsonl")
    (tmp_path / "folder").mkdir()
    shutil.copy(tmp_path / "rows.jsonl", tmp_path / "folder" / "a.jsonl")
    by_folder = call(tmp_path, "predict", "out", "folder", "--json")
    by_pattern = call(tmp_path, "predict", "out", "fold*/*.jsonl", "--json")
    texts = (
        by_stdin.stdout,
        by_field.stdout,
        (tmp_path / "answers.jsonl").read_text(),
        by_folder.stdout,
        by_pattern.stdout,
    )
    for text in texts:
        assert lines(text)[0]["probabilities"] == expected
    call(tmp_path, "predict", "out", code=2)
    call(tmp_path, "predict", "out", "--text", "hello", code=2)


def test_labelled_inputs_are_measured(tmp_path: Path, rows: list[list[float]]) -> None:
    (tmp_path / "labelled.jsonl").write_text(
        "".join(json.dumps({"x": v, "y": [i % 3]}) + "\n" for i, v in enumerate(rows))
    )
    done = call(tmp_path, "predict", "out", "labelled.jsonl", "--json")
    right = sum(
        r["label"] == ("red", "green", "blue")[i % 3] for i, r in enumerate(lines(done.stdout))
    )
    assert f"accuracy {right / 100:.5g}" in done.stderr and "100 labelled inputs" in done.stderr


def test_moved_model(tmp_path: Path, rows: list[list[float]]) -> None:
    before = call(tmp_path, "predict", "out", "rows.jsonl", "--json").stdout
    shutil.move(tmp_path / "out" / "model", tmp_path / "elsewhere")
    shutil.rmtree(tmp_path / "out")
    assert call(tmp_path, "predict", "./elsewhere", "rows.jsonl", "--json").stdout == before


def test_prices_in_the_files_own_units(tmp_path: Path) -> None:
    """Rows as they stand in the housing file; the scaling is the model's business."""
    call(tmp_path, "train", "fit_a_line", "--run-dir", "out", "-q")
    call(tmp_path, "dataset", "head", "uci_housing", "-n", "5", "--output", "samples")
    done = call(tmp_path, "predict", "out", "samples", "--json")
    found = lines(done.stdout)
    assert len(found) == 5
    assert all(isinstance(r["prediction"], float) and 0 < r["prediction"] < 50 for r in found)
    assert done.stderr.count("labelled inputs") <= 1
