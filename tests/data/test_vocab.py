"""Tables of ids."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddlecli.data.vocab import Vocabulary
from paddlecli.errors import DataError


def test_round_trip(tmp_path: Path) -> None:
    words = ["the", "Straße", "<unk>", " two words "]
    Vocabulary(words, "<unk>").save(tmp_path / "v.txt")
    assert (tmp_path / "v.txt").read_bytes().count(b"\n") == 4
    found = Vocabulary.load(tmp_path / "v.txt", "<unk>")
    assert list(found.words) == words and len(found) == 4
    assert found.encode(["Straße", "x", "the"]) == [1, 2, 0]
    assert found.decode([0, 3]) == ["the", " two words "]


def test_unknown_words_without_an_entry() -> None:
    with pytest.raises(DataError, match="'x' is not among its 1 entries"):
        Vocabulary(["a"]).encode(["a", "x"])


@pytest.mark.parametrize(
    ("words", "unknown", "message"),
    [
        (["a", "b", "a"], None, "'a' comes twice"),
        (["a", ""], None, "'' cannot"),
        (["a\nb"], None, "cannot"),
        (["a"], "<unk>", "<unk>"),
    ],
)
def test_faults(words: list[str], unknown: str | None, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Vocabulary(words, unknown)
