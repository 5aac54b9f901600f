"""The Python API: what the package exports, and that the documentation runs."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import subprocess
import sys
import typing
from pathlib import Path

import pytest

import paddlecli
from paddlecli.engine import api
from paddlecli.engine.rundir import RunDir
from paddlecli.errors import ConfigError, MetricError, RunError, UsageError

from .runs import call, environment, recipe, strict

PAGE = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.S)


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)


def test_the_page_runs(tmp_path: Path) -> None:
    """One block after the other, as a reader would type them into one program."""
    assert len(BLOCKS) >= 5 and len(BLOCKS[0].strip().splitlines()) <= 12
    done = subprocess.run([sys.executable, "-W", "error", "-c", "\n".join(BLOCKS)], cwd=tmp_path, env=environment(tmp_path),
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("completed 840 ") and done.stderr == ""


def test_importing_loads_nothing() -> None:
    code = (
        "import sys, paddlecli; assert 'fit' in dir(paddlecli); "
        "print([m for m in ('numpy', 'cffi', 'pydantic', 'yaml', 'paddlecli.runtime') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_what_is_exported() -> None:
    for name in paddlecli.__all__:
        assert getattr(paddlecli, name) is not None
    assert paddlecli.fit is api.fit
    with pytest.raises(AttributeError, match="no attribute 'fitt'"):
        _ = paddlecli.fitt
    for result in (paddlecli.Result, paddlecli.Evaluation, paddlecli.Prediction):
        assert dataclasses.is_dataclass(result) and hasattr(result, "as_dict")
    for name in ("fit", "evaluate", "predict", "load_recipe", "check"):
        function = getattr(paddlecli, name)
        hints = {p.annotation for p in inspect.signature(function).parameters.values()}
        assert inspect.Parameter.empty not in hints and function.__doc__
        assert inspect.signature(function).return_annotation is not inspect.Signature.empty
    assert typing.get_type_hints(paddlecli.load_recipe)["return"] is paddlecli.Recipe


def test_a_command_is_the_call(tmp_path: Path) -> None:
    """The same files, the same numbers."""
    name = recipe(tmp_path)
    printed = strict(call(tmp_path, "train", name, "--run-dir", "a", "--json", "-q").stdout)
    result = paddlecli.fit(name, run_dir="b")
    for file in ("metrics.jsonl", "model/model.safetensors", "config.yaml"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
    clock = ("run_dir", "seconds", "samples_per_second")
    assert {k: v for k, v in printed.items() if k not in clock} == {
        k: v for k, v in json.loads(json.dumps(result.as_dict())).items() if k not in clock
    }
    evaluated = strict(call(tmp_path, "evaluate", "b", "--json", "-q").stdout)
    assert evaluated == json.loads(
        json.dumps(paddlecli.evaluate(RunDir(tmp_path / "b")).as_dict())
    ) | {"run_dir": "b"}
    field = "x=[1,2,3,4,5,6]"
    predicted = strict(call(tmp_path, "predict", "b", "--field", field, "--json", "-q").stdout)
    (one,) = paddlecli.predict("b", fields={"x": [1, 2, 3, 4, 5, 6]})
    assert predicted["probabilities"] == one.as_dict()["probabilities"]
    checked = strict(call(tmp_path, "train", name, "--dry-run", "--json").stdout)
    assert checked == json.loads(json.dumps(paddlecli.check(name).as_dict()))


def test_resume(tmp_path: Path) -> None:
    name = recipe(tmp_path)
    first = paddlecli.fit(name, ["train.epochs=2"], device="cpu", threads=1)
    assert first.run_dir.parent == tmp_path / "runs" / "shapes"
    again = paddlecli.fit(paddlecli.load_recipe(name), resume=True)
    assert (again.run_dir, again.epochs) == (first.run_dir, 3)
    for run in (first.run_dir, str(first.run_dir), RunDir(first.run_dir), "shapes", "last"):
        assert paddlecli.fit(resume=run).notes[0].startswith("nothing to do")
    stopped = paddlecli.fit(overrides=["train.epochs=9000000"], resume=True, max_seconds=0.05)
    assert (stopped.status, stopped.reason, stopped.exit_code) == ("stopped", "max_time", 0)


def test_errors(tmp_path: Path) -> None:
    name = recipe(tmp_path)
    loaded = paddlecli.load_recipe(name)
    for call_, kind in (
        (lambda: paddlecli.fit(), UsageError),
        (lambda: paddlecli.fit(loaded, ["train.epochs=2"]), UsageError),
        (lambda: paddlecli.fit(loaded, resume="last"), UsageError),
        (lambda: paddlecli.fit(resume=True, run_dir="x"), UsageError),
        (lambda: paddlecli.fit(loaded, run_dir=""), UsageError),
        (lambda: paddlecli.fit(resume=True), RunError),
        (lambda: paddlecli.fit(name, device="gpu"), UsageError),
        (lambda: paddlecli.load_recipe("no_such"), ConfigError),
        (lambda: paddlecli.evaluate("last"), RunError),
        (lambda: paddlecli.predict("last", ["x.csv"]), RunError),
    ):  # fmt: skip
        with pytest.raises(kind):
            call_()
    run = paddlecli.fit(loaded).run_dir
    for arguments in (
        {}, {"arrays": {"z": [[1.0]]}}, {"arrays": {"x": [[1.0]]}}, {"arrays": {"x": [[1.0] * 6]}, "fields": {"x": 1}},
    ):  # fmt: skip
        with pytest.raises(UsageError):
            paddlecli.predict(run, **arguments)
    with pytest.raises(MetricError, match=r"accuracy is [0-9.]+, below 2 by [0-9.]+"):
        paddlecli.evaluate(run, least={"test.accuracy": 2}).demand()


def test_predictions_do_not_depend_on_the_batch(tmp_path: Path) -> None:
    run = paddlecli.fit(recipe(tmp_path)).run_dir
    rows = [[float(i + j) for j in range(6)] for i in range(70)]
    whole = [p.answer for p in paddlecli.predict(run, arrays={"x": rows})]
    for size in (1, 7, 100):
        assert [
            p.answer for p in paddlecli.predict(run, arrays={"x": rows}, batch_size=size)
        ] == whole
    assert [p.answer for p in paddlecli.predict(run, fields={"x": rows[3]})] == [whole[3]]
