"""What predict reads: one record an input, in order, and errors that do not stop the others."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw

from paddlecli.data import samples
from paddlecli.data.columns import Column, Dataset, Split
from paddlecli.data.inputs import read_inputs, save_preprocessed, stack
from paddlecli.data.opening import describe, open_dataset
from paddlecli.errors import UsageError


@pytest.fixture(scope="module")
def housing() -> Dataset:
    return open_dataset("uci_housing")


@pytest.fixture(scope="module")
def table(housing: Dataset) -> dict[str, Any]:
    """As it comes back from a model directory."""
    return json.loads(json.dumps(housing.preprocessing()))


@pytest.fixture(scope="module")
def digits() -> Dataset:
    """A data set of MNIST's form with drawn pictures."""
    values = np.stack([np.asarray(stroke(i))[None] for i in range(3)])
    split = Split("test", {"image": Column(values), "label": Column(np.array([1, 7, 3]))})
    return Dataset(describe("mnist"), {"test": split})


def stroke(seed: int) -> Image.Image:
    image = Image.new("L", (28, 28), 0)
    ImageDraw.Draw(image).line([(8 + seed, 4), (14, 14), (18, 23)], 255, 3)
    return image


FIRST = [0.00632, 18, 2.31, 0, 0.538, 6.575, 65.2, 4.09, 1, 296, 15.3, 396.9, 4.98]
NAMES = ["CRIM", "ZN", "INDUS", "CHAS", "NOX", "RM", "AGE", "DIS", "RAD", "TAX", "PTRATIO", "B",
         "LSTAT"]  # fmt: skip


def write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("order", [1, -1])
def test_rows_by_name(tmp_path: Path, housing: Dataset, table: dict[str, Any], order: int) -> None:
    names, cells = NAMES[::order], [str(v) for v in FIRST[::order]]
    text = ",".join([*names, "note"]) + "\n" + ",".join([*cells, "mine"]) + "\n"
    (record,) = read_inputs(table, [write(tmp_path / "r.csv", text)])
    assert record.error is None and record.input.endswith("r.csv:2")
    assert record.arrays["x"].tolist() == housing["train"].columns["x"].values[0].tolist()
    assert record.arrays["x"].dtype == np.float32 and not record.labels


def test_rows_by_position_with_and_without_the_label(
    tmp_path: Path, housing: Dataset, table: dict[str, Any]
) -> None:
    row = " ".join(map(str, FIRST))
    path = write(tmp_path / "r.data", f"{row}\n{row} 24.0\n")
    bare, full = read_inputs(table, [path])
    assert bare.arrays["x"].tolist() == full.arrays["x"].tolist()
    assert not bare.labels and full.labels["y"].tolist() == [24.0]


def test_a_bad_row_does_not_stop_the_others(tmp_path: Path, table: dict[str, Any]) -> None:
    good = ",".join(map(str, FIRST))
    text = f"{good}\n{good.replace('6.575', 'six')}\n1,2,3\n{good}\n"
    records = list(read_inputs(table, [write(tmp_path / "r.csv", text)]))
    assert [r.error is None for r in records] == [True, False, False, True]
    assert "line 2: RM: 'six' is not a number" in str(records[1].error)
    assert "line 3 has 3 cells, not 13" in str(records[2].error)


def test_a_missing_column_is_named(tmp_path: Path, table: dict[str, Any]) -> None:
    text = ",".join(NAMES[1:]) + "\n" + ",".join(map(str, FIRST[1:])) + "\n"
    (record,) = read_inputs(table, [write(tmp_path / "r.csv", text)])
    assert "no column CRIM" in str(record.error)


@pytest.mark.parametrize(
    ("raw", "message"),
    [(b"", "no rows"), (b"\xff\xfe1,2", "not UTF-8"), (b"\0\0", "zero bytes")],
)
def test_foreign_tables(tmp_path: Path, table: dict[str, Any], raw: bytes, message: str) -> None:
    path = tmp_path / "r.csv"
    path.write_bytes(raw)
    (record,) = read_inputs(table, [str(path)])
    assert message in str(record.error) and record.input == str(path)


def test_fields_make_one_record(housing: Dataset, table: dict[str, Any]) -> None:
    given = [f"{n.lower()}={v}" for n, v in zip(NAMES, FIRST, strict=True)]
    (record,) = read_inputs(table, fields=given)
    assert record.arrays["x"].tolist() == housing["train"].columns["x"].values[0].tolist()
    (record,) = read_inputs(table, fields=given[2:])
    assert record.error == "--field: CRIM, ZN are missing"
    with pytest.raises(UsageError, match="no such column"):
        list(read_inputs(table, fields=[*given, "COLOUR=3"]))
    with pytest.raises(UsageError, match="NAME=VALUE"):
        list(read_inputs(table, fields=["CRIM"]))
    with pytest.raises(UsageError, match="twice"):
        list(read_inputs(table, fields=["CRIM=1", "CRIM=2"]))


def test_stdin(monkeypatch: pytest.MonkeyPatch, table: dict[str, Any], digits: Dataset) -> None:
    class Stdin:
        buffer = io.BytesIO((",".join(map(str, FIRST)) + "\n").encode())

    monkeypatch.setattr("sys.stdin", Stdin)
    (record,) = read_inputs(table, ["-"])
    assert record.input == "-:1" and record.error is None
    out = io.BytesIO()
    stroke(0).save(out, "PNG")
    Stdin.buffer = io.BytesIO(out.getvalue())
    (record,) = read_inputs(digits.preprocessing(), ["-"])
    assert record.input == "-" and record.arrays["image"].shape == (1, 28, 28)


def test_nothing_to_read_and_text(table: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="no input"):
        read_inputs(table)
    with pytest.raises(UsageError, match="this model takes rows of a table"):
        read_inputs(table, text=["a good film"])


def test_folders_patterns_and_missing_files(tmp_path: Path, digits: Dataset) -> None:
    spec = digits.preprocessing()
    folder = tmp_path / "földer"
    (folder / "sub").mkdir(parents=True)
    for name in ("10.png", "2.png", "sub/1.PNG", ".hidden.png"):
        stroke(0).save(folder / name)
    (folder / "notes.txt").write_text("no picture")
    names = [Path(r.input).name for r in read_inputs(spec, [str(folder)])]
    assert names == ["2.png", "10.png", "1.PNG"]
    records = list(read_inputs(spec, [
        str(folder / "*.png"), str(tmp_path / "none.png"), str(tmp_path / "*.gif"),
        str(folder / "notes.txt"), str(folder / "2.png")]))  # fmt: skip
    assert [r.error is None for r in records] == [True, True, False, False, False, True]
    assert [e for r in records if (e := r.error)] == [
        f"{tmp_path / 'none.png'}: no such file",
        f"{tmp_path / '*.gif'}: no file fits this pattern",
        f"{folder / 'notes.txt'}: not a picture (it begins with 6e 6f 20 70 69 63 74 75)",
    ]
    (tmp_path / "empty").mkdir()
    (record,) = read_inputs(spec, [str(tmp_path / "empty")])
    assert "holds no file that ends in .png" in str(record.error)


def test_a_file_whose_name_looks_like_a_pattern(tmp_path: Path, digits: Dataset) -> None:
    path = tmp_path / "digit[1].png"
    stroke(0).save(path)
    (record,) = read_inputs(digits.preprocessing(), [str(path)])
    assert record.error is None


def test_polarity_is_reported_and_the_picture_saved(tmp_path: Path, digits: Dataset) -> None:
    stroke(0).point(lambda v: 255 - v).save(tmp_path / "a b.png")
    (record,) = read_inputs(digits.preprocessing(), fields=[f"image={tmp_path / 'a b.png'}"])
    assert record.notes == ("the ground is light: inverted",)
    (saved,) = save_preprocessed(record, tmp_path / "out", 7)
    assert saved.name == "00007-a_b.png-image.png"
    np.testing.assert_array_equal(np.asarray(Image.open(saved)), record.arrays["image"][0])


def test_head_of_pictures_is_read_back(tmp_path: Path, digits: Dataset) -> None:
    written = samples.write(digits, "test", 2, tmp_path / "out")
    assert [p.name for p in written] == [
        "mnist-test-00000-label1.png",
        "mnist-test-00001-label7.png",
    ]
    records = list(read_inputs(digits.preprocessing(), [str(tmp_path / "out")]))
    assert all(r.error is None for r in records)
    batch = stack(digits.preprocessing(), records)
    assert batch["image"].values.shape == (2, 1, 28, 28)


def test_head_of_a_table_is_read_back_exactly(
    tmp_path: Path, housing: Dataset, table: dict[str, Any]
) -> None:
    written = samples.write(housing, "test", 102, tmp_path)
    records = list(read_inputs(table, [str(p) for p in written]))
    assert len(records) == 102
    test = housing["test"].columns
    np.testing.assert_array_equal(stack(table, records)["x"].values, test["x"].values)
    np.testing.assert_array_equal([r.labels["y"] for r in records], test["y"].values)
    assert samples.rows(housing, "train", 1)[0]["x"] == dict(zip(NAMES, FIRST, strict=True))


GENERATED = {
    "fields": [{"name": "words", "dtype": "int64", "classes": 7, "axes": ["s"]},
               {"name": "size", "shape": [2]},
               {"name": "y", "role": "label", "dtype": "int64", "classes": 2}],
    "lengths": {"s": [0, 4]}, "samples": 5, "test_samples": 5,
}  # fmt: skip


def test_values_of_generated_data_are_read_back(tmp_path: Path) -> None:
    data = open_dataset("generated", GENERATED)
    (path,) = samples.write(data, "test", 5, tmp_path)
    records = list(read_inputs(data.preprocessing(), [str(path)]))
    batch, test = stack(data.preprocessing(), records), data["test"].columns
    np.testing.assert_array_equal(batch["words"].values, test["words"].values)
    np.testing.assert_array_equal(batch["words"].offsets[0], test["words"].offsets[0])
    np.testing.assert_allclose(batch["size"].values, test["size"].values)
    assert [int(r.labels["y"]) for r in records] == test["y"].values.tolist()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"words": [1]}', "the field size is missing"),
        ('{"words": [7], "size": [1, 2]}', "words 7.* must be 0 to 6"),
        ('{"words": [0.5], "size": [1, 2]}', "expected whole numbers"),
        ('{"words": [1], "size": [1, 2, 3]}', r"expected numbers of shape \[2\]"),
        ('{"words": ["a"], "size": [1, 2]}', "expected a list of items"),
        ("[1]", "expected an object"),
        ("{", "not JSON"),
    ],
)
def test_faulty_values(tmp_path: Path, line: str, message: str) -> None:
    data = open_dataset("generated", GENERATED)
    good = '{"words": [], "size": [1, 2]}'
    path = write(tmp_path / "v.jsonl", f"{good}\n{line}\n\n{good}\n")
    records = list(read_inputs(data.preprocessing(), [path]))
    assert [r.error is None for r in records] == [True, False, True]
    assert records[1].input == f"{path}:2"
    assert re.search(message, str(records[1].error))


def test_values_as_fields() -> None:
    data = open_dataset("generated", GENERATED)
    (record,) = read_inputs(data.preprocessing(), fields=["words=[1, 2]", "size=[0.5, 1]"])
    assert record.arrays["words"].tolist() == [1, 2]
    with pytest.raises(UsageError, match="expected a JSON value"):
        list(read_inputs(data.preprocessing(), fields=["words=one", "size=[0.5, 1]"]))


def test_folders_named_after_digits_are_labels(tmp_path: Path, digits: Dataset) -> None:
    """Also of a data set of its own form; a name that is none is told, and files beside the folders have no label."""
    for place in ("1/a.png", "7/deep/b.png", "10/c.png", "d.png"):
        (tmp_path / "in" / place).parent.mkdir(parents=True, exist_ok=True)
        stroke(0).save(tmp_path / "in" / place)
    spec = json.loads(json.dumps(digits.preprocessing()))
    found = {Path(r.input).name: r for r in read_inputs(spec, [str(tmp_path / "in")])}
    assert {name: r.labels["label"].tolist() for name, r in found.items() if r.labels} == {
        "a.png": 1,
        "b.png": 7,
    }
    assert found["c.png"].notes[-1] == "its folder 10 is not named after a class"
    assert not any("folder" in note for note in found["d.png"].notes)
    (flat,) = read_inputs(spec, [str(tmp_path / "in")], recursive=False)
    assert Path(flat.input).name == "d.png"
