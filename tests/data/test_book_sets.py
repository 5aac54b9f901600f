"""The readers of the book's data sets on small archives of the same format, with answers counted by
hand. The real archives are in test_real_sets.py."""

from __future__ import annotations

import gzip
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packing import masked, mat, photograph, put, tar, voc, zipped
from PIL import Image
from test_unpickle import old_pickle

from paddlecli.config.registry import READERS
from paddlecli.data import prepared
from paddlecli.data.cards import Card, reader_function, shipped
from paddlecli.data.columns import Dataset
from paddlecli.data.formats.matlab import read_mat
from paddlecli.data.samples import lines
from paddlecli.errors import ConfigError, DataError


def read(name: str, files: Mapping[str, Path], **settings: Any) -> Dataset:
    """The data set of these files with the shipped card."""
    card = shipped(name)
    bound = READERS.bind(card.reader or "", settings)
    return reader_function(card)(card, **bound).open(files)


def ragged(data: Dataset, split: str, field: str) -> list[list[int]]:
    column = data[split].columns[field]
    return [np.asarray(column.row(i)).tolist() for i in range(len(column))]


# --- imikolov ---

PTB = {
    "./simple-examples/data/ptb.train.txt": b" a b a <unk>\n b\n\n a c\n",
    "./simple-examples/data/ptb.valid.txt": b" a b d\n",
    "./simple-examples/data/ptb.test.txt": b" never read\n",
}
# lines: 4 + 1 = 5 of <s> and <e>; a 4, b 3, c 1, d 1; <unk> is dropped


@pytest.fixture
def ptb(tmp_path: Path) -> dict[str, Path]:
    return {"simple-examples.tgz": put(tmp_path / "x.tgz", tar(PTB))}


def test_imikolov_dictionary(ptb: dict[str, Path]) -> None:
    every = read("imikolov", ptb, cutoff=0, n=3)
    assert every.vocabularies["word"].words == ("<e>", "<s>", "a", "b", "c", "d", "<unk>")
    table = read("imikolov", ptb, cutoff=3, n=3).vocabularies["word"]
    assert table.words == ("<e>", "<s>", "a", "<unk>") and table.unknown == "<unk>"


def test_imikolov_windows(ptb: dict[str, Path]) -> None:
    data = read("imikolov", ptb, cutoff=0, n=3)
    table = data.vocabularies["word"]
    rows = [
        [*table.decode(c), table.words[n]]
        for c, n in zip(
            data["train"].columns["context"].values,
            data["train"].columns["next"].values,
            strict=True,
        )
    ]
    assert [" ".join(r) for r in rows] == [
        "<s> a b", "a b a", "b a <unk>", "a <unk> <e>",
        "<s> b <e>",
        # the empty line has two words: no window of three
        "<s> a c", "a c <e>",
    ]  # fmt: skip
    assert len(data["test"]) == 3
    assert data.spec.find("next").names == table.words
    assert data.spec.find("context").shape == (2,) and data.spec.find("context").classes == 7


def test_imikolov_middle_word(ptb: dict[str, Path]) -> None:
    last = read("imikolov", ptb, cutoff=0, n=3)["train"].columns
    middle = read("imikolov", ptb, cutoff=0, n=3, target="middle")["train"].columns
    assert middle["next"].values.tolist() == last["context"].values[:, 1].tolist()
    assert middle["context"].values[:, 1].tolist() == last["next"].values.tolist()


def test_imikolov_sentences(ptb: dict[str, Path]) -> None:
    data = read("imikolov", ptb, cutoff=0, mode="sequence")
    e, s, a, b, c, _, unk = range(7)
    assert ragged(data, "train", "words") == [[s, a, b, a, unk], [s, b], [s], [s, a, c]]
    assert ragged(data, "train", "next") == [[a, b, a, unk, e], [b, e], [e], [a, c, e]]
    short = read("imikolov", ptb, cutoff=0, mode="sequence", max_length=4)
    assert ragged(short, "train", "words") == [[s, b], [s], [s, a, c]]
    with pytest.raises(DataError, match="no sentence"):
        read("imikolov", {"simple-examples.tgz": ptb["simple-examples.tgz"]}, mode="sequence", cutoff=0,
             max_length=1)  # fmt: skip


def test_imikolov_faults(tmp_path: Path, ptb: dict[str, Path]) -> None:
    with pytest.raises(DataError, match="no window of that length"):
        read("imikolov", ptb, n=99)
    lone = {"simple-examples/data/ptb.train.txt": b" a\n"}
    path = put(tmp_path / "y.tgz", tar(lone))
    with pytest.raises(DataError, match=r"holds no simple-examples/data/ptb\.valid\.txt"):
        read("imikolov", {"simple-examples.tgz": path})
    with pytest.raises(ConfigError, match="mode"):
        read("imikolov", ptb, mode="both")
    with pytest.raises(ConfigError, match="n: "):
        read("imikolov", ptb, n=1)


# --- imdb ---

REVIEWS = {
    "aclImdb/train/pos/10_7.txt": b"Good, GOOD film!<br />Fine.\n",
    "aclImdb/train/pos/2_9.txt": b"A fine film\r\n",
    "aclImdb/train/neg/0_1.txt": b"bad bad film",
    "aclImdb/test/neg/3_2.txt": b"don't",
    "aclImdb/test/pos/1_8.txt": "Guté film".encode(),
    "aclImdb/train/unsup/0_0.txt": b"never read",
    "aclImdb/README": b"never read",
}


def test_imdb(tmp_path: Path) -> None:
    data = read("imdb", {"aclImdb_v1.tar.gz": put(tmp_path / "a", tar(REVIEWS, "xz"))}, cutoff=0)
    table = data.vocabularies["word"]
    # film 3; bad, fine and good twice; the others once; equal counts by their bytes
    assert table.words == ("film", "bad", "fine", "good", "a", "dont", "filmbr", "guté", "<unk>")
    texts = [" ".join(table.decode(row)) for row in ragged(data, "train", "words")]
    assert texts == ["a fine film", "good good filmbr fine", "bad bad film"]
    assert data["train"].columns["label"].values.tolist() == [0, 0, 1]
    assert [" ".join(table.decode(r)) for r in ragged(data, "test", "words")] == [
        "guté film",
        "dont",
    ]
    assert data["test"].columns["label"].values.tolist() == [0, 1]
    assert table.words[-1] == "<unk>" and data.label_names()["label"] == ("positive", "negative")
    rare = read("imdb", {"aclImdb_v1.tar.gz": tmp_path / "a"}, cutoff=1).vocabularies["word"]
    assert rare.words == ("film", "bad", "fine", "good", "<unk>")


def test_imdb_without_reviews(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no reviews"):
        read("imdb", {"aclImdb_v1.tar.gz": put(tmp_path / "a", tar({"x": b""}))})


# --- movielens ---

ML = {
    "ml-1m/users.dat": b"1::F::1::10::48067\n2::M::56::16::70072\n",
    "ml-1m/movies.dat": "1::Toy Story (1995)::Animation|Comedy\n3::Élan, The 2nd (1996)::Drama\n".encode(
        "latin-1"
    ),
    "ml-1m/ratings.dat": b"".join(
        b"%d::%d::%d::97%d\n" % (1 + i % 2, 1 + 2 * (i % 3 == 0), 1 + i % 5, i) for i in range(40)
    ),
}


def test_movielens(tmp_path: Path) -> None:
    data = read("movielens", {"ml-1m.zip": put(tmp_path / "m", zipped(ML))})
    assert data.vocabularies["title"].words == ("2nd", "story", "the", "toy", "élan,")
    assert data.vocabularies["category"].words == ("Animation", "Comedy", "Drama")
    draws = np.random.RandomState(0).random_sample(40) < 0.1
    assert 0 < len(data["test"]) == draws.sum() < 40
    train = data["train"].columns
    kept = np.flatnonzero(~draws)
    assert train["user_id"].values.tolist() == (1 + kept % 2).tolist()
    assert train["score"].values[:, 0].tolist() == [2.0 * (1 + i % 5) - 5 for i in kept]
    assert train["score"].dtype == np.float32 and train["score"].item_shape == (1,)
    odd = kept % 2 == 0  # user 1: female, under 18, job 10
    assert train["gender_id"].values.tolist() == odd.astype(int).tolist()
    assert train["age_id"].values.tolist() == np.where(odd, 0, 6).tolist()
    assert train["job_id"].values.tolist() == np.where(odd, 10, 16).tolist()
    third = kept % 3 == 0  # film 3
    assert train["movie_id"].values.tolist() == np.where(third, 3, 1).tolist()
    titles, kinds = ragged(data, "train", "movie_title"), ragged(data, "train", "category_id")
    assert {(tuple(t), tuple(k)) for t, k in zip(titles, kinds, strict=True)} == {
        ((4, 2, 0), (2,)), ((3, 1), (0, 1))}  # fmt: skip


def test_movielens_split_depends_on_seed_and_share(tmp_path: Path) -> None:
    files = {"ml-1m.zip": put(tmp_path / "m", zipped(ML))}
    assert (
        len(read("movielens", files, test_share=0.5)["test"])
        == (np.random.RandomState(0).random_sample(40) < 0.5).sum()
    )
    whole = read("movielens", files, test_share=0.0)
    assert list(whole.splits) == ["train"] and len(whole["train"]) == 40
    one, two = (read("movielens", files, seed=s)["train"].columns["user_id"] for s in (1, 2))
    assert one.values.tolist() != two.values.tolist()


@pytest.mark.parametrize(
    ("member", "text", "message"),
    [
        ("ratings", b"1::1::3::9\n1::1::x::9\n", "line 2: .* is no rating"),
        ("ratings", b"1::1::3\n", "line 1"),
        ("ratings", b"1::1::6::9\n", "6 stars"),
        ("ratings", b"7::1::3::9\n", "no user 7"),
        ("ratings", b"1::2::3::9\n", "no film 2"),
        ("ratings", b"", "no rows"),
        ("users", b"1::X::1::10::0\n", "gender 'X'"),
        ("users", b"1::F::1::21::0\n", "job 21"),
        ("users", b"1::F::1\n", "line 1 has 3 columns, not 5"),
        ("movies", b"one::Film (1990)::Drama\n", "'one' is no whole number"),
    ],
)
def test_movielens_faults(tmp_path: Path, member: str, text: bytes, message: str) -> None:
    path = put(tmp_path / "m", zipped({**ML, f"ml-1m/{member}.dat": text}))
    with pytest.raises(DataError, match=message) as caught:
        read("movielens", {"ml-1m.zip": path})
    assert f"{member}.dat" in str(caught.value)


def test_movielens_100k_in_both_forms(tmp_path: Path) -> None:
    genres = "|".join("1" if i in (3, 5) else "0" for i in range(19))
    ratings = b"".join(b"1\t1\t%d\t%d\n" % (1 + i % 5, i) for i in range(30))
    archive = zipped({
        "ml-100k/u.user": b"1|24|M|technician|85711\n",
        "ml-100k/u.item": f"1|Toy Story (1995)|01-Jan-1995||http://x|{genres}\n".encode("latin-1"),
        "ml-100k/u.data": ratings,
    })  # fmt: skip
    base = "recbole/dataset_example/ml-100k/ml-100k"
    wheel = zipped({
        f"{base}.user": b"user_id:token\tage:token\tgender:token\toccupation:token\tzip:token\n1\t24\tM\ttechnician\t85711\n",
        f"{base}.item": b"item_id:token\tmovie_title:token_seq\trelease_year:token\tclass:token_seq\n1\tToy Story\t1995\tAnimation Comedy\n",
        f"{base}.inter": b"user_id:token\titem_id:token\trating:float\ttimestamp:float\n" + ratings,
    })  # fmt: skip
    one = read("movielens_100k", {"ml-100k.zip": put(tmp_path / "a", archive)})
    two = read("movielens_100k", {"ml-100k.zip": put(tmp_path / "b", wheel)})
    assert one.fingerprint == two.fingerprint and len(one["train"]) + len(one["test"]) == 30
    train = one["train"].columns
    assert (train["age_id"].values[0], train["job_id"].values[0]) == (1, 19)
    assert one.vocabularies["category"].words == ("Animation", "Comedy")


# --- cifar ---


def batch(count: int, first: int, key: bytes = b"labels") -> bytes:
    pixels = np.arange(count * 3072, dtype=np.int64).reshape(count, 3072) + first
    labels = [(first + i) % 10 for i in range(count)]
    return old_pickle({b"data": pixels.astype(np.uint8), key: labels, b"filenames": [b"x"] * count})


def test_cifar10_batches_in_order(tmp_path: Path) -> None:
    folder = "cifar-10-batches-py/"
    members = {f"{folder}test_batch": batch(2, 7)}
    members |= {f"{folder}data_batch_{n}": batch(3, n) for n in (5, 3, 1, 2, 4)}
    members[f"{folder}batches.meta"] = b"never read"
    data = read("cifar10", {"cifar-10-python.tar.gz": put(tmp_path / "c", tar(members))})
    train = data["train"].columns
    assert train["label"].values.tolist() == [n + i for n in (1, 2, 3, 4, 5) for i in range(3)]
    assert train["image"].item_shape == (3, 32, 32) and train["image"].dtype == np.uint8
    # red plane first, rows from the top
    assert train["image"].values[0, :, 0, 0].tolist() == [1, 1 + 1024 % 256, 1 + 2048 % 256]
    assert train["image"].values[0, 0, 1, :2].tolist() == [33, 34]
    assert data["test"].columns["label"].values.tolist() == [7, 8]


def test_cifar100_takes_the_fine_labels(tmp_path: Path) -> None:
    members = {"cifar-100-python/train": batch(2, 0, b"fine_labels"),
               "cifar-100-python/test": batch(1, 5, b"fine_labels")}  # fmt: skip
    data = read("cifar100", {"cifar-100-python.tar.gz": put(tmp_path / "c", tar(members))})
    assert data["train"].columns["label"].values.tolist() == [0, 1]
    assert data.spec.find("label").names[99] == "worm"


def picture(value: int, size: int = 32) -> bytes:
    out = io.BytesIO()
    pixels = np.full((size, size, 3), value, np.uint8)
    pixels[0, 0] = (value, 0, 255)
    Image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


def test_cifar10_pictures_in_folders(tmp_path: Path) -> None:
    members = {
        f"train/{c}/{n:04d}.png": picture(10 * n + len(c)) for c in ("truck", "cat") for n in (1, 0)
    }
    members["test/dog/0000.png"] = picture(9)
    data = read("cifar10", {"cifar-10-python.tar.gz": put(tmp_path / "c", tar(members, "bz2"))})
    train = data["train"].columns
    assert train["label"].values.tolist() == [3, 9, 3, 9]  # by number, then by class
    assert train["image"].values[:, 0, 5, 5].tolist() == [3, 5, 13, 15]
    assert train["image"].values[0, :, 0, 0].tolist() == [3, 0, 255]


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"train/horsefly/0.png": picture(1), "test/cat/0.png": picture(1)}, "horsefly: no class"),
        ({"train/cat/0.png": picture(1, 33), "test/cat/0.png": picture(1)}, "33x33 pixels"),
        ({"train/cat/0.png": b"no picture", "test/cat/0.png": picture(1)}, "train/cat/0000: no picture"),
        ({"train/cat/0.png": picture(1)}, "no pictures of the split test"),
        ({"cifar-10-batches-py/data_batch_1": old_pickle({b"data": b"x"})}, "no pictures"),
        ({"cifar-10-batches-py/data_batch_1": old_pickle([1])}, "no dictionary"),
        (
            {"cifar-10-batches-py/data_batch_1": old_pickle({b"data": np.zeros((1, 9), np.uint8), b"labels": [1]})},
            "9 bytes, not 3072",
        ),
        (
            {"cifar-10-batches-py/data_batch_1": old_pickle({b"data": np.zeros((2, 3072), np.uint8), b"labels": [1]})},
            "2 pictures, but 1 labels",
        ),
        ({"x": b""}, "neither"),
    ],
    ids=range(9),
)  # fmt: skip
def test_cifar_faults(tmp_path: Path, members: dict[str, bytes], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read("cifar10", {"cifar-10-python.tar.gz": put(tmp_path / "c", tar(members))})


def test_cifar_labels_out_of_range(tmp_path: Path) -> None:
    bad = old_pickle({b"data": np.zeros((1, 3072), np.uint8), b"labels": [10]})
    members = {
        "cifar-10-batches-py/data_batch_1": bad,
        "cifar-10-batches-py/test_batch": batch(1, 0),
    }
    with pytest.raises(DataError, match=r"train label 10 .*must be 0 to 9"):
        read("cifar10", {"cifar-10-python.tar.gz": put(tmp_path / "c", tar(members))})


# --- conll05 ---

WORDS = "Big\ndogs\nbark\nand\nbite\ncats\n\nNo\nverb\n\nRun\n!\n\n"
PROPS = """\
-      (A0*     (A0*
-         *)       *)
bark    (V*)       *
-         *        *
bite      *      (V*)
-         *     (A1*)

-
-

run  (V*)
-      *

"""


def conll(words: str = WORDS, props: str = PROPS, part: str = "test.wsj") -> dict[str, bytes]:
    folder = f"conll05st-release/{part}"
    return {
        f"{folder}/words/{part}.words.gz": gzip.compress(words.encode(), mtime=0),
        f"{folder}/props/{part}.props.gz": gzip.compress(props.encode(), mtime=0),
    }


def conll_files(tmp_path: Path, **texts: str) -> dict[str, Path]:
    return {"conll05st-tests.tar.gz": put(tmp_path / "c", tar(conll(**texts)))}


def test_conll05_columns(tmp_path: Path) -> None:
    files = conll_files(tmp_path)
    files["wordDict.txt"] = put(tmp_path / "w", b"[unk]\nbark\nBig\ndogs\nbite\nand\nbos\n")
    files["verbDict.txt"] = put(tmp_path / "v", b"run\nbite\nbark\n")
    files["targetDict.txt"] = put(tmp_path / "t", b"B-V\nB-A1\nI-A0\nB-A0\nO\n")
    data = read("conll05", files)
    assert len(data["train"]) == 3
    assert data.spec.remarks == (
        "emb absent: the word vectors are trained, unless model.parameters.emb says otherwise",
    )
    assert ragged(data, "train", "word")[0] == [2, 3, 1, 5, 4, 0]
    # around `bark`, the third of six words
    near = [ragged(data, "train", f)[0] for f in ("ctx_n2", "ctx_n1", "ctx_0", "ctx_p1", "ctx_p2")]
    assert near == [[2] * 6, [3] * 6, [1] * 6, [5] * 6, [4] * 6]
    assert ragged(data, "train", "mark")[0] == [1, 1, 1, 1, 1, 0]
    # around `bite`, the fifth: behind the last word comes eos, which is not in the dictionary
    near = [
        ragged(data, "train", f)[1][0] for f in ("ctx_n2", "ctx_n1", "ctx_0", "ctx_p1", "ctx_p2")
    ]
    assert near == [1, 5, 4, 0, 0]
    assert ragged(data, "train", "ctx_n1")[2] == [6, 6]  # bos before `Run`
    assert [row[0] for row in ragged(data, "train", "verb")] == [2, 1, 0]
    labels = data.vocabularies["label"]
    assert labels.words == ("B-A0", "I-A0", "B-A1", "I-A1", "B-V", "I-V", "O")
    assert [labels.decode(row) for row in ragged(data, "train", "label")] == [
        ["B-A0", "I-A0", "B-V", "O", "O", "O"],
        ["B-A0", "I-A0", "O", "O", "B-V", "B-A1"],
        ["B-V", "O"],
    ]


def test_conll05_builds_dictionaries_and_says_so(tmp_path: Path) -> None:
    data = read("conll05", conll_files(tmp_path))
    assert "wordDict.txt and verbDict.txt and targetDict.txt absent: built" in data.spec.remarks[0]
    assert data.vocabularies["word"].words[:3] == ("<unk>", "bos", "eos")
    assert data.vocabularies["word"].encode(["unheard"]) == [0]
    assert data.vocabularies["verb"].words == ("bark", "bite", "run")
    assert data.spec.find("word").classes == 3 + 10


def test_conll05_holds_sentences_out(tmp_path: Path) -> None:
    data = read("conll05", conll_files(tmp_path), hold_out=3)
    assert (len(data["train"]), len(data["test"])) == (2, 1)
    files = {
        "conll05st-tests.tar.gz": put(tmp_path / "d", tar({**conll(), **conll(part="test.brown")}))
    }
    assert len(read("conll05", files, brown=True)["brown"]) == 3


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"words": WORDS + "more\n"}, "14 lines of words, but 13|lines of words"),
        (
            {"props": PROPS.replace("-         *        *\n", "-         *\n")},
            "line 4 has 2 columns",
        ),
        ({"props": PROPS.replace("run  (V*)", "run  (A0*)")}, "'run' is nowhere marked"),
        ({"props": PROPS.replace("run  (V*)", "run  V")}, "'V' is no role"),
        ({"props": PROPS.replace("run  (V*)", "-  (V*)")}, "0 predicates, but 1 columns"),
    ],
    ids=range(5),
)
def test_conll05_faults(tmp_path: Path, texts: dict[str, str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read("conll05", conll_files(tmp_path, **texts))


def test_conll05_a_role_that_the_list_does_not_have(tmp_path: Path) -> None:
    files = conll_files(tmp_path)
    files["targetDict.txt"] = put(tmp_path / "t", b"B-V\nO\n")
    with pytest.raises(DataError, match=r"the role B-A0 is not in targetDict\.txt"):
        read("conll05", files)


# --- wmt ---


def wmt14(**changed: bytes) -> dict[str, bytes]:
    members = {
        "wmt14/train/train": b"le chat\tthe cat\nsans tab\nun\tdeux\ttrois\n" + b"le " * 79 + b"\tlong\nchat\t" + b"cat " * 81 + b"\n",
        "wmt14/test/test": b"chien\tdog\n",
        "wmt14/gen/gen": b"le\tthe\n",
        "wmt14/src.dict": b"<s>\n<e>\n<unk>\nle\nchat\nchien\n",
        "wmt14/trg.dict": b"<s>\n<e>\n<unk>\nthe\ncat\n",
    }  # fmt: skip
    return {**members, **{k: v for k, v in changed.items() if "/" in k}}


def test_wmt14(tmp_path: Path) -> None:
    files = {"wmt14.tgz": put(tmp_path / "w", tar(wmt14()))}
    data = read("wmt14", files)
    # lines without exactly one tab are skipped; 79 + 2 source tokens and 81 target tokens are too many
    assert ragged(data, "train", "source") == [[0, 3, 4, 1]]
    assert ragged(data, "train", "target") == [[0, 3, 4]]
    assert ragged(data, "train", "next") == [[3, 4, 1]]
    assert ragged(data, "test", "next") == [[2, 1]] and len(data["gen"]) == 1
    small = read("wmt14", files, dict_size=4, max_tokens=0)
    assert ragged(small, "train", "source")[0] == [0, 3, 2, 1] and len(small["train"]) == 3
    assert small.spec.find("source").classes == 4


def test_wmt14_entries_keep_their_lines(tmp_path: Path) -> None:
    """A word that comes twice is found under its later line, an empty line keeps its number."""
    src = b"<s>\n<e>\n<unk>\nle\n\nchat\nle\n"
    data = read(
        "wmt14", {"wmt14.tgz": put(tmp_path / "w", tar({**wmt14(), "wmt14/src.dict": src}))}
    )
    assert ragged(data, "train", "source") == [[0, 6, 5, 1]]
    assert data.spec.find("source").classes == 7


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"wmt14/src.dict": b"le\n"}, "src.dict: has no entry <s>"),
        ({"wmt14/test/test": b"no tab\n"}, "test holds no pair"),
    ],
)
def test_wmt14_faults(tmp_path: Path, changed: dict[str, bytes], message: str) -> None:
    path = put(tmp_path / "w", tar({**wmt14(), **changed}))
    with pytest.raises(DataError, match=message):
        read("wmt14", {"wmt14.tgz": path})


def test_wmt16(tmp_path: Path) -> None:
    members = {
        "wmt16/train": "A dog runs .\tEin Hund läuft .\nA cat .\tEine Katze .\nA dog .\tEin Hund .\n".encode(),
        "wmt16/val": b"A bird .\tEin Vogel .\n",
        "wmt16/test": b"dog\tHund\n",
    }
    files = {"wmt16.tar.gz": put(tmp_path / "w", tar(members))}
    data = read("wmt16", files)
    # five English types, so five entries: . and A three times, dog twice; `.` comes behind `A`
    assert data.vocabularies["source"].words == ("<s>", "<e>", "<unk>", "A", ".")
    # six of seven German types are kept out of ten entries ... 7 entries in all: ". Ein Hund läuft"
    assert data.vocabularies["target"].words == ("<s>", "<e>", "<unk>", ".", "Ein", "Hund")
    assert ragged(data, "test", "source") == [[0, 2, 1]]
    assert ragged(data, "test", "target") == [[0, 5]] and ragged(data, "test", "next") == [[5, 1]]
    assert data.spec.sizes == {"train": 3, "valid": 1, "test": 1}
    back = read("wmt16", files, source="de", source_size=4)
    assert back.vocabularies["source"].words == ("<s>", "<e>", "<unk>", ".")
    assert back.vocabularies["target"].words == ("<s>", "<e>", "<unk>", "A", ".")
    assert ragged(back, "test", "next") == [[2, 1]]


# --- the others of the original's package ---


def test_movie_reviews(tmp_path: Path) -> None:
    members = {}
    for i in range(5):
        members[f"movie_reviews/neg/cv{i:03d}_1.txt"] = b"Bad film , bad !"
        members[f"movie_reviews/pos/cv{i:03d}_2.txt"] = b"good film"
    data = read("sentiment", {"movie_reviews.zip": put(tmp_path / "s", zipped(members))})
    assert data.vocabularies["word"].words == ("bad", "film", "!", ",", "good")
    assert (len(data["train"]), len(data["test"])) == (8, 2)
    assert data["train"].columns["label"].values.tolist() == [0, 1] * 4
    assert ragged(data, "test", "words") == [[0, 1, 3, 0, 2], [4, 1]]


def letor(rows: list[tuple[int, int]]) -> bytes:
    lines = []
    for n, (score, query) in enumerate(rows):
        features = " ".join(f"{i}:{n}.5" for i in range(1, 47))
        lines.append(f"{score} qid:{query} {features} #docid = GX{n} inc = 1\n")
    return "".join(lines).encode()


def test_letor(tmp_path: Path) -> None:
    train = letor([(0, 10), (2, 10), (1, 10), (0, 11), (0, 11), (1, 12)])
    members = {f"MQ2007/Fold1/{part}.txt": train for part in ("train", "vali", "test")}
    members["MQ2007/Fold2/train.txt"] = letor([(1, 1)])
    files = {"MQ2007.rar": put(tmp_path / "m", tar(members, ""))}
    data = read("mq2007", files)
    # query 11 has no relevant document
    assert ragged(data, "train", "relevance") == [[2, 1, 0], [1]]
    features = data["train"].columns["features"].row(0)
    assert np.asarray(features)[:, 0].tolist() == [1.5, 2.5, 0.5]
    assert list(data.splits) == ["train", "valid", "test"]
    pairs = read("mq2007", files, mode="pairwise")["train"].columns
    assert pairs["left"].values[:, 0].tolist() == [1.5, 1.5, 2.5]
    assert pairs["right"].values[:, 0].tolist() == [2.5, 0.5, 0.5]
    assert len(read("mq2007", files, fold=2)["train"]) == 1
    with pytest.raises(DataError, match="line 1 has 3 columns"):
        read(
            "mq2007",
            {"MQ2007.rar": put(tmp_path / "n", tar({"Fold1/train.txt": b"1 qid:1 1:2\n"}))},
        )
    with pytest.raises(DataError, match="RAR archive"):
        read("mq2007", {"MQ2007.rar": put(tmp_path / "r", b"Rar!\x1a\x07\x00")})


# --- flowers ---


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("order", ["<", ">"])
def test_matlab_files(tmp_path: Path, packed: bool, order: str) -> None:
    arrays = {
        "a": np.arange(6, dtype=np.uint16).reshape(2, 3),
        "long_name": np.array([[1.5, -2.0]]),
        "s": np.array([[7, 9]], np.uint8),
    }
    found = read_mat(put(tmp_path / "m", mat(arrays, packed, order)))
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize("raw", [b"", b"MATLAB 7.3 HDF", mat({"a": np.ones((9, 9))}, True)[:-9],
                                 mat({"a": np.ones((9, 9))}, False)[:-9]], ids=range(4))  # fmt: skip
def test_damaged_matlab_files(tmp_path: Path, raw: bytes) -> None:
    with pytest.raises(DataError, match="MATLAB file"):
        read_mat(put(tmp_path / "m", raw))


def test_flowers(tmp_path: Path) -> None:
    pictures = {
        f"jpg/image_{n:05d}.jpg": photograph(60 + 20 * (n % 2), 60, 40 * n) for n in (5, 4, 3, 2, 1)
    }
    labels = np.array([[10, 20, 30, 40, 102]], np.uint8)
    sets = {"trnid": np.array([[4]], np.uint16), "valid": np.array([[1]], np.uint16),
            "tstid": np.array([[5, 2, 3]], np.uint16)}  # fmt: skip
    files = {"102flowers.tgz": put(tmp_path / "f", tar(pictures)),
             "imagelabels.mat": put(tmp_path / "l", mat({"labels": labels}, True)),
             "setid.mat": put(tmp_path / "s", mat(sets, True))}  # fmt: skip
    data = read("flowers", files, short=30, size=20, crop="centre")
    assert data.spec.sizes == {"train": 3, "valid": 1, "test": 1}
    assert data["train"].columns["label"].values.tolist() == [19, 29, 101]  # by number: 2, 3, 5
    assert data["test"].columns["label"].values.tolist() == [39]
    image = data["train"].columns["image"]
    assert image.item_shape == (3, 20, 20)
    assert [int(image.values[i, 0, 10, 2]) // 10 for i in range(3)] == [8, 12, 20]
    # cut from the middle: the border of the halves is in the middle of the square
    assert image.values[1, 2, 10, :8].max() < 40 and image.values[1, 2, 10, 12:].min() > 160
    random = read("flowers", files, short=30, size=20)
    check_random_squares(random, image.values)
    card = shipped("flowers")
    reader = reader_function(card)(card, short=30, size=20)
    prepared.save(random, tmp_path / "kept")
    kept = prepared.load(tmp_path / "kept", reader.describe(), reader.split)
    assert kept is not None and kept.fingerprint == random.fingerprint
    check_random_squares(kept, image.values)
    missing = put(tmp_path / "g", tar({k: v for k, v in pictures.items() if "00002" not in k}))
    with pytest.raises(DataError, match=r"holds no image_00002\.jpg \(1 are missing\)"):
        read("flowers", {**files, "102flowers.tgz": missing}, short=30, size=20)
    with pytest.raises(ConfigError, match="larger than short"):
        read("flowers", files, short=10, size=20)


def check_random_squares(data: Dataset, middle: np.ndarray) -> None:
    """Evaluation cuts the middle. Training cuts anywhere and mirrors half, by (epoch, row) alone."""
    train = data["train"]
    assert train.streamed and data["test"].columns["image"].item_shape == (3, 20, 20)
    assert (train.take(np.array([2, 0]))["image"].values == middle[[2, 0]]).all()
    assert data.spec.find("image").shape == (3, 20, 20)
    seen = [train.take(np.array([1, 2]), epoch) for epoch in range(40)]
    assert (seen[7]["image"].values[1:] == train.take(np.array([2]), 7)["image"].values).all()
    squares = np.stack([s["image"].values[0] for s in seen])  # a photograph of 40x30
    assert (
        squares.shape == (40, 3, 20, 20)
        and [s["label"].values.tolist() for s in seen[:2]] == [[29, 101]] * 2
    )
    blue = squares[:, 2, 10] > 100  # one half of every line of the photograph
    mirrored = blue[:, 0] & ~blue[:, -1]
    assert 10 <= mirrored.sum() <= 30
    assert len({int(b.sum()) for b in blue}) > 5, "cut at one place only"
    assert len({tuple(np.asarray(s[0, :, 5])) for s in squares}) > 1


# --- voc2012 ---


def test_voc2012(tmp_path: Path) -> None:
    data = read("voc2012", voc(tmp_path / "v"), size=32)
    assert data.spec.sizes == {"train": 2, "valid": 1}
    image, mask = (data["train"].columns[n].values for n in ("image", "mask"))
    assert image.shape == (2, 3, 32, 32) and mask.shape == (2, 32, 32) and mask.dtype == np.uint8
    # the first is 32x24, its rest black and void; its left half is class 15 and red
    assert (mask[0, :24, :15] == 15).all() and (mask[0, :24, 19:] == 0).all()
    assert (
        (mask[0, :24, 16] == 255).all()
        and (mask[0, 24:] == 255).all()
        and not image[0, :, 24:].any()
    )
    assert image[0, 2, 5, :12].max() < 40 and image[0, 2, 5, 20:].min() > 160
    assert image[0, 0, 5, 5] == pytest.approx(80, abs=5) and image[1, 0, 5, 5] == pytest.approx(
        160, abs=5
    )
    assert (mask[1, :, 16:] == 255).all() and (mask[1, :, :7] == 15).all()
    assert data.spec.find("mask").names[15] == "person"
    (line,) = (x for x in lines(data, "train", 1) if "mask" in x)
    assert '"mask": "32x32 of person, ' in line and "255" in line


@pytest.mark.parametrize(("member", "given", "message"), [
    ("ImageSets/Segmentation/val.txt", b"", r"holds no ImageSets/Segmentation/val\.txt"),
    ("ImageSets/Segmentation/train.txt", b"\n", "names no photographs"),
    ("JPEGImages/2007_3.jpg", b"", r"holds no JPEGImages/2007_3\.jpg \(1 are missing\)"),
    ("SegmentationClass/2008_2.png", b"GIF89a", r"2008_2\.png: no picture that can be read"),
    ("SegmentationClass/2008_2.png", masked(30, 60, mode="RGB"), "a mask has a palette, this picture is RGB"),
    ("SegmentationClass/2008_2.png", masked(30, 60, np.full((60, 30), 21, np.uint8)), "a pixel has class 21"),
], ids=["list", "empty", "photograph", "foreign", "colours", "class"])  # fmt: skip
def test_damaged_voc2012(tmp_path: Path, member: str, given: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read("voc2012", voc(tmp_path / "v", **{member: given}), size=32)


# --- cards and readers agree ---

NAMES = ("imikolov", "imdb", "movielens", "movielens_100k", "cifar10", "cifar100", "conll05", "wmt14", "wmt16",
         "sentiment", "mq2007", "flowers", "voc2012")  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_what_is_described_before_opening(name: str) -> None:
    card = shipped(name)
    spec = reader_function(card)(card).describe()
    assert spec.sizes == card.sizes()
    for field in spec.fields:
        if field.vocabulary:
            assert field.classes == card.vocabularies[field.vocabulary].size


def test_other_settings_leave_sizes_open() -> None:
    card: Card = shipped("imikolov")
    reader = reader_function(card)(card, n=3)
    assert not reader.standard() and reader.describe().find("next").classes is None
    assert reader.describe().sizes == {"train": None, "test": None}
    assert reader.describe().find("context").shape == (2,)


def test_a_set_that_nothing_reads() -> None:
    with pytest.raises(ConfigError, match="nothing in paddlecli reads the data set voc2012"):
        reader_function(shipped("voc2012").model_copy(update={"reader": None}))
