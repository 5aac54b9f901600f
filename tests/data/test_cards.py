"""Cards: the shipped ones are right, faulty ones are refused with their line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from paddlecli import assets
from paddlecli.config.registry import DATASETS
from paddlecli.data.cards import Card, read_card, shipped
from paddlecli.data.opening import describe, open_dataset, reader_of
from paddlecli.errors import ConfigError

MINIMAL = """\
name: toy
title: a toy
description: a toy
licence: none
citation: none
reader: csv
"""


@pytest.mark.parametrize("name", assets.names("datasets"))
def test_shipped_cards_are_valid(name: str) -> None:
    card = shipped(name)
    assert card.name == name and DATASETS.find(name) is not None
    assert card.licence and card.citation
    for file in card.files:
        assert card.sources_of(file), f"{file.name} has no source"


def test_housing_card_credits_and_warns() -> None:
    card = shipped("uci_housing")
    assert "Harrison" in card.citation and "Rubinfeld" in card.citation and "1978" in card.citation
    assert "Black" in card.notes["column B"] and "dropped" in card.notes["column B"]


def test_mnist_card_knows_the_official_files(shared_data: Path) -> None:
    sums = dict(
        reversed(line.split()) for line in (shared_data / "SHA256SUMS").read_text().splitlines()
    )
    for file in shipped("mnist").files:
        assert sums[f"mnist/{file.name}"] == file.sha256
        assert (shared_data / "mnist" / file.name).stat().st_size == file.bytes


def test_cards_have_the_checksums_of_the_original(shared_data: Path) -> None:
    """Every row of the table of files that the original fetched, but for its trained models."""
    text = (shared_data / "OFFICIAL.md").read_text()
    rows = [line.split("|") for line in text.splitlines() if line.count("|") == 6]
    table = {(r[1].strip(), r[2].strip()): (r[4].strip()[:32], r[5].strip()) for r in rows[2:]}
    modules = {c.original_cache or "": c for c in map(shipped, assets.names("datasets"))}
    modules["conll05"], modules["cifar"] = shipped("conll05"), shipped("cifar10")
    checked = 0
    for (module, name), (md5, size) in table.items():
        if name in ("trained model", "dev+test.tgz (named, not used)"):
            continue
        file = modules[module].file(name)
        assert file.md5 == md5, name
        known = size.split(" ")[0].replace(",", "")
        if known.isdecimal() and "(a)" not in size and "+" not in size:
            assert file.bytes == int(known), name
        checked += 1
    assert checked == 16


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (MINIMAL + "colour: red\n", 7, "unknown key `colour`"),
        (MINIMAL.replace("title: a toy", "title: 3"), 2, "valid string"),
        (MINIMAL.replace("name: toy", "name: Toy!"), 1, "small letters"),
        (MINIMAL + "files:\n  - {name: a, bytes: 1, sha256: xyz}\n", 8, "match pattern"),
        (MINIMAL + "sources:\n  - {kind: url, url: 'ftp://x'}\n", 8, "match pattern"),
        (
            MINIMAL + "sources:\n  - {kind: url, url: 'http://x', wheel: y}\n",
            8,
            "unknown key `wheel`",
        ),
        (MINIMAL + "sources:\n  - {kind: torrent}\n", 8, "torrent"),
        (MINIMAL + "name: again\n", 7, "twice"),
        (MINIMAL + "splits:\n  train: {samples: 1, files: {table: no.csv}}\n", 1, "no.csv"),
        (
            MINIMAL + "files:\n  - {name: ../a, bytes: 1, sha256: " + "0" * 64 + "}\n",
            8,
            "plain file",
        ),
        (MINIMAL + "files:\n  - {name: a, bytes: 1}\n", 8, "neither sha256 nor md5"),
        (
            MINIMAL + "fields:\n  - {name: x, role: input, dtype: int64, vocabulary: word}\n",
            1,
            "no vocabulary word",
        ),
        (
            MINIMAL + f"files:\n  - {{name: a, md5: {'0' * 32}, members: [{{path: 'a('}}]}}\n",
            8,
            "no regular expression",
        ),
        ("", 0, "empty"),
        ("name: [\n", 2, ""),
    ],
)
def test_faulty_cards_name_the_line(tmp_path: Path, text: str, line: int, message: str) -> None:
    path = tmp_path / "toy.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_card(path)
    assert message in str(caught.value)
    assert caught.value.exit_code == 3
    assert caught.value.where[0].line == line
    assert caught.value.where[0].file == str(path)


def test_missing_key_is_named(tmp_path: Path) -> None:
    path = tmp_path / "toy.yaml"
    path.write_text(MINIMAL.replace("licence: none\n", ""))
    with pytest.raises(ConfigError, match="licence"):
        read_card(path)


def test_a_card_of_ones_own_by_path(tmp_path: Path, make_card: Callable[..., Card]) -> None:
    rows = "a,b\n1,10\n2,20\n3,40\n"
    (tmp_path / "cache" / "datasets" / "toy").mkdir(parents=True)
    (tmp_path / "cache" / "datasets" / "toy" / "rows.csv").write_text(rows)
    card = make_card(
        files=[{"name": "rows.csv", "bytes": len(rows), "sha256": "0" * 64}],
        fields=[{"name": "x", "role": "input", "dtype": "float32", "shape": [1], "columns": ["a"]},
                {"name": "y", "role": "label", "dtype": "float32", "columns": ["b"]}],
        splits={"train": {"samples": 2, "rows": [0, 2], "files": {"table": "rows.csv"}},
                "test": {"samples": 1, "rows": [2, 3], "files": {"table": "rows.csv"}}},
    )  # fmt: skip
    path = tmp_path / "toy.yaml"
    path.write_text(json.dumps(card.model_dump(mode="json", exclude_none=True)))
    data = open_dataset(str(path))
    assert data["train"].columns["x"].values.tolist() == [[1.0], [2.0]]
    assert data["test"].columns["y"].values.tolist() == [40.0]


def test_unknown_names_and_arguments() -> None:
    with pytest.raises(ConfigError, match="unknown data set `mnits`") as caught:
        describe("mnits")
    assert "`mnist`" in str(caught.value)
    with pytest.raises(ConfigError, match="colour"):
        reader_of("mnist", {"colour": "red"})


def test_describe_opens_nothing(cache_dir: Path) -> None:
    spec = describe("mnist")
    assert not cache_dir.exists()
    assert spec.sizes == {"train": 60000, "test": 10000}
    image, label = spec.fields
    assert (image.shape, image.dtype, image.plan_dtype()) == ((1, 28, 28), "uint8", "float32")
    assert image.preprocess is not None and image.preprocess.scale != 1
    assert (label.classes, label.names[3], label.role) == (10, "3", "label")
