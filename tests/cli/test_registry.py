"""`layer|loss|optimizer|schedule|metric|transform list|show`: everything that is registered can be looked up and used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from paddlecli.cli import app
from paddlecli.cli.registry import KINDS, blocks, described, listed
from paddlecli.config.load import load_recipe
from paddlecli.config.registry import KINDS as REGISTRIES
from paddlecli.config.registry import TRANSFORMS

NAMES = [(kind, name) for kind in KINDS for name in REGISTRIES[kind].names()]
IDS = [f"{kind}-{name}" for kind, name in NAMES]
MODEL = """
model:
  inputs: {x: {shape: [4]}, y: {shape: [1], role: label}}
  blocks: {step: {inputs: [h], layers: [{relu: {}}]}}
"""
LAYERS, LOSS = "layers:\n  - relu: {}\n", "loss: {square_error_cost: {}}\n"
OPTIMIZER = "optimizer: {name: sgd, learning_rate: 0.1}\n"
RECIPES = {
    "layer": lambda text: MODEL + _deeper(text) + OPTIMIZER,
    "loss": lambda text: MODEL + _deeper(LAYERS + text) + OPTIMIZER,
    "metric": lambda text: MODEL + _deeper(LAYERS + LOSS) + OPTIMIZER + text,
    "optimizer": lambda text: MODEL + _deeper(LAYERS + LOSS) + text,
    "schedule": lambda text: MODEL + _deeper(LAYERS + LOSS) + text,
}


def _deeper(text: str) -> str:
    return "".join(f"  {line}\n" for line in text.splitlines())


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = app.main(arguments)
    shown = capsys.readouterr()
    return code, shown.out, shown.err


@pytest.mark.parametrize(("kind", "name"), NAMES, ids=IDS)
def test_everything_is_described(kind: str, name: str) -> None:
    """A first line, a type and a text for each argument, shapes of what losses and metrics read, formulas."""
    found = described(kind, name)
    assert found["summary"].strip()
    for argument in found["arguments"]:
        assert argument["type"] and argument["text"], argument["name"]
    if kind in ("loss", "metric"):
        assert [r["name"] for r in found["reads"] if not r["shape"]] == []
    if kind in ("optimizer", "schedule"):
        assert found["formula"]
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize(("kind", "name"), NAMES, ids=IDS)
def test_the_example_is_a_recipe(kind: str, name: str, tmp_path: Path) -> None:
    """The piece of a recipe passes every check of the recipe language, and names what it shows."""
    text = described(kind, name)["example"]
    if kind == "transform":
        call = yaml.safe_load(text)["transforms"][0]
        arguments = {} if isinstance(call, str) else call[name]
        assert call == name or list(call) == [name]
        assert TRANSFORMS.bind(name, arguments).keys() == TRANSFORMS.get(name).parameters.keys()
        return
    (tmp_path / "r.yaml").write_text(f"name: shown\n{RECIPES[kind](text)}")
    recipe = load_recipe(tmp_path / "r.yaml")
    assert name in text
    assert recipe.name == "shown"


@pytest.mark.parametrize("kind", KINDS)
def test_list(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, kind, "list", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert (found["schema"], found["kind"]) == (1, kind)
    assert [e["name"] for e in found[KINDS[kind]]] == REGISTRIES[kind].names()
    code, out, err = run(capsys, kind, "list")
    assert [line.split()[0] for line in out.splitlines()] == REGISTRIES[kind].names()
    assert all(e["summary"] for e in listed(kind))


def test_show(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "optimizer", "show", "adagrad")
    assert (code, err) == (0, "")
    assert out.startswith("adagrad  (paddlecli.ops.adagrad)\n\nAdagrad: m += d^2;")
    assert "  epsilon: a number, above 0; default 1e-06\n" in out
    assert out.count("m += d^2; p -= rate*d / (sqrt(m) + epsilon).") == 1
    assert out.endswith("optimizer:\n  name: adagrad\n  learning_rate: 0.01\n")


def test_show_what_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "loss", "show", "softmax_with_cross_entropy", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["reads"] == [
        {"name": "logits", "many": False, "shape": "[N, classes]"},
        {"name": "label", "many": False, "shape": "[N] or [N, 1]"},
    ]
    assert found["example"] == (
        "loss:\n  softmax_with_cross_entropy: {}\n  from: [logits, label]\n"
    )
    assert [a["name"] for a in found["arguments"]] == ["soft_label", "ignore_index"]


@pytest.mark.parametrize("kind", KINDS)
def test_unknown_names(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The code of an unknown name in a recipe, and the nearest ones."""
    name = REGISTRIES[kind].names()[0]
    code, out, err = run(capsys, kind, "show", f"{name}x")
    assert (code, out) == (3, "")
    assert err.startswith(f"error: unknown {kind} `{name}x`\nhint: did you mean `{name}`")
    code, out, err = run(capsys, kind, "show", "qqqq", "--json")
    error = json.loads(err)["error"]
    assert (code, out, error["code"], error["kind"]) == (3, "", 3, "config")
    assert f"known: {name}, " in error["hint"]


CODE = '''
from paddlecli.config.registry import METRICS
from paddlecli.config.types import Count


@METRICS.register("registry_test_metric")
def near(net, scores, label, *, k: Count, form: str = "plain"):
    """Share of rows that are near: scores [N, classes], label [N].

    Args:
        k: how near.
        form: anything.
    """
'''


def test_own_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.py"
    file.write_text(CODE)
    with REGISTRIES["metric"].isolated():
        code, out, _ = run(capsys, "metric", "list", "--code", str(file))
        assert code == 0
        assert (
            out
            == "registry_test_metric  Share of rows that are near: scores [N, classes], label [N].\n"
        )
        code, out, _ = run(capsys, "metric", "show", "registry_test_metric", "--code", str(file))
    assert code == 0
    assert "  scores  [N, classes]\n  label   [N]\n" in out
    assert "  k: a whole number, at least 1; required\n      How near.\n" in out
    assert out.endswith("metrics:\n  - registry_test_metric: {k: 1}\n")


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["layer", "lst"], "did you mean `layer list`?"),
        (["metric", "sho"], "did you mean `metric show`?"),
        (["transform", "zzz"], "commands: list, show"),
        (["recipe", "valdate"], "did you mean `recipe validate`?"),
        (["optimiser", "list"], "did you mean `optimizer`?"),
    ],
)
def test_near_commands(arguments: list[str], hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert err.endswith(f"hint: {hint}\n")


PYTHON = '''
from paddlecli.config.registry import METRICS
from paddlecli.models.outside import PythonMetric


@METRICS.register("registry_test_python")
class Middle(PythonMetric):
    """The middle error: prediction [N, 1], label [N, 1].

    Args:
        unit: what it is counted in.
    """

    def __init__(self, *, unit: float = 1.0) -> None:
        self.unit = unit

    def add(self, prediction, label):
        pass
'''


def test_a_metric_in_python(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.py").write_text(PYTHON)
    with REGISTRIES["metric"].isolated():
        code, out, _ = run(
            capsys, "metric", "show", "registry_test_python", "--code", str(tmp_path / "mine.py")
        )
    assert code == 0
    assert "reads\n  prediction  [N, 1]\n  label       [N, 1]\n" in out
    assert "  unit: a number; default 1.0\n      What it is counted in.\n" in out
    assert out.endswith("metrics:\n  - registry_test_python\n")


@pytest.mark.parametrize(("kind", "name"), NAMES, ids=IDS)
def test_nothing_is_shown_twice(kind: str, name: str) -> None:
    """The formula stands in the text already where it is its paragraph; an argument need not repeat the first sentence."""
    found = described(kind, name)
    shown = " ".join("\n".join(blocks(found)).split())
    for text in (found["summary"], found.get("formula", "")):
        assert len(text) < 20 or shown.count(text) == 1
