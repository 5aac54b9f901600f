"""Transforms of numbers and texts: right values, and the same ones after a way through JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paddlecli.data.own.frame import Faults, Values, frame_of
from paddlecli.data.transforms.base import Chain
from paddlecli.errors import ConfigError, DataError

COLUMN = [3.0, 1.0, np.nan, 8.0]


def run(steps: list[Any], train: Values, other: Values | None = None) -> tuple[Any, Any]:
    """The train rows, and other rows through a chain that was frozen to JSON and thawed."""
    chain = Chain(["c"], steps)
    fitted = chain.fit([train], Faults(frame_of({"c": train}, "t.csv", list(range(len(train))))))
    thawed = Chain.thaw(json.loads(json.dumps(chain.freeze())))
    rows = train if other is None else other
    made = thawed.apply([rows], Faults(frame_of({"c": rows}, "o.csv", list(range(len(rows))))))
    return fitted.rows, made.rows


def numbers(*values: float) -> Values:
    return Values("numbers", np.asarray(values, np.float64)[:, None])


def cells(*values: str) -> Values:
    return Values("cells", list(values))


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("standardise", [(x - 4) / np.std([3, 1, 8]) for x in COLUMN]),
        ("mean_range", [(x - 4) / 7 for x in COLUMN]),
        ("min_max", [(x - 1) / 7 for x in COLUMN]),
        ({"min_max": {"low": -1, "high": 3}}, [-1 + 4 * (x - 1) / 7 for x in COLUMN]),
        ("log", np.log(COLUMN)),
        ({"log": {"plus": 1}}, np.log1p(COLUMN)),
        ({"clip": {"low": 2, "high": 5}}, [3, 2, np.nan, 5]),
        ({"scale": {"by": 2, "plus": 1}}, [7, 3, np.nan, 17]),
        ("fill_missing", [3, 1, 4, 8]),
        ({"fill_missing": {"rule": "median"}}, [3, 1, 3, 8]),
        ({"fill_missing": {"rule": "value", "value": -1}}, [3, 1, -1, 8]),
    ],
    ids=str,
)
def test_numbers(step: Any, expected: list[float]) -> None:
    fitted, again = run([step], numbers(*COLUMN))
    np.testing.assert_allclose(fitted[:, 0], expected, rtol=1e-12)
    np.testing.assert_array_equal(fitted, again)


def test_statistics_are_those_of_the_train_rows() -> None:
    _, other = run(["standardise"], numbers(0, 2), numbers(1, 5))
    assert other[:, 0].tolist() == [0, 4]
    _, other = run(["standardise"], numbers(7, 7), numbers(1, 7))
    assert other[:, 0].tolist() == [0, 0]


def test_most_common_and_indicator() -> None:
    fitted, _ = run(
        [{"fill_missing": {"rule": "most_common", "indicator": True}}], numbers(2, 2, 5, np.nan)
    )
    assert fitted.tolist() == [[2, 0], [2, 0], [5, 0], [2, 1]]
    _, other = run(
        [{"fill_missing": {"rule": "most_common"}}], cells("10", "9", "9", "10", ""), cells("", "x")
    )
    assert other == ["9", "x"]


def test_categories() -> None:
    fitted, other = run(["one_hot"], cells("b", "a", "b"), cells("c", "a"))
    assert fitted.tolist() == [[0, 1], [1, 0], [0, 1]] and other.tolist() == [[0, 0], [1, 0]]
    _, other = run(
        [{"category_ids": {"unknown": True, "min_count": 2}}], cells("b", "a", "b"), cells("a", "b")
    )
    assert other.tolist() == [0, 1]
    with pytest.raises(DataError, match=r"o\.csv: c: 'c' is none of the 2 classes \(a, b\)"):
        run([{"category_ids": {"unknown": False}}], cells("b", "a"), cells("c"))


def test_categories_of_a_file_need_it_only_once(tmp_path: Path) -> None:
    file = tmp_path / "classes.txt"
    file.write_text("z\na\n")
    chain = Chain(["c"], [{"category_ids": {"file": str(file), "unknown": False}}])
    frame = frame_of({"c": cells("a", "z")}, "t.csv")
    assert chain.fit([frame.columns["c"]], Faults(frame)).rows.tolist() == [1, 0]
    file.unlink()
    thawed = Chain.thaw(json.loads(json.dumps(chain.freeze())))
    assert thawed.apply([frame.columns["c"]], Faults(frame)).rows.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("steps", "text", "expected"),
    [
        (["lower"], "Ab ÄÖ", "ab äö"),
        (["strip"], "  a b\t", "a b"),
        ([{"strip": {"punctuation": True}}], " a, b! ", "a b"),
        ([{"strip": {"accents": True}}], "café Ångström", "cafe Angstrom"),
        (["tokenise"], " a  b\tc ", ["a", "b", "c"]),
        (
            [{"tokenise": {"by": "words"}}],
            "It's 3, isn\u2019t it?",
            ["It's", "3", ",", "isn\u2019t", "it", "?"],
        ),
        ([{"tokenise": {"by": "characters"}}], "a 数据", ["a", "数", "据"]),
        ([{"tokenise": {"pattern": "[a-z]+"}}], "ab1cd", ["ab", "cd"]),
        (["tokenise", {"truncate": {"length": 2}}], "a b c", ["a", "b"]),
        (["tokenise", {"truncate": {"length": 2, "keep": "last"}}], "a b c", ["b", "c"]),
        (["tokenise", {"marks": {"first": "<s>", "last": "<e>"}}], "a", ["<s>", "a", "<e>"]),
        (["tokenise", {"strip": {"punctuation": True}}], "a - b.", ["a", "b"]),
    ],
    ids=str,
)
def test_texts(steps: list[Any], text: str, expected: Any) -> None:
    fitted, again = run(steps, cells(text))
    assert fitted == again == [expected]


def test_vocabularies() -> None:
    words = cells("b a b c", "a b d")
    fitted, other = run(["tokenise", "vocabulary"], words, cells("x d"))
    assert [r.tolist() for r in fitted] == [[1, 2, 1, 3], [2, 1, 4]]  # <unk> b a c d
    assert [r.tolist() for r in other] == [[0, 4]]
    step = {"vocabulary": {"min_count": 2, "first": ["<s>", "<unk>"], "max_size": 3}}
    assert [r.tolist() for r in run(["tokenise", step], words)[0]] == [[2, 1, 2, 1], [1, 2, 1]]
    with pytest.raises(DataError, match=r"o\.csv: c: 'x' is not in the vocabulary"):
        run(["tokenise", {"vocabulary": {"unknown": None}}], words, cells("x"))
    with pytest.raises(DataError, match="there is no word"):
        run(["tokenise", "vocabulary"], words, cells(""))
    step = {"vocabulary": {"empty": "unknown"}}
    assert run(["tokenise", step], words, cells(""))[1][0].tolist() == [0]


def test_a_vocabulary_of_a_file_keeps_its_ids(tmp_path: Path) -> None:
    file = tmp_path / "words.txt"
    file.write_bytes("\ufeffthe\r\na\r\n".encode())
    fitted, _ = run(["tokenise", {"vocabulary": {"file": str(file)}}], cells("a the x"))
    assert fitted[0].tolist() == [2, 1, 0]


@pytest.mark.parametrize(
    ("steps", "values", "message"),
    [
        (["log"], numbers(1, 0), "0 \\+ 0 is not above 0"),
        ([{"class_ids": {"classes": 2}}], numbers(np.nan), "the value is missing"),
        (["fill_missing"], numbers(np.nan), "no value at all"),
    ],
    ids=["log", "class_ids", "fill_missing"],
)
def test_values_that_cannot_be_used(steps: list[Any], values: Values, message: str) -> None:
    with pytest.raises(DataError, match=message):
        run(steps, values)


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([{"min_max": {"low": 1, "high": 1}}], "not below"),
        ([{"fill_missing": {"rule": "value"}}], "`value` goes with"),
        ([{"fill_missing": {"value": 1.0}}], "`value` goes with"),
        ([{"category_ids": {"classes": ["a"], "file": "f"}}], "not both"),
        ([{"tokenise": {"pattern": "("}}], "pattern"),
        ([{"vocabulary": {"unknown": None, "empty": "unknown"}}], "needs an `unknown`"),
        (["vocabulary"], "words are wanted, but there are cells"),
        ([{"truncate": {"length": 0}}], "length"),
    ],
    ids=str,
)
def test_settings_that_make_no_sense(steps: list[Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        run(steps, cells("a"))
