"""The runs of a folder, read: lists, details, comparisons, the best; damage is shown and hides nothing."""

from __future__ import annotations

import json
import os
import platform
import shutil
from pathlib import Path

import pytest

from paddlecli.engine import runs
from paddlecli.engine.curve import BLOCKS, curve
from paddlecli.engine.fit import Options, fit
from paddlecli.engine.rundir import RunDir, find, last
from paddlecli.errors import RunError, UsageError

from .tiny_runs import MLP


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A runs folder with two runs of one recipe, the second watched; never changed."""
    from paddlecli.config.load import load_recipe

    folder = tmp_path_factory.mktemp("trained")
    (folder / "tiny.yaml").write_text(MLP)
    for name, over in (
        ("first", ()),
        ("second", ("checkpoint.monitor=test.accuracy", "train.epochs=2")),
    ):
        recipe = load_recipe(folder / "tiny.yaml", over)
        fit(recipe, Options(run_dir=folder / "runs" / "tiny" / name))
    return folder / "runs"


@pytest.fixture
def base(trained: Path, tmp_path: Path) -> Path:
    """A copy, where the settings say that runs are."""
    shutil.copytree(trained, tmp_path / "runs")
    return tmp_path / "runs"


def change(path: Path, **fields: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def test_list(base: Path) -> None:
    second, first = runs.catalogue()
    assert [(r.identity, r.recipe, r.status, r.steps, r.epochs) for r in (first, second)] == [
        ("first", "tiny", "completed", 40, 4), ("second", "tiny", "completed", 20, 2)]  # fmt: skip
    assert first.headline() == ("test.accuracy", first.metrics["test"]["accuracy"])
    assert second.best is not None and second.headline() == ("test.accuracy", second.best["value"])
    folder = base / "tiny" / "first"
    files = {(p.stat().st_ino): p.stat().st_size for p in folder.rglob("*") if p.is_file()}
    assert first.bytes == sum(files.values())
    assert [r.identity for r in runs.catalogue(base / "tiny")] == ["second", "first"]
    assert runs.catalogue(recipe="other") == [] == runs.catalogue(status="failed")
    with pytest.raises(RunError, match="no such folder"):
        runs.catalogue(base / "nowhere")


def test_what_a_name_means(base: Path) -> None:
    assert find("tiny").identity == find("last").identity == last("tiny").identity == "second"
    shutil.copytree(base / "tiny" / "first", base / "tiny" / "tiny")
    assert find("tiny").identity == "tiny", "an id wins over a recipe's name"
    with pytest.raises(UsageError, match="2 runs fit `i`"):
        find("i")
    with pytest.raises(RunError, match="there is no run of other"):
        last("other")


@pytest.mark.parametrize(
    ("file", "content", "problem"),
    [
        ("run.json", None, "missing"), ("run.json", b"{", "cannot be read"), ("run.json", b"[]", "expected a JSON object"),
        ("run.json", b"\xff\xfe", "cannot be read"), ("run.json", b'{"steps": "many"}', "is not what was written"),
        ("summary.json", b"", "cannot be read"), ("summary.json", b'{"best": 3}', "is not what was written"),
        ("summary.json", b'{"last": {"test": 3}}', "is not what was written"),
    ],
    ids=range(8),
)  # fmt: skip
def test_damaged(base: Path, file: str, content: bytes | None, problem: str) -> None:
    path = base / "tiny" / "first" / file
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    by_name = {r.identity: r for r in runs.catalogue()}
    assert by_name["second"].status == "completed" and by_name["first"].status == "damaged"
    assert problem in by_name["first"].problem
    found = runs.details(RunDir(base / "tiny" / "first"))
    assert found.info.problem and len(found.epochs) == 4 and found.checkpoints
    json.dumps(found.as_dict(), allow_nan=False)
    assert runs.best(list(by_name.values()), "test.accuracy")[0].identity == "second"


@pytest.mark.parametrize(
    "file", ["metrics.jsonl", "model/graph.yaml", "model/model.safetensors", "checkpoints/last"]
)
def test_damaged_elsewhere(base: Path, file: str) -> None:
    """What is whole is shown."""
    path = base / "tiny" / "first" / file
    path.unlink()
    path.write_bytes(b"\xff\x00{")
    found = runs.details(RunDir(base / "tiny" / "first"))
    assert found.info.status == "completed" and found.facts["seed"] == 5
    json.dumps(found.as_dict(), allow_nan=False)


def test_status_of_a_process_that_is_gone(base: Path) -> None:
    path = base / "tiny" / "first" / "run.json"
    for process, host, status in (
        (os.getpid(), platform.node(), "running"), (2**22 + 12345, platform.node(), "killed"),
        (2**22 + 12345, "elsewhere", "running"), (None, platform.node(), "running"),
    ):  # fmt: skip
        change(path, status="running", process=process, host=host)
        assert runs.read(RunDir(path.parent)).status == status


def test_numbers_that_are_not_finite(base: Path) -> None:
    path = base / "tiny" / "first" / "summary.json"
    found = json.loads(path.read_text())
    found["last"]["test"]["accuracy"] = None
    path.write_text(json.dumps({**found, "nonfinite": ["last.test.accuracy"]}))
    read = runs.read(RunDir(path.parent))
    value = read.value("test.accuracy")
    assert value is not None and value != value
    assert read.as_dict()["metrics"]["test"]["accuracy"] is None
    assert [r.identity for r in runs.best(runs.catalogue(), "test.accuracy")] == ["second"]


def test_details(base: Path) -> None:
    found = runs.details(RunDir(base / "tiny" / "second"))
    assert [(row["epoch"], row["step"]) for row in found.epochs] == [(1, 10), (2, 20)]
    assert set(found.epochs[0]) == {"epoch", "step", "train.loss", "train.accuracy", "test.loss", "test.accuracy",
                                    "test.loss_batch_mean"}  # fmt: skip
    assert [step for step, _ in found.losses] == list(range(3, 21, 3))
    marks = {c.name: c.marks for c in found.checkpoints}
    assert "last" in marks["step-00000020"] and sum("best" in m for m in marks.values()) == 1
    assert found.roles >= {"evaluate", "predict"} and found.saved.startswith("best test.accuracy")


def test_compare(base: Path) -> None:
    found = runs.compare([RunDir(base / "tiny" / name) for name in ("first", "second")])
    assert found.settings == {"train.epochs": (4, 2), "checkpoint.monitor": (None, "test.accuracy")}
    assert found.metrics["test.loss"] == tuple(r.metrics["test"]["loss"] for r in found.runs)
    with pytest.raises(UsageError, match="at least two"):
        runs.compare([RunDir(base / "tiny" / "first")])
    (base / "tiny" / "first" / "config.yaml").unlink()
    with pytest.raises(RunError, match=r"config\.yaml"):
        runs.compare([RunDir(base / "tiny" / name) for name in ("first", "second")])


def test_best(base: Path) -> None:
    all_runs = runs.catalogue()
    by_loss = sorted(all_runs, key=lambda r: r.metrics["test"]["loss"])
    assert runs.best(all_runs, "test.loss") == by_loss
    assert runs.best(all_runs, "test.loss", "max") == by_loss[::-1]
    with pytest.raises(RunError, match=r"no run has measured test\.acuracy\n.*`test\.accuracy`"):
        runs.best(all_runs, "test.acuracy")
    for name in ("first", "second"):
        path = base / "tiny" / name / "summary.json"
        found = json.loads(path.read_text())
        found["last"]["test"]["heat"] = 1.0
        change(path, last=found["last"], best=None)
    with pytest.raises(UsageError, match="nobody can tell"):
        runs.best(runs.catalogue(), "test.heat")


def test_hundreds_are_listed(base: Path) -> None:
    for i in range(300):
        folder = base / "many" / f"run{i:03}"
        (folder / "checkpoints" / "step-00000020").mkdir(parents=True)
        (folder / "model").mkdir()
        for name in ("run.json", "summary.json", "config.yaml", "log.txt", "metrics.jsonl", "model/graph.yaml",
                     "checkpoints/last", "checkpoints/step-00000020/state.json"):  # fmt: skip
            os.link(base / "tiny" / "second" / name, folder / name)
    assert len(runs.catalogue()) == 302


def test_curve() -> None:
    drawn = curve([(float(i), float(8 - i)) for i in range(9)], width=9, height=1)
    assert drawn == ["0 █▇▆▅▄▃▂▁▁", "  0       8"]
    two = curve([(0.0, 1.0), (1.0, 2.0)], width=9, height=2)
    assert two == ["2  █", "1 ▁█", "  01"]
    wide = curve([(float(i), 10.0**-i) for i in range(9)], width=9, height=1)
    assert "(logarithmic)" in wide[-1] and wide[0].endswith("█▇▆▅▄▃▂▁▁")
    assert curve([(0.0, 1.0)]) == [] == curve([(0.0, float("nan")), (1.0, 1.0)])
    assert len(curve([(float(i), 3.0) for i in range(999)], 60, 5)) == 6
    assert set("".join(curve([(i * 1.0, i % 7.0) for i in range(500)], 40, 4)[:-1])) & set(BLOCKS)
