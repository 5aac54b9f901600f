"""A user's own pictures: folders, kinds of files, random transforms, and what is held in memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from paddlecli.config import plugins
from paddlecli.config.registry import TRANSFORMS
from paddlecli.data.columns import Dataset
from paddlecli.data.inputs import read_inputs
from paddlecli.data.opening import open_dataset
from paddlecli.data.own.streams import StreamedSplit
from paddlecli.data.transforms.base import make
from paddlecli.data.transforms.pictures import Decode, Draw, PictureTransform
from paddlecli.errors import ConfigError, DataError, ResourceError, UserCodeError

RANDOM: list[Any] = [
    {"random_crop": {"size": [12, 12], "padding": 2}},
    "flip",
    {"rotate": {"degrees": 20}},
    {"colour_jitter": {"brightness": 0.3, "contrast": 0.3, "saturation": 0.3}},
    {"erase": {"chance": 0.5}},
    "mixup",
    "normalise",
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    for name in ("class 10", "class 9"):
        (tmp_path / "train" / name).mkdir(parents=True)
        for i in range(6):
            array = rng.integers(0, 255, (20 + i, 24, 3), dtype=np.uint8)
            Image.fromarray(array).save(tmp_path / "train" / name / f"{i}.png")
    (tmp_path / "train" / "class 9" / ".hidden.png").write_bytes(b"no picture")
    (tmp_path / "train" / "class 9" / "notes.txt").write_text("no picture")
    return tmp_path / "train"


def opened(folder: Path, **arguments: Any) -> Dataset:
    return open_dataset("image_folder", {"train": str(folder), **arguments})


def step(written: Any) -> PictureTransform:
    _, _, found = make(written)
    assert isinstance(found, PictureTransform)
    return found


def test_folders_are_classes_in_natural_order(folder: Path) -> None:
    data = opened(folder, size=[8, 10])
    assert data.spec.find("label").names == ("class 9", "class 10")
    assert data["train"].columns["label"].values.tolist() == [0] * 6 + [1] * 6
    image = data.spec.find("image")
    assert (image.shape, image.dtype) == ((3, 8, 10), "uint8")
    assert image.preprocess is not None and image.preprocess.scale == 1 / 255
    assert any("1 file that is no picture passed over" in r for r in data.spec.remarks)


def test_files_of_every_kind_decode(tmp_path: Path) -> None:
    plain = np.zeros((4, 6), np.uint8)
    plain[:2] = 200
    turned = Image.fromarray(np.rot90(plain))
    exif = Image.Exif()
    exif[0x0112] = 6
    clear = np.dstack([plain, plain, plain, np.where(plain, 255, 0).astype(np.uint8)])
    made = {
        "grey.png": Image.fromarray(plain),
        "rgb.png": Image.fromarray(np.dstack([plain] * 3)),
        "sixteen.png": Image.fromarray(plain.astype(np.uint16) * 257),
        "palette.gif": Image.fromarray(plain).convert("P"),
        "clear.png": Image.fromarray(clear),
    }
    for name, image in made.items():
        image.save(tmp_path / name)
    turned.save(tmp_path / "exif.png", exif=exif)
    for channels in (1, 3):
        decode = Decode(channels=channels, ground=0)
        for name in (*made, "exif.png"):
            found = decode.open(name, str(tmp_path / "list.csv"))
            assert found.shape == (4, 6, channels) and found.dtype == np.uint8, name
            np.testing.assert_array_equal(found[:, :, 0], plain, name)
    white = Decode(channels=1, ground=255).open("clear.png", str(tmp_path / "x"))
    assert white[3, 0, 0] == 255


def test_paths_in_a_table_start_at_its_folder(folder: Path) -> None:
    table = folder.parent / "list.csv"
    table.write_text("file,y\n" + "".join(f"train/class 9/{i}.png,{i}\n" for i in range(3)))
    data = open_dataset("csv", {"train": str(table), "fields": {
        "image": {"columns": "file", "transforms": ["decode", {"resize": {"size": [4]}}]},
        "y": {"role": "label", "columns": "y"},
    }})  # fmt: skip
    assert data["train"].columns["image"].values.shape == (3, 3, 4, 4)
    table.write_text("file,y\ntrain/class 9/0.png,1\nnone.png,2\n")
    with pytest.raises(DataError, match=r"list\.csv: line 3: image: .*none\.png: No such file"):
        open_dataset("csv", {"train": str(table), "fields": {
            "image": {"columns": "file", "transforms": ["decode", {"resize": {"size": [4]}}]},
            "y": {"role": "label", "columns": "y"},
        }})  # fmt: skip


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (
            lambda f: (f / "class 9" / "1.png").write_bytes(b"\x89PNG\r\n\x1a\n"),
            r"class 9/1\.png: image: ",
        ),
        (
            lambda f: (f / "class 9" / "1.png").write_bytes(b""),
            r"class 9/1\.png: image: the file is empty",
        ),
        (lambda f: (f / "empty").mkdir(), "empty: holds no picture"),
    ],
    ids=["damaged", "empty file", "empty folder"],
)
def test_what_is_wrong_is_found_before_training(folder: Path, break_it: Any, message: str) -> None:
    break_it(folder)
    with pytest.raises(DataError, match=message):
        opened(folder, size=[8])


def test_pictures_need_one_size(folder: Path) -> None:
    with pytest.raises(DataError, match=r"1\.png: image: the picture is 26x23, others are 26x22"):
        opened(folder, transforms=[{"pad": {"size": [1]}}])
    with pytest.raises(ConfigError, match="pictures need one size"):
        opened(folder)
    with pytest.raises(DataError, match="not a folder"):
        opened(folder / "class 9" / "0.png", size=[8])
    with pytest.raises(DataError, match="holds no folder"):
        opened(folder / "class 9", size=[8])


def test_random_ones_depend_on_seed_epoch_and_row_alone(folder: Path) -> None:
    def split(**arguments: Any) -> StreamedSplit:
        found = opened(folder, size=[16], transforms=RANDOM, **arguments)["train"]
        assert isinstance(found, StreamedSplit)
        return found

    train, rows = split(), np.array([7, 0, 3])
    first = train.take(rows, 0)
    alone = [train.take(rows[i : i + 1], 0) for i in range(3)]
    for name in ("image", "mixed_label"):
        np.testing.assert_array_equal(
            first[name].values, np.concatenate([a[name].values for a in alone])
        )
    assert (first["image"].values != train.take(rows, 1)["image"].values).any()
    assert (first["image"].values != split(seed=1).take(rows, 0)["image"].values).any()
    np.testing.assert_allclose(first["mixed_label"].values.sum(axis=1), 1, rtol=1e-6)
    from_files = split(memory_mb=0)
    assert from_files.streams["image"].held is None and train.streams["image"].held is not None
    np.testing.assert_array_equal(first["image"].values, from_files.take(rows, 0)["image"].values)
    steady = train.take(rows)
    np.testing.assert_array_equal(steady["image"].values, train.take(rows)["image"].values)
    assert steady["mixed_label"].values.tolist() == [[0, 1], [1, 0], [1, 0]]


def test_processes_make_the_same_pictures(folder: Path) -> None:
    rows = np.arange(12)
    arguments: dict[str, Any] = {"size": [16], "transforms": RANDOM, "memory_mb": 0}
    threads = opened(folder, **arguments)["train"].take(rows, 2)
    split = opened(folder, **arguments, workers=1)["train"]
    assert isinstance(split, StreamedSplit)
    try:
        np.testing.assert_array_equal(split.take(rows, 2)["image"].values, threads["image"].values)
    finally:
        split.streams["image"]._pool.shutdown()


SLOW = """
import numpy as np
from paddlecli.config.registry import TRANSFORMS
from paddlecli.data.transforms.pictures import PictureTransform

@TRANSFORMS.register("speckled")
class Speckled(PictureTransform):
    random = True

    def __init__(self, *, most: int = 9) -> None:
        self.most = most

    def one(self, picture, draw):
        picture = picture.copy()
        for row in range(picture.shape[0] if draw else 0):  # Python for each row, as users write it
            picture[row, 0] = draw.below(self.most)
        return picture
"""


RAISES = """
import multiprocessing, os
from paddlecli.config.registry import TRANSFORMS
from paddlecli.data.transforms.pictures import PictureTransform

@TRANSFORMS.register("faulty")
class Faulty(PictureTransform):
    def __init__(self, *, how: str) -> None:
        self.how = how

    def one(self, picture, draw):
        if self.how == "none":
            return None
        if multiprocessing.parent_process() is None:
            return picture
        if self.how == "kill":
            os._exit(9)
        raise KeyError("mine")
"""


def test_faults_of_ones_own_transforms(folder: Path, tmp_path: Path) -> None:
    """What raises in another process is told with its line; a process that is killed is no bug."""
    (tmp_path / "faulty.py").write_text(RAISES)
    faults = {"raise": (UserCodeError, r"faulty\.py, line 18: KeyError"),
              "kill": (ResourceError, "ended from outside")}  # fmt: skip
    with plugins.isolated():
        plugins.load_code([tmp_path / "faulty.py"])
        for how, (kind, message) in faults.items():
            steps = [{"faulty": {"how": how}}]
            split = opened(folder, size=[16], transforms=steps, memory_mb=0, workers=1)["train"]
            assert isinstance(split, StreamedSplit)
            with pytest.raises(kind, match=message):
                split.take(np.arange(4), 2)
            split.streams["image"]._pool.shutdown()
        with pytest.raises(ConfigError, match="Faulty gave no picture"):
            opened(folder, size=[16], transforms=[{"faulty": {"how": "none"}}], memory_mb=0)


def test_processes_know_transforms_of_ones_own(folder: Path, tmp_path: Path) -> None:
    """Those of code files; one that no file holds is refused before a process is started."""
    (tmp_path / "slow.py").write_text(SLOW)
    rows = np.arange(12)
    arguments: dict[str, Any] = {"size": [16], "transforms": ["speckled"], "memory_mb": 0}
    with plugins.isolated():
        plugins.load_code([tmp_path / "slow.py"])
        threads = opened(folder, **arguments)["train"].take(rows, 2)
        split = opened(folder, **arguments, workers=1)["train"]
        assert isinstance(split, StreamedSplit)
        try:
            found = split.take(rows, 2)["image"].values
        finally:
            split.streams["image"]._pool.shutdown()
        np.testing.assert_array_equal(found, threads["image"].values)
        assert found[:, :, :, 0].max() < 9
    exec(compile(SLOW, "notebook", "exec"), {"__name__": "notebook"})
    try:
        with pytest.raises(ConfigError, match="other processes cannot know Speckled"):
            opened(folder, **arguments, workers=1, seed=9)
    finally:
        TRANSFORMS.forget("notebook")


def test_what_is_fixed_is_a_plain_column(folder: Path) -> None:
    data = opened(folder, size=[8])
    assert not data["train"].streamed
    streamed = opened(folder, size=[8], memory_mb=0)
    assert streamed["train"].streamed
    np.testing.assert_array_equal(
        streamed["train"].take(np.arange(12))["image"].values, data["train"].columns["image"].values
    )


def test_mixing_draws_its_partner_from_the_data_set(folder: Path) -> None:
    train = opened(folder, size=[16], transforms=["mixup"])["train"]
    assert isinstance(train, StreamedSplit)
    stream, plain = (
        train.streams["image"],
        opened(folder, size=[16])["train"].columns["image"].values,
    )
    shares = stream.shares(np.arange(12), 0)
    assert {other for other, _ in shares} - {0, 1} and all(0 <= s <= 1 for _, s in shares)
    for row, (other, share) in enumerate(shares):
        expected = np.rint(plain[row] * share + plain[other] * (1 - share))
        np.testing.assert_array_equal(train.take(np.array([row]), 0)["image"].values[0], expected)


def test_beta_has_the_right_moments() -> None:
    for alpha in (0.2, 1.0, 3.0):
        found = np.array([Draw(1, i).beta(alpha) for i in range(1500)])
        assert found.mean() == pytest.approx(0.5, abs=0.05)
        assert found.var() == pytest.approx(1 / (4 * (2 * alpha + 1)), rel=0.15)


def test_shapes_against_arrays() -> None:
    picture = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)
    assert (
        step({"centre_crop": {"size": [2, 3]}}).one(picture, None).tolist()
        == picture[1:3, 1:4].tolist()
    )
    padded = step({"pad": {"size": [1, 2], "value": 9}}).one(picture, None)
    assert (
        padded.shape == (6, 9, 3) and padded[0, 0, 0] == 9 and (padded[1:5, 2:7] == picture).all()
    )
    assert (step({"centre_crop": {"size": [6, 5]}}).one(picture, None)[1:5] == picture).all()
    always = {"flip": {"chance": 1.0}}
    assert (step(always).one(picture, Draw(0)) == picture[:, ::-1]).all()
    assert (step(always).one(picture, None) == picture).all()
    down = {"flip": {"chance": 1.0, "axis": "vertical"}}
    assert (step(down).one(picture, Draw(0)) == picture[::-1]).all()
    keep = step({"resize": {"size": [8], "keep": True}}).one(picture, None)
    assert keep.shape == (8, 10, 3)
    assert step("grey").one(picture, None)[0, 0, 0] == round(0.587 * 1 + 0.114 * 2)
    assert step({"rotate": {"degrees": 0.0}}).one(picture, Draw(0)).tolist() == picture.tolist()
    shown = step({"erase": {"chance": 1.0, "area": [0.3, 0.3], "value": 255}}).one(picture, Draw(3))
    assert 0 < (shown == 255).all(axis=2).sum() < 20 and picture.max() < 255


@pytest.mark.parametrize("seed", range(20))
def test_crops_stay_inside(seed: int) -> None:
    rng = np.random.default_rng(seed)
    picture = rng.integers(1, 255, (*rng.integers(3, 40, 2), 3), dtype=np.uint8)
    for written in (
        {"random_crop": {"size": [8, 12], "padding": 3}},
        {"random_resized_crop": {"size": [8, 12]}},
    ):
        for draw in (Draw(seed), None):
            assert step(written).one(picture, draw).shape == (8, 12, 3)


def test_normalise_is_in_the_plan(folder: Path) -> None:
    data = opened(folder, size=[8], transforms=[{"normalise": {"mean": [100], "std": [50]}}])
    pre = data.spec.find("image").preprocess
    assert pre is not None and (pre.scale, pre.shift) == (0.02, -2.0)
    plain = opened(folder, size=[8])["train"].columns["image"].values
    made = opened(
        folder, size=[8], transforms=[{"normalise": {"mean": [1, 2, 3], "std": [10, 20, 40]}}]
    )
    np.testing.assert_array_equal(made["train"].columns["image"].values, plain)
    pre = made.spec.find("image").preprocess
    assert pre is not None and pre.channels == ((0.1, -0.1), (0.05, -0.1), (0.025, -0.075))
    one_std = opened(folder, size=[8], transforms=[{"normalise": {"mean": [1, 2, 3], "std": [2]}}])
    pre = one_std.spec.find("image").preprocess
    assert pre is not None and pre.channels == ((0.5, -0.5), (0.5, -1.0), (0.5, -1.5))


@pytest.mark.parametrize(
    ("transforms", "message"),
    [
        (["normalise", "flip"], "normalise must be the last transform, `flip`"),
        (["mixup", "flip"], "mixup must be behind"),
        (["lower"], "`lower` does not take pictures"),
        ([{"resize": {"size": [0]}}], "0x0 pixels"),
        ([{"random_resized_crop": {"size": [4], "scale": [0.9, 0.1]}}], "least to greatest"),
        ([{"normalise": {"mean": [1, 2]}}], "2 means and 1 stds for 3 channels"),
    ],
    ids=str,
)
def test_lists_that_make_no_sense(folder: Path, transforms: list[Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        opened(folder, size=[8], transforms=transforms)


def test_predict_sees_what_evaluation_sees(folder: Path) -> None:
    data = opened(folder, size=[16], transforms=RANDOM)
    kept = json.loads(json.dumps(data.preprocessing()))
    expected = data["train"].take(np.arange(2))["image"].values
    paths = [str(folder / "class 9" / f"{i}.png") for i in range(2)]
    (folder / "broken.png").write_bytes(b"x")
    first, broken, second = read_inputs(kept, [paths[0], str(folder / "broken.png"), paths[1]])
    np.testing.assert_array_equal(first.arrays["image"], expected[0])
    np.testing.assert_array_equal(second.arrays["image"], expected[1])
    assert broken.error is not None and "not a picture" in broken.error
    assert len(list(read_inputs(kept, [str(folder / "class 9")]))) == 6


def test_photographs_are_decoded_smaller(tmp_path: Path) -> None:
    """At a half, a quarter or an eighth, by the file and the setting alone; close to scaling the whole."""
    small = np.random.default_rng(0).integers(0, 255, (15, 20, 3), dtype=np.uint8)
    photo = Image.fromarray(small).resize((800, 600), Image.Resampling.BICUBIC)
    photo.save(tmp_path / "a.jpg", quality=95)
    photo.save(tmp_path / "a.png")
    source = str(tmp_path / "list.csv")
    for least, size in (
        (400, (600, 800)),
        (300, (300, 400)),
        (151, (300, 400)),
        (150, (150, 200)),
        (9, (75, 100)),
    ):
        assert Decode(reduce_to=least).open("a.jpg", source).shape == (*size, 3), least
    assert Decode(reduce_to=9).open("a.png", source).shape == (600, 800, 3)
    fast = Decode(reduce_to=150).open("a.jpg", source)
    np.testing.assert_array_equal(fast, Decode(reduce_to=150).open("a.jpg", source))
    whole = Decode().open("a.jpg", source)
    scaled = np.asarray(Image.fromarray(whole).resize((200, 150), Image.Resampling.BOX), np.float64)
    assert np.abs(fast - scaled).mean() < 1.0


def test_prediction_decodes_as_training_does(tmp_path: Path) -> None:
    small = np.random.default_rng(1).integers(0, 255, (15, 20, 3), dtype=np.uint8)
    for name in ("a", "b"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        photo = Image.fromarray(small).resize((800, 600), Image.Resampling.BICUBIC)
        photo.save(tmp_path / "photos" / name / "1.jpg", quality=95)
    data = opened(tmp_path / "photos", reduce_to=100, transforms=[{"resize": {"size": [64]}}])
    records = list(read_inputs(data.preprocessing(), [str(tmp_path / "photos" / "a" / "1.jpg")]))
    np.testing.assert_array_equal(
        records[0].arrays["image"], data["train"].columns["image"].values[0]
    )
    plain = (
        opened(tmp_path / "photos", transforms=[{"resize": {"size": [64]}}])["train"]
        .columns["image"]
        .values
    )
    assert (plain != data["train"].columns["image"].values).any()
