"""The readers on real archives: counts, dictionaries, first samples and splits as the original's.

They skip where the shared data are absent. Numbers come from the original's own tests and logs, or were
counted by programs that share no code with this one.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from paddlecli.data.cards import reader_function, shipped
from paddlecli.data.columns import Dataset
from paddlecli.data.fetching import cache, imports
from paddlecli.data.opening import describe, open_dataset
from paddlecli.errors import DataError

pytestmark = pytest.mark.data

Words = list[str]


def bring(name: str, path: Path, official: bool) -> None:
    card = shipped(name)
    if not official:
        try:
            assert any(t.path is None for t in imports.bring_in(card, path))
        except DataError as error:
            assert "--unofficial" in (error.hint or "")
    taken = imports.bring_in(card, path, unofficial=not official)
    assert all(t.path for t in taken) and any(not t.official for t in taken) is not official


def words(data: Dataset, split: str, field: str, row: int) -> Words:
    table = data.vocabularies[str(data.spec.find(field).vocabulary)]
    return table.decode(np.asarray(data[split].columns[field].row(row)).tolist())


def sizes(data: Dataset) -> dict[str, int]:
    return {name: len(split) for name, split in data.splits.items()}


def test_imikolov(shared_data: Path) -> None:
    bring("imikolov", shared_data / "imikolov", official=True)
    data = open_dataset("imikolov")
    assert sizes(data) == {"train": 803522, "test": 63663} and not data.spec.unofficial
    table = data.vocabularies["word"]
    assert len(table) == 2073 and table.ids["<unk>"] == 2072
    assert table.words[:10] == ("the", "<e>", "<s>", "N", "of", "to", "a", "in", "and", "'s")
    assert table.encode(["among", "a", "group", "of"]) == [211, 6, 96, 4]  # the book's demo
    assert (
        describe("imikolov") == reader_function(shipped("imikolov"))(shipped("imikolov")).describe()
    )
    sentences = open_dataset("imikolov", {"mode": "sequence"})
    assert sizes(sentences) == {"train": 42068, "test": 3370}
    total = sum(split.columns["words"].values.size for split in sentences.splits.values())
    assert total == 887521 + 70390 + 42068 + 3370  # words of the corpus, and <s> a line


@pytest.mark.slow
def test_imdb(shared_data: Path) -> None:
    bring("imdb", shared_data / "imdb", official=True)
    start = time.process_time()  # one thread: what it takes on a machine with nothing else to do
    data = open_dataset("imdb")
    assert time.process_time() - start < 20
    assert sizes(data) == {"train": 25000, "test": 25000} and not data.spec.unofficial
    table = data.vocabularies["word"]
    assert len(table) == 5147
    assert table.words[:10] == ("the", "and", "a", "of", "to", "is", "in", "it", "i", "this")
    assert table.words[5143:] == ("virtual", "warriors", "widely", "<unk>")
    # the first sample that the original printed: train/pos/127_7.txt
    first = np.asarray(data["train"].columns["words"].row(127))
    assert first.size == 121 and first[:10].tolist() == [
        5146,
        43,
        71,
        6,
        1092,
        14,
        0,
        878,
        130,
        151,
    ]
    for split, mean, median, most in (("train", 232.9, 174, 2469), ("test", 227.6, 171, 2272)):
        labels = data[split].columns["label"].values
        assert labels.tolist() == [0] * 12500 + [1] * 12500
        lengths = np.diff(data[split].columns["words"].offsets[0])
        assert abs(lengths.mean() - mean) < 0.05
        assert (np.median(lengths), lengths.max()) == (median, most)
    times = []
    for _ in range(3):
        start = time.process_time()
        again = open_dataset("imdb")
        times.append(time.process_time() - start)
    assert min(times) < 0.2 and again.fingerprint == data.fingerprint


def test_movielens_half(shared_data: Path) -> None:
    bring("movielens", shared_data / "movielens" / "ml-1m.zip", official=False)
    data = open_dataset("movielens")
    assert sizes(data) == {"train": 438510, "test": 49140} and data.spec.unofficial
    assert {k: len(v) for k, v in data.vocabularies.items()} == {"title": 5174, "category": 18}
    test = data["test"].columns
    scores = np.concatenate([data[s].columns["score"].values for s in ("train", "test")])
    assert set(scores[:, 0].tolist()) == {-3.0, -1.0, 1.0, 3.0, 5.0}
    assert max(np.diff(data["train"].columns["movie_title"].offsets[0])) == 14  # of all films: 15
    # row 0 of train: user 1 (F, under 18, job 10) on film 1193
    row = {f.name: data["train"].columns[f.name].row(0) for f in data.spec.fields}
    assert [int(row[f]) for f in ("user_id", "gender_id", "age_id", "job_id", "movie_id")] == [
        1,
        1,
        0,
        10,
        1193,
    ]
    assert words(data, "train", "movie_title", 0) == [
        "one",
        "flew",
        "over",
        "the",
        "cuckoo's",
        "nest",
    ]
    assert words(data, "train", "category_id", 0) == ["Drama"] and float(row["score"][0]) == 5.0
    assert test["user_id"].values.max() == 2999


def test_the_whole_movielens_would_split_as_the_originals() -> None:
    draws = np.random.RandomState(0).random_sample(1_000_209)
    card = shipped("movielens")
    assert card.sizes() == {"train": int((draws >= 0.1).sum()), "test": int((draws < 0.1).sum())}


def test_conll05(shared_data: Path) -> None:
    bring("conll05", shared_data / "conll05st", official=False)
    data = open_dataset("conll05")
    assert sizes(data) == {"train": 5267} and data.spec.unofficial
    assert any("wordDict.txt and verbDict.txt absent: built" in r for r in data.spec.remarks)
    tables = {k: len(v) for k, v in data.vocabularies.items()}
    assert tables == {"word": 3 + 8421, "verb": 982, "label": 109, "form": 1758}
    labels = data["train"].columns["label"]
    assert labels.values.size == 148647 and len(set(labels.values.tolist())) == 67
    begins = data.vocabularies["label"].ids["B-V"]
    assert all((np.asarray(labels.row(i)) == begins).any() for i in range(5267))
    assert len(data.spec.fields) == 9 and data.spec.find("label").names[-1] == "O"
    with_brown = open_dataset("conll05", {"brown": True, "hold_out": 10})
    assert len(with_brown["brown"]) == 804
    assert len(with_brown["train"]) + len(with_brown["test"]) == 5267


def test_wmt16(shared_data: Path) -> None:
    bring("wmt16", shared_data / "wmt16", official=False)
    data = open_dataset("wmt16")
    assert sizes(data) == {"train": 29000, "valid": 1014, "test": 1000} and data.spec.unofficial
    assert {k: len(v) for k, v in data.vocabularies.items()} == {"source": 11250, "target": 19220}
    assert words(data, "train", "source", 0)[:4] == ["<s>", "Two", "young", ","]
    assert words(data, "train", "target", 0)[:4] == ["<s>", "Zwei", "junge", "weiße"]
    assert words(data, "train", "next", 0)[-1] == "<e>"


@pytest.mark.parametrize(
    ("file", "pairs", "entries"),
    [
        ("multi30k-fr-en.wmt14-layout.tgz", (29000, 1000, 1014), (11222, 10213)),
        ("tatoeba-fr-en.wmt14-layout.tgz", (20000, 1000, 1000), (10340, 6779)),
    ],
)
def test_wmt14_layout(
    shared_data: Path, file: str, pairs: tuple[int, ...], entries: tuple[int, ...]
) -> None:
    bring("wmt14", shared_data / "wmt14" / file, official=False)
    data = open_dataset("wmt14")
    assert tuple(sizes(data).values()) == pairs and list(data.splits) == ["train", "test", "gen"]
    assert tuple(len(v) for v in data.vocabularies.values()) == entries
    sources = data["train"].columns["source"]
    assert int(np.diff(sources.offsets[0]).max()) <= 80
    assert (sources.values[sources.offsets[0][:-1]] == 0).all()  # <s>
    assert (sources.values[sources.offsets[0][1:] - 1] == 1).all()  # <e>


def test_cifar10_pickles(shared_data: Path) -> None:
    bring("cifar10", shared_data / "cifar10" / "cifar-10-python.small.tar.gz", official=False)
    data = open_dataset("cifar10")
    assert sizes(data) == {"train": 300, "test": 100} and data.spec.unofficial
    assert np.bincount(data["train"].columns["label"].values).tolist() == [30] * 10
    assert np.bincount(data["test"].columns["label"].values).tolist() == [10] * 10
    pixels = data["train"].columns["image"].values
    assert 100 < pixels.mean() < 140 and pixels.std() > 50


def test_mnist_of_the_mirror_needs_no_import(
    shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from paddlecli.data.fetching.fetch import download

    monkeypatch.setenv("PADDLECLI_MIRROR", shared_data.as_uri())
    download(shipped("mnist"))
    found = cache.present(shipped("mnist"))
    assert all(f.place == "cache" and f.wanted.official for f in found.values())
