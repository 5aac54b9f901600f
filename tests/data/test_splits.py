"""Which rows train, validate and test."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from paddlecli.data.own.frame import Frame, Values, frame_of
from paddlecli.data.own.splits import SplitRule, cut
from paddlecli.errors import DataError


def frame(rows: int, **columns: list[str]) -> Frame:
    held = {"id": Values("numbers", np.arange(rows, dtype=np.float64)[:, None])}
    held |= {k: Values("cells", v) for k, v in columns.items()}
    return frame_of(held, "t.csv", list(range(2, rows + 2)))


def ids(split: Frame) -> list[int]:
    return split.columns["id"].rows[:, 0].astype(int).tolist()


def test_shares_keep_the_order_and_lose_no_row() -> None:
    found = cut(frame(100), SplitRule(test=0.2, valid=0.1))
    assert {k: len(v) for k, v in found.items()} == {"train": 70, "valid": 10, "test": 20}
    assert all(ids(f) == sorted(ids(f)) for f in found.values())
    assert sorted(i for f in found.values() for i in ids(f)) == list(range(100))


def test_the_seed_alone_decides() -> None:
    def test_rows(seed: int) -> list[int]:
        return ids(cut(frame(50), SplitRule(test=0.2, seed=seed))["test"])

    assert test_rows(1) == test_rows(1) != test_rows(2)
    assert test_rows(0) == [4, 10, 18, 19, 26, 31, 37, 38, 47, 48]


def test_stratified_shares_are_those_of_the_whole() -> None:
    labels = ["a"] * 60 + ["b"] * 30 + ["c"] * 10
    found = cut(frame(100, y=labels), SplitRule(test=0.2, stratify="y"))
    assert Counter(found["test"].columns["y"].rows) == {"a": 12, "b": 6, "c": 2}


def test_groups_stay_together() -> None:
    groups = [str(i // 5) for i in range(100)]
    found = cut(frame(100, g=groups), SplitRule(test=0.3, group="g"))
    test, train = (set(found[k].columns["g"].rows) for k in ("test", "train"))
    assert not test & train and 25 <= len(found["test"]) <= 35


def test_a_column_may_say_it() -> None:
    found = cut(frame(4, s=["train", "test", "train", "valid"]), SplitRule(column="s"))
    assert {k: ids(f) for k, f in found.items()} == {"train": [0, 2], "valid": [3], "test": [1]}
    with pytest.raises(DataError, match=r"t\.csv: line 3: s: 'tset' is no split"):
        cut(frame(2, s=["train", "tset"]), SplitRule(column="s"))


def test_a_split_without_rows_is_refused() -> None:
    with pytest.raises(DataError, match="split: test would have none of the 3 rows"):
        cut(frame(3), SplitRule(test=0.1))


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({}, "give the share"),
        ({"test": 0.5, "valid": 0.5}, "nothing to train on"),
        ({"column": "s", "test": 0.1}, "leave the other keys out"),
        ({"test": 0.1, "stratify": "a", "group": "b"}, "cannot both be kept"),
    ],
    ids=lambda v: "" if isinstance(v, dict) else v,
)
def test_rules_that_contradict_themselves(rule: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SplitRule.model_validate(rule)
