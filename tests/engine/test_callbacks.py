"""Callbacks: what they are told and when, that they change no number, and what their errors do."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paddlecli.config.registry import CALLBACKS, Entry
from paddlecli.engine.callbacks import Callback, Progress
from paddlecli.engine.fit import Options, fit, resume
from paddlecli.engine.rundir import RunDir
from paddlecli.errors import ConfigError

from .tiny_runs import MakeRecipe, same_results

SEEN: list[Any] = []


class Spy(Callback):
    """Notes everything; stops or fails where it is told to."""

    def __init__(self, *, every: int = 4, stop: int | None = None, fail: str = "") -> None:
        self.every, self.stop, self.fail, self.calls = every, stop, fail, 0

    def _note(self, event: str, training: Progress, *what: Any) -> None:
        SEEN.append((event, training.step, *what))
        if self.fail == event:
            raise ZeroDivisionError(event)

    def on_start(self, training: Progress) -> None:
        self._note("start", training, self.calls, dict(training.losses))

    def after_step(self, training: Progress) -> None:
        self.calls += 1
        self._note("step", training)
        assert training.losses["loss"] > 0 and training.steps in (20, 30, 40)
        if training.step == self.stop:
            training.stop("that is enough")

    def after_evaluation(self, training: Progress, metrics: Mapping[str, float]) -> None:
        assert training.metrics["test"] == metrics
        self._note("evaluation", training, training.epoch)

    def after_checkpoint(self, training: Progress, folder: Path) -> None:
        assert (folder / "state.json").is_file() and folder.is_relative_to(training.run_dir)
        self._note("checkpoint", training)

    def on_end(self, training: Progress, status: str) -> None:
        self._note("end", training, status)

    def state(self) -> dict[str, Any]:
        return {"calls": self.calls}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.calls = state["calls"]


class Silent(Callback):
    """Does nothing, wants nothing."""

    def __init__(self) -> None: ...


class Nothing:
    """No callback."""


@pytest.fixture(autouse=True)
def spies(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    SEEN.clear()
    for name, kind in (("spy", Spy), ("silent", Silent), ("none", Nothing)):
        monkeypatch.setitem(CALLBACKS._entries, name, Entry(name, kind))
    yield


def of(events: str) -> list[int]:
    """Steps at which an event was told."""
    return [e[1] for e in SEEN if e[0] == events]


def test_what_is_told_and_when(tiny: MakeRecipe, tmp_path: Path) -> None:
    """At a step: the step, the evaluation, the checkpoint. 10 steps an epoch, 4 epochs."""
    fit(tiny("callbacks=[{spy: {every: 5}}]"), Options(tmp_path / "run"))
    assert SEEN[0] == ("start", 0, 0, {}) and SEEN[-1] == ("end", 40, "completed")
    assert of("step") == [5, 10, 15, 20, 25, 30, 35, 40]
    assert of("evaluation") == of("checkpoint") == [10, 20, 30, 40]
    assert [e[0] for e in SEEN if e[1] == 10] == ["step", "evaluation", "checkpoint"]
    assert [e[2] for e in SEEN if e[0] == "evaluation"] == [1, 2, 3, 4], "epochs that are done"


def test_they_change_no_number(tiny: MakeRecipe, tmp_path: Path) -> None:
    """Requests are cut at their steps: the bits are those of a training without any."""
    fit(tiny(), Options(tmp_path / "without"))
    fit(tiny("callbacks=[silent, {parameter_norms: {every: 7}}]"), Options(tmp_path / "with"))
    same_results(tmp_path / "without", tmp_path / "with")
    lines = (tmp_path / "with" / "parameter_norms.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [7, 14, 21, 28, 35]
    assert json.loads(lines[0])["fc1/w"] > 0


def test_a_training_that_is_stopped_goes_on_later(tiny: MakeRecipe, tmp_path: Path) -> None:
    """What a callback remembers is in the checkpoint."""
    fit(tiny("callbacks=[silent, spy]"), Options(tmp_path / "whole"))
    whole, calls = len(of("step")), list(SEEN)
    SEEN.clear()
    done = fit(tiny("callbacks=[silent, {spy: {stop: 12}}]"), Options(tmp_path / "parts"))
    assert (done.status, done.reason, done.steps, done.exit_code) == ("stopped", "callback", 12, 0)
    assert "stopped by a callback: that is enough" in done.text()
    assert SEEN[-2:] == [("checkpoint", 12), ("end", 12, "stopped")]
    more = resume(RunDir(tmp_path / "parts"), ["callbacks.1.spy.stop=null"])
    assert more.status == "completed"
    assert ("start", 12, 3, {}) in SEEN
    assert len(of("step")) == whole and SEEN[-1] == calls[-1]
    for file in ("metrics.jsonl", "model/model.safetensors"):
        assert (tmp_path / "parts" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()


def test_other_callbacks_may_go_on(tiny: MakeRecipe, tmp_path: Path) -> None:
    """State goes to callbacks of the same class; a new one begins anew, a gone one is forgotten."""
    fit(tiny("callbacks=[spy, {spy: {every: 8}}]", "train.epochs=2"), Options(tmp_path / "run"))
    SEEN.clear()
    resume(RunDir(tmp_path / "run"), ["callbacks=[silent, {spy: {every: 10}}]", "train.epochs=3"])
    assert [e[2] for e in SEEN if e[0] == "start"] == [5]
    resume(RunDir(tmp_path / "run"), ["callbacks=[]", "train.epochs=4"])


@pytest.mark.parametrize("event", ["start", "step", "evaluation", "checkpoint"])
def test_an_error_ends_the_training(event: str, tiny: MakeRecipe, tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError, match=event):
        fit(tiny(f"callbacks=[{{spy: {{fail: {event}}}}}]"), Options(tmp_path / "run"))
    assert json.loads((tmp_path / "run" / "run.json").read_text())["status"] == "failed"
    if event != "start":
        assert SEEN[-1][0] == "end" and SEEN[-1][2] == "failed"
    resume(RunDir(tmp_path / "run"), ["callbacks=[]"])


def test_of_two_errors_the_first_is_told(tiny: MakeRecipe, tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError, match="step"):
        fit(
            tiny("callbacks=[{spy: {fail: end}}, {spy: {fail: step}}]"),
            Options(tmp_path / "failed"),
        )
    assert "on_end: ZeroDivisionError: end" in (tmp_path / "failed" / "log.txt").read_text()
    with pytest.raises(ZeroDivisionError, match="end"):
        fit(tiny("callbacks=[{spy: {fail: end}}]"), Options(tmp_path / "run"))


@pytest.mark.parametrize(
    ("callback", "words"),
    [("none", "the callback `none`: gave Nothing, not a Callback"), ("{spy: {every: -1}}", "`every` is -1")],
)  # fmt: skip
def test_what_is_no_callback(callback: str, words: str, tiny: MakeRecipe, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=words):
        fit(tiny(f"callbacks=[{callback}]"), Options(tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_state_must_be_json(
    tiny: MakeRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Spy, "state", lambda self: {"calls": np.int64(3)})
    with pytest.raises(ConfigError, match="the state of a callback cannot be kept as JSON"):
        fit(tiny("callbacks=[spy]"), Options(tmp_path / "run"))


def test_a_file_stops_the_training(
    tiny: MakeRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def touch(self: Spy, training: Progress) -> None:
        (training.run_dir / "stop").touch()

    monkeypatch.setattr(Spy, "after_step", touch)
    done = fit(
        tiny("callbacks=[{spy: {every: 6}}, {stop_file: {every: 5}}]"), Options(tmp_path / "run")
    )
    assert (done.status, done.steps) == ("stopped", 10)
