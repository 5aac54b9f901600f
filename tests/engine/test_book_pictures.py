"""The book's photographs from the archive to a prediction, on small archives of the same form."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from data.packing import mat, photograph, put, tar, voc

from paddlecli.data.cards import shipped
from paddlecli.data.checking import check
from paddlecli.data.fetching import imports
from paddlecli.engine.api import evaluate, fit, predict

from .tiny_runs import same_results

FLOWERS = """
name: flowers
data: {name: flowers, short: 30, size: 20}
model: {name: small_conv}
optimizer: {name: adam, learning_rate: 0.005}
train: {epochs: 4, batch_size: 4}
"""
VOC = """
name: voc
data: {name: voc2012, size: 16}
model: {name: unet, base: 4, levels: 2, batch_norm: true, ignore_index: 255}
optimizer: {name: adam, learning_rate: 0.02}
metrics: [{mean_iou: {ignore_index: 255}}]
train: {epochs: 30, batch_size: 2, eval_split: valid, eval_every: 0}
checkpoint: {every_epochs: 0}
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PADDLECLI_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


def test_flowers(place: Path) -> None:
    """Random squares: any cut of a training gives the same bits, evaluation and prediction see the middle."""
    count = 12
    pictures = {
        f"jpg/image_{n:05d}.jpg": photograph(50 + n, 40, 20 * n) for n in range(1, count + 1)
    }
    numbers = np.arange(1, count + 1, dtype=np.uint16)[None]
    sets = {"tstid": numbers[:, :8], "valid": numbers[:, 8:10], "trnid": numbers[:, 10:]}
    labels = {"labels": (1 + np.arange(count) % 2 * 101)[None].astype(np.uint8)}
    (place / "given").mkdir()
    put(place / "given" / "102flowers.tgz", tar(pictures))
    put(place / "given" / "imagelabels.mat", mat(labels, True))
    put(place / "given" / "setid.mat", mat(sets, True))
    imports.bring_in(shipped("flowers"), place / "given", unofficial=True)
    (place / "r.yaml").write_text(FLOWERS)
    whole = fit(place / "r.yaml", run_dir=place / "whole")
    assert whole.metrics["test"]["loss"] == evaluate(place / "whole").metrics["loss"]
    part = fit(place / "r.yaml", ["train.epochs=2"], run_dir=place / "part").run_dir
    fit(resume=part, overrides=["train.epochs=4"])
    same_results(part, whole.run_dir)
    centre = fit(place / "r.yaml", ["data.crop=centre"], run_dir=place / "centre").metrics
    assert centre["train"]["loss"] != whole.metrics["train"]["loss"]
    given = put(place / "photograph.jpg", photograph(60, 40, 80))
    (found,) = predict(place / "whole", [str(given)])
    assert found.error is None


def test_voc2012(place: Path) -> None:
    imports.bring_in(
        shipped("voc2012"), voc(place / "voc")["VOCtrainval_11-May-2012.tar"], unofficial=True
    )
    (place / "r.yaml").write_text(VOC)
    found = fit(place / "r.yaml", run_dir=place / "run")
    assert found.metrics["valid"]["mean_iou"] > 0.8
    checked = check("voc2012", {"size": 16})
    mask = checked.splits["valid"]["fields"]["mask"]
    assert mask["classes"] == 21 and mask["counts"]["person"] > 0 and mask["counts"]["cat"] == 0
    assert not any("row of mask" in remark for remark in checked.remarks)
    given = put(place / "photograph.jpg", photograph(30, 60, 160))
    (mask,) = predict(place / "run", [str(given)])
    assert mask.error is None
