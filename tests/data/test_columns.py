"""Columns, splits and data sets."""

from __future__ import annotations

import numpy as np
import pytest

from paddlecli.data.columns import Column, Dataset, Split, Statistics, pack
from paddlecli.data.spec import DatasetSpec, FieldSpec
from paddlecli.errors import DataError


def rows_of(column: Column) -> list[object]:
    def plain(value: object) -> object:
        return [plain(v) for v in value] if isinstance(value, list) else np.asarray(value).tolist()

    return [plain(column.row(i)) for i in range(len(column))]


def test_dense_take_keeps_type_and_order() -> None:
    column = Column(np.arange(12, dtype=np.uint8).reshape(4, 3))
    taken = column.take(np.array([3, 0, 3]))
    assert taken.dtype == np.uint8 and taken.item_shape == (3,)
    assert taken.values.tolist() == [[9, 10, 11], [0, 1, 2], [9, 10, 11]]


def test_ragged_take_repacks_with_empty_rows() -> None:
    lists = [[1, 2, 3], [], [4], [5, 6]]
    column = pack([np.array(x) for x in lists], "int64")
    assert rows_of(column) == lists
    taken = column.take(np.array([3, 1, 0, 1]))
    assert rows_of(taken) == [[5, 6], [], [1, 2, 3], []]
    assert taken.offsets[0].tolist() == [0, 2, 2, 5, 5]


def test_nested_take_against_plain_lists() -> None:
    rng = np.random.default_rng(1)
    lists = [[rng.integers(0, 9, rng.integers(0, 4)).tolist() for _ in range(rng.integers(0, 4))]
             for _ in range(30)]  # fmt: skip
    flat = [x for row in lists for x in row]
    outer = np.cumsum([0, *(len(r) for r in lists)])
    inner = pack([np.array(x) for x in flat], "int64")
    column = Column(inner.values, (outer.astype(np.int64), inner.offsets[0]))
    assert rows_of(column) == lists
    order = rng.permutation(30)[:17]
    assert rows_of(column.take(order)) == [lists[i] for i in order]


def test_take_of_no_rows() -> None:
    column = pack([np.array([1, 2]), np.array([3])], "int64")
    assert len(column.take(np.zeros(0, np.int64))) == 0


@pytest.mark.parametrize("offsets", [[1, 3], [0, 2], [0, 2, 1, 3], [0.0, 3.0]])
def test_bad_offsets_are_refused(offsets: list[float]) -> None:
    with pytest.raises(ValueError, match="offsets"):
        Column(np.arange(3), (np.array(offsets),))


def spec(*fields: FieldSpec) -> DatasetSpec:
    return DatasetSpec("toy", "toy", fields, {"train": 2})


def test_dataset_refuses_what_the_card_does_not_declare() -> None:
    field = FieldSpec("x", "input", (2,), "float32")
    with pytest.raises(DataError, match=r"field x: holds float64 items of shape \[3\]"):
        Dataset(spec(field), {"train": Split("train", {"x": Column(np.zeros((2, 3)))})})
    with pytest.raises(DataError, match=r"holds the fields \['y'\]"):
        Dataset(spec(field), {"train": Split("train", {"y": Column(np.zeros((2, 3)))})})


def test_fields_on_one_axis_have_equal_lengths() -> None:
    a = FieldSpec("a", "input", (), "int64", ("word",))
    b = FieldSpec("b", "input", (), "int64", ("word",))
    one = pack([np.array([1]), np.array([2, 3])], "int64")
    other = pack([np.array([1, 2]), np.array([3])], "int64")
    Dataset(spec(a, b), {"train": Split("train", {"a": one, "b": one.take(np.array([0, 1]))})})
    with pytest.raises(DataError, match="fields a and b are on one axis word"):
        Dataset(spec(a, b), {"train": Split("train", {"a": one, "b": other})})


def test_empty_and_uneven_splits() -> None:
    with pytest.raises(DataError, match="has no rows"):
        Split("train", {"x": Column(np.zeros((0, 2)))})
    with pytest.raises(DataError, match="different numbers of rows"):
        Split("train", {"x": Column(np.zeros((2, 2))), "y": Column(np.zeros((3, 2)))})


def test_fingerprint_sees_every_byte_and_type() -> None:
    def make(values: np.ndarray) -> str:
        field = FieldSpec("x", "input", (), str(values.dtype))
        return Dataset(spec(field), {"train": Split("train", {"x": Column(values)})}).fingerprint

    base = np.array([1, 2, 3], np.int64)
    assert make(base) == make(base.copy())
    assert len({make(base), make(base.astype(np.int32)), make(np.array([1, 2, 4]))}) == 3


def test_statistics_round_trip() -> None:
    found = Statistics("mean_range", ("a", "b"), (1.0, 2.0), (2.0, 4.0))
    assert found.apply(np.array([[3.0, 2.0]])).tolist() == [[1.0, 0.0]]
