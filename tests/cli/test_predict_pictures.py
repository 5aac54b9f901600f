"""`predict` on pictures: where they come from, what they are, and what comes out."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import own_files
import pytest
from PIL import Image

from .runs import call, run, strict

CHANGES = ("-o", "data.train=pictures", "-o", "data.size=[20, 20]", "-o", "train.epochs=8", "-o", "data.transforms=[flip, "
           "{normalise: {mean: [120, 110, 100], std: [60, 50, 40]}}]")  # fmt: skip


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with pictures and a model of them."""
    folder = tmp_path_factory.mktemp("pictures")
    own_files.write(folder)
    call(folder, "train", "own_data/pictures", *CHANGES, "--run-dir", "run", "-q")
    return folder


@pytest.fixture
def here(trained: Path, tmp_path: Path) -> Path:
    shutil.copytree(trained / "pictures", tmp_path / "pictures")
    shutil.copytree(trained / "run" / "model", tmp_path / "model")
    return tmp_path


def records(text: str) -> list[dict[str, Any]]:
    return [strict(line) for line in text.splitlines()]


def test_folders_named_after_classes_are_labels(here: Path) -> None:
    shutil.copytree(here / "pictures" / "dark", here / "pictures" / "dusk")
    (here / "pictures" / "stray.png").write_bytes(
        (here / "pictures" / "dark" / "0.png").read_bytes()
    )
    done = call(here, "predict", "./model", "pictures", "--json", "--metrics", "found.json")
    found = records(done.stdout)
    assert len(found) == 46
    labelled = [r for r in found if Path(r["input"]).parent.name in ("dark", "light")]
    right = sum(r["label"] == Path(r["input"]).parent.name for r in labelled)
    assert "30 labelled inputs: loss" in done.stderr and f"accuracy {right / 30:.5g}" in done.stderr
    odd = [r for r in found if Path(r["input"]).parent.name == "dusk"]
    assert all(r["notes"] == ["its folder dusk is not named after a class"] for r in odd)
    assert not any("notes" in r for r in labelled)
    report = json.loads((here / "found.json").read_text())
    assert (report["inputs"], report["failed"], report["labelled"]) == (46, 0, 30)
    counts = report["confusion"]["counts"]
    assert report["confusion"]["classes"] == ["dark", "light"]
    assert sum(map(sum, counts)) == 30 and counts[0][0] + counts[1][1] == right
    assert report["metrics"]["accuracy"] == right / 30


def test_mistakes_are_shown_as_a_table(here: Path) -> None:
    pictures = here / "pictures"
    for i in range(3):
        shutil.move(pictures / "dark" / f"{i}.png", pictures / "light" / f"moved {i}.png")
    done = call(here, "predict", "./model", "pictures")
    counts = [line.split() for line in done.stderr.splitlines()[-3:]]
    assert counts[0][-2:] == ["dark", "light"]
    assert counts[2][0] == "light" and int(counts[2][1]) >= 3


def test_folders_that_are_no_classes_are_only_folders(here: Path) -> None:
    for name in ("dark", "light"):
        shutil.move(here / "pictures" / name, here / "pictures" / f"trip to the {name}")
    done = call(here, "predict", "./model", "pictures", "--json")
    assert "labelled" not in done.stderr and "notes" not in done.stdout
    assert len(records(done.stdout)) == 30
    flat = call(here, "predict", "./model", "pictures", "--no-recursive", "--json", code=4)
    assert "holds no file" in records(flat.stdout)[0]["error"]


def test_ways_to_name_pictures(here: Path) -> None:
    expected = records(call(here, "predict", "./model", "pictures/dark", "--json").stdout)
    assert [Path(r["input"]).name for r in expected] == [f"{i}.png" for i in range(15)]
    names = "".join(f"pictures/dark/{i}.png\n" for i in range(15))
    (here / "list.txt").write_text(names)
    ways: list[tuple[list[str], bytes]] = [
        (["--from-file", "list.txt"], b""),
        (["--from-file", "-"], names.replace("\n", "\r\n").encode()),
        ([f"pictures/dark/{i}.png" for i in range(15)], b""),
    ]
    for words, stdin in ways:
        done = run(here, "predict", "./model", *words, "--json", stdin=stdin)
        assert records(done.stdout) == expected, words
    pattern = records(call(here, "predict", "./model", "pictures/d*/*.png", "--json").stdout)
    assert pattern == expected
    one = (here / "pictures" / "dark" / "3.png").read_bytes()
    piped = records(run(here, "predict", "./model", "-", "--json", stdin=one).stdout)[0]
    assert {**piped, "input": ""} == {**expected[3], "input": ""} and piped["input"] == "-"
    run(here, "predict", "./model", "-", "--from-file", "-", code=2)
    missing = call(here, "predict", "./model", "--from-file", "none.txt", "--json", code=4)
    assert "none.txt: no such file" in records(missing.stdout)[0]["error"]
    (here / "long.txt").write_text("a " * 5000 + "\n")
    long = call(here, "predict", "./model", "--from-file", "long.txt", "--json", code=4)
    assert "too long for the name of a file" in records(long.stdout)[0]["error"]


def test_all_kinds_of_pictures(here: Path) -> None:
    """The same picture in other forms gets the same answer; larger ones are scaled."""
    grey = np.random.default_rng(3).integers(0, 255, (20, 20), dtype=np.uint8)
    colour = np.dstack([grey] * 3)
    exif = Image.Exif()
    exif[0x0112] = 6
    clear = np.dstack([colour, np.full_like(grey, 255)])
    forms = here / "forms"
    forms.mkdir()
    made = {
        "0 rgb.png": Image.fromarray(colour),
        "1 grey.png": Image.fromarray(grey),
        "2 sixteen.png": Image.fromarray(grey.astype(np.uint16) * 257),
        "3 palette.png": Image.fromarray(grey).convert("P"),
        "4 alpha.png": Image.fromarray(clear),
        "5 cmyk.tif": Image.merge("CMYK", [Image.fromarray(255 - grey)] * 3 + [Image.new("L", (20, 20))]),
        "6 first.gif": Image.fromarray(grey),
        "7 rgb.webp": Image.fromarray(colour),
        "8 rgb.bmp": Image.fromarray(colour),
    }  # fmt: skip
    for name, image in made.items():
        image.save(forms / name, lossless=True)  # only WebP asks
    Image.fromarray(np.rot90(colour).copy()).save(forms / "9 turned.png", exif=exif)
    found = records(call(here, "predict", "./model", "forms", "--json").stdout)
    assert len(found) == 10
    for record in found:
        assert record["probabilities"] == found[0]["probabilities"], record["input"]


def test_a_wrong_file_does_not_stop_the_rest(here: Path) -> None:
    folder = here / "mixed"
    shutil.copytree(here / "pictures" / "dark", folder)
    (folder / "1.png").write_bytes(b"no picture at all")
    whole = (folder / "5.png").read_bytes()
    (folder / "5.png").write_bytes(whole[: len(whole) // 2])
    (folder / "7.png").write_bytes(b"")
    done = call(here, "predict", "./model", "mixed", "none.png", "--csv", code=4)
    assert "4 of 16 inputs could not be predicted" in done.stderr
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [i for i, row in enumerate(rows) if row["error"]] == [1, 5, 7, 15]
    good = records(call(here, "predict", "./model", "pictures/dark", "--json").stdout)
    for i in (0, 2, 14):
        assert rows[i]["label"] == good[i]["label"]
        assert float(rows[i]["probability"]) == good[i]["probability"]
    stopped = call(here, "predict", "./model", "mixed", "--on-error", "stop", "--json", code=4)
    assert ["error" in r for r in records(stopped.stdout)] == [False, True]


def test_csv_has_its_columns_from_the_first_answer(here: Path) -> None:
    done = call(
        here, "predict", "./model", "none.png", "pictures/light", "--csv", "--top", "2", code=4
    )
    header, first, second, *_ = done.stdout.splitlines()
    assert header == "input,label,probability,label_2,probability_2,error,notes"
    assert first.startswith("none.png,,,,,") and "no such file" in first
    assert second.split(",")[1] != second.split(",")[3]
    only = call(here, "predict", "./model", "none.png", "--csv", code=4).stdout.splitlines()
    assert only[0] == "input,error,notes" and len(only) == 2
    call(here, "predict", "./model", "none.png", "--csv", "--json", code=2)
    call(here, "predict", "./model", "none.png", "--metrics", "no folder/m.json", code=2)


def test_files_of_answers(here: Path) -> None:
    words = ("predict", "./model", "pictures/light", "--top", "1")
    shown = call(here, *words, "--csv").stdout
    assert call(here, *words, "--output", "found.csv").stdout == ""
    assert (here / "found.csv").read_text() == shown
    both = call(here, *words, "--output", "found.jsonl", "--csv")
    assert both.stdout == shown
    found = records((here / "found.jsonl").read_text())
    assert len(found) == 15 and all(len(r["probabilities"]) == 1 for r in found)


def test_what_the_network_saw(here: Path) -> None:
    """A picture of the network's size comes back as it was, whatever it is normalised by."""
    colour = np.random.default_rng(4).integers(0, 255, (20, 20, 3), dtype=np.uint8)
    Image.fromarray(colour).save(here / "small.png")
    call(
        here,
        "predict",
        "./model",
        "small.png",
        "pictures/dark/0.png",
        "--save-preprocessed",
        "seen",
    )
    kept = sorted((here / "seen").iterdir())
    assert [p.suffix for p in kept] == [".png", ".png"]
    np.testing.assert_array_equal(np.asarray(Image.open(kept[0])), colour)
    assert np.asarray(Image.open(kept[1])).shape == (20, 20, 3)
