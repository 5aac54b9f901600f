"""A user's own tables: what the columns become, and what is said of a file that is wrong."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paddlecli.data.columns import Dataset
from paddlecli.data.inputs import read_inputs
from paddlecli.data.opening import open_dataset
from paddlecli.data.readers.parquet import parquet_rows
from paddlecli.errors import ConfigError, DataError, ResourceError

TABLE = "a,b,colour,kind\n1,10,red,u\n2,20,blue,v\n3,30,red,v\n4,20,green,u\n"
WORDS: dict[str, Any] = {"label": "kind", "task": "classification", "categories": ["colour"]}


def opened(
    tmp_path: Path, raw: str | bytes = TABLE, format: str = "csv", /, **arguments: Any
) -> Dataset:
    path = tmp_path / "t.csv"
    path.write_bytes(raw if isinstance(raw, bytes) else raw.encode())
    return open_dataset(format, {"train": str(path), **arguments})


def values(data: Dataset, field: str, split: str = "train") -> list[Any]:
    return data[split].columns[field].values.tolist()


def test_numbers_categories_and_a_class(tmp_path: Path) -> None:
    data = opened(tmp_path, **WORDS)
    x = np.asarray(values(data, "x"))
    np.testing.assert_allclose(x[:, 0], (np.arange(4) - 1.5) / np.sqrt(1.25), rtol=1e-6)
    assert x[:, 2:].tolist() == [[0, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 0]]  # blue green red
    assert values(data, "y") == [0, 1, 1, 0]
    y = data.spec.find("y")
    assert (y.classes, y.names, y.shape, y.dtype) == (2, ("u", "v"), (), "int64")
    assert data.label_names() == {"y": ("u", "v")}


def test_a_regression_keeps_the_labels_unit(tmp_path: Path) -> None:
    data = opened(tmp_path, label="b", task="regression", ignore=["colour", "kind"])
    assert values(data, "y") == [[10], [20], [30], [20]]
    assert data.spec.find("y").usual == (20.0, pytest.approx(np.sqrt(50)))


def test_several_numbers_to_predict(tmp_path: Path) -> None:
    text = "x,p,q\n1,2,3\n4,5,6\n"
    data = opened(tmp_path, text, label=["p", "q"], task="regression", scale="none")
    assert values(data, "y") == [[2, 3], [5, 6]] and values(data, "x") == [[1], [4]]


def test_fields_say_everything(tmp_path: Path) -> None:
    data = opened(tmp_path, fields={
        "x": {"parts": [{"columns": ["b", "a"], "transforms": [{"min_max": {"low": -1}}]},
                        {"columns": "colour", "transforms": [{"one_hot": {"classes": ["red", "blue"]}}]}]},
        "c": {"columns": "colour", "transforms": ["category_ids"]},
        "y": {"role": "label", "columns": "a"},
    })  # fmt: skip
    assert values(data, "x")[3] == [0, 1, 0, 0]  # green is in no column
    assert values(data, "c") == [3, 1, 3, 2]  # 0 stands for unknown categories
    assert data.spec.find("c").classes == 4 and data.spec.find("c").names == ()
    assert values(data, "y") == [[1], [2], [3], [4]]


def test_classes_stand_in_natural_order(tmp_path: Path) -> None:
    text = "x,y\n" + "".join(f"{i},{name}\n" for i, name in enumerate(["10", "2", "-1", "1"]))
    data = opened(tmp_path, text, label="y", task="classification")
    assert data.spec.find("y").names == ("-1", "1", "2", "10")
    text = "x,y\n1,class 10\n1,class 9\n"
    assert opened(tmp_path, text, label="y", task="classification").spec.find("y").names == (
        "class 9", "class 10",
    )  # fmt: skip


@pytest.mark.parametrize(
    "raw",
    [
        TABLE.encode(),
        TABLE.replace("\n", "\r\n").encode(),
        TABLE.replace("\n", "\r").encode(),
        b"\xef\xbb\xbf" + TABLE.encode(),
        TABLE.replace(",", " , ").encode(),
        TABLE.replace("red", '"red"').encode(),
        (TABLE + "\n\n").encode(),
    ],
    ids=["LF", "CRLF", "CR", "BOM", "blanks", "quotes", "empty lines"],
)
def test_line_ends_marks_and_blanks_make_no_ghosts(tmp_path: Path, raw: bytes) -> None:
    data, plain = opened(tmp_path, raw, **WORDS), opened(tmp_path, **WORDS)
    assert data.fingerprint == plain.fingerprint and data.spec.fields == plain.spec.fields


def test_latin_1_and_a_folder_with_other_letters(tmp_path: Path) -> None:
    folder = tmp_path / "Größe 数据"
    folder.mkdir()
    path = folder / "t.csv"
    path.write_bytes("x,y\n1,Käse\n2,Brot\n".encode("latin-1"))
    arguments = {"train": str(path), "label": "y", "task": "classification"}
    with pytest.raises(DataError, match=r"line 2: not UTF-8 text: byte 7 is 0xe4") as raised:
        open_dataset("csv", arguments)
    assert "latin-1" in str(raised.value.hint)
    data = open_dataset("csv", {**arguments, "encoding": "latin-1"})
    assert data.spec.find("y").names == ("Brot", "Käse")
    with pytest.raises(ConfigError, match="no encoding 'klingon'"):
        open_dataset("csv", {**arguments, "encoding": "klingon"})


def test_quoted_cells_hold_delimiters_and_line_ends(tmp_path: Path) -> None:
    text = 'x,y,z\n1,"a, ""b""",3\n2,"two\nlines",x\n'
    with pytest.raises(DataError, match=r"line 3: z: 'x' is not a number"):
        opened(tmp_path, text, fields={"x": {"columns": ["x", "z"]}})
    fields = {"x": {"columns": "y", "transforms": [{"one_hot": {"classes": ['a, "b"']}}]}}
    assert values(opened(tmp_path, text, fields=fields), "x") == [[1], [0]]


def test_tables_without_a_header(tmp_path: Path) -> None:
    arguments = {"header": False, "label": "c3", "task": "classification"}
    assert values(opened(tmp_path, "1,2,u\n3,4,v\n", scale="none", **arguments), "x") == [
        [1, 2],
        [3, 4],
    ]
    arguments = {
        "header": False,
        "columns": ["p", "q", "r"],
        "label": "r",
        "task": "classification",
    }
    assert values(opened(tmp_path, "1,2,u\n3,4,v\n", scale="none", **arguments), "x") == [
        [1, 2],
        [3, 4],
    ]


def test_tabs_semicolons_and_comments(tmp_path: Path) -> None:
    text = "# made by hand\nx;y\n1;u\n2;v\n"
    data = opened(tmp_path, text, delimiter=";", comment="#", label="y", task="classification")
    assert values(data, "y") == [0, 1]
    text = 'x\ty\n1\t"u\n2\tv\n'
    data = opened(tmp_path, text, "tsv", label="y", task="classification")
    assert data.spec.find("y").names == ('"u', "v")
    with pytest.raises(DataError, match="is the delimiter ';' instead of ','"):
        opened(tmp_path, "x;y\n1,5;u\n", label="y", task="classification")


FAULTS = {
    "empty": ("", "t.csv: holds no rows"),
    "header only": ("a,b,colour,kind\n", "holds no rows below its header"),
    "short": (TABLE + "1,2,red\n", "line 6 has 3 cells, not 4"),
    "long": (TABLE + "1,2,red,u,9\n", "line 6 has 5 cells, not 4"),
    "no number": (TABLE + "1,x,red,u\n", "line 6: b: 'x' is not a number"),
    "not finite": (TABLE + "1,inf,red,u\n", "line 6: b: 'inf' is not a number"),
    "underscore": (TABLE + "1,1_0,red,u\n", "line 6: b: '1_0' is not a number"),
    "missing": (TABLE + "1,,red,u\n", "line 6: x: a value is missing"),
    "missing category": (TABLE + "1,2,,u\n", "line 6: colour: the value is missing"),
    "missing label": (TABLE + "1,2,red,\n", "line 6: kind: the value is missing"),
    "huge": (TABLE + "1,1e39,red,u\n", "line 6: x: a number is too large"),
    "quote": (TABLE + '1,2,"red,u\n', "line 6: unexpected end of data"),
    "twice": (TABLE.replace("a,b", "a,a"), "the column 'a' twice"),
    "binary": (b"\x89PNG\r\n\x1a\n\0\0", "holds zero bytes"),
    "texts": (
        TABLE.replace("1,10", "p,10").replace("2,20", "q,20").replace("3,30", "r,30"),
        "'p' is not a number",
    ),
}


@pytest.mark.parametrize("fault", list(FAULTS))
def test_faults_name_file_and_line(tmp_path: Path, fault: str) -> None:
    text, message = FAULTS[fault]
    scale = "none" if fault == "huge" else "standardise"
    with pytest.raises(DataError, match=r"t\.csv") as raised:
        opened(tmp_path, text, **WORDS, scale=scale)
    assert message in raised.value.message


def test_a_huge_cell_is_named_and_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="line 6: b: 'zz") as raised:
        opened(tmp_path, TABLE + f"1,{'z' * 200_000},red,u\n", **WORDS)
    assert len(raised.value.message) < 600 and "is not a number" in raised.value.message


def test_a_column_of_texts_gets_a_cure(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="line 2: colour: 'red' is not a number") as raised:
        opened(tmp_path, label="kind", task="classification")
    assert "`categories`, `text` or `ignore`" in str(raised.value.hint)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"label": "kind"}, "regression"),
        ({}, "`label`"),
        ({"label": "kind", "fields": {"x": {"columns": "a"}}}, "leave `label` out"),
        ({**WORDS, "missing": "fill", "fields": {"x": {"columns": "a"}}}, "leave"),
        (
            {"label": "kind", "task": "classification", "inputs": ["a"], "text": ["b"]},
            "but no input",
        ),
        ({"label": "a", "task": "regression", "inputs": ["a"]}, "input and the label"),
        ({"fields": {"y": {"columns": "a", "role": "label"}}}, "no input field"),
        (
            {"fields": {"x": {"columns": "a", "transforms": ["tokenise"]}}},
            "end its transforms with",
        ),
        (
            {"fields": {"x": {"columns": ["a", "b"], "transforms": ["category_ids"]}}},
            "single column",
        ),
        ({"fields": {"x": {"columns": "a", "transforms": [{"log": {"plus": "x"}}]}}}, "plus"),
        ({"fields": {"x": {"columns": "a", "transforms": ["standardize"]}}}, "unknown transform"),
        ({"fields": {"x": {}}}, "columns"),
        ({**WORDS, "test": "t.csv", "split": {"test": 0.5}}, "choose one"),
    ],
    ids=lambda v: None if isinstance(v, dict) else v,
)
def test_contradictions_are_refused(
    tmp_path: Path, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        opened(tmp_path, **arguments)


def test_a_missing_column_and_file_name_the_near_ones(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no column 'kinds'") as raised:
        opened(tmp_path, label="kinds", task="classification")
    assert "kind" in str(raised.value.hint)
    with pytest.raises(DataError, match="no such file") as raised:
        open_dataset("csv", {"train": str(tmp_path / "t.cvs"), **WORDS})
    assert "t.csv" in str(raised.value.hint)


def test_missing_values_are_left_out_or_filled(tmp_path: Path) -> None:
    text = TABLE + "NA,40,,u\n1,,red,v\n"
    dropped = opened(tmp_path, text, **WORDS, missing="drop", scale="none")
    assert (
        len(dropped["train"]) == 4
        and "train: 2 rows without a value left out" in dropped.spec.remarks
    )
    filled = opened(tmp_path, text, **WORDS, missing="fill", scale="none")
    assert values(filled, "x")[4] == pytest.approx([2.2, 40, 0, 0, 1])
    assert values(filled, "x")[5] == pytest.approx([1, 24, 0, 0, 1])
    assert {"a: 1 missing values filled", "b: 1 missing values filled"} <= {*filled.spec.remarks}


@pytest.mark.parametrize("rule", ["mean", "most_common"])
def test_a_column_without_a_value_is_named(tmp_path: Path, rule: str) -> None:
    fields = {"x": {"columns": ["a", "b"], "transforms": [{"fill_missing": {"rule": rule}}]},
              "y": {"role": "label", "columns": "c"}}  # fmt: skip
    with pytest.raises(DataError, match=r"t\.csv: b: has no value at all") as caught:
        opened(tmp_path, "a,b,c\n1,,1\n2,,2\n", fields=fields)
    assert caught.value.hint == "list 'b' under `ignore`"


@pytest.mark.parametrize(("split", "also", "inputs"), [
    ({"column": "part"}, {}, 1),
    ({"test": 0.5, "group": "who"}, {"ignore": ["part"]}, 1),
    ({"test": 0.5, "group": "who"}, {"ignore": ["part"], "categories": ["who"]}, 3),
])  # fmt: skip
def test_what_a_split_goes_by_is_no_input(
    tmp_path: Path, split: dict[str, object], also: dict[str, object], inputs: int
) -> None:
    rows = [f"{i},p{i % 4},{('train', 'test')[i % 2]},u" for i in range(8)]
    text = "a,who,part,y\n" + "\n".join(rows)
    if "column" in split:
        text = "\n".join(",".join(c for i, c in enumerate(line.split(",")) if i != 1)
                         for line in text.splitlines())  # fmt: skip
    data = opened(tmp_path, text, label="y", task="classification", split=split, **also)
    assert data.spec.find("x").shape == (inputs,) and len(data["test"]) == 4


def test_a_constant_column_becomes_0_and_is_reported(tmp_path: Path) -> None:
    data = opened(tmp_path, "a,b,y\n7,1,u\n7,2,v\n", label="y", task="classification")
    assert values(data, "x") == [[0, -1], [0, 1]]
    assert data.spec.remarks == ("column a is constant and becomes 0",)


def test_a_class_that_only_the_test_split_has(tmp_path: Path) -> None:
    (tmp_path / "test.csv").write_text(TABLE.replace("green,u", "green,w"))
    with pytest.raises(
        DataError, match=r"test\.csv: line 5: kind: 'w' is none of the 2 classes \(u, v\)"
    ):
        opened(tmp_path, **WORDS, test=str(tmp_path / "test.csv"))


def test_ids_out_of_range_name_line_and_range(tmp_path: Path) -> None:
    fields = {"x": {"columns": "a"}, "y": {"role": "label", "columns": "b",
                                           "transforms": [{"class_ids": {"classes": 3}}]}}  # fmt: skip
    assert values(opened(tmp_path, "a,b\n1,0\n2,2\n", fields=fields), "y") == [0, 2]
    for wrong in ("3", "-1", "1.5"):
        with pytest.raises(DataError, match=r"line 3: b: .* out of range: .* 0 to 2"):
            opened(tmp_path, f"a,b\n1,0\n2,{wrong}\n", fields=fields)


def test_several_files_and_patterns(tmp_path: Path) -> None:
    for name in ("p10", "p2"):
        (tmp_path / f"{name}.csv").write_text(TABLE)
    data = open_dataset("csv", {"train": str(tmp_path / "p*.csv"), **WORDS})
    assert len(data["train"]) == 8
    (tmp_path / "p3.csv").write_text(TABLE.replace("colour", "color"))
    with pytest.raises(DataError, match=r"p3\.csv: its columns are not those of .*p2\.csv"):
        open_dataset("csv", {"train": str(tmp_path / "p*.csv"), **WORDS})
    with pytest.raises(DataError, match="no file fits"):
        open_dataset("csv", {"train": str(tmp_path / "q*.csv"), **WORDS})


def test_texts_in_a_table_are_ragged_ids(tmp_path: Path) -> None:
    text = "t,y\na b a,u\nb,v\n"
    data = opened(tmp_path, text, label="y", task="classification", text=["t"])
    column = data["train"].columns["t"]
    assert column.values.tolist() == [1, 2, 1, 2] and column.offsets[0].tolist() == [0, 3, 4]
    assert data.spec.find("t").axes == ("t",) and data.spec.find("t").classes == 3


def test_json_lines_have_types(tmp_path: Path) -> None:
    rows = [
        {
            "n": 1,
            "t": "a b",
            "w": ["p", "q"],
            "s": [1, 2],
            "m": [[1, 2], [3, 4]],
            "ok": True,
            "y": "u",
        },
        {"n": None, "t": "b", "w": ["q"], "s": [1, 2, 3], "m": [[5, 6]], "ok": False, "y": "v"},
    ]
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    data = open_dataset("jsonl", {"train": str(path), "fields": {
        "x": {"columns": ["n", "ok"], "transforms": [{"fill_missing": {"rule": "value", "value": 9}}]},
        "w": {"columns": "w", "transforms": ["vocabulary"]},
        "s": {"columns": "s"},
        "m": {"columns": "m"},
        "y": {"role": "label", "columns": "y", "transforms": ["category_ids"]},
    }})  # fmt: skip
    assert values(data, "x") == [[1, 1], [9, 0]]
    assert data["train"].columns["w"].offsets[0].tolist() == [0, 2, 3]
    assert data["train"].columns["s"].values.tolist() == [[1], [2], [1], [2], [3]]
    assert data["train"].columns["m"].values.tolist() == [[1, 2], [3, 4], [5, 6]]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1]", "line 2: expected an object"),
        ('{"a": 1', "line 2: not JSON"),
        ('{"a": 1, "a": 2}', "line 2: not JSON: a key comes twice"),
        ('{"a": "x"}', 'line 2: a: "x" is not a number as in other lines'),
        ('{"a": 1, "b": 1}', "line 2: the key 'b' is not in the first row"),
        ("[" * 100_000, "line 2: n"),
        ('{"a": NaN}', "line 2: not JSON: NaN is not a finite number"),
        ('{"a": -1e999}', "line 2: not JSON: -1e999 is not a finite number"),
        ('{"a": 1' + "0" * 5000 + "}", "line 2: not JSON: 1000"),
    ],
    ids=["no object", "no JSON", "twice", "kind", "key", "deep", "NaN", "infinite", "digits"],
)
def test_json_lines_that_are_wrong(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"a": 1}\n' + line + "\n")
    with pytest.raises(DataError) as raised:
        open_dataset("jsonl", {"train": str(path), "fields": {"x": {"columns": "a"}}})
    assert message in raised.value.message


def test_parquet_names_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ResourceError, match="needs pyarrow") as raised:
        open_dataset(
            "parquet", {"train": str(tmp_path / "t.parquet"), "fields": {"x": {"columns": "a"}}}
        )
    assert raised.value.hint == "pip install 'paddlecli[parquet]'"


def test_parquet_rows(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "t.parquet"
    parquet.write_table(pyarrow.table({"a": [1.0, None], "t": ["x y", "y"], "y": ["u", "v"]}), path)
    data = open_dataset("parquet", {"train": str(path), "label": "y", "task": "classification",
                                    "text": ["t"], "missing": "fill", "scale": "none"})  # fmt: skip
    assert values(data, "x") == [[1], [1]] and data["train"].columns["t"].values.tolist() == [
        2,
        1,
        1,
    ]
    rows = {"n": [3, 4], "c": pyarrow.array(["u", "v"]).dictionary_encode(), "l": [[1.0], [2.0]],
            "none": pyarrow.nulls(2), "b": [True, False]}  # fmt: skip
    parquet.write_table(pyarrow.table(rows), path)
    found = parquet_rows(path)
    kinds = {"n": "numbers", "c": "cells", "l": "numbers", "none": "numbers", "b": "numbers"}
    assert {name: v.kind for name, v in found.columns.items()} == kinds
    assert list(found.columns["c"].rows) == ["u", "v"] and found.columns["n"].rows.tolist() == [
        [3],
        [4],
    ]
    path.write_bytes(b"PAR1 no more")
    with pytest.raises(DataError, match="not a Parquet file"):
        open_dataset("parquet", {"train": str(path), "fields": {"x": {"columns": "a"}}})


def test_predict_reads_rows_as_training_did(tmp_path: Path) -> None:
    data = opened(tmp_path, **WORDS)
    frozen = json.loads(json.dumps(data.preprocessing()))
    path = tmp_path / "new.csv"
    path.write_text("kind,colour,a,b,note\nu,red,1,10,mine\n,purple,2,20,\nu,red,x,1,\nu,red\n")
    first, second, third, fourth = read_inputs(frozen, [str(path)])
    assert first.arrays["x"].tolist() == values(data, "x")[0] and first.labels["y"].tolist() == 0
    assert second.arrays["x"][2:].tolist() == [0, 0, 0] and not second.labels
    assert second.notes == ("colour: the training data have no 'purple'",) and not first.notes
    assert third.error is not None and "line 4: a: 'x' is not a number" in third.error
    assert fourth.error is not None and "line 5 has 2 cells, not 5" in fourth.error
    given = next(iter(read_inputs(frozen, [], ["a=1", "b=10", "colour=red"])))
    assert given.arrays["x"].tolist() == values(data, "x")[0]
    missing = next(iter(read_inputs(frozen, [], ["a=1", "b=10"])))
    assert missing.error == "--field: colour is missing"


def test_frozen_scales_serve_other_files(tmp_path: Path) -> None:
    frozen = json.loads(json.dumps(opened(tmp_path, **WORDS).preprocessing()))
    other = tmp_path / "other.csv"
    other.write_text("a,b,colour,kind\n2.5,20,blue,v\n")
    data = open_dataset("csv", {"train": str(other), **WORDS}, frozen)
    assert values(data, "x") == [[0, 0, 1, 0, 0]] and values(data, "y") == [1]


def test_arrays(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "a.npz",
        x=np.arange(12.0).reshape(4, 3),
        y=np.array([0, 2, 1, 0]),
        n=np.array(["u", "v", "u", "u"]),
    )
    data = open_dataset(
        "npz",
        {"train": str(tmp_path / "a.npz"), "inputs": ["x", "n"], "labels": ["y"], "classes": 3},
    )
    assert values(data, "x")[1] == [3, 4, 5] and data.spec.find("x").dtype == "float32"
    assert values(data, "y") == [0, 2, 1, 0] and values(data, "n") == [1, 2, 1, 1]
    with pytest.raises(DataError, match="out of range"):
        open_dataset(
            "npz",
            {"train": str(tmp_path / "a.npz"), "inputs": ["x"], "labels": ["y"], "classes": 2},
        )
    np.save(tmp_path / "p.npy", np.arange(16, dtype=np.uint8).reshape(2, 1, 2, 4))
    np.save(tmp_path / "q.npy", np.array([1.5, 2.5]))
    data = open_dataset(
        "npy",
        {"train": {"p": str(tmp_path / "p.npy"), "q": str(tmp_path / "q.npy")}, "labels": ["q"]},
    )
    field = data.spec.find("p")
    assert (field.dtype, field.shape) == ("uint8", (1, 2, 4)) and field.preprocess is not None
    assert field.preprocess.scale == 1.0 and values(data, "q") == [1.5, 2.5]


def test_arrays_of_objects_and_broken_files_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "o.npy", np.array([{}, []], dtype=object), allow_pickle=True)
    (tmp_path / "b.npz").write_bytes(b"PK\x03\x04 no zip")
    with pytest.raises(DataError, match="Python objects are not read"):
        open_dataset("npy", {"train": {"x": str(tmp_path / "o.npy")}})
    with pytest.raises(DataError, match=r"b\.npz: not an array file"):
        open_dataset("npz", {"train": str(tmp_path / "b.npz")})
    np.save(tmp_path / "one.npy", np.zeros(3))
    with pytest.raises(DataError, match="holds one array"):
        open_dataset("npz", {"train": str(tmp_path / "one.npy")})
    np.savez(tmp_path / "u.npz", x=np.zeros(3), y=np.zeros(2))
    with pytest.raises(DataError, match="different numbers of rows"):
        open_dataset("npz", {"train": str(tmp_path / "u.npz")})


def test_idx_files(tmp_path: Path) -> None:
    (tmp_path / "i").write_bytes(bytes([0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2, *range(8)]))
    (tmp_path / "l").write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 2, 1, 0]))
    train = {"image": str(tmp_path / "i"), "label": str(tmp_path / "l")}
    data = open_dataset("idx", {"train": train, "labels": ["label"], "classes": 2})
    assert values(data, "image") == [[[0, 1], [2, 3]], [[4, 5], [6, 7]]] and values(
        data, "label"
    ) == [1, 0]


def test_a_data_set_is_read_once_until_a_file_changes(tmp_path: Path) -> None:
    first = opened(tmp_path, **WORDS)
    path = tmp_path / "t.csv"
    assert open_dataset("csv", {"train": str(path), **WORDS}) is first
    path.write_text(TABLE + "5,5,red,u\n")
    assert len(open_dataset("csv", {"train": str(path), **WORDS})["train"]) == 5
