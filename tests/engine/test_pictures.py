"""Networks whose outputs are pictures: two that train each other, their grids, samples, masks, and what is told of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from paddlecli.config.load import load_recipe
from paddlecli.config.recipe import Recipe
from paddlecli.data.formats.images import png
from paddlecli.engine import api
from paddlecli.engine.fit import Options, fit, resume
from paddlecli.engine.picture_metrics import spread
from paddlecli.engine.pictures import Album, Picture
from paddlecli.engine.rundir import RunDir
from paddlecli.errors import ConfigError, UsageError
from paddlecli.ops.spec import Spec

from .tiny_runs import MakeRecipe, events, same_results

GAN = """
name: gan
data: {name: synthetic/images, size: [8], channels: 1, samples: 24, test_samples: 0}
model:
  inputs:
    image: {shape: [1, 8, 8]}
  blocks:
    generator:
      inputs: [noise]
      layers:
        - {fc: {size: 32}}
        - {batch_norm: {activation: relu}}
        - {reshape: {shape: [2, 4, 4]}}
        - {conv2d_transpose: {filters: 1, size: 4, stride: 2, padding: 1, activation: sigmoid}}
    discriminator:
      inputs: [picture]
      layers: [{conv2d: {filters: 3, size: 3}}, {batch_norm: {activation: leaky_relu}}, {fc: {size: 1}}]
  entries:
    d_fake:
      layers:
        - {random_uniform: {shape: [5]}, from: image, name: noise}
        - {generator: {}}
        - {discriminator: {}, name: score}
        - {full_like: {value: 0}, name: target}
      loss: {sigmoid_cross_entropy: {}, from: [score, target]}
      update: {parameters: "discriminator/*", optimizer: discriminator}
    d_real:
      layers: [{discriminator: {}, from: image, name: score}, {full_like: {value: 1}, name: target}]
      loss: {sigmoid_cross_entropy: {}, from: [score, target]}
      update: {parameters: "discriminator/*", optimizer: discriminator}
    g_step:
      layers:
        - {random_uniform: {shape: [5]}, from: image, name: other_noise}
        - {generator: {}, name: fake}
        - {discriminator: {}, name: score}
        - {full_like: {value: 1}, name: target}
      loss: {sigmoid_cross_entropy: {}, from: [score, target]}
      outputs: {fake: fake}
      update: {parameters: "generator/*", optimizer: generator}
optimizer:
  generator: {name: adam, learning_rate: 0.01}
  discriminator: {name: adam, learning_rate: 0.002}
train: {epochs: 2, batch_size: 4, seed: 3, log_every: 1, loop: [d_fake, d_real, g_step, g_step]}
predict: {pictures: {}}
callbacks: [{images: {every: 4, count: 6, columns: 4}}]
"""
MASKS = """
name: masks
data: {name: synthetic/shapes, size: [16], shapes: 2, samples: 12, test_samples: 6}
model: {name: unet, base: 2, levels: 2}
optimizer: {name: adam, learning_rate: 0.01}
metrics: [mean_iou]
train: {epochs: 1, batch_size: 4}
"""


def recipe(folder: Path, text: str, *overrides: str) -> Recipe:
    path = folder / "recipe.yaml"
    path.write_text(text)
    return load_recipe(path, overrides)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small pair of networks, trained; 6 steps an epoch."""
    folder = tmp_path_factory.mktemp("gan")
    fit(recipe(folder, GAN), Options(folder / "run"))
    return folder / "run"


def array(path: Path) -> np.ndarray[Any, Any]:
    with Image.open(path) as image:
        return np.asarray(image)


# -- training -----------------------------------------------------------------------------------------------------------
def test_grids_are_drawn(trained: Path) -> None:
    """6 pictures of 8 x 8 in 4 columns with lines of 2 between them; epoch and batch in the name."""
    names = sorted(p.name for p in (trained / "images").iterdir())
    assert names == ["0001_0004.png", "0002_0002.png", "0002_0006.png"]
    grids = [array(trained / "images" / n) for n in names]
    assert all(g.shape == (2 * 10 + 2, 4 * 10 + 2) for g in grids)
    assert (grids[0] != grids[2]).any()
    assert (grids[0][12:20, 22:] == grids[0][0, 0]).all()  # no seventh picture
    told = events(trained, "images")
    assert [e["step"] for e in told] == [4, 8, 12]
    assert told[0]["file"] == "images/0001_0004.png"
    order = [told[0][k] for k in ("min", "q1", "median", "q3", "max")]
    assert order == sorted(order) and order[0] <= told[0]["mean"] <= order[-1]
    assert "d_fake.loss" in (trained / "log.txt").read_text()


def test_drawing_changes_nothing(trained: Path, tmp_path: Path) -> None:
    fit(recipe(tmp_path, GAN, "~callbacks"), Options(tmp_path / "run"))
    for event in ("step", "epoch"):
        assert events(tmp_path / "run", event) == events(trained, event)


@pytest.mark.parametrize("step", [3, 5, 8])
def test_two_optimizers_go_on(step: int, trained: Path, tmp_path: Path) -> None:
    """A run that was ended between is the same bits in the end, pictures too."""
    stopped = recipe(tmp_path, GAN, f"train.max_steps={step}")
    fit(stopped, Options(tmp_path / "run"))
    resume(RunDir(tmp_path / "run"), ["~train.max_steps"])
    kept = {p.name: p.read_bytes() for p in (tmp_path / "run" / "images").iterdir()}
    assert kept == {p.name: p.read_bytes() for p in (trained / "images").iterdir()}
    for event in ("step", "images"):
        assert events(tmp_path / "run", event) == events(trained, event)


def test_threads_leave_the_bits(trained: Path, tmp_path: Path) -> None:
    fit(recipe(tmp_path, GAN), Options(tmp_path / "run", threads=2))
    same_results(tmp_path / "run", trained)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("predict={}", "nothing says how to draw it"),
        ("callbacks=[{images: {output: real}}]", "no output `real`"),
    ],
)
def test_what_cannot_be_drawn(change: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=says):
        fit(recipe(tmp_path, GAN, change), Options(tmp_path / "run"))


def test_black_is_not_white(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the same number"):
        recipe(tmp_path, GAN, "predict.pictures={low: 1}")


# -- samples ------------------------------------------------------------------------------------------------------------
def samples(run: Path, **how: Any) -> list[list[float]]:
    return [p.values.ravel().tolist() for p in api.predict(str(run), **how) if p.values is not None]


def test_samples_follow_the_seed(trained: Path) -> None:
    """They do not depend on how many are run together, or on how many there are."""
    ten = samples(trained, samples=10)
    assert samples(trained, samples=10, batch_size=3, threads=2) == ten
    assert samples(trained, samples=4) == ten[:4]
    assert samples(trained, samples=4, seed=1) != ten[:4]
    assert len({tuple(s) for s in ten}) == 10


def test_samples_are_written(trained: Path, tmp_path: Path) -> None:
    found = list(
        api.predict(str(trained), samples=5, pictures=tmp_path / "p", grid=tmp_path / "g.png")
    )
    files = [Path(p.as_dict()["picture"]) for p in found]
    assert [f.name for f in files] == [f"0000{i}-sample_{i}.png" for i in range(1, 6)]
    third = found[2].values
    assert third is not None
    assert (array(files[2]) == np.rint(255 * third[0].astype(np.float64))).all()
    assert found[0].as_dict()["shape"] == [1, 8, 8]
    assert array(tmp_path / "g.png").shape == (2 * 10 + 2, 3 * 10 + 2)


def test_samples_need_a_network_that_reads_nothing(tmp_path: Path) -> None:
    fit(recipe(tmp_path, MASKS), Options(tmp_path / "run"))
    with pytest.raises(UsageError, match="it reads image"):
        api.predict(str(tmp_path / "run"), samples=3)


def test_inputs_beside_samples(trained: Path) -> None:
    with pytest.raises(UsageError, match="beside inputs"):
        api.predict(str(trained), ["a.png"], samples=3)


# -- masks --------------------------------------------------------------------------------------------------------------
def test_masks_keep_the_classes(tmp_path: Path) -> None:
    """A mask's PNG holds the numbers of the classes, under a palette."""
    fit(recipe(tmp_path, MASKS), Options(tmp_path / "run"))
    (measured,) = events(tmp_path / "run", "evaluation")
    assert 0 <= measured["mean_iou"] <= 1
    source = tmp_path / "in.png"
    Image.fromarray(np.arange(256, dtype=np.uint8).reshape(16, 16)).save(source)
    (found,) = api.predict(str(tmp_path / "run"), [str(source)], pictures=tmp_path / "out")
    assert found.values is not None and found.values.dtype == np.int64
    record = found.as_dict()
    with Image.open(record["picture"]) as image:
        assert image.mode == "P"
        assert (np.asarray(image) == found.values).all()
    assert set(record["classes"]) <= {"ground", "disc", "square", "triangle"}
    assert sum(record["classes"].values()) == pytest.approx(1)
    json.dumps(record)


def test_shares_in_common(tmp_path: Path) -> None:
    """Mean intersection over union of the evaluation, against numpy."""
    from paddlecli.data.opening import open_dataset

    made = recipe(tmp_path, MASKS, "train.epochs=3")
    fit(made, Options(tmp_path / "run"))
    data = open_dataset("synthetic/shapes", made.data.arguments if made.data else {})["test"]
    images = data.columns["image"].values
    found = np.stack([
        p.values for p in api.predict(str(tmp_path / "run"), arrays={"image": images}) if p.values is not None
    ])  # fmt: skip
    wanted = data.columns["mask"].values
    seen = [c for c in range(4) if (found == c).any() or (wanted == c).any()]
    shares = [
        ((found == c) & (wanted == c)).sum() / ((found == c) | (wanted == c)).sum() for c in seen
    ]
    last = events(tmp_path / "run", "evaluation")[-1]
    assert last["mean_iou"] == pytest.approx(np.mean(shares), rel=1e-12)


# -- drawing ------------------------------------------------------------------------------------------------------------
def test_black_and_white() -> None:
    grey = Picture("y", low=-1.0, high=1.0)
    row = np.array([[[-2.0, -1.0, 0.0], [0.5, 1.0, np.nan]]], np.float32)
    assert grey.bytes(row).tolist() == [[[0, 0, 128], [191, 255, 0]]]
    turned = Picture("y", low=1.0, high=0.0)
    assert turned.bytes(np.array([[[0.0, 1.0]]])).tolist() == [[[255, 0]]]


def test_colours_in_a_grid() -> None:
    rows = [np.full((3, 2, 4), i / 4, np.float32) for i in range(3)]
    grid = Picture("y").grid(rows)
    assert grid.shape == (3, 10, 14)
    assert grid[:, 2:4, 8:12].tolist() == np.full((3, 2, 4), 64).tolist()
    assert Image.open(__import__("io").BytesIO(png(grid))).mode == "RGB"


def test_a_grid_is_bounded(tmp_path: Path) -> None:
    """Pictures of 4997 pixels a side, of which four fill a grid; it is written with those four."""
    album = Album(Picture("y", size=(4997, 4997)), None, tmp_path / "grid.png")
    with pytest.raises(UsageError, match="5 pictures are too many for one, at most 4 fit"):
        album.expect(5)
    album.expect(4)
    for i in range(4):
        album.add(i, "x", np.ones((1, 2, 2), np.float32))
    with pytest.raises(UsageError, match="at most 4 fit"):
        album.add(4, "x", np.ones((1, 2, 2), np.float32))
    assert array(tmp_path / "grid.png").shape == (10, 10)


def test_a_drawn_grid_is_bounded_too(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="2,000,000 pictures are too many for a grid"):
        fit(recipe(tmp_path, GAN.replace("count: 6", "count: 2000000")), Options(tmp_path / "run"))


@pytest.mark.parametrize(
    "spec", [Spec.of(3, 5, 8, 8), Spec.of(3, 8, 8), Spec.of(3, 7)], ids=["five", "flat", "row"]
)
def test_no_pictures(spec: Spec) -> None:
    assert Picture.of("y", spec, None) is None
    with pytest.raises(ConfigError, match="no picture"):
        Picture.of("y", spec, {"low": 0.0, "high": 1.0})


def test_quartiles() -> None:
    found = spread(np.arange(5.0))
    assert found == {"mean": 2, "min": 0, "q1": 1, "median": 2, "q3": 3, "max": 4}
    assert all(np.isnan(v) for v in spread(np.zeros(0)).values())


def test_spread_of_an_output(tiny: MakeRecipe, tmp_path: Path) -> None:
    """As a metric of any tensor, in evaluations."""
    fit(
        tiny("metrics=[{spread: {}, from: logits, name: s}]", "train.epochs=1"),
        Options(tmp_path / "run"),
    )
    (found,) = events(tmp_path / "run", "evaluation")
    order = [found[f"s_{k}"] for k in ("min", "q1", "median", "q3", "max")]
    assert order == sorted(order) and order[0] < found["s_mean"] < order[-1]


def test_the_next_command_is_told(trained: Path) -> None:
    from paddlecli.engine.modeldir import abilities, read_graph
    from paddlecli.engine.report import commands

    can = abilities(read_graph(trained / "model"))
    assert list(commands("RUN", can)) == ["predict   paddlecli predict RUN --samples 64"]
    with pytest.raises(UsageError, match="no input given") as caught:
        api.predict(str(trained))
    assert "--samples" in str(caught.value.hint)


def test_on_the_command_line(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from paddlecli.cli.app import main

    grid, run = str(tmp_path / "new" / "grid.png"), str(trained)
    assert main(["predict", run, "--samples", "2", "--grid", grid]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("sample 1: 8x8, min ") and second.startswith("sample 2: ")
    assert Path(grid).is_file()
    assert main(["predict", run, "--samples", "1", "--pictures", str(tmp_path), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["picture"] == str(tmp_path / "00001-sample_1.png")
    assert main(["predict", run, "--samples", "1", "--grid", str(tmp_path)]) != 0  # a folder
    assert "cannot be written" in capsys.readouterr().err
