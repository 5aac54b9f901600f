"""metrics.jsonl: no step twice or missing, no NaN, nothing half written."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np

from paddlecli.engine.eventlog import EventLog, read, truncate
from paddlecli.engine.files import flagged
from paddlecli.engine.place import Place
from paddlecli.engine.rundir import RunDir


def log(tmp_path: Path) -> EventLog:
    run = RunDir(tmp_path / "run")
    run.path.mkdir(exist_ok=True)
    return EventLog(run)


def test_truncate_drops_what_lies_behind(tmp_path: Path) -> None:
    events = log(tmp_path)
    for step in (10, 20, 30):
        events.add("step", step, {"loss": step / 7})
    events.close()
    path = tmp_path / "run" / "metrics.jsonl"
    before = path.read_text().splitlines()
    with path.open("a") as file:
        file.write('{"event": "step", "ste')
    truncate(path, 20)
    assert path.read_text().splitlines() == before[:2]
    again = log(tmp_path)
    again.add("step", 30, {"loss": 30 / 7})
    again.close()
    assert path.read_text().splitlines() == before


def test_numbers_come_back_exactly(tmp_path: Path) -> None:
    events = log(tmp_path)
    events.add("step", 1, {"loss": 0.1 + 0.2})
    events.close()
    assert next(read(tmp_path / "run" / "metrics.jsonl"))["loss"] == 0.1 + 0.2


def test_no_nan_in_json(tmp_path: Path) -> None:
    events = log(tmp_path)
    events.add("step", 1, {"loss": float("nan"), "accuracy": float("inf"), "epoch": 1})
    events.close()
    text = (tmp_path / "run" / "metrics.jsonl").read_text()
    found = json.loads(
        text, parse_constant=lambda name: (_ for _ in ()).throw(AssertionError(name))
    )
    assert found["loss"] is None and found["accuracy"] is None
    assert found["nonfinite"] == ["accuracy", "loss"]


def test_numbers_below_are_flagged_too() -> None:
    found = flagged(
        {"metrics": {"test": {"auc": float("nan"), "loss": 1.0}}, "list": [1.0, float("-inf")]}
    )
    assert found == {"metrics": {"test": {"auc": None, "loss": 1.0}}, "list": [1.0, None],
                     "nonfinite": ["list.1", "metrics.test.auc"]}  # fmt: skip


def test_a_place_with_nan_survives_json() -> None:
    place = Place(step=3, latest={"test": {"auc": float("nan"), "loss": float("inf")}})
    place.averages.add({"loss": np.array([float("nan")])}, np.array([4]))
    again = Place.of(json.loads(json.dumps(place.state(), allow_nan=False)))
    assert again.state() == place.state()
    assert math.isnan(again.latest["test"]["auc"]) and again.latest["test"]["loss"] == math.inf


def test_clock_values_stay_out(tmp_path: Path) -> None:
    events = log(tmp_path)
    events.add("epoch", 5, {"loss": 1.0})
    events.time("epoch", 5, {"seconds": 0.25})
    events.close()
    assert set(next(read(tmp_path / "run" / "metrics.jsonl"))) == {"event", "step", "loss"}
    assert next(read(tmp_path / "run" / "timing.jsonl"))["seconds"] == 0.25
