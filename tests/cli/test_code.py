"""`--code FILE.py` and plug-ins: what a run keeps of them, when they are asked for again, and what is told when they fail."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlecli.cli.app import main
from paddlecli.config import plugins
from paddlecli.config.registry import LAYERS

from .runs import DIGITS, command, environment, recipe, run, strict

CODE = '''
"""One of most kinds, all of known ops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddlecli.compiler.composed import Update, Value
from paddlecli.config.registry import CALLBACKS, INITIALIZERS, LAYERS, LOSSES, METRICS, MODELS, OPTIMIZERS, SCHEDULES
from paddlecli.config.types import Count, Fraction
from paddlecli.engine.callbacks import Callback
from paddlecli.engine.schedule import Curve
from paddlecli.models import layers, losses
from paddlecli.models.outside import PythonMetric

if TYPE_CHECKING:
    from paddlecli.models.network import Network


@INITIALIZERS.register("eighth")
def eighth(shape, stream, *, sign: int = 1):
    import numpy as np

    return np.full(shape, sign / 8, np.float32)


@LAYERS.register("gated")
def gated(net: Network, x, *, size: Count):
    with net.layer("gated"):
        gate = layers.fc(net, x, size=size, activation="sigmoid")
        return net.apply("mul", layers.fc(net, x, size=size), gate)


@LOSSES.register("half_square")
def half_square(net, prediction, label):
    with net.layer("half_square"):
        values = net.apply("square_error_cost", prediction, label)
        return losses.finish(net, net.apply("scale", values, a=0.5, b=0.0), prediction, label)


@METRICS.register("near")
def near(net, scores, label):
    net.metric(net.called("near"), "accuracy", {"scores": scores, "label": label}, {"k": 2, "ignore_index": -100})


@METRICS.register("worst")
class Worst(PythonMetric):
    values = ("error", "at")
    better = "min"

    def __init__(self, *, power: int = 1):
        self.errors = []

    def add(self, prediction, label):
        self.errors += abs(prediction - label).ravel().tolist()

    def result(self):
        worst = max(self.errors)
        return {"error": worst, "at": self.errors.index(worst)}


@MODELS.register("gates")
def gates(net, *, hidden: Count = 4):
    with net.naming("prediction"):
        y = layers.fc(net, gated(net, net.feature(), size=hidden), size=1)
    net.output("prediction", y)
    half_square(net, y, net.label())


@OPTIMIZERS.register("heavy_ball")
def heavy_ball(o: Update, p: Value, g: Value, *, beta: Fraction = 0.9):
    velocity = o.slot("velocity")
    new = beta * velocity + g
    o.set(velocity, new)
    return p - o.rate * new


@SCHEDULES.register("halving")
def halving(run, rate, *, every: Count):
    return Curve(lambda step: rate * 0.5 ** (step // every))


@CALLBACKS.register("counting")
class Counting(Callback):
    def __init__(self, *, every: Count = 2):
        self.every, self.calls = every, 0

    def after_step(self, training):
        self.calls += 1

    def on_end(self, training, status):
        (training.run_dir / "calls.txt").write_text(f"{status} {self.calls}")

    def state(self):
        return {"calls": self.calls}

    def restore(self, state):
        self.calls = state["calls"]
'''
DATA = """
from paddlecli.config.registry import DATASETS

FIELDS = [{"name": "x", "shape": (3,)}, {"name": "y", "shape": (1,), "role": "label"}]


@DATASETS.register("mine")
def mine(*, rows: int = 64):
    found = DATASETS.get("generated").function
    return found(**DATASETS.bind("generated", {"fields": FIELDS, "samples": rows, "test_samples": 16}))
"""
NAMED = """
name: own
data:
  name: generated
  samples: 64
  test_samples: 16
  fields:
    - {name: x, shape: [3]}
    - {name: y, shape: [1], role: label}
model: {name: gates, hidden: 5}
optimizer: {name: sgd, learning_rate: 0.05}
train: {epochs: 3, batch_size: 16}
"""
WRITTEN = """
  inputs:
    x: {shape: [3]}
    y: {shape: [1], role: label}
  layers:
    - gated: {size: 5}
    - fc: {size: 1, weight_init: {eighth: {sign: -1}}}
      name: prediction
  loss: {half_square: {}, from: [prediction, y]}
  outputs: {prediction: prediction}
"""
RECIPES = {
    "named": NAMED,
    "written": NAMED.replace("model: {name: gates, hidden: 5}", f"model:{WRITTEN.rstrip()}"),
}
TRAINED = (
    NAMED.replace("name: sgd", "name: heavy_ball, schedule: {name: halving, every: 5}")
    + "callbacks: [counting]\n"
)
"""Own code in the training alone."""


@pytest.fixture
def code(tmp_path: Path) -> str:
    """The user's file."""
    (tmp_path / "own.py").write_text(CODE)
    return "own.py"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for commands that run inside the test's process; what they load is forgotten."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PADDLECLI_RUNS_DIR", str(tmp_path / "runs"))
    with plugins.isolated():
        yield tmp_path


def inside(capsys: pytest.CaptureFixture[str], *arguments: str, exit_code: int = 0) -> str:
    """Runs a command in this process; gives its stderr."""
    capsys.readouterr()
    found, err = main(arguments), capsys.readouterr().err
    assert found == exit_code, err
    return err


# ---- what a run keeps ----
@pytest.mark.parametrize("kind", list(RECIPES))
def test_the_stored_network_needs_no_code(tmp_path: Path, code: str, kind: str) -> None:
    name = recipe(tmp_path, RECIPES[kind])
    done = run(tmp_path, "train", name, "--code", code, "--run-dir", "out", "--json", "-q")
    trained = strict(done.stdout)["metrics"]["test"]
    facts = json.loads((tmp_path / "out" / "run.json").read_text())
    sha256 = hashlib.sha256(CODE.encode()).hexdigest()
    assert facts["code"] == [{"path": str(tmp_path / "own.py"), "sha256": sha256}]
    (tmp_path / "own.py").unlink()
    found = strict(run(tmp_path, "evaluate", "out", "--json", "-q").stdout)
    assert found["metrics"] == trained
    answers = run(tmp_path, "predict", "out", "--field", "x=[1,2,3]", "--json", "-q").stdout
    assert isinstance(strict(answers)["prediction"], float)


def test_resume_without_the_network_s_code(
    here: Path, code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name = recipe(here, RECIPES["written"])
    for folder, epochs in (("whole", "4"), ("parts", "2")):
        more = ("--run-dir", folder, "--epochs", epochs)
        inside(capsys, "train", name, "--code", code, "-q", *more)
    config = (here / "parts" / "config.yaml").read_text()
    run(here, "train", "--resume", "parts", "-o", "train.epochs=4", "-q")
    for file in ("metrics.jsonl", "model/model.safetensors", "config.yaml"):
        assert (here / "whole" / file).read_bytes() == (here / "parts" / file).read_bytes()
    assert config != (here / "parts" / "config.yaml").read_text()
    assert json.loads((here / "parts" / "run.json").read_text())["code"], "the record stays"


def test_before_step_1_the_recipe_is_all_there_is(
    here: Path, code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    inside(capsys, "train", recipe(here, NAMED), "--code", code, "--run-dir", "out", "-q")
    for path in (here / "out" / "model").iterdir():
        path.unlink()
    message = run(here, "train", "--resume", "out", code=3).stderr
    assert "unknown model `gates`" in message
    assert f"--code {here / 'own.py'}" in message


def test_own_optimizer_schedule_and_callback(
    here: Path, code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only the training needs them: killed and resumed it has the bits of a run that went through."""
    name = recipe(here, TRAINED)
    long = ("--code", code, "-q", "--epochs", "60")
    inside(capsys, "train", name, *long, "--run-dir", "whole")
    assert (here / "whole" / "calls.txt").read_text() == "completed 120"
    more = ("--run-dir", "parts", "-o", "checkpoint.every_steps=3")
    words = command("train", name, *long, *more)
    with subprocess.Popen(words, cwd=here, env=environment(here)) as started:
        saved = here / "parts" / "model" / "model.safetensors"
        while not saved.exists() and started.poll() is None:
            time.sleep(0.001)
        started.send_signal(signal.SIGKILL)
    assert strict(run(here, "evaluate", "parts", "--json", "-q").stdout)["metrics"]
    message = run(here, "train", "--resume", "parts", code=3).stderr
    for unknown in ("optimizer `heavy_ball`", "schedule `halving`", "callback `counting`"):
        assert f"unknown {unknown}" in message
    assert message.endswith(f"add --code {here / 'own.py'}\n")
    again = ("--resume", "parts", "--code", code, "-q", "-o", "checkpoint.every_steps=null")
    inside(capsys, "train", *again)
    for file in ("metrics.jsonl", "model/model.safetensors", "calls.txt"):
        assert (here / "whole" / file).read_bytes() == (here / "parts" / file).read_bytes()
    slots = here / "parts" / "checkpoints" / "step-00000240" / "optimizer.safetensors"
    assert b"@default.velocity" in slots.read_bytes()


@pytest.mark.parametrize("action", ["evaluate", "resume"])
def test_own_data_are_asked_for(
    here: Path, code: str, action: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "data.py").write_text(DATA)
    head, tail = NAMED[: NAMED.index("data:")], NAMED[NAMED.index("model:") :]
    both = ("--code", code, "--code", "data.py")
    name = recipe(here, f"{head}data: {{name: mine, rows: 48}}\n{tail}")
    inside(capsys, "train", name, *both, "--run-dir", "out", "-q")
    evaluate, resume = ("evaluate", "out"), ("train", "--resume", "out", "--epochs", "4")
    arguments = evaluate if action == "evaluate" else resume
    message = run(here, *arguments, code=3).stderr
    assert "unknown data set `mine`" in message
    assert f"--code {here / 'own.py'} --code {here / 'data.py'}" in message
    (here / "data.py").write_text(DATA + "\n")
    again = inside(capsys, *arguments, "--code", "data.py")
    assert "data.py has changed since the run was started" in again


def test_code_that_was_moved_or_lost(
    here: Path, code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same content elsewhere is the same code; of a lost file the hash is told."""
    name = recipe(here, NAMED + "metrics: [worst]\n")
    inside(capsys, "train", name, "--code", code, "--run-dir", "out", "-q")
    (here / "elsewhere").mkdir()
    (here / "own.py").rename(here / "elsewhere" / "mine.py")
    message = run(here, "evaluate", "out", code=3).stderr
    assert "unknown metric `worst`" in message and "no longer there" in message
    assert f"whose sha256 is {hashlib.sha256(CODE.encode()).hexdigest()}" in message
    found = run(here, "evaluate", "out", "--code", "elsewhere/mine.py")
    assert "changed" not in found.stderr and "worst_error: " in found.stdout


def test_a_metric_of_the_plan_is_in_the_stored_network(
    here: Path, code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name = recipe(here, DIGITS.replace("metrics: [accuracy]", "metrics: [near]"))
    inside(capsys, "train", name, "--code", code, "--run-dir", "out", "-q")
    trained = json.loads((here / "out" / "summary.json").read_text())["last"]["test"]["near"]
    found = strict(run(here, "evaluate", "out", "--json", "-q").stdout)
    assert found["metrics"]["near"] == trained > 0.3


def test_a_metric_in_python(here: Path, code: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Several numbers, watched by the training, the same in `evaluate`, whatever the batches; predict needs none of it."""
    text = NAMED + "metrics: [worst]\ncheckpoint: {monitor: test.worst_error}\n"
    inside(capsys, "train", recipe(here, text), "--code", code, "--run-dir", "out", "-q")
    summary = json.loads((here / "out" / "summary.json").read_text())
    best = summary["best"]
    assert best["metric"] == "test.worst_error" and best["mode"] == "min"
    found = strict(
        run(here, "evaluate", "out", "--json", "-q", "--code", code, "--batch-size", "3").stdout
    )["metrics"]
    assert found["worst_error"] == best["value"] and 0 <= found["worst_at"] < 16
    message = run(here, "evaluate", "out", code=3).stderr
    assert "unknown metric `worst`" in message and f"--code {here / 'own.py'}" in message
    answer = strict(run(here, "predict", "out", "--field", "x=[1,2,3]", "--json", "-q").stdout)
    assert set(answer) == {"input", "prediction"}


def test_other_commands(here: Path, code: str, capsys: pytest.CaptureFixture[str]) -> None:
    name = recipe(here, RECIPES["written"])
    for arguments in (
        ("plan", name),
        ("bench", name, "--steps", "5"),
        ("recipe", "validate", name),
        ("train", name, "--dry-run"),
    ):
        inside(capsys, *arguments, "--code", code)
    assert "unknown layer `gated`" in run(here, "train", name, code=3).stderr


# ---- names ----
def test_an_unknown_name_says_what_is_known(
    here: Path, code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "more.py").write_text(
        CODE.split("@LOSSES")[0].replace('"gated"', '"gatedd"').replace('"eighth"', '"sixth"')
    )
    text = RECIPES["written"].replace("gated:", "gatedd:")
    message = inside(capsys, "train", recipe(here, text), "--code", code, exit_code=3)
    assert "recipe.yaml:" in message and "unknown layer `gatedd`" in message
    assert "did you mean `gated`" in message and "known: " in message
    assert (
        "own.py registered no layer `gatedd`; more.py registers `gatedd`: add --code more.py"
        in message
    )
    message = inside(
        capsys,
        "train",
        recipe(here, text.replace("gatedd:", "half_square:")),
        "--code",
        code,
        exit_code=3,
    )
    assert "`half_square` is a registered loss" in message
    assert "your own comes with --code FILE.py that registers `half_square`" in message


def test_a_shipped_name_cannot_be_taken(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "own.py").write_text(CODE.replace('"gated"', '"relu"'))
    message = inside(capsys, "train", recipe(here, NAMED), "--code", "own.py", exit_code=3)
    assert "the layer `relu` is registered twice" in message and "in own.py:27" in message
    assert LAYERS.find("relu") is not None and LAYERS.find("gated") is None


def test_an_edited_file_is_imported_anew(here: Path, code: str) -> None:
    (first,) = plugins.load_code([code])
    (here / code).write_text(CODE.replace('"gated"', '"barred"'))
    (second,) = plugins.load_code([code])
    assert first.path == second.path and first.sha256 != second.sha256
    assert LAYERS.find("gated") is None and LAYERS.find("barred") is not None


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("size: Count):", "size):", "own.py:27: `gated` cannot be called from a recipe: the keyword parameter `size` has no type hint"),
        ("size: Count):", "size: Cuont):", "a type hint cannot be read: NameError: name 'Cuont' is not defined"),
    ],
    ids=["none", "unreadable"],
)  # fmt: skip
def test_parameters_need_type_hints(
    old: str, new: str, words: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "own.py").write_text(CODE.replace(old, new))
    message = inside(
        capsys, "train", recipe(here, RECIPES["written"]), "--code", "own.py", exit_code=3
    )
    assert words in message and "recipe.yaml:15" in message


# ---- errors of users' code ----
FAULTS = {
    "layer": ('return net.apply("mul"', 'return net.aply("mul"', "AttributeError", "in gated"),
    "loss": ('net.apply("scale", values', 'net.apply("scale", valuse', "NameError", "in half_square"),
    "initializer": ("return np.full(shape, sign / 8", "return np.full(shape, sign / 0", "ZeroDivisionError", "in eighth"),
    "python metric": ("self.errors.index(worst)", "self.errors[-1:][worst]", "TypeError", "in result"),
    "optimizer": ("return p - o.rate * new", "return p - o.rat * new", "AttributeError", "in heavy_ball"),
    "schedule": ("rate * 0.5 ** (step // every)", "rate * 0.5 ** (step // (every - every))", "ZeroDivisionError", "<lambda>"),
    "callback": ("self.calls += 1", "self.cals += 1", "AttributeError", "in after_step"),
}  # fmt: skip


@pytest.mark.parametrize("kind", FAULTS)
def test_a_mistake_shows_the_users_lines_alone(
    kind: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new, error, place = FAULTS[kind]
    assert old in CODE
    (here / "own.py").write_text(CODE.replace(old, new))
    text = RECIPES["written"].replace(
        "{name: sgd,", "{name: heavy_ball, schedule: {name: halving, every: 5},"
    )
    name = recipe(here, text + "callbacks: [counting]\nmetrics: [worst]\n")
    message = inside(capsys, "train", name, "--code", "own.py", "-q", exit_code=3)
    assert message.startswith("Traceback") and error in message and place in message
    files = {
        line.split('"')[1] for line in message.splitlines() if line.lstrip().startswith('File "')
    }
    assert not any(f.startswith(str(Path(plugins.__file__).parents[1])) for f in files), files
    assert message.splitlines()[-1].startswith(
        f"own.py, line {CODE[: CODE.index(old)].count(chr(10)) + 1}: {error}"
    )
    started = kind in ("python metric", "callback", "schedule")
    assert (here / "runs").exists() == started
    as_json = inside(capsys, "train", name, "--code", "own.py", "-q", "--json", exit_code=3)
    told = json.loads(as_json.splitlines()[-1])["error"]
    assert told["kind"] == "user_code" and place in told["traceback"]


WRONG = {
    "layer": (
        'return net.apply("mul", layers.fc(net, x, size=size), gate)', "return 3",
        "[gated] must return a tensor, or several, not int: it is written in own.py:",
    ),
    "loss": (
        'return losses.finish(net, net.apply("scale", values, a=0.5, b=0.0), prediction, label)', "return values",
        "[half_square] gives the network no loss",
    ),
    "metric": (
        'net.metric(net.called("near"), "accuracy", {"scores": scores, "label": label}, {"k": 2, "ignore_index": -100})',
        "return scores", "[near] reports nothing: it must call `net.metric`",
    ),
    "python metric": (
        'return {"error": worst, "at": self.errors.index(worst)}', "return None",
        "the metric `worst` says that it gives error, at; it gave None",
    ),
    "optimizer": ("return p - o.rate * new", "return 3", "the optimizer `heavy_ball` must give a Value"),
    "schedule": (
        "return Curve(lambda step: rate * 0.5 ** (step // every))", "return lambda step: rate",
        "the schedule `halving` must return a Curve, not function",
    ),
    "rate": (
        "rate * 0.5 ** (step // every)", "'x'", "a schedule gave the learning rate 'x'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", WRONG)
def test_what_code_gives_is_checked(
    kind: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong value is the user's fault, with the file that it comes from, and never a bug of ours."""
    old, new, said = WRONG[kind]
    assert old in CODE
    (here / "own.py").write_text(CODE.replace(old, new))
    text = RECIPES["written"].replace(
        "{name: sgd,", "{name: heavy_ball, schedule: {name: halving, every: 5},"
    )
    near = "{near: {}, from: [prediction, y]}, " if kind == "metric" else ""
    metrics = f"metrics: [{near}worst]\n"
    message = inside(
        capsys, "train", recipe(here, text + metrics), "--code", "own.py", "-q", exit_code=3
    )
    assert said in message and "own.py" in message and "key: data" not in message


def test_an_op_that_is_none(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A layer that applies it is found at the recipe's line, with the near names."""
    (here / "own.py").write_text(CODE.replace('net.apply("mul"', 'net.apply("mull"'))
    name = recipe(here, RECIPES["written"])
    message = inside(capsys, "train", name, "--code", "own.py", "-q", exit_code=3)
    assert "recipe.yaml:15:" in message and "there is no op `mull`" in message
    assert "did you mean `mul`" in message


@pytest.mark.parametrize(
    ("what", "code"),
    [("raise SystemExit(0)", 3), ("1 / 0", 3), ("raise KeyboardInterrupt", 130)],
    ids=["exit", "error", "interrupt"],
)
def test_the_run_says_how_a_callback_ended_it(
    what: str, code: int, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What run.json says is what the command ends with, and nobody ends a training without a word."""
    (here / "own.py").write_text(CODE.replace("self.calls += 1", what))
    text = NAMED + "callbacks: [counting]\n"
    more = ("--code", "own.py", "--run-dir", "out", "-q")
    message = inside(capsys, "train", recipe(here, text), *more, exit_code=code)
    assert bool(message) == (code == 3), "Ctrl-C needs no words"
    state = json.loads((here / "out" / "run.json").read_text())
    assert (state["exit_code"], state["status"]) == (code, "failed" if code == 3 else "interrupted")


def test_a_failing_import(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The user's own lines, of what it was raised from too; nothing is registered."""
    (here / "own.py").write_text(
        CODE + "\ntry:\n    int('x')\nexcept ValueError as e:\n    raise KeyError('why') from e\n"
    )
    message = inside(capsys, "train", recipe(here, NAMED), "--code", "own.py", exit_code=3)
    assert message.count("Traceback") == 2 and "ValueError: invalid literal" in message
    assert message.splitlines()[-1] == "own.py failed: KeyError: 'why'"
    assert "importlib" not in message and LAYERS.find("gated") is None
    (here / "helper.py").write_text("x = 1\n")
    (here / "own.py").write_text("import helper\n")
    message = inside(capsys, "train", recipe(here, NAMED), "--code", "own.py", exit_code=3)
    assert "helper.py lies beside it, but a code file stands alone" in message


# ---- plug-ins ----
def plugin(folder: Path, text: str, version: str = "1.0") -> str:
    """An installed distribution `gates` whose plug-in is a package; gives the PYTHONPATH that has it."""
    site = folder / "site"
    info = site / "gates.dist-info"
    (site / "gatesplug").mkdir(parents=True, exist_ok=True)
    (site / "gatesplug" / "__init__.py").write_text("")
    (site / "gatesplug" / "names.py").write_text(text)
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: gates\nVersion: {version}\n")
    (info / "entry_points.txt").write_text("[paddlecli.plugins]\ngates = gatesplug.names\n")
    return os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])


def test_an_installed_plugin(tmp_path: Path) -> None:
    env = {"PYTHONPATH": plugin(tmp_path, CODE)}
    name = recipe(tmp_path, TRAINED)
    run(tmp_path, "train", name, "--run-dir", "out", "-q", env=env)
    facts = json.loads((tmp_path / "out" / "run.json").read_text())
    assert facts["plugins"] == [{"name": "gates", "distribution": "gates", "version": "1.0"}]
    message = run(tmp_path, "train", "--resume", "out", "--epochs", "4", code=3).stderr
    assert (
        "the run was started with the plug-in gates (gates 1.0), which is not installed" in message
    )
    newer = {"PYTHONPATH": plugin(tmp_path, CODE, "1.1")}
    done = run(tmp_path, "train", "--resume", "out", "--epochs", "4", env=newer)
    assert (
        "warning: the run was started with the plug-in gates (gates 1.0), 1.1 is installed"
        in done.stderr
    )
    wrong = {"PYTHONPATH": plugin(tmp_path, CODE.replace("o.rate * new", "o.rat * new"))}
    message = run(tmp_path, "train", name, env=wrong, code=3, users=True).stderr
    assert "in heavy_ball" in message and "names.py, line" in message
    broken = {"PYTHONPATH": plugin(tmp_path, "1 / 0\n")}
    message = run(tmp_path, "train", name, env=broken, code=3, users=True).stderr
    assert "the plug-in gates (gates 1.0) failed: ZeroDivisionError" in message
    assert "hint: pip uninstall gates" in message
