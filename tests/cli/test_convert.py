"""`paddlecli convert`: what it writes, and what it says of files that do not fit."""

from __future__ import annotations

import json
import pickle
import re
import resource
import shlex
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from paddlecli import predict
from paddlecli.cli.app import main
from paddlecli.config.import_map import load
from paddlecli.data.formats.images import png
from paddlecli.data.inputs import read_inputs
from paddlecli.engine import convert, elsewhere, fitting, foreign
from paddlecli.errors import ConfigError, RunError

Arrays = dict[str, np.ndarray]
TO = ["--to", "mobilenet_v2", "-o", "model.width=0.25"]


def theirs(classes: int, *overrides: str) -> Arrays:
    """What torchvision would have written for a MobileNetV2."""
    data = elsewhere.pictures(load("torchvision").transforms, [str(i) for i in range(classes)])
    graph = elsewhere.network("mobilenet_v2", data, overrides)
    endings = {"w": "weight", "b": "bias", "mean": "running_mean", "variance": "running_var"}
    rng = np.random.default_rng(classes)
    found: Arrays = {}
    for name, shape in fitting.shapes_of(graph).items():
        place, _, last = name.rpartition("/")
        values = rng.uniform(0.5, 1, shape) if last == "variance" else rng.normal(0, 0.3, shape)
        array = values.T if len(shape) == 2 else values
        found[f"{place}/{endings[last]}".replace("/", ".")] = np.ascontiguousarray(
            array, np.float32
        )
        if last == "variance":
            found[f"{place}/num_batches_tracked".replace("/", ".")] = np.array(3)
    return found


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Weights for five classes."""
    path = tmp_path_factory.mktemp("theirs") / "theirs.safetensors"
    save_file(theirs(5, *TO[3:]), path)
    return path


def changed(source: Path, path: Path, change: Mapping[str, Any], without: str = "") -> Path:
    """The weights with some arrays replaced or added, and one left out."""
    arrays = {**load_file(source), **change}
    arrays.pop(without, None)
    save_file(arrays, path)
    return path


def failing(capsys: pytest.CaptureFixture[str], code: int, *arguments: str | Path) -> str:
    """What a command that ends with `code` says."""
    assert main(["convert", *map(str, arguments)]) == code
    found = capsys.readouterr()
    assert found.out == ""
    return found.err


def test_a_model_folder_predicts(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The number of classes is the file's; pictures are prepared as the map says; labels have names."""
    labels = tmp_path / "labels.txt"
    labels.write_text("ant\nbee\ncat\ndog\neel\n", encoding="utf-8")
    out = tmp_path / "model"
    assert main(["convert", str(source), *TO, "--output", str(out), "--labels", str(labels)]) == 0
    said = capsys.readouterr()
    assert said.out == f"{out}\n"
    assert "262 arrays" in said.err and "52 arrays have no place here" in said.err
    picture = tmp_path / "p.png"
    picture.write_bytes(png(np.random.default_rng(0).integers(0, 256, (3, 90, 70), np.uint8)))
    (answer,) = list(predict(str(out), [str(picture)]))
    assert answer.error is None
    assert answer.as_dict()["label"] in ("ant", "bee", "cat", "dog", "eel")


@pytest.mark.parametrize(("height", "width"), [(300, 401), (99, 64), (257, 1000), (224, 224)])
def test_pictures_are_prepared_as_torchvision_does(height: int, width: int, tmp_path: Path) -> None:
    """Byte for byte: its Resize(256) cuts the longer side's pixels off, its CenterCrop(224) rounds to even."""
    from PIL import Image

    noise = np.random.default_rng(height).integers(0, 256, (3, height // 8 + 1, width // 8 + 1))
    image = Image.fromarray(noise.astype(np.uint8).transpose(1, 2, 0)).resize((width, height))
    image.save(tmp_path / "p.png")
    preprocessing = elsewhere.pictures(load("torchvision").transforms, ["a"]).preprocessing()
    (record,) = read_inputs(preprocessing, [str(tmp_path / "p.png")])
    short, long = sorted((height, width))
    wide, high = (
        (256, int(256 * long / short)) if width <= height else (int(256 * long / short), 256)
    )
    left, top = round((wide - 224) / 2), round((high - 224) / 2)
    wanted = image.resize((wide, high), Image.Resampling.BILINEAR)
    wanted = wanted.crop((left, top, left + 224, top + 224))
    np.testing.assert_array_equal(
        record.arrays["image"].reshape(3, 224, 224), np.asarray(wanted).transpose(2, 0, 1)
    )


def test_a_file_of_weights(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Linear weights are turned, all others are as they were."""
    out = tmp_path / "new" / "ours.safetensors"
    assert main(["convert", str(source), *TO, "--output", str(out), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["map"] == "torchvision" and report["arrays"] == 262 and len(report["left"]) == 52
    before, after = load_file(source), load_file(out)
    assert set(report["names"].values()) | set(report["left"]) == set(before)
    for ours, name in report["names"].items():
        old = before[name]
        np.testing.assert_array_equal(after[ours], old.T if old.ndim == 2 else old)


HEAD = """
name: fine
data:
  name: generated
  samples: 8
  fields: [{name: image, shape: [3, 32, 32]}, {name: label, dtype: int64, classes: CLASSES, role: label}]
model: {name: mobilenet_v2, width: 0.25}
optimizer: {name: sgd, learning_rate: 1.0e-30}
train: {epochs: 1, batch_size: 4, init_from: ./ours.safetensors}
"""


def test_training_starts_from_it(
    source: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A recipe as the target; the same recipe starts from the result, one for other classes takes all but the last layer."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PADDLECLI_RUNS_DIR", str(tmp_path / "runs"))
    Path("five.yaml").write_text(HEAD.replace("CLASSES", "5"))
    Path("two.yaml").write_text(HEAD.replace("CLASSES", "2"))
    out = "ours.safetensors"
    assert main(["convert", str(source), "--to", "./five.yaml", "--output", out]) == 0
    assert main(["train", "./five.yaml", "--run-dir", "run"]) == 0
    first = load_file("ours.safetensors")
    for name, value in load_file("run/model/model.safetensors").items():
        if not name.endswith(("mean", "variance")):
            np.testing.assert_array_equal(value, first[name])
    assert main(["convert", str(source), "--to", "./run", "--output", "again"]) == 0
    again = load_file("again/model.safetensors")
    assert all(np.array_equal(again[name], first[name]) for name in first)
    capsys.readouterr()
    assert main(["train", "./two.yaml", "--run-dir", "other", "--allow-partial"]) == 0
    assert "260 arrays taken, 2 not" in capsys.readouterr().err


def test_the_commands_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those of docs/pretrained.md, one after the other; the one for PyTorch is not for here."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PADDLECLI_RUNS_DIR", "runs")
    save_file(theirs(1000), "mobilenet_v2.safetensors")
    Path("imagenet.txt").write_text("".join(f"class {i}\n" for i in range(1000)))
    Path("cat.jpg").write_bytes(png(np.zeros((3, 40, 40), np.uint8)))
    Path("pets.yaml").write_text(
        HEAD.replace("CLASSES", "2").replace(", width: 0.25", "").replace(", init_from: ./ours.safetensors", "")
    )  # fmt: skip
    page = Path(__file__).parents[2] / "docs" / "pretrained.md"
    found = re.findall(r"^\$ paddlecli (.*)$", page.read_text(encoding="utf-8"), re.M)
    assert len(found) == 4
    for words in found:
        assert main(shlex.split(words)) == 0, words
    assert "cat.jpg: class " in capsys.readouterr().out


def test_other_kinds_of_floats(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """float16 and float64 become float32; bfloat16 is read without a library that knows it."""
    name = "classifier.1.bias"
    half = changed(source, tmp_path / "half.safetensors", {name: np.arange(5, dtype=np.float16)})
    assert main(["convert", str(half), *TO, "--output", str(tmp_path / "h.safetensors")]) == 0
    assert "1 arrays were F16 and are float32 now" in capsys.readouterr().err
    header = json.dumps({"a": {"dtype": "BF16", "shape": [2, 1], "data_offsets": [0, 4]}}).encode()
    brain = tmp_path / "brain.safetensors"
    body = np.array([1.5, -2.0], np.float32).view(np.uint32) >> 16
    brain.write_bytes(struct.pack("<Q", len(header)) + header + body.astype("<u2").tobytes())
    found = foreign.read(brain)
    assert found.arrays["a"].tolist() == [[1.5], [-2.0]] and found.cast == {"BF16": 1}


def test_all_that_does_not_fit_is_listed(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wide = np.zeros((64, 3, 3, 3), np.float32)
    path = changed(
        source, tmp_path / "other.safetensors",
        {"features.0.0.weight": wide, "features.1.conv.1.weights": np.zeros(3, np.float32)},
        without="features.2.conv.2.weight",
    )  # fmt: skip
    said = failing(capsys, 5, path, *TO, "--output", tmp_path / "x")
    assert "1 left over" in said and "1 shape" in said and "1 missing" in said
    rows = [line.split() for line in said.splitlines()]
    assert ["shape", "features.0.0.weight", "64x3x3x3", "features/0/0/w", "8x3x3x3"] in rows
    left = next(r for r in rows if r[:2] == ["left", "over"])
    assert left[2:6] == ["features.1.conv.1.weights", "3", "-", "-"]
    missing = next(r for r in rows if r[0] == "missing")
    assert missing[:3] == ["missing", "-", "-"] and missing[3] == "features/2/conv/2/w"
    assert not (tmp_path / "x").exists()


def test_a_name_that_may_have_been_meant(source: Path, tmp_path: Path) -> None:
    """Both ways: what is left over names an array here, what is missing one of the file."""
    rules = load("torchvision")
    weights = foreign.Weights(tmp_path, {"fc.wieght": np.zeros((2, 3), np.float32)}, {})
    with pytest.raises(RunError) as caught:
        convert.convert(weights, rules, {"fc/weight": (2, 3)})
    rows = [line.split() for line in str(caught.value).splitlines()]
    assert ["left", "over", "fc.wieght", "2x3", "-", "-", "fc/weight"] in rows
    assert ["missing", "-", "-", "fc/weight", "2x3", "fc.wieght"] in rows


def test_two_arrays_for_one(tmp_path: Path) -> None:
    rules = load("torchvision")
    one = np.zeros(3, np.float32)
    weights = foreign.Weights(tmp_path, {"a.bias": one, "a/bias": one}, {})
    with pytest.raises(RunError, match=r"twice .* a/bias .* a/b .* a\.bias"):
        convert.convert(weights, rules, {"a/b": (3,)})


def test_our_own_names_need_no_map(tmp_path: Path) -> None:
    weights = foreign.Weights(tmp_path / "w", {"a/b": np.zeros(3, np.float32)}, {})
    with pytest.raises(RunError, match="weights of this network already, there is nothing to"):
        convert.convert(weights, load("torchvision"), {"a/b": (3,)})


def test_recurrent_weights(tmp_path: Path) -> None:
    """PyTorch's blocks are input, forget, candidate, output, with two biases; ours candidate, input, forget, output, with one."""
    path = tmp_path / "lstm.yaml"
    path.write_text(
        "arrays:\n"
        "  - {name: lstm/weight_hh_l0, to: r/w, transpose: [1, 0], blocks: [2, 0, 1, 3]}\n"
        "  - {name: lstm/bias_.h_l0, to: r/b, blocks: [2, 0, 1, 3], add: true}\n"
    )
    rows = np.arange(24, dtype=np.float32).reshape(8, 3)
    arrays = {
        "lstm.weight_hh_l0": rows,
        "lstm.bias_ih_l0": np.repeat([0, 1, 2, 3], 2).astype(np.float32),
        "lstm.bias_hh_l0": np.full(8, 10, np.float32),
    }
    found = convert.convert(
        foreign.Weights(path, arrays, {}), load(str(path)), {"r/w": (3, 8), "r/b": (8,)}
    )
    assert found.arrays["r/b"].tolist() == [12, 12, 10, 10, 11, 11, 13, 13]
    np.testing.assert_array_equal(found.arrays["r/w"], rows[[4, 5, 0, 1, 2, 3, 6, 7]].T)
    assert found.sources["r/b"] == "lstm.bias_ih_l0 + lstm.bias_hh_l0"
    odd = {**arrays, "lstm.bias_hh_l0": np.zeros(6, np.float32)}
    with pytest.raises(RunError, match="1 shape"):
        convert.convert(
            foreign.Weights(path, odd, {}), load(str(path)), {"r/w": (3, 8), "r/b": (8,)}
        )


def test_names_as_several_devices_leave_them(source: Path, tmp_path: Path) -> None:
    arrays = {f"module.{n}": a for n, a in load_file(source).items()}
    save_file(arrays, tmp_path / "many.safetensors")
    outs = [tmp_path / "one-out.safetensors", tmp_path / "many-out.safetensors"]
    for path, out in zip((source, tmp_path / "many.safetensors"), outs, strict=True):
        assert main(["convert", str(path), *TO, "--output", str(out)]) == 0
    one, many = map(load_file, outs)
    assert one.keys() == many.keys()
    assert all(np.array_equal(one[n], many[n]) for n in one)


def test_no_whole_numbers(tmp_path: Path) -> None:
    weights = foreign.Weights(tmp_path, {"a.bias": np.zeros(3, np.int64)}, {})
    with pytest.raises(RunError, match="type int64"):
        convert.convert(weights, load("torchvision"), {"a/b": (3,)})


def test_numbers_that_are_not_finite(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = np.full(5, np.nan, np.float32)
    path = changed(source, tmp_path / "nan.safetensors", {"classifier.1.bias": bad})
    said = failing(capsys, 5, path, *TO, "--output", tmp_path / "x")
    assert "classifier.1.bias holds numbers that are not finite" in said


def test_a_disk_without_room(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is left of the file, and one that stood there before is whole."""
    output, limit = tmp_path / "x.safetensors", resource.getrlimit(resource.RLIMIT_FSIZE)
    output.write_bytes(b"before")
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limit[1]))
    try:
        said = failing(capsys, 7, source, *TO, "--output", output)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert "the disk is full" in said and "make room, or write somewhere else" in said
    assert [p.name for p in tmp_path.iterdir()] == [output.name]
    assert output.read_bytes() == b"before"


def test_a_disk_without_room_for_a_folder(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The advice is not that of a training."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limit[1]))
    try:
        said = failing(capsys, 7, source, *TO, "--output", tmp_path / "model")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert "the disk is full" in said and "make room, or write somewhere else" in said


class Evil:
    """Unpickled, it would leave a trace."""

    def __reduce__(self) -> Any:
        return (Path.touch, (Path("opened"),))


def test_a_pickle_is_not_opened(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says in one line how to write safetensors from it."""
    monkeypatch.chdir(tmp_path)
    Path("net.pth").write_bytes(pickle.dumps(Evil()))
    said = failing(capsys, 5, "net.pth", *TO, "--output", "x")
    assert "is not opened" in said
    hint = said.splitlines()[-1]
    assert "torch.load('net.pth', weights_only=True)" in hint and "'net.safetensors'" in hint
    assert not Path("opened").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no safetensors file"),
        (b"hello world, this is text", "no safetensors file"),
        (struct.pack("<Q", 12) + b"[1, 2, 3, 4]", "its header is no table of arrays"),
        (struct.pack("<Q", 500) + b"{}", "cut off: its header has 500 bytes"),
        (struct.pack("<Q", 2) + b"{}", "holds no arrays"),
    ],
    ids=["empty", "text", "list", "short_header", "no_arrays"],
)
def test_no_safetensors_file(
    content: bytes, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "w.safetensors"
    path.write_bytes(content)
    assert message in failing(capsys, 5, path, *TO, "--output", tmp_path / "x")


def test_a_file_that_was_cut_off(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "short.safetensors"
    path.write_bytes(source.read_bytes()[:-100])
    said = failing(capsys, 5, path, *TO, "--output", tmp_path / "x")
    assert "cut off: its arrays end at byte" in said and "fetch it again" in said


def test_there_is_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "No such file" in failing(capsys, 5, tmp_path / "a", *TO, "--output", tmp_path / "x")
    assert "a folder" in failing(capsys, 5, tmp_path, *TO, "--output", tmp_path / "x")


def test_labels_must_fit(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels = tmp_path / "labels.txt"
    labels.write_text("a\nb\n", encoding="utf-8")
    arguments = [str(source), *TO, "--output", str(tmp_path / "x"), "--labels", str(labels)]
    assert "2 names, the weights are for 5 classes" in failing(capsys, 2, *arguments)
    labels.write_text("a\na\n", encoding="utf-8")
    assert "an empty line, or a name twice" in failing(capsys, 2, *arguments)


def test_maps_by_name_and_file(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = failing(capsys, 2, source, *TO, "--output", tmp_path / "x", "--map", "torchvison")
    assert "did you mean torchvision?" in said
    said = failing(capsys, 2, source, "--to", "lenet5", "--output", tmp_path / "x")
    assert "no map ships for `lenet5`" in said
    own = tmp_path / "own.yaml"
    own.write_text("arrays:\n  - {name: '.*', leave: true}\n")
    said = failing(capsys, 2, source, *TO, "--output", tmp_path / "x", "--map", own)
    assert "has no `transforms`" in said


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("arrays:\n  - {name: '(', to: x}\n", ":2:12: no regular expression"),
        ("arrays:\n  - {name: a, too: b}\n", "unknown key `too`"),
        ("arrays:\n  - {name: a}\n", ":2:5: either `to` or `leave: true`"),
        ("arrays:\n  - {name: a, to: '\\1'}\n", "more groups than the 0"),
        ("arrays:\n  - {name: a, to: b, transpose: [0, 0]}\n", "does not name every dimension"),
        ("arrays:\n  - {name: a, to: b, blocks: [1, 2]}\n", "does not name every block"),
        ("network: []\n", "unknown key `network`"),
        ("", "empty"),
        ("arrays: [\n", ""),
    ],
    ids=["regex", "key", "no_end", "group", "transpose", "blocks", "top", "empty", "syntax"],
)
def test_faults_of_a_map(text: str, message: str, tmp_path: Path) -> None:
    """Each with its line and column."""
    path = tmp_path / "map.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(str(path))
    assert message in str(caught.value) and "map.yaml" in str(caught.value)
