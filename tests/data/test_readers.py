"""Readers: exact on real data, and damaged or foreign files are named with the reason."""

from __future__ import annotations

import gzip
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from paddlecli.data.cards import Card, shipped
from paddlecli.data.opening import open_dataset
from paddlecli.data.readers.csv import CsvReader, read_rows
from paddlecli.data.readers.idx import IdxReader, read_idx
from paddlecli.data.readers.whitespace import WhitespaceReader
from paddlecli.errors import ConfigError, DataError

# row 0 of each split as the original's reader gives it
HOUSING_TRAIN_0 = [-0.040544, 0.066364, -0.323562, -0.06917, -0.034352, 0.055636, -0.034757,
                   0.026822, -0.371713, -0.214193, -0.335695, 0.101432, -0.211729]  # fmt: skip


def idx(values: np.ndarray, kind: int = 8) -> bytes:
    head = bytes([0, 0, kind, values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape)
    return head + values.astype(values.dtype.newbyteorder(">")).tobytes()


# --- housing ---


def test_housing_is_the_originals() -> None:
    data = open_dataset("uci_housing")
    train, test = data["train"], data["test"]
    assert (len(train), len(test)) == (404, 102)
    x = np.concatenate([train.columns["x"].values, test.columns["x"].values])
    assert x.dtype == np.float32
    np.testing.assert_allclose(x[0], HOUSING_TRAIN_0, atol=5e-7)
    np.testing.assert_allclose(x[404][0], 0.426163, atol=5e-7)
    assert train.columns["y"].values[0].tolist() == [24.0]
    assert test.columns["y"].values[0].tolist() == [8.5]
    assert abs(x.min() + 0.8986) < 5e-5 and abs(x.max() - 0.9595) < 5e-5


def test_housing_least_squares() -> None:
    """The closed form on this split is known: train 22.778, test 32.800."""
    data = open_dataset("uci_housing")

    def design(split: str) -> tuple[np.ndarray, np.ndarray]:
        x = data[split].columns["x"].values.astype(float)
        return np.hstack([x, np.ones((len(x), 1))]), data[split].columns["y"].values[:, 0]

    x, y = design("train")
    weights = np.linalg.lstsq(x, y, rcond=None)[0]
    assert abs(((x @ weights - y) ** 2).mean() - 22.778) < 1e-3
    x, y = design("test")
    assert abs(((x @ weights - y) ** 2).mean() - 32.800) < 1e-3


def test_housing_statistics_take_raw_units() -> None:
    data = open_dataset("uci_housing")
    raw = np.array([0.00632, 18, 2.31, 0, 0.538, 6.575, 65.2, 4.09, 1, 296, 15.3, 396.9, 4.98])
    scaled = data.statistics["x"].apply(raw).astype(np.float32)
    assert scaled.tolist() == data["train"].columns["x"].values[0].tolist()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 2\n3 x\n", "line 2: b: 'x' is not a number"),
        ("1 2\n3\n", "line 2 has 1 numbers, not 2"),
        ("1 2\n3 nan\n", "line 2: b: 'nan' is not a finite number"),
        ("", "holds no rows"),
        ("1 2\n", "rows 0 to 2 .* has 1 rows"),
    ],
)
def test_whitespace_faults(
    tmp_path: Path, make_card: Callable[..., Card], text: str, message: str
) -> None:
    path = tmp_path / "t.data"
    path.write_text(text)
    with pytest.raises(DataError, match=message) as caught:
        WhitespaceReader(table_card(make_card)).open({"t": path})
    assert str(path) in str(caught.value)


def table_card(make_card: Callable[..., Card], **y: object) -> Card:
    return make_card(
        files=[{"name": "t", "bytes": 0, "sha256": "0" * 64}],
        fields=[{"name": "x", "role": "input", "dtype": "float32", "shape": [1], "columns": ["a"]},
                {"name": "y", "role": "label", "dtype": "float32", "columns": ["b"], **y}],
        splits={"train": {"samples": 2, "files": {"table": "t"}, "rows": [0, 2]}},
    )  # fmt: skip


# --- csv ---


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,2\n3,4\n",
        "b,extra,a\n2,9,1\n4,9,3\n",
        "1,2\n3,4\n",
        "\ufeffA;B\r\n1;2\r\n\r\n3;4\r\n",
        'a\tb\n"1"\t2\n3\t4',
        "a b\n1 2\n3 4\n",
    ],
)
def test_csv_dialects(tmp_path: Path, make_card: Callable[..., Card], text: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode())
    data = CsvReader(table_card(make_card)).open({"t": path})
    assert data["train"].columns["x"].values.tolist() == [[1.0], [3.0]]
    assert data["train"].columns["y"].values.tolist() == [2.0, 4.0]


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"a,b\n1,2\n3,four\n", "line 3: b: 'four' is not a number"),
        (b"a,b\n1,2\n3,1_000\n", "line 3: b: '1_000' is not a number"),
        (b"a,c\n1,2\n", "line 2: no column b in the header"),
        (b"a,b\n1,2\n3\n", "line 3 has 1 cells, the header has 2"),
        (b"1,2,3\n", "line 1 has 3 cells, not 2"),
        (b"a,b\n1,\xff\n", "not UTF-8 text: byte 6 is 0xff"),
        (b"\x89PNG\r\n\x1a\n\0\0\0", "zero bytes"),
        (b'a,b\n1,"2\n', "line 2"),
        (b"a,b\n", "holds no rows"),
        (b"", "holds no rows"),
    ],
)
def test_csv_faults(
    tmp_path: Path, make_card: Callable[..., Card], raw: bytes, message: str
) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(raw)
    with pytest.raises(DataError, match=message) as caught:
        CsvReader(table_card(make_card)).open({"t": path})
    assert str(path) in str(caught.value)


def test_quoted_line_ends_keep_the_line_number() -> None:
    rows = list(read_rows('a,b\n"1\n",2\n3,4\n', "t"))
    assert [(r.line, r.cells) for r in rows] == [(3, ["1", "2"]), (4, ["3", "4"])]


def test_classes_are_checked_when_opened(tmp_path: Path, make_card: Callable[..., Card]) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n3,3\n")
    with pytest.raises(DataError, match=r"row 1: y 3.* must be 0 to 2"):
        CsvReader(table_card(make_card, dtype="int64", classes=3)).open({"t": path})
    path.write_text("a,b\n1,0.5\n3,1\n")
    with pytest.raises(DataError, match="not whole"):
        CsvReader(table_card(make_card, dtype="int64", classes=3)).open({"t": path})


# --- idx ---


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (np.arange(24, dtype=np.uint8).reshape(2, 3, 4), 0x08),
        (np.array([-1, 5], np.int8), 0x09),
        (np.array([-300, 5], np.int16), 0x0B),
        (np.array([[70000], [-5]], np.int32), 0x0C),
        (np.array([1.5, -2.5], np.float32), 0x0D),
        (np.array([1.5, -2.5], np.float64), 0x0E),
    ],
)
def test_idx_types(tmp_path: Path, values: np.ndarray, kind: int, packed: bool) -> None:
    raw = idx(values, kind)
    path = tmp_path / "f"
    path.write_bytes(gzip.compress(raw, mtime=0) if packed else raw)
    found = read_idx(path)
    assert found.dtype == values.dtype and found.dtype.isnative
    np.testing.assert_array_equal(found, values)


GOOD = idx(np.arange(200, dtype=np.uint8).reshape(50, 2, 2))


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "begins with nothing"),
        (b"\x89PNG\r\n\x1a\n" + GOOD, "not an IDX file .*89 50 4e 47"),
        (b"<html>" + GOOD, "not an IDX file"),
        (GOOD[:9], "cut off inside its header"),
        (GOOD[:-1], "cut off"),
        (GOOD + b"x", "followed by foreign bytes"),
        (bytes([0, 0, 8, 9]) + GOOD, "not an IDX file"),
        (bytes([0, 0, 7, 1]) + GOOD, "not an IDX file"),
        (bytes([0, 0, 8, 1, 255, 255, 255, 255]) + b"x", "cut off"),
        (bytes([0, 0, 14, 2]) + b"\xff" * 8 + b"x", "at most"),
        (bytes([0, 0, 8, 1, 0, 0, 0, 0]), "holds no items"),
    ],
)
def test_idx_faults(tmp_path: Path, raw: bytes, message: str) -> None:
    path = tmp_path / "plain"
    path.write_bytes(raw)
    with pytest.raises(DataError, match=message) as caught:
        read_idx(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (gzip.compress(GOOD, mtime=0)[:-12], "cut off"),
        (gzip.compress(GOOD, mtime=0)[:30], "cut off"),
        (gzip.compress(GOOD[:-1], mtime=0), "cut off"),
        (gzip.compress(GOOD + b"x", mtime=0), "more data than its header says"),
        (gzip.compress(b"not idx at all", mtime=0), "not an IDX file"),
        (
            gzip.compress(bytes([0, 0, 8, 1, 127, 0, 0, 0]) + b"x", mtime=0),
            "more than the file can hold",
        ),
        (b"\x1f\x8b" + b"\0" * 30, "damaged gzip"),
    ],
)
def test_idx_gzip_faults(tmp_path: Path, raw: bytes, message: str) -> None:
    path = tmp_path / "packed.gz"
    path.write_bytes(raw)
    with pytest.raises(DataError, match=message):
        read_idx(path)


def test_idx_damaged_checksum(tmp_path: Path) -> None:
    raw = bytearray(gzip.compress(GOOD, mtime=0))
    raw[-8] ^= 1
    path = tmp_path / "packed.gz"
    path.write_bytes(raw)
    with pytest.raises(DataError, match="damaged gzip file: CRC"):
        read_idx(path)


def mnist_files(folder: Path, labels: np.ndarray, images: np.ndarray) -> dict[str, Path]:
    """MNIST's four files with other contents, compressed or not."""
    made = {}
    for file in shipped("mnist").files:
        path = folder / file.name
        path.write_bytes(idx(labels if "labels" in file.name else images))
        made[file.name] = path
    return made


def small_mnist(count: int) -> Card:
    card = shipped("mnist").model_copy(deep=True)
    splits = {k: s.model_copy(update={"samples": count}) for k, s in card.splits.items()}
    return card.model_copy(update={"splits": splits})


def test_idx_reader_on_other_counts(tmp_path: Path) -> None:
    images = np.arange(3 * 784, dtype=np.uint8).reshape(3, 28, 28)
    files = mnist_files(tmp_path, np.array([1, 9, 0], np.uint8), images)
    data = IdxReader(small_mnist(3)).open(files)
    column = data["train"].columns["image"]
    assert column.dtype == np.uint8 and column.item_shape == (1, 28, 28)
    np.testing.assert_array_equal(column.values[:, 0], images)
    assert data["test"].columns["label"].values.tolist() == [1, 9, 0]
    assert data.label_names() == {"label": tuple("0123456789")}


def test_labels_out_of_range_name_file_row_and_range(tmp_path: Path) -> None:
    files = mnist_files(tmp_path, np.array([1, 9, 10], np.uint8), np.zeros((3, 28, 28), np.uint8))
    with pytest.raises(DataError, match=r"train-labels.*row 2: label 10 .* must be 0 to 9"):
        IdxReader(small_mnist(3)).open(files)


def test_idx_of_another_size_or_count(tmp_path: Path) -> None:
    files = mnist_files(tmp_path, np.zeros(3, np.uint8), np.zeros((3, 32, 32), np.uint8))
    with pytest.raises(DataError, match=r"items have shape \[32, 32\]"):
        IdxReader(small_mnist(3)).open(files)
    with pytest.raises(DataError, match="holds 3 items, the data set's card says 4"):
        IdxReader(small_mnist(4)).open(files)


def test_real_mnist(shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from paddlecli.data.fetching.fetch import download

    monkeypatch.setenv("PADDLECLI_MIRROR", shared_data.as_uri())
    download(shipped("mnist"))
    data = open_dataset("mnist")
    assert (len(data["train"]), len(data["test"])) == (60000, 10000)
    assert data["test"].columns["label"].values[:5].tolist() == [7, 2, 1, 0, 4]
    assert np.bincount(data["train"].columns["label"].values).tolist() == [
        5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]  # fmt: skip
    assert data["train"].nbytes < 60000 * (784 + 8) + 1


# --- generated ---

FIELDS = [
    {"name": "words", "dtype": "int64", "classes": 7, "axes": ["s", "w"]},
    {"name": "vectors", "dtype": "float32", "shape": [3], "axes": ["s"]},
    {"name": "marks", "dtype": "float32", "axes": ["s"]},
    {"name": "pixels", "dtype": "uint8", "shape": [1, 4, 4]},
    {"name": "y", "role": "label", "dtype": "int64", "classes": 2},
]
LENGTHS = {"s": [1, 3], "w": [0, 5]}


def test_generated_shapes_and_ranges() -> None:
    args = {"fields": FIELDS, "lengths": LENGTHS, "samples": 500, "test_samples": 20}
    data = open_dataset("generated", args)
    train = data["train"].columns
    assert data.spec.generated and (len(data["train"]), len(data["test"])) == (500, 20)
    assert set(np.diff(train["words"].offsets[0])) == {1, 2, 3}
    assert set(np.diff(train["words"].offsets[1])) == {0, 1, 2, 3, 4, 5}
    assert set(train["words"].values) == set(range(7))
    assert train["vectors"].offsets[0].tolist() == train["marks"].offsets[0].tolist()
    assert train["vectors"].item_shape == (3,) and train["pixels"].item_shape == (1, 4, 4)
    assert abs(train["vectors"].values.mean()) < 0.1
    assert abs(train["vectors"].values.std() - 1) < 0.1


def test_generated_depends_on_the_seed_alone() -> None:
    def fingerprint(seed: int) -> str:
        return open_dataset(
            "generated", {"fields": FIELDS, "lengths": LENGTHS, "samples": 20, "seed": seed}
        ).fingerprint

    assert fingerprint(1) == fingerprint(1) != fingerprint(2)


def test_generated_values_do_not_depend_on_the_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    def columns() -> dict[str, bytes]:
        fields = [*FIELDS, {"name": "odd", "shape": [3], "dtype": "float64"}]
        data = open_dataset("generated", {"fields": fields, "lengths": LENGTHS, "samples": 21})
        return {name: c.values.tobytes() for name, c in data["train"].columns.items()}

    whole = columns()
    for piece in (1, 5, 64):
        monkeypatch.setattr("paddlecli.data.readers.generated._PIECE", piece)
        assert columns() == whole


def test_generating_holds_little_more_than_the_columns() -> None:
    fields = [{"name": "x", "shape": [100]}, {"name": "y", "dtype": "int64", "classes": 9}]
    tracemalloc.start()
    data = open_dataset("generated", {"fields": fields, "samples": 20000, "test_samples": 0})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < data["train"].nbytes + 2_000_000


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({}, "fields"),
        ({"fields": []}, "empty"),
        ({"fields": [{"name": "x", "axes": ["q"]}]}, "axis q"),
        ({"fields": [{"name": "x", "dtype": "int64"}]}, "needs `classes`"),
        ({"fields": [{"name": "x"}], "lengths": {"s": [3, 1]}}, "no range"),
        ({"fields": [{"name": "x"}], "samples": 0}, "samples"),
        ({"fields": [{"name": "x", "dtype": "float16"}]}, "dtype"),
    ],
)
def test_generated_faults(args: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        open_dataset("generated", args)
