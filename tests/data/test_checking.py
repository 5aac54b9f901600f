"""`dataset check`: what it finds, where, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from paddlecli.cli.app import main
from paddlecli.data.checking import check, check_named
from paddlecli.errors import ConfigError, DataError

WORDS = {"label": "y", "task": "classification", "scale": "none"}


def table(path: Path, rows: list[str]) -> str:
    path.write_text("a,b,y\n" + "".join(f"{r}\n" for r in rows))
    return str(path)


def test_counts_classes_and_ranges(tmp_path: Path) -> None:
    rows = [f"{i},{2 * i},{'u' if i % 12 else 'v'}" for i in range(60)]
    report = check("csv", {"train": table(tmp_path / "t.csv", rows), **WORDS})
    train = report.as_dict()["splits"]["train"]
    assert train["rows"] == 60 and train["fields"]["y"]["counts"] == {"u": 55, "v": 5}
    assert (train["fields"]["x"]["least"], train["fields"]["x"]["greatest"]) == (0, 118)
    assert not report.problems and report.remarks == ("train: y u has 55 rows, v 5",)
    report.demand()


def test_names_of_classes_that_are_whole_texts_are_cut(tmp_path: Path) -> None:
    """Where people read them; as data they are whole."""
    text = "a long story " * 800
    rows = [f"{i},1,{'short' if i % 13 else text}" for i in range(52)]
    report = check("csv", {"train": table(tmp_path / "t.csv", rows), **WORDS})
    brief = "a long story a long story a long stor... (10,399 characters)"
    (told,) = (line for line in report.lines() if line.startswith("  y: "))
    assert told.endswith(f"2 classes; short 48, {brief} 4")
    assert report.remarks == (f"train: y short has 48 rows, {brief} 4",)
    assert text.strip() in report.as_dict()["splits"]["train"]["fields"]["y"]["counts"]


def test_every_bad_line_is_listed_and_the_rest_counted(tmp_path: Path) -> None:
    rows = [f"{i},1,u" for i in range(30)] + ["1,2", "x,1,u", ",1,u", "1,1,"] + ["y,1,u"] * 12
    report = check("csv", {"train": table(tmp_path / "t.csv", rows), **WORDS})
    found = report.as_dict()
    assert found["problem_count"] == 16 and len(found["problems"]) == 10
    for line, text in zip((32, 33, 34, 35), ("2 cells", "'x'", "missing", "missing"), strict=True):
        assert any(
            f"t.csv: line {line}" in p or f"t.csv: line {line} has" in p for p in found["problems"]
        ), line
        assert any(text in p for p in found["problems"])
    assert found["splits"]["train"]["rows"] == 30
    assert report.lines()[-1] == "and 6 more problems"
    with pytest.raises(DataError, match="16 problems"):
        report.demand()


def test_rows_that_come_again(tmp_path: Path) -> None:
    train = table(tmp_path / "t.csv", ["1,1,u", "2,2,v", "1,1,u", "1,1,v"])
    test = table(tmp_path / "s.csv", ["5,5,u", "2,2,v", "1,1,v"])
    report = check("csv", {"train": train, "test": test, **WORDS})
    assert [p.partition("s.csv: ")[2] for p in report.problems] == [
        f"line 3: in test, but also in train ({train}: line 3)",
        f"line 4: in test, but also in train ({train}: line 5)",
    ]
    assert any("train: 1 rows are equal to one before them" in r for r in report.remarks)
    assert any(
        "train: 1 rows have the inputs of a row before them and another label" in r
        for r in report.remarks
    )


def test_lengths_and_unknown_words(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("u\ta b c\nv\ta b\nu\ta\n")
    (tmp_path / "s.txt").write_text("u\ta x\n")
    report = check(
        "text_lines", {"train": str(tmp_path / "t.txt"), "test": str(tmp_path / "s.txt")}
    )
    assert report.splits["train"]["fields"]["text"]["lengths"] == {
        "least": 1, "median": 2.0, "mean": 2.0, "greatest": 3,
    }  # fmt: skip
    assert report.splits["test"]["fields"]["text"]["unknown"] == 0.5
    assert "test: no row of label v" in report.remarks


def test_broken_and_repeated_pictures(tmp_path: Path) -> None:
    for name in ("u", "v"):
        (tmp_path / "p" / name).mkdir(parents=True)
        for i in range(4):
            rng = np.random.default_rng(i)
            Image.fromarray(rng.integers(0, 255, (8, 8, 3), np.uint8)).save(
                tmp_path / "p" / name / f"{i}.png"
            )
    (tmp_path / "p" / "u" / "0.png").write_bytes(b"x")
    (tmp_path / "p" / "v" / "2.png").write_bytes(b"")
    report = check("image_folder", {"train": str(tmp_path / "p"), "size": [8]})
    assert [p.partition("/p/")[2] for p in report.problems] == [
        "u/0.png: image: not a picture (it begins with 78)", "v/2.png: image: the file is empty",
    ]  # fmt: skip
    assert report.splits["train"]["rows"] == 6
    assert any("another label" in r for r in report.remarks)


def test_lines_of_json_that_do_not_fit_the_others(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    lines = ['{"a": 1, "y": 2}', '{"a": 2,', '{"a": "x", "y": 3}', '{"a": 4, "y": 5, "z": 1}',
             '{"a": null, "y": 4}', '{"a": 5, "y": true}']  # fmt: skip
    path.write_text("\n".join(lines))
    report = check("jsonl", {"train": str(path), "label": "y", "task": "regression",
                             "missing": "fill"})  # fmt: skip
    assert report.splits["train"]["rows"] == 3
    told = [p.removeprefix(f"{path}: ") for p in report.problems]
    assert told[1:] == ['line 3: a: "x" is not a number as in other lines',
                        "line 4: the key 'z' is not in the first row"]  # fmt: skip
    assert told[0].startswith("line 2: not JSON")


def test_classes_that_only_their_case_tells_apart(tmp_path: Path) -> None:
    report = check("csv", {"train": table(tmp_path / "t.csv", ["1,1,u", "2,1,U "]), **WORDS})
    assert "classes of y that only their case tells apart: U, u" in report.remarks


@pytest.mark.parametrize(("name", "hint"), [
    ("mnits", "did you mean mnist?"), ("recognize_digit", "recognize_digits"),
    ("./t.csv", "recipe new --data ./t.csv"), (".", "recipe new --data ."),
])  # fmt: skip
def test_what_is_neither_a_recipe_nor_a_data_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, hint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    table(tmp_path / "t.csv", ["1,1,u"])
    with pytest.raises(ConfigError) as caught:
        check_named(name)
    assert hint in str(caught.value.hint)


def test_a_chapter_may_be_named_with_its_default() -> None:
    assert check_named("fit_a_line").splits["train"]["rows"] == 404
    with pytest.raises(DataError, match="download"):
        check_named("word2vec/default")


def test_another_delimiter_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a;y\n1;u\n2;v\n")
    with pytest.raises(DataError, match="no column 'y'; there are a;y") as caught:
        check("csv", {"train": str(path), **WORDS})
    assert "separated by ';'" in str(caught.value.hint)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = table(tmp_path / "t.csv", ["1,1,u", "2,x,v", "3,3,u"])
    recipe = tmp_path / "r.yaml"
    recipe.write_text(
        f"data: {{name: csv, train: {path}, label: y, task: classification}}\nmodel: {{name: mlp}}\n"
    )
    assert main(["dataset", "check", str(recipe), "--json"]) == 4
    found = json.loads(capsys.readouterr().out)
    assert found["problems"] == [f"{path}: line 3: b: 'x' is not a number"]
    table(tmp_path / "t.csv", ["1,1,u", "2,2,v"])
    assert main(["dataset", "check", str(recipe)]) == 0
    assert "y: int64; 2 classes; u 1, v 1" in capsys.readouterr().out
    assert main(["dataset", "check", "uci_housing"]) == 0
    assert "train: 404 rows" in capsys.readouterr().out
    assert main(["dataset", "check", str(tmp_path / "none.yaml")]) == 3
