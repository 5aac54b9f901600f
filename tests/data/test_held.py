"""Transforms for the pictures of a published data set."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packing import put, tar
from PIL import Image

from paddlecli import evaluate, fit, predict
from paddlecli.config.load import load_recipe
from paddlecli.data.cards import shipped
from paddlecli.data.columns import Dataset
from paddlecli.data.fetching.imports import bring_in
from paddlecli.data.opening import describe, open_dataset
from paddlecli.errors import ConfigError

CROP = {"random_crop": {"size": [32, 32], "padding": 4}}
NORMALISE = {"normalise": {"mean": [100.0, 110.0, 120.0], "std": [50.0, 60.0, 70.0]}}


def picture(seed: int) -> bytes:
    out = io.BytesIO()
    pixels = np.random.default_rng(seed).integers(1, 255, (32, 32, 3))
    Image.fromarray(pixels.astype(np.uint8)).save(out, "PNG")
    return out.getvalue()


@pytest.fixture
def pictures(tmp_path: Path, cache_dir: Path) -> None:
    """A CIFAR-10 of 24 and 6 pictures, imported."""
    names = shipped("cifar10").fields[1].names
    members = {f"train/{names[i % 3]}/{i:04d}.png": picture(i) for i in range(24)}
    members |= {f"test/{names[i % 3]}/{i:04d}.png": picture(100 + i) for i in range(6)}
    archive = put(tmp_path / "pictures.tar.bz2", tar(members, "bz2"))
    bring_in(shipped("cifar10"), archive, unofficial=True)


def changed(*steps: Any, seed: int = 0) -> Dataset:
    return open_dataset("cifar10", {"transforms": list(steps), "seed": seed})


def rows(data: Dataset, epoch: int | None, split: str = "train") -> Any:
    split_ = data[split]
    return split_.take(np.arange(len(split_)), epoch)["image"].values


@pytest.mark.usefixtures("pictures")
def test_training_sees_them_changed_and_nothing_else_does() -> None:
    plain, data = open_dataset("cifar10"), changed(CROP, "flip")
    stored = rows(plain, None)
    assert np.array_equal(rows(data, None), stored)
    assert np.array_equal(rows(data, 0, "test"), rows(plain, None, "test"))
    assert not data["test"].streamed
    first = rows(data, 0)
    assert first.shape == stored.shape and first.dtype == np.uint8
    for seen, whole in zip(first, stored, strict=True):
        padded = np.pad(whole, ((0, 0), (4, 4), (4, 4)))
        windows = [padded[:, i : i + 32, j : j + 32] for i in range(9) for j in range(9)]
        assert any(np.array_equal(w, s) for w in windows for s in (seen, seen[:, :, ::-1]))
    assert not np.array_equal(first, rows(data, 1))
    assert np.array_equal(first, rows(changed(CROP, "flip"), 0))
    assert not np.array_equal(first, rows(changed(CROP, "flip", seed=1), 0))


@pytest.mark.usefixtures("pictures")
def test_what_a_network_is_told() -> None:
    data = changed(CROP, NORMALISE)
    field = data.spec.find("image")
    assert field.preprocess is not None
    assert field.preprocess.channels == tuple(
        (1 / s, -m / s) for m, s in zip((100.0, 110.0, 120.0), (50.0, 60.0, 70.0), strict=True)
    )
    assert changed(CROP).spec.find("image") == open_dataset("cifar10").spec.find("image")
    assert describe("cifar10", {"transforms": [CROP, NORMALISE]}).find("image") == field
    assert data.spec.unofficial and data.spec.sizes == {"train": 24, "test": 6}
    smaller = changed({"random_crop": {"size": [28, 28]}})
    assert smaller.spec.find("image").shape == (3, 28, 28)
    assert rows(smaller, 0).shape == (24, 3, 28, 28)
    assert rows(smaller, None, "test").shape == (6, 3, 28, 28)


@pytest.mark.usefixtures("pictures")
def test_mixed_pictures() -> None:
    data = changed("flip", {"mixup": {"alpha": 1.0}})
    assert data.spec.find("mixed_label").shape == (10,)
    taken = data["train"].take(np.arange(24), 0)
    shares = taken["mixed_label"].values
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-6)
    assert ((shares > 0).sum(axis=1) == 2).any()
    whole = data["test"].columns["mixed_label"].values
    assert np.array_equal(whole.argmax(axis=1), data["test"].columns["label"].values)


@pytest.mark.usefixtures("pictures")
@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (["lower"], "`lower` does not take pictures"),
        ([NORMALISE, "flip"], "normalise"),
        ([{"mixup": {}}, "flip"], "mixup must be behind"),
    ],
    ids=range(3),
)
def test_transforms_that_do_not_fit(steps: list[Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        changed(*steps)


@pytest.mark.usefixtures("pictures")
def test_a_model_reads_pictures_as_it_was_trained(tmp_path: Path) -> None:
    """A file of a test picture gets the answer that the test split gets."""
    recipe = load_recipe(
        "image_classification/resnet_full",
        ["model.depth=8", "train.epochs=2", "train.batch_size=8", "optimizer.schedule=null"],
    )
    run = tmp_path / "run"
    result = fit(recipe, run_dir=run)
    assert result.steps == 6
    again = evaluate(run)
    assert result.metrics["test"]["loss"] == again.metrics["loss"]
    file = tmp_path / "a.png"
    file.write_bytes(picture(100))
    (answer,) = predict(run, [str(file)])
    (same,) = predict(run, arrays={"image": rows(open_dataset("cifar10"), None, "test")[:1]})
    found = answer.as_dict()
    assert found["label"] in shipped("cifar10").fields[1].names
    assert found["probability"] == same.as_dict()["probability"]
