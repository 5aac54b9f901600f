"""`paddlecli recipe`: list, cat, show, validate."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from paddlecli import assets
from paddlecli.cli.app import main
from paddlecli.config import plugins, registry
from paddlecli.config.load import load_recipe
from paddlecli.config.types import Count

GOOD = """\
model: {name: small, size: 2}
optimizer: {name: sgd, learning_rate: 0.1}
"""


def small(net: Any, *, size: Count = 1) -> None: ...


def sgd(net: Any) -> None: ...


@pytest.fixture(autouse=True)
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A network and an optimizer of these tests' own, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    with ExitStack() as stack:
        stack.enter_context(plugins.isolated())
        for kind in registry.KINDS.values():
            stack.enter_context(kind.isolated())
        registry.MODELS.register("small")(small)
        registry.OPTIMIZERS.register("sgd")(sgd)
        yield


def call(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    """Standard output of a command that must end with `code`."""
    assert main(["recipe", *arguments]) == code
    return capsys.readouterr().out


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    lines = call(capsys, "list").splitlines()
    assert [line.split()[0] for line in lines] == assets.recipe_names()
    assert all(len(line.split(None, 1)) == 2 for line in lines)
    found = json.loads(call(capsys, "list", "--json"))
    assert found["schema"] == 1
    assert [r["name"] for r in found["recipes"]] == assets.recipe_names()
    by_name = {r["name"]: r["description"] for r in found["recipes"]}
    assert by_name["recognize_digits"] == by_name["recognize_digits/conv"]


def test_list_loads_nothing_heavy() -> None:
    code = (
        "import sys; from paddlecli.cli.app import main; main(['recipe', 'list']); "
        "print([m for m in ('numpy', 'rich', 'cffi') if m in sys.modules], "
        "file=sys.stderr)"
    )
    root = str(Path(assets.__file__).resolve().parent.parent)
    environment = {**os.environ, "PYTHONPATH": root}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          env=environment, check=False)  # fmt: skip
    assert done.stderr == "[]\n"
    assert "fit_a_line" in done.stdout


def test_cat_prints_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    text = (assets.directory("recipes") / "fit_a_line.yaml").read_text(encoding="utf-8")
    assert call(capsys, "cat", "fit_a_line") == text
    found = json.loads(call(capsys, "cat", "recognize_digits", "--json"))
    assert found["file"].endswith("recipes/recognize_digits/default.yaml")


def test_cat_of_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recipe", "cat", "fit_a_lin"]) == 3
    assert "did you mean `fit_a_line`" in capsys.readouterr().err


def test_show_can_be_loaded_again(capsys: pytest.CaptureFixture[str]) -> None:
    Path("r.yaml").write_text(GOOD)
    shown = call(capsys, "show", "./r.yaml", "-o", "train.epochs=7", "-o", "description=a=b")
    Path("again.yaml").write_text(shown)
    recipe = load_recipe("./r.yaml", ["train.epochs=7", "description=a=b"])
    assert load_recipe("./again.yaml") == recipe
    found = json.loads(call(capsys, "show", "./again.yaml", "--json"))
    assert found == {"schema": 1, "recipe": recipe.as_dict()}


def test_show_origin(capsys: pytest.CaptureFixture[str]) -> None:
    Path("r.yaml").write_text(GOOD)
    lines = call(capsys, "show", "r.yaml", "--origin", "-o", "train.epochs=7").splitlines()
    table = {line.split(":")[0]: line.split("# ")[1] for line in lines}
    assert table["model.size"] == "r.yaml:1:28"
    assert table["train.epochs"] == "-o train.epochs=7"
    assert table["train.seed"] == "default"
    found = json.loads(call(capsys, "show", "r.yaml", "--origin", "--json"))["values"]
    size = next(v for v in found if v["key"] == "model.size")
    assert size["value"] == 2
    assert size["origin"] == {
        "kind": "file", "file": "r.yaml", "line": 1, "column": 28, "text": "r.yaml:1:28",
    }  # fmt: skip


def test_validate(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.yaml").write_text(GOOD)
    Path("b.yaml").write_text(GOOD)
    assert call(capsys, "validate", "a.yaml", "b.yaml") == "a.yaml: valid\nb.yaml: valid\n"
    found = json.loads(call(capsys, "validate", "a.yaml", "--json"))
    assert found == {"schema": 1, "valid": ["a.yaml"]}


def test_validate_reports_all_files(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.yaml").write_text(GOOD + "trian: {}\n")
    Path("b.yaml").write_text(GOOD + "train: {epochs: 0}\n")
    assert main(["recipe", "validate", "a.yaml", "b.yaml"]) == 3
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "a.yaml:3:1: unknown key `trian`" in shown.err
    assert "b.yaml:3:17: `epochs` must be at least 1, got 0" in shown.err
    assert shown.err.endswith("2 faults in a.yaml, b.yaml\n")


def test_faults_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.yaml").write_text(GOOD + "train: {epocs: 1}\n")
    assert main(["recipe", "validate", "a.yaml", "--json"]) == 3
    shown = capsys.readouterr()
    assert shown.out == ""
    error = json.loads(shown.err)["error"]
    where = {
        "file": "a.yaml", "line": 3, "column": 9, "key": "train.epocs", "text": "train: {epocs: 1}",
    }  # fmt: skip
    assert (error["code"], error["kind"], error["where"]) == (3, "config", [where])
    assert error["faults"][0]["nearest"] == ["epochs"]


def test_users_code(capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine.py").write_text(
        "from paddlecli.config.registry import MODELS\n"
        "@MODELS.register('mine')\n"
        "def mine(net: object, *, width: int = 3) -> None: ...\n"
    )
    Path("r.yaml").write_text(GOOD.replace("small, size: 2", "mine"))
    assert main(["recipe", "validate", "r.yaml"]) == 3
    assert "mine.py registers `mine`: add --code mine.py" in capsys.readouterr().err
    assert call(capsys, "validate", "r.yaml", "--code", "mine.py") == "r.yaml: valid\n"
    assert "width: 3" in call(capsys, "show", "r.yaml", "--code", "mine.py")


def test_users_code_that_fails(capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine.py").write_text("1 / 0\n")
    Path("r.yaml").write_text(GOOD)
    assert main(["recipe", "show", "r.yaml", "--code", "mine.py"]) == 3
    shown = capsys.readouterr().err
    assert 'mine.py", line 1' in shown
    assert "ZeroDivisionError" in shown
    assert "plugins.py" not in shown


def test_stdin_and_strange_names(capsys: pytest.CaptureFixture[str]) -> None:
    Path("[x] é.yaml").write_text(GOOD)
    assert call(capsys, "validate", "./[x] é.yaml") == "./[x] é.yaml: valid\n"
    assert "name: x" in call(capsys, "show", "./[x] é.yaml")


def test_shipped_recipes_and_tracers_fit_the_real_registries() -> None:
    root = Path(assets.__file__).resolve().parent.parent
    tracers = sorted((Path(__file__).parents[1] / "tracers").glob("*.yaml"))
    names = [*assets.recipe_names(), *map(str, tracers)]
    assert len(tracers) >= 4
    done = subprocess.run([sys.executable, "-m", "paddlecli", "recipe", "validate", *names],
                          capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": str(root)})  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == "".join(f"{n}: valid\n" for n in names)


def test_a_fault_in_a_shared_fragment_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    Path("base.yaml").write_text(GOOD + "train: {epocs: 1}\n")
    for name in ("a.yaml", "b.yaml"):
        Path(name).write_text("extends: [base.yaml]\n")
    assert main(["recipe", "validate", "a.yaml", "b.yaml"]) == 3
    assert capsys.readouterr().err.endswith("1 fault in a.yaml, b.yaml\n")
