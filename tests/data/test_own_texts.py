"""A user's own texts: lines, pairs and tagged sentences, and what predict reads for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from paddlecli.data.columns import Dataset
from paddlecli.data.inputs import read_inputs, stack
from paddlecli.data.opening import open_dataset
from paddlecli.errors import ConfigError, DataError, UsageError

LINES = "good\tI liked it\nbad\tIt is bad , bad\n"
TAGGED = "# one\nthe D\ndog N\nruns V\n\nit P\nruns V\n"


def opened(tmp_path: Path, name: str, text: str | bytes, **arguments: Any) -> Dataset:
    path = tmp_path / "t.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return open_dataset(name, {"train": str(path), **arguments})


def frozen(data: Dataset) -> dict[str, Any]:
    return json.loads(json.dumps(data.preprocessing()))


def test_lines(tmp_path: Path) -> None:
    data = opened(tmp_path, "text_lines", LINES)
    text = data["train"].columns["text"]
    assert data.vocabularies["text"].words == ("<unk>", "bad", "it", ",", "i", "is", "liked")
    assert [text.row(i).tolist() for i in range(2)] == [[4, 6, 2], [2, 5, 1, 3, 1]]
    assert data["train"].columns["label"].values.tolist() == [1, 0]
    assert data.spec.find("label").names == ("bad", "good")


@pytest.mark.parametrize(
    "raw",
    [
        LINES.replace("\n", "\r\n").encode(),
        b"\xef\xbb\xbf" + LINES.encode(),
        (LINES + "\n \n").encode(),
    ],
    ids=["CRLF", "BOM", "empty lines"],
)
def test_no_ghost_classes(tmp_path: Path, raw: bytes) -> None:
    assert (
        opened(tmp_path, "text_lines", raw).fingerprint
        == opened(tmp_path, "text_lines", LINES).fingerprint
    )


def test_only_line_ends_end_lines(tmp_path: Path) -> None:
    text = "good\ta\u2028b\x0bc\x85d\nbad\tx\n"
    assert len(opened(tmp_path, "text_lines", text)["train"]) == 2


def test_a_text_may_hold_tabs(tmp_path: Path) -> None:
    assert (
        len(opened(tmp_path, "text_lines", "good\ta\tb\nbad\tc\n")["train"].columns["text"].row(0))
        == 2
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no text"),
        ("good\ta\nbad\n", "line 2: expected label TAB text, found 0 tabs"),
        ("good\ta\nbad\t\n", "line 2: text: there is no word"),
        ("good\ta\n\tb\n", "line 2: label: the value is missing"),
    ],
    ids=["empty", "no tab", "no text", "no label"],
)
def test_faults_name_the_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError) as raised:
        opened(tmp_path, "text_lines", text)
    assert message in raised.value.message


def test_predict_takes_lines_with_and_without_labels(tmp_path: Path) -> None:
    kept = frozen(opened(tmp_path, "text_lines", LINES))
    path = tmp_path / "new.txt"
    path.write_text("it is new\ngood\tI liked\nawful\tbad\n\n")
    first, second, third = read_inputs(kept, [str(path)])
    assert first.arrays["text"].tolist() == [2, 5, 0] and not first.labels
    assert second.arrays["text"].tolist() == [4, 6] and second.labels["label"].tolist() == 1
    assert not third.labels and "'awful' is none of the 2 classes" in third.notes[0]
    (said,) = read_inputs(kept, text=["I liked it"])
    assert said.arrays["text"].tolist() == [4, 6, 2] and said.input == "I liked it"
    assert stack(kept, [first, second])["text"].offsets[0].tolist() == [0, 3, 5]


def test_text_is_refused_where_it_makes_no_sense(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,y\n1,2\n2,3\n")
    data = open_dataset(
        "csv", {"train": str(tmp_path / "t.csv"), "label": "y", "task": "regression"}
    )
    with pytest.raises(UsageError, match="--text does not fit: this model takes a"):
        list(read_inputs(frozen(data), text=["x"]))


def test_pairs(tmp_path: Path) -> None:
    data = opened(tmp_path, "text_pairs", "a b a\tx\nb\ty x\n", source_size=4)
    assert data.vocabularies["source"].words == ("<s>", "<e>", "<unk>", "a")
    columns = data["train"].columns
    assert columns["source"].row(0).tolist() == [0, 3, 2, 3, 1]
    assert columns["target"].row(1).tolist() == [0, 4, 3] and columns["next"].row(1).tolist() == [
        4,
        3,
        1,
    ]
    assert data.spec.find("next").axes == data.spec.find("target").axes == ("target",)
    with pytest.raises(DataError, match="line 1: expected source TAB target, found 2 tabs"):
        opened(tmp_path, "text_pairs", "a\tb\tc\n")


def test_tagged_sentences(tmp_path: Path) -> None:
    arguments = {"columns": ["word", "tag"], "inputs": ["word"], "label": "tag", "comment": "#"}
    data = opened(tmp_path, "conll", TAGGED, **arguments)
    word, tag = (data["train"].columns[c] for c in ("word", "tag"))
    assert word.offsets[0].tolist() == tag.offsets[0].tolist() == [0, 3, 5]
    assert data.spec.find("tag").names == ("V", "D", "N", "P")
    assert tag.values.tolist() == [1, 2, 0, 3, 0]
    assert data.spec.find("word").axes == data.spec.find("tag").axes == ("word",)
    kept = frozen(data)
    path = tmp_path / "new.conll"
    path.write_text("the\ncat\n\nit\n")
    first, second = read_inputs(kept, [str(path)])
    assert first.arrays["word"].tolist() == [4, 0] and len(second.arrays["word"]) == 1
    path.write_text(TAGGED)
    assert next(read_inputs(kept, [str(path)])).labels["tag"].tolist() == [1, 2, 0]
    (said,) = read_inputs(kept, text=["it runs"])
    assert said.arrays["word"].tolist() == [*second.arrays["word"].tolist(), 1]
    with pytest.raises(DataError, match=r"line 3 has 1 columns, not 2 \(word, tag\)"):
        opened(tmp_path, "conll", "the D\n\ndog\n", **arguments)
    with pytest.raises(DataError, match="holds no sentence"):
        opened(tmp_path, "conll", "\n\n", **arguments)
    with pytest.raises(ConfigError, match="which is the `label`"):
        opened(tmp_path, "conll", TAGGED, columns=["word", "tag"])


def test_a_tag_that_training_did_not_have(tmp_path: Path) -> None:
    (tmp_path / "test.txt").write_text("dog X\n")
    arguments = {"columns": ["word", "tag"], "inputs": ["word"], "label": "tag", "comment": "#"}
    with pytest.raises(DataError, match=r"test\.txt: line 1: tag: 'X' is not in the vocabulary"):
        opened(tmp_path, "conll", TAGGED, test=str(tmp_path / "test.txt"), **arguments)
