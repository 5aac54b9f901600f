"""Weights of another run or file to start from: which file is meant, and what is made of it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from paddlecli.config.load import load_recipe
from paddlecli.engine.checkpoint import list_folders
from paddlecli.engine.fit import Options, fit, resume
from paddlecli.engine.initial import resolved
from paddlecli.engine.rundir import RunDir
from paddlecli.errors import RunError

from .test_training import StopAt
from .tiny_runs import MLP, MakeRecipe, same_results


@pytest.fixture
def source(tiny: MakeRecipe, tmp_path: Path) -> Path:
    """A short run."""
    return fit(
        tiny("train.epochs=1"), Options(run_dir=tmp_path / "runs" / "tiny" / "first")
    ).run_dir


def test_what_is_meant(
    source: Path, tiny: MakeRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run by its path, id or recipe; a model folder, a checkpoint, a file. Always written out as the whole path of a file."""
    weights = source / "model" / "model.safetensors"
    checkpoint = list_folders(source / "checkpoints")[-1] / "model.safetensors"
    monkeypatch.chdir(tmp_path)
    for text, meant in (
        (str(source), weights), ("runs/tiny/first", weights), ("first", weights), ("last", weights), ("tiny", weights),
        (str(source / "model"), weights), ("./runs/tiny/first/model/model.safetensors", weights),
        (str(checkpoint.parent), checkpoint), (str(checkpoint), checkpoint),
    ):  # fmt: skip
        found = resolved(tiny(f"train.init_from={text}"))
        assert found.train.init_from == str(meant), text
        assert resolved(found) == found


def test_a_recipes_path_starts_at_its_file(source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "recipes"
    folder.mkdir()
    shutil.copy(source / "model" / "model.safetensors", folder / "start.safetensors")
    (folder / "own.yaml").write_text(
        MLP.replace("epochs: 4", "epochs: 1, init_from: ./start.safetensors")
    )
    found = resolved(load_recipe(folder / "own.yaml"))
    assert found.train.init_from == str(folder / "start.safetensors")


def test_step_one_begins_there(source: Path, tiny: MakeRecipe, tmp_path: Path) -> None:
    """Parameters are the file's; after a rate of almost nothing they still are. Nothing else of the other run is taken."""
    over = (f"train.init_from={source}", "train.max_steps=1", "optimizer.learning_rate=1e-30")
    run = fit(tiny(*over), Options(run_dir=tmp_path / "x")).run_dir
    first = load_file(source / "model" / "model.safetensors")
    for name, value in load_file(run / "model" / "model.safetensors").items():
        np.testing.assert_array_equal(value, first[name])
    newest = list_folders(run / "checkpoints")[-1]
    rest = load_file(newest / "optimizer.safetensors")
    assert any(name.startswith("updates") and value.ravel()[0] == 1 for name, value in rest.items())


def test_a_resume_needs_it_until_the_first_checkpoint(
    source: Path, tiny: MakeRecipe, tmp_path: Path
) -> None:
    over = (f"train.init_from={source}", "train.epochs=2")
    whole = fit(tiny(*over), Options(run_dir=tmp_path / "whole")).run_dir
    early = tmp_path / "early"
    early.mkdir()
    (early / "config.yaml").write_text(
        (whole / "config.yaml").read_text()
    )  # killed before its first checkpoint
    resume(RunDir(early))
    same_results(whole, early)
    cut = tmp_path / "cut"
    fit(tiny(*over), Options(run_dir=cut), StopAt(12))
    shutil.rmtree(source)
    resume(RunDir(cut))
    same_results(whole, cut)


def test_refused(source: Path, tiny: MakeRecipe, tmp_path: Path) -> None:
    file = tmp_path / "odd.safetensors"
    values = load_file(source / "model" / "model.safetensors")
    name = sorted(values)[0]

    def refuse(message: str, *more: str) -> None:
        with pytest.raises(RunError, match=message):
            fit(tiny(f"train.init_from={file}", *more), Options(run_dir=tmp_path / "x"))
        assert not (tmp_path / "x").exists()

    refuse("no such run or file")
    file.write_bytes(b"nonsense")
    refuse("damaged")
    save_file({**values, name: values[name][:-1]}, file)
    shape = "x".join(map(str, values[name].shape))
    refuse(rf"1 arrays do not fit the network, 3 do\n.*\n  shape +{name} +{shape} ")
    fit(
        tiny(f"train.init_from={file}", "train.allow_partial=true", "train.epochs=1"),
        Options(run_dir=tmp_path / "part"),
    )
    kept = json.loads((tmp_path / "part" / "run.json").read_text())["init_from"]
    assert (kept["initial"], kept["not_taken"], len(kept["taken"])) == ([name], [name], 3)
    save_file({**values, name: np.full_like(values[name], np.nan)}, file)
    refuse(f"{name} holds numbers that are not finite", "train.allow_partial=true")
    save_file({"other": np.zeros(3, np.float32)}, file)
    refuse("not one array fits", "train.allow_partial=true")


def test_what_torch_saves_is_not_opened(tiny: MakeRecipe, tmp_path: Path) -> None:
    """The error says how to write safetensors from it, and which command takes those over."""
    path = tmp_path / "net.pth"
    path.write_bytes(b"PK\x03\x04 and so on")
    with pytest.raises(RunError, match="is not opened") as caught:
        fit(tiny(f"train.init_from={path}"), Options(run_dir=tmp_path / "x"))
    assert "weights_only=True" in str(caught.value.hint)
    save_file({"fc.weight": np.zeros((2, 2), np.float32)}, tmp_path / "net.safetensors")
    with pytest.raises(RunError, match="do not fit") as caught:
        fit(
            tiny(f"train.init_from={path.with_suffix('.safetensors')}"),
            Options(run_dir=tmp_path / "y"),
        )
    assert "paddlecli convert" in str(caught.value.hint)
