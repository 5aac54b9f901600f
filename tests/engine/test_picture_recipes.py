"""The shipped recipes whose outputs are pictures, on a few generated pictures: they train, draw and predict."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from null.world import graph_of

from paddlecli.config.load import load_recipe
from paddlecli.engine import api
from paddlecli.engine.fit import Options, fit

from .tiny_runs import events

DIGITS = "data={name: synthetic/images, size: [28, 28], channels: 1, samples: 12, test_samples: 4}"
SMALL = (
    DIGITS,
    "model.blocks.generator.arguments={hidden: 8, plane: 98, filters: 2}",
    "model.blocks.discriminator.arguments={filters: 2, more_filters: 2, hidden: 4, end: %s}",
    "train.epochs=1",
    "train.batch_size=4",
    "callbacks=[{images: {every: 3, count: 4}}]",
)


@pytest.mark.parametrize(
    ("name", "end"), [("dcgan", "none"), ("book_dcgan", "sigmoid"), ("dcgan_small", "none")]
)
def test_gan(name: str, end: str, tmp_path: Path) -> None:
    """Three iterations; then samples. With the double sigmoid no loss leaves the bounds it has in the book."""
    overrides = [text % end if "%s" in text else text for text in SMALL]
    fit(load_recipe(f"gan/{name}", overrides), Options(tmp_path / "run"))
    assert (tmp_path / "run" / "images" / "0001_0003.png").is_file()
    (epoch,) = events(tmp_path / "run", "epoch")
    losses = [epoch[f"{e}.loss"] for e in ("d_fake", "d_real", "g_step")]
    assert np.isfinite(losses).all()
    if end == "sigmoid":
        low = math.log1p(math.exp(-1))
        assert low + 1 > losses[0] > math.log(2) and all(low < x < math.log(2) for x in losses[1:])
    drawn = list(api.predict(str(tmp_path / "run"), samples=3))
    assert [p.as_dict()["shape"] for p in drawn] == [[1, 28, 28]] * 3


def test_gan_has_the_sizes_of_the_book() -> None:
    shipped = load_recipe("gan/book_dcgan", [DIGITS])
    assert shipped.train.loop == ("d_fake", "d_real", "g_step", "g_step")
    parameters = graph_of(shipped).parameters
    sizes = {
        part: sum(
            math.prod(d.coefficient for d in t.spec.shape)
            for n, t in parameters.items()
            if n.startswith(part)
        )
        for part in ("generator/", "discriminator/")
    }
    assert sizes == {"generator/": 13_487_745, "discriminator/": 2_308_097}


def test_autoencoder(tmp_path: Path) -> None:
    overrides = [DIGITS, "train.epochs=1", "train.batch_size=4", "expect={}"]
    fit(load_recipe("autoencoder/mnist", overrides), Options(tmp_path / "run"))
    assert events(tmp_path / "run", "evaluation")[0]["loss"] > 0
    images = np.zeros((2, 1, 28, 28), np.uint8)
    found = list(
        api.predict(str(tmp_path / "run"), arrays={"image": images}, pictures=tmp_path / "p")
    )
    assert sorted(p.name for p in (tmp_path / "p").iterdir()) == [
        "00001-row_0.png",
        "00002-row_1.png",
    ]
    assert found[0].as_dict()["shape"] == [1, 28, 28]


def test_unet(tmp_path: Path) -> None:
    data = "data={name: synthetic/shapes, size: [16, 16], samples: 8, test_samples: 4}"
    overrides = [data, "train.epochs=2", "train.batch_size=4", "model.base=2", "callbacks=[{images: {every: 2}}]", "expect={}"]  # fmt: skip
    fit(load_recipe("segmentation/unet", overrides), Options(tmp_path / "run"))
    assert len(list((tmp_path / "run" / "images").iterdir())) == 2
    assert 0 <= events(tmp_path / "run", "evaluation")[-1]["mean_iou"] <= 1
    (found,) = api.predict(
        str(tmp_path / "run"), arrays={"image": np.zeros((1, 1, 16, 16), np.uint8)}
    )
    assert found.as_dict()["shape"] == [16, 16]
