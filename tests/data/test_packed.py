"""Rows kept as pieces of bytes: what went in comes out, in any order, at no great cost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddlecli.data.opening import open_dataset
from paddlecli.data.own import packed
from paddlecli.data.own.packed import Packed
from paddlecli.errors import DataError

TEXTS = st.lists(st.text(st.characters(), max_size=5), max_size=11)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "BLOCK", 4)


@settings(deadline=None)
@given(TEXTS, st.data())
def test_texts(rows: list[str], data: st.DataObject) -> None:
    """Zero characters and halves of surrogate pairs too."""
    found = Packed("cells", rows)
    assert list(found) == rows and len(found) == len(rows) and found[:] == rows
    some = data.draw(st.lists(st.integers(0, max(len(rows) - 1, 0)), max_size=9 if rows else 0))
    assert list(found.take(np.asarray(some, np.int64))) == [rows[i] for i in some]
    assert [found[i] for i in some] == [rows[i] for i in some]
    found.append("more")
    assert found[-1] == "more" and len(found) == len(rows) + 1
    with pytest.raises(IndexError):
        found[len(rows) + 1]


@given(st.lists(TEXTS, max_size=11))
def test_words(rows: list[list[str]]) -> None:
    assert list(Packed("words", rows)) == rows


@given(st.lists(st.lists(st.integers(0, 99), max_size=4), max_size=11))
def test_tokens(rows: list[list[int]]) -> None:
    found = Packed("tokens", [np.asarray(row, np.int64) for row in rows])
    assert [row.tolist() for row in found] == rows
    values, edges = found.ids()
    assert values.dtype == np.int64 and values.tolist() == [i for row in rows for i in row]
    assert np.diff(edges).tolist() == [len(row) for row in rows]


def table(folder: Path, rows: int, **cells: str) -> Path:
    """Numbers, categories and texts; `cells` replaces those of a line: {"l7": "1,2,3"}."""
    lines = [
        "a,kind,text,y",
        *(f"{i / 7:.3f},{'xyz'[i % 3]},w{i % 5} und so,{i}" for i in range(rows)),
    ]
    for line, text in cells.items():
        lines[int(line[1:]) - 1] = text
    (folder / "t.csv").write_text("\n".join(lines) + "\n")
    return folder / "t.csv"


def read(path: Path) -> dict[str, object]:
    data = open_dataset("csv", {
        "train": str(path), "label": "y", "task": "regression", "categories": ["kind"], "text": ["text"],
        "split": {"test": 0.25, "stratify": "kind"},
    })  # fmt: skip
    return {
        "sizes": data.spec.sizes,
        "fingerprint": data.fingerprint,
        "frozen": data.preprocessing(),
    }


def test_blocks_do_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = read(table(tmp_path, 41))
    monkeypatch.setattr(packed, "BLOCK", 4096)
    (tmp_path / "t.csv").touch()
    assert read(table(tmp_path, 41)) == small


@pytest.mark.parametrize(("line", "message"), [
    ("1,x,w,2,3", "line 30 has 5 cells, not 4"),
    ("one,x,w,2", "line 30: a: 'one' is not a number"),
    ("1,x,,2", "line 30: text: there is no word in this row"),
    ("1,,w,2", "line 30: kind: the value is missing"),
    (",x,w,2", "line 30: x: a value is missing"),
])  # fmt: skip
def test_lines_of_later_blocks_are_named(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(table(tmp_path, 41, l30=line))


PEAK = """
import sys
from paddlecli.data.opening import open_dataset

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))

open_dataset("csv", {"train": "small.csv", "label": "c0", "task": "regression"})
before = peak()
open_dataset("csv", {"train": "large.csv", "label": "c0", "task": "regression"})
print((peak() - before) * 1024 / 1e6)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_of_a_table(tmp_path: Path) -> None:
    """A million cells of seven letters in 36 bytes each at most, what stays of them included."""
    for name, rows in (("small", 10), ("large", 100_000)):
        head = ",".join(f"c{i}" for i in range(10))
        body = "".join(
            ",".join(f"{(i * 7 + c) % 9973 / 997:.5f}" for c in range(10)) + "\n"
            for i in range(rows)
        )
        (tmp_path / f"{name}.csv").write_text(head + "\n" + body)
    done = subprocess.run(
        [sys.executable, "-c", PEAK], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert float(done.stdout) < 36, f"{done.stdout.strip()} bytes a cell"
