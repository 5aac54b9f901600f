"""Whole trainings: same bits however they are run, interrupted or cut; what is written; what is refused."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from paddlecli.config.load import load_recipe
from paddlecli.engine import rundir
from paddlecli.engine.checkpoint import list_folders
from paddlecli.engine.display import Moment, Quiet
from paddlecli.engine.evaluate import evaluate
from paddlecli.engine.evaluation import Evaluator, Measured, Runner
from paddlecli.engine.fit import Options, fit, resume
from paddlecli.engine.rundir import RunDir
from paddlecli.errors import ConfigError, NumericalError, RunError, UsageError

from .tiny_runs import MakeRecipe, checkpoint_files, events, same_results

STEPS = 40  # 4 epochs of 10 batches


class StopAt(Quiet):
    """Sends this process a signal when the training has done so many steps."""

    def __init__(self, step: int, number: int = signal.SIGINT) -> None:
        self.step, self.number = step, number

    def progress(self, moment: Moment) -> None:
        if moment.step >= self.step:
            self.step = 1 << 60
            os.kill(os.getpid(), self.number)


@pytest.fixture
def whole(tiny: MakeRecipe, tmp_path: Path) -> Path:
    """A training that nothing disturbed."""
    result = fit(tiny(), Options(run_dir=tmp_path / "whole", threads=1))
    assert result.status == "completed" and result.steps == STEPS and result.epochs == 4
    return result.run_dir


def test_epochs_made_together_change_nothing(
    whole: Path, tiny: MakeRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also the same events; the clock's side says what share of a step was spent waiting for data."""
    monkeypatch.setattr("paddlecli.engine.stock._MOST_EPOCHS", 0)
    single = fit(tiny(), Options(run_dir=tmp_path / "single", threads=1)).run_dir
    same_results(single, whole)
    times = [json.loads(line) for line in (whole / "timing.jsonl").read_text().splitlines()]
    assert [t["event"] for t in times] == ["epoch"] * 4 + ["end"]
    assert all(0 <= t["data_wait"] < 1 for t in times)


def test_what_a_run_leaves(whole: Path, tiny: MakeRecipe) -> None:
    names = {p.name for p in whole.iterdir()} - {".lock"}
    assert names == {
        "config.yaml", "run.json", "metrics.jsonl", "timing.jsonl", "summary.json", "log.txt", "checkpoints", "model",
    }  # fmt: skip
    assert load_recipe(whole / "config.yaml") == tiny()
    found = json.loads((whole / "run.json").read_text())
    assert found["status"] == "completed" and found["exit_code"] == 0 and found["steps"] == STEPS
    assert found["data"]["samples"] == {"train": 150, "test": 37} and found["core"]["level"]
    assert [e["step"] for e in events(whole, "step")] == list(range(3, STEPS + 1, 3))
    assert [(e["epoch"], e["step"]) for e in events(whole, "epoch")] == [
        (1, 10),
        (2, 20),
        (3, 30),
        (4, 40),
    ]
    assert [e["step"] for e in events(whole, "evaluation")] == [10, 20, 30, 40]
    assert [p.name for p in list_folders(whole / "checkpoints")] == [
        "step-00000020", "step-00000030", "step-00000040"]  # fmt: skip
    assert {p.name for p in (whole / "model").iterdir()} == {
        "model.safetensors", "graph.yaml", "labels.json", "preprocessing.yaml", "report.json"}  # fmt: skip
    last = whole / "checkpoints" / "step-00000040" / "model.safetensors"
    assert last.read_bytes() == (whole / "model" / "model.safetensors").read_bytes()


def test_it_learns(whole: Path) -> None:
    losses = [e["loss"] for e in events(whole, "epoch")]
    assert losses[-1] < losses[0]


@pytest.mark.parametrize(
    "options",
    [Options(threads=2), Options(threads=1, streamed=True), Options(threads=2, streamed=True)],
)
def test_same_bits(whole: Path, tiny: MakeRecipe, tmp_path: Path, options: Options) -> None:
    """Any number of threads, data gathered by the core or outside it."""
    again = fit(
        tiny(), Options(tmp_path / "again", threads=options.threads, streamed=options.streamed)
    )
    same_results(whole, again.run_dir)


def test_config_repeats_the_run(whole: Path, tmp_path: Path) -> None:
    again = fit(load_recipe(whole / "config.yaml"), Options(run_dir=tmp_path / "again"))
    same_results(whole, again.run_dir)
    assert (whole / "config.yaml").read_text() == (again.run_dir / "config.yaml").read_text()


def test_seeds_differ(whole: Path, tiny: MakeRecipe, tmp_path: Path) -> None:
    other = fit(tiny("train.seed=6"), Options(run_dir=tmp_path / "other")).run_dir
    assert (
        checkpoint_files(whole)["model.safetensors"] != checkpoint_files(other)["model.safetensors"]
    )


@pytest.mark.parametrize("stops", [(1,), (10,), (13,), (40,), (7, 21, 22, 38)])
def test_stopped_and_resumed(
    whole: Path, tiny: MakeRecipe, tmp_path: Path, stops: tuple[int, ...]
) -> None:
    """A signal at any step, inside or at the end of an epoch, any number of times: nothing changes."""
    path = tmp_path / "cut"
    result = fit(tiny(), Options(run_dir=path), StopAt(stops[0]))
    for stop in (*stops[1:], 1 << 60):
        assert result.status in ("interrupted", "completed")
        assert result.exit_code == (130 if result.status == "interrupted" else 0)
        result = resume(RunDir(path), (), Options(), StopAt(stop))
    assert result.status == "completed" and result.steps == STEPS
    same_results(whole, path)


def test_stopped_in_an_evaluation(
    whole: Path, tiny: MakeRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The epoch's end is made up for when the run goes on; its events come once."""
    measure = Evaluator.measure

    def cut(self: Evaluator, run: Runner, stopped: Callable[[], bool]) -> Measured | None:
        os.kill(os.getpid(), signal.SIGINT)
        found = measure(self, lambda request: replace(run(request), interrupted=True))
        assert found is None
        return found

    path = tmp_path / "cut"
    monkeypatch.setattr(Evaluator, "measure", cut)
    result = fit(tiny(), Options(run_dir=path))
    assert (result.status, result.steps, result.epochs) == ("interrupted", 10, 0)
    assert not events(path, "epoch")
    monkeypatch.undo()
    monkeypatch.setenv("PADDLECLI_RUNS_DIR", str(tmp_path / "runs"))
    resume(RunDir(path))
    same_results(whole, path)


def test_sigterm(tiny: MakeRecipe, tmp_path: Path) -> None:
    result = fit(tiny(), Options(run_dir=tmp_path / "cut"), StopAt(5, signal.SIGTERM))
    assert (result.status, result.exit_code) == ("interrupted", 143)
    assert json.loads((tmp_path / "cut" / "run.json").read_text())["status"] == "interrupted"


def test_deadline(whole: Path, tiny: MakeRecipe, tmp_path: Path) -> None:
    path = tmp_path / "cut"
    result = fit(tiny(), Options(run_dir=path, max_seconds=0.0))
    assert (result.status, result.exit_code, result.steps) == ("stopped", 0, 0)
    resume(RunDir(path))
    same_results(whole, path)


def test_damaged_checkpoint_at_resume(whole: Path, tiny: MakeRecipe, tmp_path: Path) -> None:
    """The one before it serves, its later events go, the end is the same."""
    path = tmp_path / "cut"
    fit(tiny(), Options(run_dir=path), StopAt(25))
    newest = list_folders(path / "checkpoints")[-1]
    (newest / "model.safetensors").write_bytes(b"nonsense")
    told: list[str] = []
    display = Quiet()
    display.warn = told.append  # type: ignore[method-assign]
    resume(RunDir(path), display=display)
    assert any(newest.name in text for text in told)
    same_results(whole, path)


def test_before_the_first_checkpoint(whole: Path, tiny: MakeRecipe, tmp_path: Path) -> None:
    """A run that was killed early starts over from its own recipe."""
    path = tmp_path / "cut"
    path.mkdir()
    (path / "config.yaml").write_text(tiny().to_yaml())
    (path / "metrics.jsonl").write_text('{"event": "step", "step": 3, "loss": 1.0}\n{"event": "st')
    resume(RunDir(path))
    same_results(whole, path)


def test_more_epochs(whole: Path, tiny: MakeRecipe, tmp_path: Path) -> None:
    path = tmp_path / "longer"
    fit(tiny("train.epochs=2"), Options(run_dir=path))
    result = resume(RunDir(path), ["train.epochs=4"])
    assert result.epochs == 4
    same_results(whole, path)
    assert load_recipe(path / "config.yaml") == tiny()


def test_max_steps(whole: Path, tiny: MakeRecipe, tmp_path: Path) -> None:
    path = tmp_path / "short"
    result = fit(tiny("train.max_steps=13"), Options(run_dir=path))
    assert (result.status, result.steps, result.epochs) == ("completed", 13, 1)
    assert events(path, "evaluation")[-1]["step"] == 13
    assert "nothing to do" in resume(RunDir(path)).notes[0]
    assert resume(RunDir(path), ["train.max_steps=40"]).steps == 40
    assert (
        checkpoint_files(path)["model.safetensors"] == checkpoint_files(whole)["model.safetensors"]
    )


def test_nothing_to_do(whole: Path) -> None:
    before = {
        p: p.read_bytes()
        for p in whole.rglob("*")
        if p.is_file() and p.suffix in (".jsonl", ".safetensors")
    }
    result = resume(RunDir(whole))
    assert result.status == "completed" and result.exit_code == 0
    assert "nothing to do" in result.notes[0]
    assert {p: p.read_bytes() for p in before} == before
    assert result.metrics["test"]["loss"] == events(whole, "evaluation")[-1]["loss"]


def test_resume_refuses_another_run(whole: Path) -> None:
    with pytest.raises(UsageError, match=r"train\.batch_size cannot be changed"):
        resume(RunDir(whole), ["train.batch_size=8"])
    with pytest.raises(UsageError, match=r"optimizer\.learning_rate"):
        resume(RunDir(whole), ["optimizer.learning_rate=1"])


def test_resume_refuses_other_data(whole: Path) -> None:
    found = json.loads((whole / "run.json").read_text())
    found["data"]["fingerprint"] = "0" * 64
    (whole / "run.json").write_text(json.dumps(found))
    with pytest.raises(RunError, match="not the one this run was started with"):
        resume(RunDir(whole), ["train.epochs=5"])


def test_evaluate_gives_trainings_number(whole: Path) -> None:
    reported = {
        k: v
        for k, v in events(whole, "evaluation")[-1].items()
        if k not in ("event", "step", "epoch", "split")
    }
    found = evaluate(RunDir(whole), threads=2)
    assert found.samples == 37 and found.metrics == reported
    assert {"loss", "accuracy", "loss_batch_mean"} <= set(found.metrics)
    other = evaluate(RunDir(whole), "train")
    assert other.samples == 150 and other.metrics["loss"] != found.metrics["loss"]


@pytest.mark.parametrize("batch_size", [1, 7, 37])
def test_metrics_do_not_depend_on_the_batch(whole: Path, tmp_path: Path, batch_size: int) -> None:
    """Sample-weighted metrics are exact over any cut into batches; the batch mean is what is not."""
    reported = evaluate(RunDir(whole)).metrics
    config = whole / "config.yaml"
    config.write_text(config.read_text().replace("batch_size: 16", f"batch_size: {batch_size}"))
    found = evaluate(RunDir(whole)).metrics
    assert {k: v for k, v in found.items() if "batch_mean" not in k} == {
        k: v for k, v in reported.items() if "batch_mean" not in k}  # fmt: skip
    if batch_size in (1, 37):
        assert found["loss_batch_mean"] == pytest.approx(found["loss"], rel=1e-5)


def test_monitor_keeps_the_best(tiny: MakeRecipe, tmp_path: Path) -> None:
    path = tmp_path / "best"
    over = (
        "checkpoint.monitor=test.loss",
        "checkpoint.keep_last=1",
        "train.epochs=8",
        "optimizer.learning_rate=0.3",
    )
    result = fit(tiny(*over), Options(run_dir=path))
    losses = {e["step"]: e["loss"] for e in events(path, "evaluation")}
    best = min(losses, key=lambda step: losses[step])
    assert best != max(losses), "the recipe was to get worse at the end"
    assert result.metrics["test"]["loss"] == losses[best]
    assert evaluate(RunDir(path)).metrics["loss"] == losses[best]
    assert f"step {best}" in result.saved and "best test.loss" in result.saved
    assert (path / "checkpoints" / "best").read_text().strip() == f"step-{best:08d}"
    # a worse one after a resume does not replace it
    longer = resume(RunDir(path), ["train.epochs=9"])
    assert longer.metrics["test"]["loss"] == min(e["loss"] for e in events(path, "evaluation"))


def test_monitor_that_is_not_measured(tiny: MakeRecipe, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"test\.bleu is not measured"):
        fit(tiny("checkpoint.monitor=test.bleu"), Options(run_dir=tmp_path / "x"))
    assert not (tmp_path / "x").exists()


def test_fewer_epochs_than_are_trained(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path / "x")
    before = (whole / "config.yaml").read_text()
    with pytest.raises(UsageError, match="3 is less than the 4 that are trained"):
        resume(RunDir(tmp_path / "x"), ["train.epochs=3"])
    assert (tmp_path / "x" / "config.yaml").read_text() == before


def test_split_that_is_not_there(tiny: MakeRecipe, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"generated has no split valid"):
        fit(tiny("train.eval_split=valid"), Options(run_dir=tmp_path / "x"))
    assert not (tmp_path / "x").exists()


def test_checkpoints_by_steps(whole: Path, tiny: MakeRecipe, tmp_path: Path) -> None:
    path = tmp_path / "steps"
    fit(
        tiny("checkpoint.every_steps=7", "checkpoint.every_epochs=0", "checkpoint.keep_last=100"),
        Options(run_dir=path),
    )
    names = [p.name for p in list_folders(path / "checkpoints")]
    assert names == [f"step-{s:08d}" for s in (7, 14, 21, 28, 35, 40)]
    assert (
        checkpoint_files(path)["model.safetensors"] == checkpoint_files(whole)["model.safetensors"]
    )


LINEAR = """
name: wild
data: {name: uci_housing}
model: {name: linear}
optimizer: {name: sgd, learning_rate: 1.0e+8}
train: {epochs: 3, batch_size: 20, log_every: 1, shuffle: none}
checkpoint: {every_steps: 1}
"""


def test_loss_that_is_not_finite(tmp_path: Path) -> None:
    """Halts before the update; the parameters that were saved last are finite; the rows are written down."""
    file = tmp_path / "wild.yaml"
    file.write_text(LINEAR)
    told = []
    with pytest.raises(
        NumericalError, match=r"step \d+: the loss is not finite \(rows \d+"
    ) as caught:
        fit(load_recipe(file), Options(run_dir=tmp_path / "wild", told=told.append))
    run = tmp_path / "wild"
    event = events(run, "not_finite")[0]
    bad = event["step"]
    assert f"step {bad + 1}:" in str(caught.value)
    assert event["loss"] is None and event["rows"] == list(range(20 * bad, 20 * bad + 20))
    assert [e["step"] for e in events(run, "step")] == list(range(1, bad + 1))
    saved = load_file(run / "model" / "model.safetensors")
    assert all(np.isfinite(v).all() for v in saved.values())
    assert list_folders(run / "checkpoints")[-1].name == f"step-{bad:08d}"
    assert json.loads((run / "run.json").read_text())["status"] == "failed"
    assert told[0].status == "failed" and told[0].exit_code == 6


def test_accumulation_is_the_whole_batch(tiny: MakeRecipe, tmp_path: Path) -> None:
    """Losses and parameters as of the whole batch, dropout masks included, short last batch too."""
    whole = fit(tiny("train.epochs=1"), Options(run_dir=tmp_path / "whole")).run_dir
    parts = fit(
        tiny("train.epochs=1", "train.accumulate=3"), Options(run_dir=tmp_path / "parts")
    ).run_dir
    for a, b in zip(events(whole, "step"), events(parts, "step"), strict=True):
        assert b["loss"] == pytest.approx(a["loss"], rel=1e-5)
    first, second = (load_file(run / "model" / "model.safetensors") for run in (whole, parts))
    for name, value in first.items():
        np.testing.assert_allclose(second[name], value, rtol=1e-3, atol=1e-5)


def test_accumulation_on_ragged_data(tmp_path: Path) -> None:
    recipe = Path(__file__).parent.parent / "tracers" / "scan.yaml"
    whole = fit(load_recipe(recipe), Options(run_dir=tmp_path / "whole")).run_dir
    parts = fit(
        load_recipe(recipe, ["train.accumulate=3"]), Options(run_dir=tmp_path / "parts")
    ).run_dir
    for a, b in zip(events(whole, "step"), events(parts, "step"), strict=True):
        assert b["loss"] == pytest.approx(a["loss"], rel=1e-4)


TRACERS = sorted((Path(__file__).parent.parent / "tracers").glob("*.yaml"))


@pytest.mark.parametrize(
    "path", [p for p in TRACERS if "optimizer:" in p.read_text()], ids=lambda p: p.stem
)
@pytest.mark.parametrize("stop", [3, 8])
def test_tracers(path: Path, stop: int, tmp_path: Path) -> None:
    """Ragged axes, scans, several networks and optimizers go through the same loop: threads, streaming, resume."""
    recipe = load_recipe(path)
    whole = fit(recipe, Options(run_dir=tmp_path / "whole", threads=1)).run_dir
    cut = tmp_path / "cut"
    result = fit(recipe, Options(run_dir=cut, threads=2, streamed=True), StopAt(stop))
    assert result.status == "interrupted"
    resume(RunDir(cut), (), Options(threads=2))
    same_results(whole, cut)


def test_one_process_at_a_time(tiny: MakeRecipe, tmp_path: Path) -> None:
    holder = rundir.fresh(tmp_path / "busy", force=False)
    with pytest.raises(RunError, match="another process"):
        fit(tiny(), Options(run_dir=tmp_path / "busy"))
    holder.release()


def test_nothing_is_written_for_a_bad_recipe(recipe_file: Path, tmp_path: Path) -> None:
    recipe_file.write_text(recipe_file.read_text().replace("from: [logits, y]", "from: [x, y]"))
    before: Callable[[], set[Path]] = lambda: set(tmp_path.rglob("*"))  # noqa: E731
    known = before()
    with pytest.raises(ConfigError):
        fit(load_recipe(recipe_file, ["train.loop=[nothing]"]))
    assert before() == known


def test_gradient_that_is_not_finite(tmp_path: Path) -> None:
    """The loss of weights that are 0 is fine, their slope is 1e60: the error says so, and blames the batch that made it."""
    file = tmp_path / "steep.yaml"
    file.write_text(
        "name: steep\ndata: {name: uci_housing}\noptimizer: {name: sgd, learning_rate: 0.1}\n"
        "model:\n  inputs: {x: {shape: [13]}, y: {shape: [1], role: label}}\n"
        "  layers:\n    - {fc: {size: 1, bias: false, weight_init: {constant: {value: 0}}}}\n"
        "    - {scale: {a: 1.0e+30}}\n    - {scale: {a: 1.0e+30}, name: b}\n"
        "  loss: {square_error_cost: {}, from: [b, y]}\n"
        "train: {epochs: 1, batch_size: 20, shuffle: none}\n"
    )
    with pytest.raises(
        NumericalError, match=r"step 1: a gradient is not finite, though the loss is"
    ):
        fit(load_recipe(file), Options(run_dir=tmp_path / "x"))
    event = events(tmp_path / "x", "not_finite")[0]
    assert event["step"] == 0 and event["rows"] == list(range(20)) and event["loss"] > 0
