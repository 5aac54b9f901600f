"""`paddlecli recipe copy|diff|schema`: with real recipes, files and runs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cli.runs import DIGITS
from paddlecli import assets
from paddlecli.cli.app import main
from paddlecli.config.load import load_recipe

SCHEMA = assets.directory("recipes") / "recipe.schema.json"


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PADDLECLI_RUNS_DIR", str(tmp_path / "runs"))
    return tmp_path


def call(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    """Standard output of a command that must end with `code`."""
    found = main(["recipe", *arguments])
    shown = capsys.readouterr()
    assert found == code, shown.err
    return shown.out


# -- copy ----------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", assets.recipe_names())
def test_a_copy_is_the_same_recipe_elsewhere(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "deep").mkdir()
    target = call(capsys, "copy", name, "deep/mine.yaml").strip()
    assert target == "deep/mine.yaml"
    if not name.startswith("own_data/"):  # those speak of files in the user's own folder
        assert load_recipe(f"./{target}") == load_recipe(name)
    original = assets.find("recipes", name)
    assert original is not None
    old, new = original.read_text().splitlines(), (folder / target).read_text().splitlines()
    assert new[2:] == old[2:]
    modeline = re.fullmatch(r"# yaml-language-server: \$schema=(\S+)", new[0])
    assert modeline is not None and (folder / "deep" / modeline[1]).resolve() == SCHEMA.resolve()
    assert new[1] == old[1].replace(f" {name}", " deep/mine.yaml")


def test_names_of_copies(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(capsys, "copy", "recognize_digits/mlp") == "./mlp.yaml\n"
    assert call(capsys, "copy", "fit_a_line", "new/") == "new/fit_a_line.yaml\n"
    assert (
        json.loads(call(capsys, "copy", "fit_a_line", "x y.yaml", "--json"))["file"] == "x y.yaml"
    )
    assert "# paddlecli train --config './x y.yaml'" in Path("x y.yaml").read_text()
    assert call(capsys, "copy", "fit_a_line", "-").startswith("# yaml-language-server")


def test_a_copy_overwrites_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("mlp.yaml").write_text("mine")
    call(capsys, "copy", "recognize_digits/mlp", code=2)
    assert Path("mlp.yaml").read_text() == "mine"
    call(capsys, "copy", "recognize_digits/mlp", "--force")
    assert "digits_mlp" in Path("mlp.yaml").read_text()
    call(capsys, "copy", "fit_a_line", "", code=2)
    call(capsys, "copy", "fit_a_lin", code=3)


def test_relative_paths_of_a_copy_lead_to_the_same_files(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "a/parts").mkdir(parents=True)
    (folder / "a/parts/base part.yaml").write_text("optimizer: {name: sgd, learning_rate: 0.1}\n")
    (folder / "a/t.csv").write_text("u,v\n1,2\n3,4\n5,6\n")
    text = (
        "# a comment that stays\n"
        'extends: ["./parts/base part.yaml", schedule/cosine]\n'
        "data: {name: csv, train: [t.csv, 'absent [x].csv'], label: v, task: regression}  # and this\n"
        "model: {name: linear}\n"
    )
    (folder / "a/r.yaml").write_text(text)
    call(capsys, "copy", "a/r.yaml", "b/c/r.yaml")
    copied = (folder / "b/c/r.yaml").read_text()
    assert "# a comment that stays" in copied and "# and this" in copied
    assert load_recipe("b/c/r.yaml").as_dict() == load_recipe("a/r.yaml").as_dict()
    assert str(folder) not in copied, "paths between a user's own files stay relative"
    call(capsys, "copy", "a/r.yaml", "a/same.yaml")
    assert (folder / "a/same.yaml").read_text() == text


# -- diff ----------------------------------------------------------------------------------------------------------------------
def changes(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(call(capsys, "diff", *arguments, "--json"))
    return found


def test_a_recipe_against_itself(capsys: pytest.CaptureFixture[str]) -> None:
    found = changes(capsys, "fit_a_line", "fit_a_line")
    assert found["same"] and found["added"] == found["removed"] == found["changed"] == []
    assert main(["recipe", "diff", "fit_a_line"]) == 0
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "no setting differs\n")


def test_overrides_on_either_side(capsys: pytest.CaptureFixture[str]) -> None:
    found = changes(
        capsys, "fit_a_line", "-a", "train.epochs=7", "-o", "train.epochs=9", "-o", "train.seed=3"
    )
    by_key = {c["key"]: (c["a"]["value"], c["b"]["value"]) for c in found["changed"]}
    assert by_key == {"train.epochs": (7, 9), "train.seed": (0, 3)}
    epochs = next(c for c in found["changed"] if c["key"] == "train.epochs")
    assert epochs["a"]["origin"]["text"] == "-o train.epochs=7"
    assert epochs["b"]["origin"]["kind"] == "command line"


def test_added_and_removed_with_their_places(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head = "optimizer: {name: sgd, learning_rate: 0.1}\n"
    Path("a.yaml").write_text(head + "model: {name: linear, size: 2}\nmetrics: [mae]\n")
    Path("b.yaml").write_text(
        head + "model: {name: linear, size: 2}\nexpect: {test.loss: {max: 3}}\n"
    )
    found = changes(capsys, "./a.yaml", "./b.yaml")
    assert {c["key"] for c in found["added"]} == {'expect."test.loss".max'}
    assert found["removed"][0]["key"].startswith("metrics")
    assert found["removed"][0]["origin"]["text"].startswith("a.yaml:3:")
    lines = call(capsys, "diff", "./a.yaml", "./b.yaml").splitlines()
    assert {line[0] for line in lines} == {"+", "-", "~"}  # ~ is the name, which is the file's
    assert all("  # " in line for line in lines)


LAYERS = """\
model:
  inputs: {x: {shape: [4]}}
  layers:
    - fc: {size: 8}
    - fc: {size: 4}
    - fc: {size: 2}
name: r
"""


def test_a_layer_put_in_between_is_one_addition(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("a.yaml").write_text(LAYERS)
    Path("b.yaml").write_text(
        LAYERS.replace("    - fc: {size: 4}\n", "    - relu\n    - fc: {size: 4}\n")
    )
    found = changes(capsys, "./a.yaml", "./b.yaml")
    assert found["changed"] == found["removed"] == []
    assert all(c["key"].startswith("model.layers.1.relu") for c in found["added"])
    Path("b.yaml").write_text(LAYERS.replace("size: 4}\n", "size: 5}\n"))
    found = changes(capsys, "./a.yaml", "./b.yaml")
    assert [(c["key"], c["a"]["value"], c["b"]["value"]) for c in found["changed"]] == [
        ("model.layers.1.fc.size", 4, 5)
    ]


def test_types_differ_even_where_values_are_equal(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = changes(capsys, "fit_a_line", "-a", "description=1", "-o", "description=1.0")
    assert [c["key"] for c in found["changed"]] == ["description"]


def test_a_run_against_its_recipe(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("r.yaml").write_text(DIGITS)
    assert main(["train", "./r.yaml", "--quiet", "--epochs", "1"]) == 0
    run = next((folder / "runs/shapes").iterdir())
    capsys.readouterr()
    for source in ("last", str(run), str(run / "config.yaml"), run.name):
        found = changes(capsys, "./r.yaml", source)
        assert [(c["key"], c["b"]["value"]) for c in found["changed"]] == [("train.epochs", 1)], (
            source
        )
        assert found["added"] == found["removed"] == []


def test_faults_of_either_side_are_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.yaml").write_text(DIGITS + "trian: {}\n")
    assert main(["recipe", "diff", "fit_a_line", "./a.yaml"]) == 3
    assert "unknown key `trian`" in capsys.readouterr().err
    assert main(["recipe", "diff", "fit_a_line", "nothing_like_it"]) == 3


# -- schema --------------------------------------------------------------------------------------------------------------------
def test_schema(capsys: pytest.CaptureFixture[str]) -> None:
    text = call(capsys, "schema")
    found = json.loads(text)
    assert found["$schema"] == "http://json-schema.org/draft-07/schema#"
    assert json.loads(call(capsys, "schema", "--json")) == found
    assert json.loads(call(capsys, "schema", "--fragment")) != found
    assert call(capsys, "schema", "--output", "own.json") == ""
    assert Path("own.json").read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("early_stopping: {monitor: test.acuracy}", "early_stopping.monitor: test.acuracy is not"),
        ("checkpoint: {monitor: valid.loss}", "checkpoint.monitor: valid.loss is not measured"),
        ("train: {stop_when: test.acuracy > 0.9}", "train.stop_when: test.acuracy is not measured"),
    ],
)
def test_validate_finds_what_is_watched_and_never_measured(
    section: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "name: a\nextends: [recognize_digits/softmax]\n"
    Path("a.yaml").write_text(text + section + "\n")
    assert main(["recipe", "validate", "./a.yaml"]) == 3
    err = capsys.readouterr().err
    assert message in err and "there are train.loss" in err
    good = section.replace("acuracy", "accuracy").replace("valid", "test")
    Path("a.yaml").write_text(text + good + "\n")
    assert call(capsys, "validate", "./a.yaml") == "./a.yaml: valid\n"
