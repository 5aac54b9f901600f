"""What a training watches: the best parameters, early stopping, the goal; and that a resumed one decides the same."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from paddlecli.engine.fit import Options, fit, resume
from paddlecli.engine.place import Place
from paddlecli.engine.rundir import RunDir
from paddlecli.engine.watch import Goal, Watch, Watched, usual_mode
from paddlecli.errors import ConfigError, UsageError

from .test_training import StopAt
from .tiny_runs import MakeRecipe, events, same_results

WORSE = ("optimizer.learning_rate=0.3", "train.epochs=40")
"""A rate at which the test loss soon rises."""
PATIENT = (*WORSE, "early_stopping.monitor=test.loss", "early_stopping.patience=3")


@pytest.mark.parametrize(
    ("smaller", "delta", "values", "stalls"),
    [
        (True, 0.0, [3, 2, 2, 2.5, 1], [0, 0, 1, 2, 0]),
        (False, 0.0, [3, 2, 2, 2.5, 4], [0, 1, 2, 3, 0]),
        (True, 0.5, [3, 2.6, 2.5, 2.4, 2.4], [0, 1, 2, 0, 1]),
        (False, 0.5, [1, 1.4, 1.5, 1.6, 2.0], [0, 1, 2, 0, 1]),
        (True, 0.0, [float("nan"), 1, float("nan"), 2, 0.5], [1, 0, 1, 2, 0]),
    ],
)
def test_patience(smaller: bool, delta: float, values: list[float], stalls: list[int]) -> None:
    """Counted in measurements that were not better by more than `min_delta` than the best before; NaN never is."""
    watch = Watch(early=Watched("test.m", smaller), patience=3, min_delta=delta)
    place, found = Place(), []
    for epoch, value in enumerate(values, 1):
        watch.observe(place, epoch, {"test": {"m": value}})
        watch.observe(place, epoch, {"train": {"m": 0.0}})  # not what is watched
        found.append(place.stall)
        place = Place.of(json.loads(json.dumps(place.state())))
        assert (watch.reason(place) == "early_stopping") == (place.stall >= 3)
    assert found == stalls


@pytest.mark.parametrize(
    ("text", "met", "unmet"),
    [
        ("test.accuracy >= 0.98", 0.98, 0.979),
        ("test.accuracy>0.98", 0.981, 0.98),
        ("test.accuracy<= 1e-3", 0.001, 0.0011),
        ("test.accuracy < -.5", -0.51, -0.5),
    ],
)
def test_goal(text: str, met: float, unmet: float) -> None:
    goal = Goal.of(text)
    assert goal.met({"test": {"accuracy": met}}) and not goal.met({"test": {"accuracy": unmet}})
    assert not goal.met({"test": {"accuracy": float("nan")}}) and not goal.met({"train": {}})


@pytest.mark.parametrize(
    "text",
    ["test.accuracy = 1", "accuracy > 1", "test.accuracy > one", "test.a > 1 or test.b > 2", "test.a >", "test.a > inf",
     "test.a == 1", "", "test.a > 1 "],
)  # fmt: skip
def test_what_is_no_goal(text: str, tiny: MakeRecipe) -> None:
    with pytest.raises(ConfigError, match=r"stop_when|test.accuracy >= 0.98"):
        tiny(f"train.stop_when={text}")
    with pytest.raises(ValueError, match="is no condition"):
        Goal.of(text)


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("test.loss", "min"), ("test.loss_batch_mean", "min"), ("valid.accuracy", "max"), ("test.macro_f1", "max"),
        ("test.auc", "max"), ("test.perplexity", "min"), ("test.temperature", None), ("train.d_fake.loss", "min"),
    ],
)  # fmt: skip
def test_which_way_is_better(name: str, mode: str | None) -> None:
    assert usual_mode(name) == mode


@pytest.fixture(scope="module")
def early(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that early stopping ended."""
    from paddlecli.config.load import load_recipe

    from .tiny_runs import MLP

    folder = tmp_path_factory.mktemp("early")
    (folder / "tiny.yaml").write_text(MLP)
    result = fit(load_recipe(folder / "tiny.yaml", PATIENT), Options(run_dir=folder / "run"))
    losses = [e["loss"] for e in events(folder / "run", "evaluation")]
    best = losses.index(min(losses))
    assert (result.status, result.reason, result.exit_code) == ("completed", "early_stopping", 0)
    assert result.epochs == len(losses) == best + 1 + 3 < 40
    assert "not better than" in result.notes[0]
    # what is watched is also what is kept
    assert result.best is not None and result.best["value"] == losses[best]
    assert result.metrics["test"]["loss"] == losses[best] and "best test.loss" in result.saved
    return folder / "run"


@pytest.mark.parametrize("stops", [(25,), (31, 38), (10, 20, 30)])
def test_the_count_goes_on_after_a_resume(
    early: Path, tiny: MakeRecipe, tmp_path: Path, stops: tuple[int, ...]
) -> None:
    path = tmp_path / "cut"
    fit(tiny(*PATIENT), Options(run_dir=path), StopAt(stops[0]))
    for stop in (*stops[1:], 1 << 60):
        result = resume(RunDir(path), (), Options(), StopAt(stop))
    assert result.reason == "early_stopping"
    same_results(early, path)


def test_on_after_early_stopping(early: Path, tmp_path: Path) -> None:
    """Nothing to do as it is; more patience or none go on where it stopped."""
    epochs = len(events(early, "epoch"))
    for over, more in (
        ((), 0), (("train.epochs=50",), 0), (("early_stopping.patience=4",), 1), (("~early_stopping", f"train.epochs={epochs + 2}"), 2),
    ):  # fmt: skip
        path = tmp_path / f"more{more}{len(over)}"
        shutil.copytree(early, path)
        result = resume(RunDir(path), list(over))
        assert result.epochs >= epochs + more and (more or result.epochs == epochs), over
        if not more:
            assert "nothing to do: stopped early" in result.notes[0]
            assert "-o early_stopping.patience=N" in result.notes[0]


def test_stop_when(tiny: MakeRecipe, tmp_path: Path) -> None:
    path = tmp_path / "goal"
    over = ("train.epochs=40", "train.stop_when=train.loss < 1.38", "train.eval_every=4")
    result = fit(tiny(*over), Options(run_dir=path))
    losses = [e["loss"] for e in events(path, "epoch")]
    assert result.reason == "stop_when" and losses[-1] < 1.38 <= min(losses[:-1])
    assert f"train.loss is {losses[-1]:.6g}, < 1.38" in result.notes[0]
    again = resume(RunDir(path))
    assert again.epochs == result.epochs and "nothing to do: stopped" in again.notes[0]
    assert resume(RunDir(path), ["train.stop_when=train.loss < 1.3"]).epochs > result.epochs


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (("early_stopping.monitor=test.los",), r"test\.los is not measured\n.*; did you mean `test\.loss`"),
        (("checkpoint.monitor=test.bleu",), r"test\.bleu is not measured\n.*there are train\.loss, train\.accuracy"),
        (("train.stop_when=valid.loss < 1",), r"valid\.loss is not measured"),
        (("early_stopping.monitor=test.loss", "train.eval_every=0"), r"measured only at the end"),
        (("train.stop_when=test.loss < 1", "train.eval_every=0"), r"measured only at the end"),
        (("early_stopping.monitor=test.strange", "metrics=[{accuracy: {}, name: strange}]"), None),
    ],
)  # fmt: skip
def test_what_cannot_be_watched(
    tiny: MakeRecipe, tmp_path: Path, overrides: tuple[str, ...], message: str | None
) -> None:
    """Told before anything is written. A metric's own kind says which way is better, whatever it is called."""
    recipe = tiny("train.epochs=1", *overrides)
    if message is None:
        fit(recipe, Options(run_dir=tmp_path / "x"))
        return
    with pytest.raises(ConfigError, match=message):
        fit(recipe, Options(run_dir=tmp_path / "x"))
    assert not (tmp_path / "x").exists()


def test_accuracy_is_better_when_it_is_larger(tiny: MakeRecipe, tmp_path: Path) -> None:
    """Without a word about it in the recipe; `mode` wins over what is known."""
    result = fit(
        tiny("checkpoint.monitor=test.accuracy", *WORSE[:1]), Options(run_dir=tmp_path / "a")
    )
    found = [e["accuracy"] for e in events(tmp_path / "a", "evaluation")]
    assert result.best is not None and result.best["value"] == max(found) > min(found)
    over = ("checkpoint.monitor=test.accuracy", "checkpoint.mode=min", *WORSE[:1])
    assert fit(tiny(*over), Options(run_dir=tmp_path / "b")).best["value"] == min(found)  # type: ignore[index]


def test_a_resume_may_not_change_what_is_trained(early: Path) -> None:
    for text in ("train.overfit=1", "train.init_from=last", "early=1"):
        with pytest.raises(UsageError, match="cannot be changed"):
            resume(RunDir(early), [text])


def test_a_metric_that_is_not_measured_is_told_where_it_stands(
    tiny: MakeRecipe, tmp_path: Path
) -> None:
    """What early stopping watches is also what is kept; the fault is of the setting that was written."""
    with pytest.raises(ConfigError, match=r"^-o:1:24: early_stopping\.monitor: test\.los is not"):
        fit(tiny("early_stopping.monitor=test.los"), Options(run_dir=tmp_path / "run"))
    with pytest.raises(ConfigError, match=r"^-o:1:20: checkpoint\.monitor: test\.los is not"):
        fit(tiny("checkpoint.monitor=test.los"), Options(run_dir=tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_the_margin_is_told() -> None:
    place = Place(lead=0.25, stall=1)
    watch = Watch(early=Watched("test.loss", True), patience=1, min_delta=0.05)
    assert watch.told(place) == (
        "stopped early: test.loss was not better than 0.25 by more than 0.05 in 1 measurement"
    )
