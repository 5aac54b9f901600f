"""A user's own files from a shipped recipe to an answer; and what a model directory keeps of them."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import own_files
import pytest

from paddlecli import evaluate, fit, load_recipe, predict
from paddlecli.config.registry import TRANSFORMS
from paddlecli.data.own.reader import _LAST
from paddlecli.engine.rundir import RunDir
from paddlecli.errors import ConfigError, DataError

from .tiny_runs import same_results

RECIPES: dict[str, tuple[list[str], str, float]] = {
    "table_classification": (["data.categories=[colour]", "train.epochs=25"], "accuracy", 0.9),
    "table_regression": (["data.categories=[town]", "train.epochs=40"], "r2", 0.9),
    "text": ([], "accuracy", 0.9),
    "pictures": (["train.epochs=8"], "accuracy", 0.9),
}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with the files that the recipes' first lines name."""
    folder = tmp_path / "Eigene Daten é"
    folder.mkdir()
    monkeypatch.chdir(folder)
    own_files.write(folder)
    return folder


def command(name: str) -> list[str]:
    """The overrides of the command in a shipped recipe's second line."""
    from paddlecli import assets

    path = assets.find("recipes", f"own_data/{name}")
    assert path is not None
    words = path.read_text().splitlines()[1].split()
    return [w for w in words if "=" in w]


@pytest.mark.parametrize("name", list(RECIPES))
def test_a_shipped_recipe_learns_and_predicts_without_its_data(
    name: str, files: Path, tmp_path: Path
) -> None:
    more, metric, least = RECIPES[name]
    run = tmp_path / "run"
    result = fit(f"own_data/{name}", [*command(name), *more], run_dir=run)
    assert result.metrics["test"][metric] >= least
    model = tmp_path / "moved"
    shutil.move(run / "model", model)
    inputs = {
        "table_classification": "flowers.csv",
        "table_regression": "houses.csv",
        "text": "reviews.txt",
        "pictures": "pictures/dark",
    }[name]
    kept = tmp_path / "kept" / Path(inputs).name
    kept.parent.mkdir()
    shutil.move(files / inputs, kept)
    shutil.rmtree(files)
    shutil.rmtree(run)
    found = predict(model, [str(kept)])
    answers = [p.as_dict() for p in found]
    assert not found.failed and len(answers) == {"text": 150, "pictures": 15}.get(
        name, len(answers)
    )
    if name == "table_regression":
        assert answers[0]["prediction"] == pytest.approx(
            float(kept.read_text().split()[1].split(",")[3]), rel=0.2
        )
    if name == "pictures":
        assert sum(a["label"] == "dark" for a in answers) >= 14
    else:
        assert found.metrics()[metric] >= least


def recipe(files: Path, **changes: Any) -> Path:
    """A classification of the flowers."""
    path = files / "r.yaml"
    path.write_text(
        "data: {name: csv, train: flowers.csv, label: kind, task: classification, categories: [colour], "
        "split: {test: 0.2}}\n"
        "model: {name: mlp, hidden: [8]}\noptimizer: {name: adam, learning_rate: 0.01}\n"
        "metrics: [accuracy]\ntrain: {epochs: 2, batch_size: 16}\n"
    )
    return path


def test_evaluation_uses_what_the_model_keeps(files: Path, tmp_path: Path) -> None:
    """Other rows would give other scales and another order of classes."""
    run = tmp_path / "run"
    fit(recipe(files), ["train.epochs=20"], run_dir=run)
    rows = (files / "flowers.csv").read_text().splitlines()
    (files / "flowers.csv").write_text(
        "\n".join([rows[0], *(r for r in rows[1:] if "kind 0" not in r)])
    )
    said: list[str] = []
    found = evaluate(run, say=said.append)
    assert found.metrics["accuracy"] > 0.9 and any("has changed" in line for line in said)


def test_a_run_whose_data_changed_is_not_continued(files: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    fit(recipe(files), run_dir=run)
    with (files / "flowers.csv").open("a") as file:
        file.write("1,1,blue,kind 0\n")
    with pytest.raises(Exception, match="is not the one this run was started with"):
        fit(resume=run, overrides=["train.epochs=3"])


@pytest.mark.parametrize("memory", [64, 0], ids=["held", "from files"])
def test_random_pictures_resume_with_the_same_bits(
    memory: int, files: Path, tmp_path: Path
) -> None:
    settings = [*command("pictures"), f"data.memory_mb={memory}", "data.size=[20, 20]", "train.batch_size=8",
                "data.transforms=[{random_crop: {size: [16, 16]}}, flip, mixup, normalise]", "train.epochs=3",
                "checkpoint.every_steps=2", "checkpoint.keep_last=9"]  # fmt: skip
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    fit("own_data/pictures", settings, run_dir=whole)
    fit("own_data/pictures", [*settings, "train.max_steps=4"], run_dir=cut)
    config = cut / "config.yaml"
    config.write_text(config.read_text().replace("max_steps: 4", "max_steps: null"))
    shutil.rmtree(cut / "checkpoints" / "step-00000004", ignore_errors=True)
    fit(resume=cut)
    same_results(whole, cut)


def test_a_split_smaller_than_a_batch(files: Path, tmp_path: Path) -> None:
    assert fit(recipe(files), ["train.batch_size=1000"], run_dir=tmp_path / "a").steps == 2
    with pytest.raises(DataError, match="fewer than one batch of 1000"):
        fit(
            recipe(files), ["train.batch_size=1000", "train.drop_last=true"], run_dir=tmp_path / "b"
        )


def test_vocabularies_lie_in_files_of_their_own(files: Path, tmp_path: Path) -> None:
    fit("own_data/text", [*command("text"), "train.epochs=1"], run_dir=tmp_path / "run")
    model = tmp_path / "run" / "model"
    words = (model / "vocabularies" / "text.txt").read_text().splitlines()
    assert words[0] == "<unk>" and {"lovely", "awful"} <= set(words)
    assert "lovely" not in (model / "preprocessing.yaml").read_text()
    (model / "vocabularies" / "text.txt").unlink()
    with pytest.raises(Exception, match=r"text\.txt: cannot be read"):
        predict(model, texts=["lovely"])


def test_what_was_found_is_told(files: Path, tmp_path: Path) -> None:
    (files / "flowers.csv").write_text("x,z,kind\n1,5,a\n2,5,b\n3,5,a\n4,5,b\n")
    path = recipe(files)
    path.write_text(path.read_text().replace("categories: [colour], ", ""))
    fit(path, ["data.split.test=0.5"], run_dir=tmp_path / "run")
    assert "note: column z is constant and becomes 0" in (tmp_path / "run" / "log.txt").read_text()


def test_paths_start_at_the_recipe_and_vocabulary_files_too(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (files / "words.txt").write_text("<unk>\nlovely\nawful\n")
    (files / "t.yaml").write_text(
        "data: {name: text_lines, train: reviews.txt, transforms: [tokenise, {vocabulary: {file: words.txt}}]}\n"
        "model: {name: mlp}\noptimizer: {name: sgd, learning_rate: 0.1}\n"
    )
    monkeypatch.chdir(tmp_path)
    loaded = load_recipe(files / "t.yaml")
    assert loaded.data is not None
    assert loaded.data.arguments["train"] == str(files / "reviews.txt")
    assert loaded.data.arguments["transforms"][1]["vocabulary"]["file"] == str(files / "words.txt")
    fit(loaded, run_dir=tmp_path / "run")
    assert (
        tmp_path / "run" / "model" / "vocabularies" / "text.txt"
    ).read_text() == "<unk>\nlovely\nawful\n"


def test_a_wrong_transform_is_named_with_its_line(files: Path) -> None:
    path = files / "t.yaml"
    path.write_text(
        "data:\n  name: text_lines\n  train: reviews.txt\n  transforms:\n    - tokenize\n"
        "    - truncate: {length: 0}\nmodel: {name: mlp}\n"
    )
    with pytest.raises(ConfigError) as raised:
        load_recipe(path)
    first, second = raised.value.faults
    assert (first.where.line, first.nearest) == (5, ("tokenise",))
    assert second.where.line == 6 and "at least 1" in second.message


def test_bucketed_batches_train(files: Path, tmp_path: Path) -> None:
    settings = [*command("text"), "train.epochs=3"]
    fit("own_data/text", [*settings, "train.bucket=4"], run_dir=tmp_path / "a")
    fit("own_data/text", [*settings, "train.bucket=4"], run_dir=tmp_path / "b", streamed=True)
    same_results(tmp_path / "a", tmp_path / "b")
    _LAST.clear()
    assert RunDir(tmp_path / "a").read("run.json")["status"] == "completed"


def test_tagged_sentences_from_training_to_tags(files: Path, tmp_path: Path) -> None:
    words = {"the": "D", "a": "D", "dog": "N", "cat": "N", "runs": "V", "sits": "V"}
    chance = random.Random(3)
    lines = ("\n".join(f"{w} {words[w]}" for w in chance.choices(list(words), k=chance.randint(2, 6)))
             for _ in range(80))  # fmt: skip
    (files / "tags.txt").write_text("\n\n".join(lines) + "\n")
    (files / "t.yaml").write_text(
        "data: {name: conll, train: tags.txt, columns: [word, tag], inputs: [word], label: tag, split: {test: 0.2}}\n"
        "model:\n  inputs:\n    word: {dtype: int64, ragged: word}\n    tag: {dtype: int64, ragged: word, role: label}\n"
        "  layers:\n    - {embedding: {size: 7, dim: 8}, from: word}\n    - {fc: {size: 3}, name: scores}\n"
        "  loss: {softmax_with_cross_entropy: {}, from: [scores, tag]}\n  outputs: {scores: scores}\n"
        "optimizer: {name: adam, learning_rate: 0.05}\nmetrics: [accuracy]\ntrain: {epochs: 10, batch_size: 8}\n"
    )
    fit(files / "t.yaml", run_dir=tmp_path / "run")
    (files / "new.conll").write_text("the\ndog\n\na\ncat\nsits\n")
    found = predict(tmp_path / "run", [str(files / "new.conll")], texts=["the cat runs"])
    assert [p.as_dict()["labels"] for p in found] == [["D", "N"], ["D", "N", "V"], ["D", "N", "V"]]
    labelled = predict(tmp_path / "run", [str(files / "tags.txt")])
    assert len(list(labelled)) == 80 and labelled.metrics()["accuracy"] == 1


def test_predict_asks_only_for_what_the_answer_needs(files: Path, tmp_path: Path) -> None:
    """An input that only the loss reads, as the target of a translation."""
    (files / "t.csv").write_text("a,b\n" + "".join(f"{i},{2 * i}\n" for i in range(20)))
    (files / "t.yaml").write_text(
        "data: {name: csv, train: t.csv, fields: {a: {columns: a}, b: {columns: b}}}\n"
        "model:\n  inputs: {a: {shape: [1]}, b: {shape: [1]}}\n  layers:\n    - {fc: {size: 1}, from: a, name: p}\n"
        "  loss: {square_error_cost: {}, from: [p, b]}\n  outputs: {p: p}\n"
        "optimizer: {name: adam, learning_rate: 0.03}\ntrain: {epochs: 60, batch_size: 2, eval_every: 0}\ncheckpoint: {every_epochs: 0}\n"
    )
    fit(files / "t.yaml", run_dir=tmp_path / "run")
    (found,) = predict(tmp_path / "run", fields=["a=3"])
    assert found.as_dict()["prediction"] == pytest.approx(6, abs=0.5)
    (missing,) = predict(tmp_path / "run", fields=["b=3"])
    assert missing.error == "--field: a is missing"
    labelled = predict(tmp_path / "run", [str(files / "t.csv")])
    assert len(list(labelled)) == 20 and labelled.metrics()["loss"] < 0.5


def test_a_transform_of_ones_own(files: Path, tmp_path: Path) -> None:
    """It comes with `--code`, for predictions too."""
    (files / "mine.py").write_text(
        "from paddlecli.config.registry import TRANSFORMS\n"
        "from paddlecli.data.own.frame import Values\n"
        "from paddlecli.data.transforms.base import Transform\n\n"
        "@TRANSFORMS.register('times')\n"
        "class Times(Transform):\n"
        "    takes = ('numbers',)\n"
        "    def __init__(self, *, by: float = 2.0) -> None:\n        self.by = by\n"
        "    def apply(self, values, faults):\n        return Values('numbers', values.rows * self.by)\n"
    )
    (files / "t.csv").write_text("a,b\n" + "".join(f"{i},{i}\n" for i in range(8)))
    (files / "t.yaml").write_text(
        "data: {name: csv, train: t.csv, fields: {x: {columns: a, transforms: [{times: {by: 3}}]}, "
        "y: {role: label, columns: b}}}\n"
        "model: {name: mlp, hidden: [4]}\noptimizer: {name: sgd, learning_rate: 0.01}\n"
    )
    with pytest.raises(ConfigError, match="unknown transform `times`"):
        load_recipe(files / "t.yaml")
    with TRANSFORMS.isolated():
        fit(files / "t.yaml", code=["mine.py"], run_dir=tmp_path / "run")
        (found,) = predict(tmp_path / "run", fields=["a=1"])
        assert found.error is None
    with pytest.raises(ConfigError, match="--code"):
        list(predict(tmp_path / "run", fields=["a=1"]))
