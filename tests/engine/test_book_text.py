"""The book's nets on text and on ratings, trained on small archives of the same format: what `predict`, `recommend` and
`embeddings` answer to a user."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from paddlecli.cli.app import main
from paddlecli.data.cards import shipped
from paddlecli.data.fetching import imports
from paddlecli.engine.api import evaluate, fit, predict
from paddlecli.engine.embeddings import (
    Table,
    export,
    neighbourly,
    picture,
    principal,
    table_of,
    tables,
)
from paddlecli.engine.predict import model_of
from paddlecli.engine.recommend import recommend
from paddlecli.errors import DataError, ResourceError, RunError, UsageError

QUICK = ["train.seed=3", "checkpoint.every_epochs=0"]


def tar(members: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def zipped(members: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache and runs of the test's own."""
    monkeypatch.setenv("PADDLECLI_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def bring(place: Path, name: str, file: str, data: bytes) -> None:
    path = place / file
    path.write_bytes(data)
    imports.bring_in(shipped(name), path, unofficial=True)


def trained(place: Path, recipe: str, *settings: str) -> Path:
    run = place / "run"
    fit(recipe, [*QUICK, *settings], run_dir=run)
    return run


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code and both streams of a command."""
    capsys.readouterr()
    code = main(list(arguments))
    shown = capsys.readouterr()
    return code, shown.out, shown.err


# -- film reviews -----------------------------------------------------------------------------------------------------
GOOD, BAD = ("great", "lovely", "fine"), ("awful", "dull", "bad")


@pytest.fixture
def films(place: Path) -> Path:
    draws = np.random.default_rng(5)
    members = {}
    for split, count in (("train", 60), ("test", 20)):
        for i in range(count):
            kind, words = (("pos", GOOD), ("neg", BAD))[i % 2]
            said = [str(w) for w in draws.choice(words, 2)]
            text = f"This is a {said[0]} movie, really {said[1]}!<br />"
            members[f"aclImdb/{split}/{kind}/{i}_{9 if i % 2 == 0 else 1}.txt"] = text.encode()
    bring(place, "imdb", "aclImdb_v1.tar.gz", tar(members))
    return place


SMALL = {
    "conv": ["model.dim=8", "model.filters=8"],
    "stacked_lstm": ["model.dim=8", "model.hidden=16"],
    "dyn_rnn": ["model.dim=8", "model.hidden=16"],
}


@pytest.mark.parametrize("net", SMALL)
def test_sentiment_in_words(films: Path, net: str, capsys: pytest.CaptureFixture[str]) -> None:
    run = trained(films, f"understand_sentiment/{net}", *SMALL[net], "data.cutoff=0", "train.epochs=12",
                  "train.batch_size=8", "optimizer.learning_rate=0.1")  # fmt: skip
    code, out, err = told(
        capsys,
        "predict",
        str(run),
        "--text",
        "this is a great movie",
        "--text",
        "this is very BAD",
        "--text",
        "",
    )
    first, second, third = out.splitlines()
    assert code == 4 and "there is no word" in third and "1 of 3 inputs" in err
    assert first.startswith("this is a great movie: positive 0.9") and "then negative 0.0" in first
    assert ": negative 0." in second and "not in the vocabulary: very" in second
    lines = films / "reviews.txt"
    lines.write_bytes(
        b"positive\ta lovely movie\nnegative\tdull, dull\xe9 awful\npositive\tzzz fine\n"
    )
    code, out, err = told(capsys, "predict", str(run), str(lines), "--json")
    records = [json.loads(line) for line in out.splitlines()]
    assert [r["label"] for r in records] == ["positive", "negative", "positive"] and code == 0
    assert "3 labelled inputs" in err and "accuracy 1" in err
    assert r"dull\xe9" in records[1]["notes"][0]


def test_answers_do_not_depend_on_the_batch(films: Path) -> None:
    run = trained(
        films,
        "understand_sentiment/stacked_lstm",
        *SMALL["stacked_lstm"],
        "data.cutoff=0",
        "train.epochs=1",
    )
    texts = [" ".join((GOOD + BAD)[: 1 + i % 6]) * (1 + i % 3) for i in range(30)]
    one, seven, many = (
        [p.answer for p in predict(run, texts=texts, batch_size=size)] for size in (1, 7, 64)
    )
    assert one == seven == many
    turned = [p.answer for p in predict(run, texts=texts[::-1], batch_size=7)]
    assert turned[::-1] == one


def test_a_text_of_a_million_words(films: Path) -> None:
    run = trained(
        films, "understand_sentiment/conv", *SMALL["conv"], "data.cutoff=0", "train.epochs=1"
    )
    long = films / "long.txt"
    long.write_text("great " * 1_000_000 + "\nfine\n")
    (films / "short.txt").write_text("fine\n")
    first, second = predict(run, [str(long)])
    (alone,) = predict(run, [str(films / "short.txt")])
    assert first.error is None and second.answer == alone.answer


# -- Penn Treebank ----------------------------------------------------------------------------------------------------
SENTENCES = (
    "the cat sat on the mat",
    "the dog sat on the rug",
    "a cat ran to the dog",
    "a dog ran to the cat",
)


@pytest.fixture
def ptb(place: Path) -> Path:
    text = "".join(f" {s} \n" for s in SENTENCES * 30).encode()
    folder = "./simple-examples/data/ptb"
    bring(
        place,
        "imikolov",
        "simple-examples.tgz",
        tar({f"{folder}.train.txt": text, f"{folder}.valid.txt": text}),
    )
    return place


def test_the_next_word(ptb: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = trained(ptb, "word2vec/ngram", "data.cutoff=0", "train.epochs=30", "train.batch_size=20", "optimizer.learning_rate=0.05", "predict.top=2")  # fmt: skip
    code, out, _ = told(
        capsys,
        "predict",
        str(run),
        "--text",
        "The cat sat on",
        "--text",
        "a cat ran to",
        "--text",
        "the cat",
    )
    first, second, third = out.splitlines()
    assert code == 4 and first.startswith("The cat sat on: the 0.") and first.count(",") == 0
    assert second.startswith("a cat ran to: the 0.")
    assert "there are 3 words and marks; the network reads 4" in third
    (model,) = (ptb / "run" / "model" / "vocabularies").iterdir()
    assert model.read_text().splitlines()[-1] == "<unk>"


@pytest.mark.parametrize("net", ["cbow", "skipgram"])
def test_other_word_vectors(ptb: Path, net: str) -> None:
    rate = {"cbow": "0.1", "skipgram": "1.0"}[net]
    whole = {"cbow": [], "skipgram": ["data.subsample=0"]}[net]
    run = trained(ptb, f"word2vec/{net}", "data.cutoff=0", "train.epochs=20", "train.batch_size=20", f"optimizer.learning_rate={rate}", "model.dim=8", *whole)  # fmt: skip
    losses = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    ends = [
        e["metrics"]["test"]["loss"] if "test" in e.get("metrics", {}) else None for e in losses
    ]
    text = {"cbow": "the cat on the", "skipgram": "sat"}[net]
    (answer,) = predict(run, texts=[text])
    top = [r["label"] for r in answer.answer["probabilities"]]
    assert (top[0] == "sat") if net == "cbow" else set(top) & {"on", "the", "cat", "dog"}, ends
    assert sum(1 for t in tables(model_of(str(run))) if t == "words/w") == 1
    sizes = [evaluate(run, batch_size=size).metrics["loss"] for size in (20, 7, 3, 2, 1)]
    assert len(set(sizes)) == 1, sizes


def test_embeddings_of_a_run(ptb: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(trained(ptb, "word2vec/ngram", "data.cutoff=0", "train.epochs=2"))
    table = table_of(model_of(run))
    assert table.name == "words/w" and {"cat", "dog", "<unk>"} <= set(table.names)
    code, out, _ = told(capsys, "embeddings", "neighbors", run, "Cat", "--top", "3", "--json")
    near = json.loads(out)["nearest"]
    assert code == 0 and len(near) == 3 and "cat" not in [n["name"] for n in near]
    assert near[0]["cosine"] >= near[1]["cosine"] >= near[2]["cosine"]
    code, out, _ = told(capsys, "embeddings", "similarity", run, "cat", "cat")
    assert (code, out) == (0, "1.0000\n")
    code, out, _ = told(capsys, "embeddings", "analogy", run, "cat", "dog", "mat", "--json")
    assert not {"cat", "dog", "mat"} & {n["name"] for n in json.loads(out)["nearest"]}
    code, _, err = told(capsys, "embeddings", "neighbors", run, "catt")
    assert code == 4 and "'catt' has no vector in the table words/w: did you mean cat?" in err
    code, _, err = told(capsys, "embeddings", "neighbors", run, "cat", "--table", "x")
    assert code == 2 and "there are words/w" in err
    for method in ("pca", "tsne"):
        code, out, _ = told(
            capsys,
            "embeddings",
            "project",
            run,
            "cat",
            "dog",
            "mat",
            "--method",
            method,
            "--output",
            f"{method}.png",
            "--json",
        )
        assert code == 0 and [p["name"] for p in json.loads(out)["points"]] == ["cat", "dog", "mat"]
        with Image.open(ptb / f"{method}.png") as picture:
            assert picture.size == (1000, 1000)
    code, _, err = told(capsys, "embeddings", "project", run, "--method", "x")
    assert code == 2 and "expected pca or tsne" in err
    code, _, _ = told(capsys, "embeddings", "export", run, "--output", "v.txt")
    head, *lines = (ptb / "v.txt").read_text().splitlines()
    assert head == f"{len(table.names)} 32" and len(lines) == len(table.names)
    for line, word, row in zip(lines, table.names, table.vectors, strict=True):
        name, *numbers = line.split(" ")
        assert name == word and np.array_equal(np.asarray(numbers, np.float32), row)


def test_neighbours_by_hand(tmp_path: Path) -> None:
    vectors = np.array([[1, 0], [2, 2], [0, 3], [-1, 0], [0, 0]], np.float32)
    table = Table("t", ["king", "queen", "man", "woman", "a film"], vectors)
    found = [(n.name, round(n.cosine, 6)) for n in table.neighbors("king", 9)]
    assert found == [("queen", 0.707107), ("man", 0.0), ("a film", 0.0), ("woman", -1.0)]
    # queen - king + man = (0.707, 0.707) - (1, 0) + (0, 1)
    assert table.analogy("king", "queen", "man", 1)[0].name == "woman"
    export(table, tmp_path / "v.txt")
    assert (tmp_path / "v.txt").read_text().splitlines()[-1] == "a_film 0 0"
    with pytest.raises(RunError):
        export(table, tmp_path / "none" / "v.txt")
    for write in (
        lambda path: export(table, path),
        lambda path: picture(["a"], np.ones((1, 2)), path),
    ):
        with pytest.raises(ResourceError, match="the disk is full") as full:
            write(Path("/dev/full"))
        assert full.value.hint == "make room, or choose another place"


def test_principal_directions() -> None:
    rng = np.random.default_rng(1)
    wide = rng.normal(size=(40, 5)) * [9, 3, 0.1, 0.1, 0.1] + 7
    points = principal(wide.astype(np.float32))
    assert np.allclose(points.mean(axis=0), 0, atol=1e-4)
    for k in (0, 1):
        assert abs(np.corrcoef(points[:, k], wide[:, k])[0, 1]) > 0.9
    assert principal(np.ones((3, 1), np.float32)).tolist() == [[0, 0]] * 3


def test_tsne_keeps_groups_together() -> None:
    rng = np.random.default_rng(2)
    groups = np.repeat(np.eye(3, 10) * 5, 12, axis=0) + rng.normal(size=(36, 10)) * 0.1
    points = neighbourly(groups.astype(np.float32))
    own = np.repeat(np.arange(3), 12)
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    assert np.isfinite(points).all() and (own[distances.argmin(axis=1)] == own).all()


# -- translation ------------------------------------------------------------------------------------------------------
def test_a_sentence_through_one_vector(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The whole road of the chapter's first net: import, train, evaluate, translate with several answers."""
    words = {"chat": "cat", "chien": "dog", "homme": "man", "arbre": "tree"}
    pairs = [f"l&apos; {fr} !\tthe {en} !\n" for fr, en in words.items()]
    members = {
        "wmt14/train/train": "".join(pairs * 30),
        "wmt14/test/test": "".join(pairs),
        "wmt14/gen/gen": pairs[0],
        "wmt14/src.dict": "\n".join(["<s>", "<e>", "<unk>", "l&apos;", "!", *words]),
        "wmt14/trg.dict": "\n".join(["<s>", "<e>", "<unk>", "the", "!", *words.values()]),
    }  # fmt: skip
    bring(place, "wmt14", "wmt14.tgz", tar({k: v.encode() for k, v in members.items()}))
    run = trained(
        place,
        "machine_translation/plain",
        "optimizer={name: adam, learning_rate: 0.01}",
        "train.epochs=30",
        "train.batch_size=12",
    )
    assert evaluate(run).metrics["loss"] < 0.1
    assert evaluate(run, "gen").samples == 1
    code, out, err = told(
        capsys, "predict", str(run), "--text", "L'arbre!", "--text", " ", "--json"
    )
    found, empty = map(json.loads, out.splitlines())
    assert code == 4 and "1 of 2 inputs" in err and "there is no word" in empty["error"]
    assert found["text"] == "the tree !" and "notes" not in found
    best, other = found["sentences"]
    assert best["text"] == found["text"] and best["score"] == found["score"] > other["score"]
    one, many = (
        [p.answer for p in predict(run, texts=["L'homme", "chat chien !", "zut"], batch_size=size)]
        for size in (1, 64)
    )
    assert one == many


# -- ratings ----------------------------------------------------------------------------------------------------------
TITLES = ("Toy Story", "Alien", "Heat", "Big", "Nixon", "Casino", "Babe", "Seven", "Fargo", "Speed")


@pytest.fixture
def ratings(place: Path) -> Path:
    """Six users, ten films; even users like even films. Film 10 and user 6 have no rating."""
    users = b"".join(b"%d::%s::25::%d::1\n" % (u, b"MF"[u % 2 : u % 2 + 1], u) for u in range(1, 7))
    films = b"".join(
        b"%d::%s (199%d)::%s\n" % (f, t.encode(), f % 10, b"Comedy" if f % 2 else b"Drama")
        for f, t in enumerate(TITLES, 1)
    )
    rated = b"".join(
        b"%d::%d::%d::%d\n" % (u, f, 5 if u % 2 == f % 2 else 1, 1000 * r + f)
        for r in range(6) for u in range(1, 6) for f in range(1, 10)
    )  # fmt: skip
    bring(
        place,
        "movielens",
        "ml-1m.zip",
        zipped({"ml-1m/users.dat": users, "ml-1m/movies.dat": films, "ml-1m/ratings.dat": rated}),
    )
    return place


def test_recommendations(ratings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(
        trained(ratings, "recommender_system/towers", "train.epochs=15", "train.batch_size=16")
    )
    whole = ("recommend", run, "--include-rated", "--json")
    code, out, err = told(capsys, *whole, "--user", "2", "--top", "4")
    found = json.loads(out)
    assert code == 0 and found["of"] == 10 and len(found["best"]) == 4 and not err
    assert all(b["id"] % 2 == 0 for b in found["best"]) and [b["rank"] for b in found["best"]] == [
        1,
        2,
        3,
        4,
    ]
    for best in found["best"]:
        (alone,) = predict(run, fields={"user": 2, "movie": best["id"]})
        assert alone.answer == {"prediction": best["prediction"], "stars": best["stars"]}
        assert best["stars"] == best["prediction"] / 2 + 2.5 and best["stars"] > 3
    everything = recommend(model_of(run), "1", top=99, include_rated=True)
    assert sorted(r.id for r in everything.best) == list(range(1, 11))
    assert {r.rows == 0 for r in everything.best if r.id == 10} == {True}
    assert "1 of these films were never rated" in everything.notes[-1]
    code, out, err = told(capsys, "recommend", run, "--user", "6", "--top", "2")
    assert (
        code == 0 and "user 6 rated nothing in the training" in err and len(out.splitlines()) == 3
    )
    code, _, err = told(capsys, "recommend", run, "--user", "")
    assert code == 4 and "there is no user ''" in err
    code, _, err = told(capsys, "recommend", run, "--user", "7")
    assert code == 4 and "there is no user '7': the model knows 6 of them, numbers 1 to 6" in err
    code, out, err = told(capsys, "predict", run, "--field", "user=1", "--field", "movie=Toy Stori")
    assert code == 4 and "did you mean 1 Toy Story (1991)?" in out


def test_rated_films_are_left_out(ratings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Those of the training's rows alone; of a user with every film rated nothing is left to recommend."""
    run = str(trained(ratings, "recommender_system/towers", "train.epochs=1"))
    table = (Path(run) / "model" / "entities" / "user.jsonl").read_text().splitlines()[1:]
    rated = {row["id"]: row["rated"] for row in map(json.loads, table)}
    assert rated[6] == [] and all(set(rated[u]) <= set(range(1, 10)) for u in range(1, 6))
    assert sum(len(films) for films in rated.values()) > 40
    found = recommend(model_of(run), "2", top=99)
    assert {r.id for r in found.best} == {*range(1, 11)} - {*rated[2]} and found.total == len(
        found.best
    )
    assert f"{len(rated[2])} films that user 2 rated in the training are left out" in found.notes[0]
    rows = [
        json.dumps({"table": "user"}),
        *(json.dumps({**json.loads(r), "rated": [*range(1, 11)]}) for r in table),
    ]
    (Path(run) / "model" / "entities" / "user.jsonl").write_text("\n".join(rows) + "\n")
    code, out, err = told(capsys, "recommend", run, "--user", "1")
    assert code == 0 and not out and "the best 0 of 0" in err
    assert json.loads(told(capsys, "recommend", run, "--user", "1", "--json")[1])["best"] == []


def test_candidates_and_ranking(ratings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = [
        "data.history=4",
        "model.dim=8",
        "model.hidden=[16]",
        "optimizer.learning_rate=0.03",
        "train.epochs=6",
        "train.batch_size=16",
    ]
    run = str(trained(ratings, "recommender_system/youtube", *small))
    code, out, _ = told(
        capsys, "recommend", run, "--user", "2", "--top", "10", "--json", "--include-rated"
    )
    best = json.loads(out)["best"]
    assert code == 0 and sum(b["probability"] for b in best) == pytest.approx(1, abs=0.2)
    (answer,) = predict(run, fields={"user": "2"})
    assert answer.answer["label"] == best[0]["name"] and answer.answer["label"].endswith(")")
    fit("recommender_system/youtube_ranking", [*QUICK, *small], run_dir=ratings / "ranking")
    found = recommend(model_of(str(ratings / "ranking")), "3", top=10, include_rated=True)
    assert len(found.best) == 10 and {"prediction", "stars"} == set(found.best[0].answer)


def test_the_tables_of_a_model(ratings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = trained(ratings, "recommender_system/towers", "train.epochs=1")
    moved = run / "model"
    lines = (moved / "entities" / "movie.jsonl").read_text().splitlines()
    assert (
        json.loads(lines[0]) == {"table": "film"}
        and json.loads(lines[1])["name"] == "Toy Story (1991)"
    )
    assert "Toy" not in (moved / "preprocessing.yaml").read_text()
    films = table_of(model_of(str(run)), "movie_table")
    assert films.names[0] == "Toy Story (1991)" and films.what == "film"
    assert films.row("1") == films.row("toy story") == films.row("Toy Story (1991)") == 0
    with pytest.raises(DataError, match="there is no film 'Toy Storey': did you mean 1 Toy Story"):
        films.row("Toy Storey")
    users = table_of(model_of(str(run)), "user_table")
    assert users.names[0] == "user 1" and users.row("user 2") == users.row("2") == 1
    code, out, _ = told(
        capsys, "embeddings", "neighbors", str(run), "2", "--table", "user_table", "--json"
    )
    found = json.loads(out)
    assert code == 0 and found["of"] == "user" and found["nearest"][0]["name"].startswith("user ")
    (moved / "entities" / "movie.jsonl").write_text("no table\n")
    with pytest.raises(RunError, match=r"movie\.jsonl: damaged"):
        model_of(str(run))


def test_models_that_recommend_nothing(ptb: Path) -> None:
    run = str(trained(ptb, "word2vec/ngram", "data.cutoff=0", "train.epochs=1"))
    with pytest.raises(UsageError, match="does not rate films for users"):
        recommend(model_of(run), "1")


# -- semantic roles ---------------------------------------------------------------------------------------------------
@pytest.fixture
def roles(place: Path) -> Path:
    words, props = [], []
    for i in range(40):
        who, verb, what = (
            ("dogs", "cats", "men")[i % 3],
            ("bite", "see")[i % 2],
            ("bones", "fish")[i % 2],
        )
        words += ["The", who, verb, what, ".", ""]
        props += ["-\t(A0*", "-\t*)", f"{verb}\t(V*)", "-\t(A1*)", "-\t*", ""]
    folder = "conll05st-release/test.wsj"
    members = {
        f"{folder}/words/test.wsj.words.gz": gzip.compress("\n".join(words).encode(), mtime=0),
        f"{folder}/props/test.wsj.props.gz": gzip.compress("\n".join(props).encode(), mtime=0),
    }
    bring(place, "conll05", "conll05st-tests.tar.gz", tar(members))
    return place


def test_roles_of_a_sentence(roles: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(trained(
        roles, "label_semantic_roles/db_lstm", "train.epochs=12", "train.batch_size=4", "model.word_dim=8", "model.hidden=32",
        "model.depth=2", "optimizer.learning_rate=0.02", "~expect",
    ))  # fmt: skip
    summary: dict[str, Any] = json.loads((roles / "run" / "summary.json").read_text())
    assert "chunk_eval_f1" in json.dumps(summary)
    code, out, _ = told(
        capsys, "predict", run, "--text", "The dogs [bite] bones.", "--text", "The dogs bite"
    )
    first, second = out.splitlines()
    assert code == 4 and "[A0 The dogs]  [V bite]  [A1 bones]" in first
    assert "no words stand in brackets" in second
    code, out, _ = told(capsys, "predict", run, "--text", "The zebras [bite|bite] fish .", "--json")
    record = json.loads(out)
    assert record["words"] == ["The", "zebras", "bite", "fish", "."]
    assert len(record["labels"]) == 5 and record["labels"][2] == "B-V"
    assert {"label": "V", "words": "bite"} in record["chunks"]
    assert record["notes"] == ["1 of 5 words not in the vocabulary: zebras"]
    texts = [
        "The dogs [bite] bones .",
        "[see] fish",
        "cats [see] " + "fish " * 40,
        "The men . [bite]",
    ] * 3
    one, seven = ([p.answer for p in predict(run, texts=texts, batch_size=n)] for n in (1, 7))
    assert one == seven


def test_word_vectors_of_elsewhere_stay_as_they_are(roles: Path) -> None:
    size = 3 + 9  # marks; The . dogs cats men bite see bones fish
    given = np.random.default_rng(1).normal(size=(size, 4)).astype("<f4")
    (roles / "emb").write_bytes(bytes(16) + given.tobytes())
    run = trained(
        roles, "label_semantic_roles/db_lstm", "train.epochs=1", "model.word_dim=4", "model.hidden=8", "model.depth=1", "~expect",
        "model.parameters.emb.trainable=false", "model.parameters.emb.initializer={file: {path: emb, header: 16}}",
    )  # fmt: skip
    assert np.array_equal(model_of(str(run)).values["emb"], given)
    assert "emb absent" in (run / "log.txt").read_text()


def test_unknown_verbs_are_errors(roles: Path) -> None:
    run = trained(
        roles,
        "label_semantic_roles/db_lstm",
        "train.epochs=1",
        "model.hidden=8",
        "model.depth=1",
        "~expect",
    )
    (unknown,) = predict(run, texts=["The dogs [meow] ."])
    assert "say its lemma, [meow|LEMMA]" in str(unknown.error)
    with pytest.raises(DataError, match="1 of 1 inputs"):
        found = predict(run, texts=["The dogs [meow] ."])
        list(found)
        found.demand_all()
