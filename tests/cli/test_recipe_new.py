"""`paddlecli recipe new`: a first recipe from a look at a user's own data, valid and trained at once."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.terminal import shown
from paddlecli.cli.app import main
from paddlecli.config.load import load_recipe
from paddlecli.data.formats.images import png


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PADDLECLI_RUNS_DIR", str(tmp_path / "runs"))
    return tmp_path


def new(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    """Standard output of `recipe new`, or what it says when it must fail."""
    found = main(["recipe", "new", *arguments])
    out, err = capsys.readouterr()
    assert found == code, err
    assert code == 0 or out == ""
    return err if code else out


def written(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[dict[str, Any], str]:
    """What was found, and the recipe's text; it is valid, and its data section is what was found."""
    found: dict[str, Any] = json.loads(new(capsys, *arguments, "--json"))
    text = Path(found["file"]).read_text(encoding="utf-8")
    recipe = load_recipe(Path(found["file"]))
    assert recipe.data is not None
    assert Path(recipe.data.arguments["train"]) == Path(found["data"]["train"])
    return found, text


def trained(capsys: pytest.CaptureFixture[str], file: str, *more: str) -> dict[str, float]:
    """Metrics on the test split after a training that is as long as the recipe says."""
    assert main(["train", file, "--quiet", "--json", *more]) == 0
    metrics: dict[str, float] = json.loads(capsys.readouterr().out)["metrics"]["test"]
    return metrics


def houses(rows: int = 200, bad: str = "") -> str:
    draw = np.random.default_rng(1)
    lines = ["id,area,rooms,town,price"]
    for n in range(rows):
        area, rooms, town = (
            draw.uniform(30, 200),
            draw.integers(1, 6),
            ("Bonn", "Köln", "Trier")[n % 3],
        )
        lines.append(
            f"{n + 1},{area:.1f},{rooms},{town},{1000 * area + 5000 * rooms + 20000 * (n % 3):.0f}"
        )
    return "\n".join([*lines, bad]) + "\n"


# -- tables --------------------------------------------------------------------------------------------------------------------
def test_regression_from_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    Path("houses.csv").write_text(houses(), encoding="utf-8")
    found, text = written(capsys, "--data", "houses.csv", "--target", "price")
    assert (found["file"], found["task"], found["rows"]) == ("houses.yaml", "regression", 200)
    assert {"label": "price", "categories": ["town"], "ignore": ["id"]}.items() <= found[
        "data"
    ].items()
    assert "a table with a header, 200 rows, 5 columns" in text
    assert "Rows: 160 train, 40 test." in text
    assert re.search(r"#   town +category +Bonn 67, Köln 67, Trier 66", text)
    assert "# paddlecli train --config ./houses.yaml" in text.splitlines()
    spread = float(re.search(r"always answering the mean, \S+: (\S+) ", text)[1])  # type: ignore[index]
    # the prices follow the columns exactly: far better than the mean
    assert trained(capsys, "./houses.yaml", "-o", "metrics=[]")["loss"] < (spread / 4) ** 2


def test_classification_from_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    draw = np.random.default_rng(2)
    rows = [
        f"{x:.3f};{y:.3f};{'inside' if x * x + y * y < 1 else 'outside'}"
        for x, y in draw.uniform(-1.5, 1.5, (300, 2))
    ]
    Path("points.csv").write_text("x1;x2;Class\n" + "\n".join(rows) + "\n")
    found, text = written(capsys, "--data", "points.csv", "--output", "circle.yaml")
    assert (found["target"], found["task"], found["data"]["delimiter"]) == (
        "Class",
        "classification",
        ";",
    )
    assert found["data"]["split"] == {"test": 0.2, "stratify": "Class"}
    assert "Class is predicted because of its name" in text
    assert sum(found["classes"].values()) == 300
    assert trained(capsys, "./circle.yaml")["accuracy"] > 0.85


def test_a_table_without_a_header_and_with_gaps(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        f"{n}\t{'' if n % 5 == 0 else n * n}\t{'NA' if n == 7 else 2 * n}" for n in range(5, 60, 2)
    ]
    Path("t.tsv").write_text("\n".join(rows) + "\n")
    said = new(capsys, "--data", "t.tsv", code=2)
    assert "the file has no header line): c1, c2, c3" in said and "--target c3" in said
    found, text = written(capsys, "--data", "t.tsv", "--target", "c3")
    assert found["data"]["name"] == "tsv" and found["data"]["header"] is False
    assert found["data"]["missing"] == "drop", "a target cannot be made up"
    assert "1 row without c3 left out" in text and "c2: 6 missing values" in text
    found, _ = written(capsys, "--data", "t.tsv", "--target", "c1", "--force")
    assert found["data"]["missing"] == "fill"


def test_texts_in_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        json.dumps({"remark": f"it was {('fine', 'awful')[n % 2]} on day {n}", "stars": n % 3, "label": ("good", "bad")[n % 2]})
        for n in range(120)
    ]  # fmt: skip
    Path("r.jsonl").write_text("\n".join(lines) + "\n")
    found, text = written(capsys, "--data", "r.jsonl")
    assert found["data"]["text"] == ["remark"]
    assert "{embedding: {size:" in text and "{concat: {}, from: [x, words2]}" in text
    assert trained(capsys, "./r.yaml")["accuracy"] > 0.95


@pytest.mark.parametrize(
    ("values", "task"),
    [
        (["yes", "no"], "classification"),
        (["0", "1"], "classification"),
        (["1", "2", "3"], "classification"),
        (["1.5", "2.5"], "regression"),
        ([str(n) for n in range(60)], "regression"),
    ],
    ids=["words", "0 and 1", "few whole numbers", "fractions", "many numbers"],
)
def test_the_task_is_guessed_from_the_target(
    values: list[str], task: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f"{n * 0.7},{values[n % len(values)]}" for n in range(60)]
    Path("t.csv").write_text("a,y\n" + "\n".join(rows) + "\n")
    assert written(capsys, "--data", "t.csv")[0]["task"] == task


def test_a_guess_can_be_overruled(capsys: pytest.CaptureFixture[str]) -> None:
    Path("t.csv").write_text("a,y\n" + "".join(f"{n},{n % 3}\n" for n in range(60)))
    found, text = written(capsys, "--data", "t.csv", "--task", "regression")
    assert found["task"] == "regression" and "prediction" in text
    assert "expected regression or classification" in new(
        capsys, "--data", "t.csv", "--task", "x", code=2
    )


# -- texts and pictures --------------------------------------------------------------------------------------------------------
WORDS = (["good", "fine", "lovely"], ["bad", "awful", "boring"])


def test_lines_of_label_and_text(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        f"{('plus', 'minus')[n % 2]}\tit was {WORDS[n % 2][n % 3]} they said" for n in range(90)
    ]
    Path("reviews.txt").write_text("\n".join(lines) + "\n")
    found, text = written(capsys, "--data", "reviews.txt")
    assert found["data"]["name"] == "text_lines" and found["classes"] == {"minus": 45, "plus": 45}
    assert "words in a text: 5 to 5" in text
    assert trained(capsys, "./reviews.yaml")["accuracy"] == 1


def test_a_folder_of_texts(capsys: pytest.CaptureFixture[str]) -> None:
    for n in range(40):
        path = Path("mails") / ("ham", "spam")[n % 2] / f"{n}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"it was {WORDS[n % 2][n % 3]}\nthey said")
    found, _ = written(capsys, "--data", "mails")
    assert (found["file"], found["data"]["name"], found["rows"]) == (
        "mails.yaml",
        "text_folder",
        40,
    )
    assert trained(capsys, "./mails.yaml")["accuracy"] == 1
    assert main(["predict", "last", "mails/spam/1.txt", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)  # one text, as in the training, and not two lines
    assert (record["input"], record["probabilities"][0]["label"]) == ("mails/spam/1.txt", "spam")
    (Path("mails") / "spam" / "41.txt").write_text(" \n")
    assert "41.txt: holds no text" in new(capsys, "--data", "mails", "--force", code=4)


def test_a_folder_of_pictures(capsys: pytest.CaptureFixture[str]) -> None:
    draw = np.random.default_rng(3)
    for n in range(48):
        path = Path("shots") / ("day", "night")[n % 2] / f"{n}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        array = draw.integers(0, 60, (3, 20 + n % 3, 30)) + (150 if n % 2 == 0 else 0)
        path.write_bytes(png(array.astype(np.uint8)))
    found, text = written(capsys, "--data", "shots/")
    assert found["data"]["size"] == [21, 30] and "channels" not in found["data"]
    (Path("shots") / "day" / "notes.txt").write_text("sunny")
    assert "pixels: 30x20 to 30x22, colours; all are scaled to 30x21" in text
    assert trained(capsys, "./shots.yaml")["accuracy"] > 0.9
    (Path("shots") / "day" / "0.png").write_bytes(b"\x89PNG\r\n\x1a\n no picture")
    assert "0.png" in new(capsys, "--data", "shots", "--force", code=4)


# -- what cannot be read -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "content", "code", "said"),
    [
        ("t.csv", houses(9, "10,5,x"), 4, "t.csv: line 11 has 3 cells, not 5"),
        ("t.csv", 'a,y\n1,"2\n3,4\n', 4, "t.csv: line 2"),
        ("t.csv", "", 4, "t.csv: is empty"),
        ("t.csv", "a,y\n", 4, "holds no rows below its header"),
        ("t.csv", "a,y\n1,2\n", 4, "1 row: there is nothing to train and test on"),
        ("t.csv", "a,y\n1,5\n2,5\n3,5\n", 4, "column 'y' has always 5: there is nothing to learn"),
        ("t.csv", "a,a,y\n1,2,3\n4,5,6\n", 4, "the header has the column 'a' twice"),
        ("t.csv", "x,y\n" + "".join(f"n{n},{n % 2}\n" for n in range(99)), 4, "beside 'y' there is no column to learn from"),
        ("t.jsonl", '{"a": 1, "y": 2}\n{"a": 1,\n', 4, "t.jsonl: line 2: not JSON"),
        ("t.txt", "a text\nanother text\n", 4, "no comma, semicolon, tab or bar"),
        ("t.png", "x", 4, "is one picture"),
    ],
    ids=[
        "short row", "open quote", "empty", "header only", "one row", "constant target", "column twice", "no input",
        "broken JSON", "no table", "one picture",
    ],
)  # fmt: skip
def test_broken_files(
    name: str, content: str, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(name).write_text(content)
    target = ["--target", "price"] if "price" in content else []
    assert said in new(capsys, "--data", name, *target, code=code)
    assert [p.name for p in Path().iterdir()] == [name], "nothing was written"


def test_bytes_that_are_no_text(capsys: pytest.CaptureFixture[str]) -> None:
    Path("t.csv").write_bytes("größe,y\n".encode("latin-1") + b"1,2\n3,4\n" * 9)
    said = new(capsys, "--data", "t.csv", code=4)
    assert "t.csv" in said and "UTF-8" in said
    found, _ = written(capsys, "--data", "t.csv", "--encoding", "latin-1")
    assert found["data"]["encoding"] == "latin-1"


def test_names_of_columns_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    Path("t.csv").write_text("height,weight,label,target\n" + "1,2,a,3\n4,5,b,6\n" * 9)
    assert "several columns could be the one to predict: label, target" in new(
        capsys, "--data", "t.csv", code=2
    )
    said = new(capsys, "--data", "t.csv", "--target", "wieght", code=2)
    assert "did you mean weight" in said


def test_missing_and_empty_places(capsys: pytest.CaptureFixture[str]) -> None:
    assert "no such file or folder" in new(capsys, "--data", "nothing.csv", code=4)
    assert "--data is empty" in new(capsys, "--data", "", code=2)
    Path("void").mkdir()
    assert "holds no file" in new(capsys, "--data", "void", code=4)
    Path("void/x.bin").write_bytes(b"1")
    assert "neither pictures nor text files" in new(capsys, "--data", "void", code=4)


# -- the file that is written --------------------------------------------------------------------------------------------------
def test_nothing_is_overwritten(capsys: pytest.CaptureFixture[str]) -> None:
    Path("t.csv").write_text("a,y\n" + "".join(f"{n},{n}\n" for n in range(30)))
    Path("t.yaml").write_text("mine")
    assert "t.yaml: exists" in new(capsys, "--data", "t.csv", code=2)
    assert Path("t.yaml").read_text() == "mine"
    assert new(capsys, "--data", "t.csv", "--output", "deep/er/") == "deep/er/t.yaml\n"
    assert "  train: ../../t.csv" in Path("deep/er/t.yaml").read_text()
    load_recipe("deep/er/t.yaml")


def test_strange_names_stay_what_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    """Blanks, colons, braces, quotes, line ends and YAML's words in names of columns and classes."""
    head = '"a: b","#c","{d}","no","it\'s\nhere",y\n'
    Path("my data [1].csv").write_text(
        head
        + "".join(f"{n},{2 * n},{n % 7},{n % 5},{n},{('no', '1e3 x')[n % 2]}\n" for n in range(30))
    )
    found, text = written(capsys, "--data", "my data [1].csv")
    assert found["file"] == "my-data-1.yaml"
    assert found["classes"] == {"1e3 x": 15, "no": 15}
    assert all(
        line.startswith("#") for line in text.split("\ndescription:")[0].splitlines() if line
    )
    trained(capsys, "./my-data-1.yaml", "--epochs", "1")


def test_a_name_that_is_no_text_cannot_stand_in_a_recipe(folder: Path) -> None:
    name = b"t\xff.csv"
    Path(os.fsdecode(name)).write_text("a,y\n" + "".join(f"{n},{n}\n" for n in range(30)))
    found = shown(folder, "recipe", "new", "--data", name)
    assert found.code == 2 and b"a recipe cannot hold this path" in found.err
