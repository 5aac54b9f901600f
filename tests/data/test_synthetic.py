"""Generated data sets: the same everywhere, announced, and with something to learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from paddlecli.data.columns import Dataset
from paddlecli.data.opening import describe, open_dataset
from paddlecli.errors import ConfigError

NAMES = ["classification", "images", "pairs", "regression", "sequences", "shapes", "tags"]
FEW: dict[str, Any] = {"samples": 40, "test_samples": 10}


def opened(name: str, **arguments: Any) -> Dataset:
    return open_dataset(f"synthetic/{name}", {**FEW, **arguments})


@pytest.mark.parametrize("name", NAMES)
def test_seed_decides_and_splits_differ(name: str) -> None:
    data = opened(name)
    assert data.fingerprint == opened(name).fingerprint != opened(name, seed=1).fingerprint
    assert {k: len(s) for k, s in data.splits.items()} == {"train": 40, "test": 10}
    assert data.spec.generated and "generated" in data.spec.remarks[0]
    assert "generated" in describe(f"synthetic/{name}").title
    first = data.spec.inputs()[0].name
    train, test = (np.asarray(data[s].columns[first].row(0)) for s in ("train", "test"))
    assert train.shape != test.shape or (train != test).any()


def test_a_row_does_not_depend_on_how_many_there_are() -> None:
    few, many = opened("classification"), opened("classification", samples=80)
    assert (
        few["train"].columns["y"].values.tolist() == many["train"].columns["y"].values[:40].tolist()
    )


def test_numbers_follow_a_line() -> None:
    data = opened("regression", noise=0.0, samples=200)
    x = np.c_[data["train"].columns["x"].values, np.ones(200)].astype(np.float64)
    y = data["train"].columns["y"].values
    rest = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
    assert np.abs(rest).max() < 1e-5


def test_targets_are_sources_backwards() -> None:
    data = opened("pairs", vocabulary=12)
    columns, meaning = data["train"].columns, {}
    for row in range(40):
        source = columns["source"].row(row)[1:-1]
        target = columns["target"].row(row)[1:]
        assert columns["next"].row(row).tolist() == [*target.tolist(), 1]
        for a, b in zip(source[::-1].tolist(), target.tolist(), strict=True):
            assert meaning.setdefault(a, b) == b >= 3


def test_most_ids_are_of_the_class() -> None:
    column = opened("sequences", classes=4)["train"].columns
    for row in range(40):
        counts = np.bincount(column["text"].row(row) % 4, minlength=4)
        assert counts[column["label"].values[row]] >= 0.3 * counts.sum()


def test_tags_follow_from_the_id_and_the_tag_before() -> None:
    columns = opened("tags", vocabulary=20, samples=400)["train"].columns
    seen: dict[tuple[int, int], int] = {}
    for row in range(400):
        words, tags = columns["word"].row(row), columns["tag"].row(row)
        for i in range(1, len(words)):
            key = (int(words[i]), int(tags[i - 1]))
            assert seen.setdefault(key, int(tags[i])) == tags[i]


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("sequences", {"lengths": [5, 3]}, "no range"),
        ("sequences", {"vocabulary": 3, "classes": 2}, "too few"),
        ("pairs", {"vocabulary": 3}, "three marks"),
        ("images", {"size": "big"}, "size"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_settings_that_are_refused(name: str, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        opened(name, **arguments)


def test_masks_follow_the_shapes() -> None:
    """What is not ground is brighter than the ground; a shape covers no more than its size allows."""
    columns = opened("shapes", size=(32, 48), noise=0.0, shapes=1)["train"].columns
    seen = set()
    for row in range(40):
        image = np.asarray(columns["image"].row(row))[0]
        mask = np.asarray(columns["mask"].row(row))
        kinds = np.unique(mask)
        seen.update(kinds.tolist())
        assert len(kinds) <= 2 and image.shape == mask.shape == (32, 48)
        assert len(np.unique(image[mask == 0])) == 1
        if kinds[-1]:
            assert image[mask > 0].min() > image[mask == 0].max()
            assert (mask > 0).sum() <= np.pi * (0.28 * 32) ** 2 * 1.2
    assert seen == {0, 1, 2, 3}
