"""A user's own text for the book's data sets: it becomes what the reader makes of the corpus itself."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packing import put, tar, zipped
from test_book_sets import ML, PTB, REVIEWS, conll_files, ragged, read

from paddlecli.data.columns import Dataset
from paddlecli.data.inputs import read_inputs, stack
from paddlecli.data.own.frame import Faults, Values, frame_of
from paddlecli.data.readers.words import plain_treebank, treebank
from paddlecli.data.records import Record
from paddlecli.data.transforms.corpora import MosesWords
from paddlecli.errors import DataError, UsageError


def stored(data: Dataset) -> dict[str, Any]:
    """The preprocessing as it comes back from a model directory."""
    return json.loads(json.dumps(data.preprocessing()))


def one(spec: dict[str, Any], **given: Any) -> Record:
    (record,) = read_inputs(spec, **given)
    return record


@pytest.fixture
def films(tmp_path: Path) -> Dataset:
    return read("imdb", {"aclImdb_v1.tar.gz": put(tmp_path / "a", tar(REVIEWS, "xz"))}, cutoff=0)


# --- pairs of sentences and reviews ---
WMT14 = {
    "wmt14/train/train": b"l&apos; eau d&apos; ici .\tit &apos;s water .\n",
    "wmt14/test/test": b"eau\twater\n",
    "wmt14/src.dict": b"<s>\n<e>\n<unk>\nl&apos;\neau\nd&apos;\nici\n.\n&quot;\n",
    "wmt14/trg.dict": b"<s>\n<e>\n<unk>\nit\n&apos;s\nwater\n.\n",
}


def translator(tmp_path: Path, **changed: bytes) -> dict[str, Any]:
    """What a net keeps that reads the source alone."""
    files = {"wmt14.tgz": put(tmp_path / "w", tar({**WMT14, **changed}))}
    return {**stored(read("wmt14", files)), "needed": ["source"]}


@pytest.mark.parametrize("text", [
    "L'eau d'ici.", "l\u2019eau d\u2019ici .", "l&apos; eau d&apos; ici .", "l' eau d' ici .",
], ids=["typed", "curly", "as the corpus", "cut"])  # fmt: skip
def test_french_is_cut_and_written_as_the_dictionary_is(tmp_path: Path, text: str) -> None:
    """This dictionary has Moses' escapes and no capital letters."""
    record = one(translator(tmp_path), text=[text])
    assert record.arrays["source"].tolist() == [0, 3, 4, 5, 6, 7, 1] and not record.notes


def test_a_dictionary_with_capitals_and_plain_marks(tmp_path: Path) -> None:
    words = b"<s>\n<e>\n<unk>\nL'\neau\n"
    spec = translator(tmp_path, **{"wmt14/src.dict": words})
    assert one(spec, text=["L'eau"]).arrays["source"].tolist() == [0, 3, 4, 1]
    record = one(spec, text=["l'Eau"])
    assert record.arrays["source"].tolist() == [0, 2, 2, 1]
    assert record.notes == ("2 of 2 words not in the vocabulary: l', Eau",)  # marks are no words


def test_pairs_carry_what_is_to_be_said(tmp_path: Path) -> None:
    path = put(tmp_path / "pairs.tsv", b"L'eau\tIt's water.\n\n  \t.\n")
    good, empty = read_inputs(translator(tmp_path), [str(path)])
    assert good.labels["next"].tolist() == [3, 4, 5, 6, 1]
    assert empty.input.endswith(":3") and "there is no word" in str(empty.error)


@pytest.mark.parametrize("text", ["", " \t "], ids=["nothing", "blanks"])
def test_nothing_to_translate(tmp_path: Path, text: str) -> None:
    assert "there is no word" in str(one(translator(tmp_path), text=[text]).error)


@pytest.mark.parametrize(("apostrophe", "text", "cut"), [
    ("next", "It's 1,000.5 well-known... 'quoted' dogs'", "It 's 1,000.5 well-known ... ' quoted ' dogs '"),
    ("next", "it 's don 't", "it 's don 't"),
    ("previous", "qu'il aujourd'hui", "qu' il aujourd' hui"),
    ("previous", "l'e\u0301cole", "l' \u00e9cole"),
    ("apart", "geht's [so]", "geht ' s [ so ]"),
])  # fmt: skip
def test_words_as_moses_cuts_them(apostrophe: str, text: str, cut: str) -> None:
    assert moses(text, apostrophe=apostrophe) == cut == moses(cut, apostrophe=apostrophe)


def test_marks_as_moses_writes_them() -> None:
    escaped = "a &amp; b &apos;s &#91; c &#93;"
    assert moses("a & b's [c]", escape=True) == escaped == moses(escaped, escape=True)


def moses(text: str, **how: Any) -> str:
    values = Values("cells", [text])
    return " ".join(MosesWords(**how).apply(values, Faults(frame_of({"c": values}, "f"))).rows[0])


def test_reviews_without_a_mark_for_unknown_words(tmp_path: Path) -> None:
    reviews = {
        f"movie_reviews/{kind}/cv{i:03d}_{i}.txt": text
        for i in range(5)
        for kind, text in (("neg", b"dull , dull film\n"), ("pos", b"great film !\n"))
    }
    data = read("sentiment", {"movie_reviews.zip": put(tmp_path / "m", zipped(reviews))})
    record = one(stored(data), text=["A GREAT film, really"])
    words = [data.vocabularies["word"].words[i] for i in record.arrays["words"]]
    assert words == ["great", "film", ","]
    assert record.notes == ("2 of 5 words not in the vocabulary: a, really",)
    assert "there is no word" in str(one(stored(data), text=["nothing known"]).error)


# --- film reviews ---


def test_reviews_become_the_columns_of_training(films: Dataset) -> None:
    spec = stored(films)
    order = ["train/pos/2_9", "train/pos/10_7", "train/neg/0_1"]
    for row, name in enumerate(order):
        text = REVIEWS[f"aclImdb/{name}.txt"].decode("utf-8")
        record = one(spec, text=[text])
        assert record.arrays["words"].tolist() == ragged(films, "train", "words")[row], name
        assert record.arrays["words"].dtype == np.int64 and not record.notes


def test_unknown_words_are_told(films: Dataset) -> None:
    record = one(stored(films), text=["A GREAT great film"])
    unknown = len(films.vocabularies["word"]) - 1
    assert record.arrays["words"].tolist() == [4, unknown, unknown, 0]
    assert record.notes == ("2 of 4 words not in the vocabulary: great",)
    assert record.words == ("a", "great", "great", "film")


@pytest.mark.parametrize(
    "text", ["", "   ", "!?", "\u00a0"[:0]], ids=["empty", "blanks", "marks", "none"]
)
def test_a_text_without_words_is_an_error(films: Dataset, text: str) -> None:
    assert "there is no word" in str(one(stored(films), text=[text]).error)


def test_files_of_lines_with_and_without_labels(films: Dataset, tmp_path: Path) -> None:
    path = put(
        tmp_path / "in.txt",
        b"\xef\xbb\xbfgood film\n\npositive\tbad\r\nnegative\tfine film\nodd\tfine\n",
    )
    good, bad, fine, odd = read_inputs(stored(films), [str(path)])
    assert good.input.endswith("in.txt:1") and bad.input.endswith("in.txt:3")
    assert good.arrays["words"].tolist() == [3, 0] and not good.labels
    assert (bad.labels["label"].item(), fine.labels["label"].item()) == (0, 1)
    assert not odd.labels and "'odd' is none of the 2 classes" in odd.notes[0]


def test_json_lines_and_csv(films: Dataset, tmp_path: Path) -> None:
    lines = put(
        tmp_path / "in.jsonl", b'{"text": "good film"}\n{"txt": "x"}\nno json\n{"text": 1}\n'
    )
    first, second, third, fourth = read_inputs(stored(films), [str(lines)])
    assert first.arrays["words"].tolist() == [3, 0]
    assert "text" in str(second.error) and third.error is not None
    assert fourth.error is not None or fourth.notes
    table = put(tmp_path / "in.csv", b'text,label\n"good, film",positive\n')
    record = one(stored(films), paths=[str(table)])
    assert record.arrays["words"].tolist() == [3, 0] and record.labels["label"].item() == 0


def test_bytes_that_are_no_text_are_unknown_words(films: Dataset, tmp_path: Path) -> None:
    """As in training, where they could only be words that no dictionary has."""
    path = put(tmp_path / "in.txt", b"good caf\xe9 film\ngood\n")
    odd, good = read_inputs(stored(films), [str(path)])
    assert odd.arrays["words"].tolist() == [3, len(films.vocabularies["word"]) - 1, 0]
    assert odd.notes == (r"1 of 3 words not in the vocabulary: caf\xe9",) and not good.notes
    picture = put(tmp_path / "x.txt", b"\x89PNG\0\0film")
    assert "zero bytes" in str(one(stored(films), paths=[str(picture)]).error)


def test_a_line_of_a_million_words(films: Dataset, tmp_path: Path) -> None:
    path = put(tmp_path / "in.txt", b"good film " * 500_000)
    record = one(stored(films), paths=[str(path)])
    assert record.arrays["words"].size == 1_000_000 and not record.notes
    assert stack(stored(films), [record])["words"].offsets[0].tolist() == [0, 1_000_000]


# --- Penn Treebank ---


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("It's 20,000.", "it 's N"),
        ("The company won't sell; (its) shares", "the company wo n't sell its shares"),
        ("$10 million in the U.S.", "$ N million in the u.s."),
        ("Mr. Dow of Dow Corp. said.", "mr. dow of dow corp. said"),
        ("a <unk> N-share AT&T 1990s", "a <unk> n-share at&t 1990s"),
        ("", ""),
    ],
)
def test_plain_treebank(text: str, cut: str) -> None:
    assert " ".join(plain_treebank(text)) == cut
    assert plain_treebank(cut) == cut.split()


def test_treebank_keeps_marks_and_capitals() -> None:
    assert treebank('He said, "I can\'t."') == ["He", "said", ",", '"', "I", "ca", "n't", ".", '"']


def ptb(tmp_path: Path, **settings: Any) -> Dataset:
    path = put(tmp_path / "x.tgz", tar(PTB))
    return read("imikolov", {"simple-examples.tgz": path}, cutoff=0, **settings)


def test_the_last_words_predict_the_next(tmp_path: Path) -> None:
    data = ptb(tmp_path, n=3)
    spec, table = stored(data), data.vocabularies["word"]
    for text, context in [("a b a", "b a"), ("A, b!", "a b"), ("b", "<s> b"), ("a zzz", "a <unk>")]:
        found = one(spec, text=[text]).arrays["context"]
        assert found.shape == (2,) and table.decode(found.tolist()) == context.split()
    train = data["train"].columns["context"].values.tolist()
    assert one(spec, text=["a b"]).arrays["context"].tolist() == train[1]


@pytest.mark.parametrize(
    ("settings", "text", "field", "words"),
    [
        ({"n": 3, "target": "middle"}, "a c", "context", "a c"),
        ({"n": 3, "mode": "around"}, "B", "centre", "b"),
        ({"mode": "sequence"}, "a b", "words", "<s> a b"),
    ],
)
def test_other_modes_read_texts_too(
    tmp_path: Path, settings: dict[str, Any], text: str, field: str, words: str
) -> None:
    data = ptb(tmp_path, **settings)
    found = one(stored(data), text=[text]).arrays[field]
    assert data.vocabularies["word"].decode(found.tolist()) == words.split()


def test_too_few_words_for_a_window(tmp_path: Path) -> None:
    record = one(stored(ptb(tmp_path, n=5)), text=["a b"])
    assert "there are 3 words and marks; the network reads 4" in str(record.error)


def test_words_around(tmp_path: Path) -> None:
    data = ptb(tmp_path, n=3, mode="around")
    table, columns = data.vocabularies["word"], data["train"].columns
    assert table.decode(columns["centre"].values[:, 0].tolist())[:3] == ["a", "b", "a"]
    around = [" ".join(table.decode(row)) for row in columns["neighbours"].values.tolist()]
    assert around[:3] == ["<s> b", "a a", "b <unk>"]
    assert data.spec.find("neighbours").shape == (2,) and data.spec.find("centre").shape == (1,)
    with pytest.raises(Exception, match="`target` has a meaning with `mode: ngram`"):
        ptb(tmp_path, mode="around", target="middle")


def test_subsampling_leaves_frequent_words_out(tmp_path: Path) -> None:
    text = b" the rare the cat the dog the cow the\n" * 400
    members = {**PTB, "./simple-examples/data/ptb.train.txt": text}
    files = {"simple-examples.tgz": put(tmp_path / "y.tgz", tar(members))}
    whole = read("imikolov", files, cutoff=0, n=3, mode="around")
    thin = read("imikolov", files, cutoff=0, n=3, mode="around", subsample=0.1)
    the = whole.vocabularies["word"].ids["the"]

    def share(data: Dataset) -> float:
        return float((data["train"].columns["centre"].values == the).mean())

    # 5 of 11 words are `the`: sqrt(0.1 * 11 / 5) = 0.469 of them stay; the others are rarer than 0.1
    assert share(whole) == pytest.approx(5 / 9, abs=0.001)
    assert 0.2 < share(thin) < 0.4
    assert np.array_equal(
        thin["test"].columns["centre"].values, whole["test"].columns["centre"].values
    )
    again = read("imikolov", files, cutoff=0, n=3, mode="around", subsample=0.1)
    assert again.fingerprint == thin.fingerprint
    other = read("imikolov", files, cutoff=0, n=3, mode="around", subsample=0.1, seed=1)
    assert other.fingerprint != thin.fingerprint


# --- semantic roles ---


def test_a_sentence_becomes_the_nine_columns(tmp_path: Path) -> None:
    data = read("conll05", conll_files(tmp_path))
    spec = stored(data)
    texts = ["Big dogs [bark] and bite cats", "Big dogs bark and [bite|bite] cats", "[Run] !"]
    for row, text in enumerate(texts):
        record = one(spec, text=[text])
        assert record.error is None and len(record.arrays) == 8
        for name, array in record.arrays.items():
            assert array.tolist() == ragged(data, "train", name)[row], (text, name)
    assert one(spec, text=["They [bark]"]).words == ("They", "bark")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Big dogs bark", "no words stand in brackets"),
        ("[Big] dogs [bark]", "2 words stand in brackets"),
        ("dogs [do bark]", "is not one word"),
        ("dogs []", "is not one word"),
        ("dogs [meow]", r"'meow' is not known: say its lemma, [meow|LEMMA]"),
        ("dogs [meow|meow]", "'meow' is not in the vocabulary"),
    ],
    ids=range(6),
)
def test_a_sentence_without_a_usable_predicate(tmp_path: Path, text: str, message: str) -> None:
    record = one(stored(read("conll05", conll_files(tmp_path))), text=[text])
    assert message in str(record.error) and not record.arrays


# --- films and users ---


@pytest.fixture
def ratings(tmp_path: Path) -> Dataset:
    return read("movielens", {"ml-1m.zip": put(tmp_path / "m", zipped(ML))})


@pytest.mark.parametrize("film", ["1", "toy story", "Toy Story (1995)", "toy", " Toy Story "])
def test_a_film_by_number_or_title(ratings: Dataset, film: str) -> None:
    record = one(stored(ratings), fields=["user=2", f"movie={film}"])
    assert record.error is None
    train = ratings["train"].columns
    same = (train["user_id"].values == 2) & (train["movie_id"].values == 1)
    row = int(np.flatnonzero(same)[0])
    for name, array in record.arrays.items():
        assert array.tolist() == np.asarray(train[name].row(row)).tolist(), name


@pytest.mark.parametrize(
    ("user", "film", "message"),
    [
        ("9", "1", "there is no user '9': the model knows 2 of them, numbers 1 to 2"),
        ("1", "2", "there is no film '2'"),
        ("1", "toy storx", "did you mean 1 Toy Story (1995)?"),
        ("1", "t", "may be 1 Toy Story (1995), 3 Élan, The 2nd (1996): give the number"),
        ("1", "", "there is no film ''"),
        ("", "1", "there is no user ''"),
    ],
    ids=range(6),
)
def test_unknown_users_and_films(ratings: Dataset, user: str, film: str, message: str) -> None:
    record = one(stored(ratings), fields=[f"user={user}", f"movie={film}"])
    assert message in str(record.error)


def test_pairs_in_files(ratings: Dataset, tmp_path: Path) -> None:
    lines = put(tmp_path / "in.txt", b"1\tToy Story\n2\t3\n1\n")
    first, second, third = read_inputs(stored(ratings), [str(lines)])
    assert first.arrays["movie_id"].item() == 1 and second.arrays["user_id"].item() == 2
    assert "movie is missing" in str(third.error)
    rows = put(tmp_path / "in.jsonl", b'{"user": 1, "movie": "toy story"}\n')
    assert one(stored(ratings), paths=[str(rows)]).arrays["movie_id"].item() == 1
    with pytest.raises(UsageError, match="takes movie, user"):
        list(read_inputs(stored(ratings), text=["1"]))


def test_what_is_known_of_films(ratings: Dataset) -> None:
    films = ratings.entities["movie"]
    assert films.rows[0]["name"] == "Toy Story (1995)" and films.label(3) == "Élan, The 2nd (1996)"
    counted = np.bincount(ratings["train"].columns["movie_id"].values, minlength=4)
    assert [row["rows"] for row in films.rows] == counted[[1, 3]].tolist()
    assert ratings.spec.find("movie_id").names[1] == "Toy Story (1995)"


def test_history_is_what_was_rated_before(tmp_path: Path) -> None:
    data = read("movielens", {"ml-1m.zip": put(tmp_path / "m", zipped(ML))}, history=3)
    draws = np.random.RandomState(0).random_sample(40) < 0.1
    made = [(1 + i % 2, 1 + 2 * (i % 3 == 0), i) for i in range(40)]
    past = [m for m, test in zip(made, draws, strict=True) if not test]

    def before(user: int, time: float) -> list[int]:
        return [film for u, film, t in past if u == user and int(f"97{t}") < time][-3:]

    ordered = sorted(past, key=lambda m: int(f"97{m[2]}"))
    past = ordered
    for split, wanted in (("train", ~draws), ("test", draws)):
        found = ragged(data, split, "history")
        chosen = [m for m, keep in zip(made, wanted, strict=True) if keep]
        assert found == [before(u, int(f"97{t}")) for u, _, t in chosen], split
    assert data.entities["user"].rows[0]["history"] == before(1, np.inf)
    record = one(stored(data), fields=["user=1", "movie=1"])
    assert record.arrays["history"].tolist() == before(1, np.inf)


def test_a_damaged_table_of_films(tmp_path: Path) -> None:
    from paddlecli.data.entities import Entities

    for text in (b"", b"{}\n", b'{"table": "film"}\n{"name": "x"}\n', b"no json\n"):
        with pytest.raises(DataError, match=r"damaged|without a number"):
            Entities.load(put(tmp_path / "t.jsonl", text))
    with pytest.raises(DataError, match="number twice"):
        Entities("film", _twice())


def _twice() -> Sequence[dict[str, Any]]:
    return [{"id": 1, "name": "a"}, {"id": 1, "name": "b"}]
