"""Plans on a CUDA device: training as on the CPU, guards, bad data, missing kernels."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from paddlecli import ops
from paddlecli.compiler.plan import PlanWriter
from paddlecli.errors import DataError, ResourceError, UsageError
from paddlecli.ops.spec import Spec
from paddlecli.runtime import native
from paddlecli.runtime.device import Device, device
from paddlecli.runtime.request import Request
from paddlecli.runtime.session import Params, Plan, Session

CONV = """
name: pictures
description: every layer of the digits' networks on generated pictures
data:
  name: generated
  samples: 64
  test_samples: 16
  fields:
    - {name: x, shape: [2, 8, 8]}
    - {name: y, shape: [1], dtype: int64, classes: 4, role: label}
model:
  inputs:
    x: {shape: [2, 8, 8]}
    y: {shape: [1], dtype: int64, below: 4, role: label}
  layers:
    - conv2d: {filters: 16, size: 3, padding: 1, activation: relu}
    - conv2d: {filters: 17, size: 3, padding: 1, activation: relu}
    - batch_norm: {}
    - pool2d: {size: 2, stride: 2}
    - dropout: {rate: 0.2}
    - fc: {size: 4}
      name: logits
  loss:
    softmax_with_cross_entropy: {}
    from: [logits, y]
  outputs: {logits: logits}
optimizer: {name: adam, learning_rate: 0.01}
metrics: [accuracy]
train: {epochs: 2, batch_size: 16, seed: 5}
"""


@pytest.fixture(scope="module")
def core(backend: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the libraries of both backends."""
    place = tmp_path_factory.mktemp("core")
    for file in (
        native.library_path("cpu"),
        native.library_path(backend),
        native.folder() / "_ffi.py",
    ):
        (place / file.name).symlink_to(file)
    return place


def train(folder: Path, core: Path, on: str, recipe: str, *more: str) -> dict[str, np.ndarray]:
    """Parameters after a run on a device."""
    from safetensors.numpy import load_file

    kept = {k: v for k, v in os.environ.items() if not k.startswith("PADDLECLI_")}
    env = {**kept, "PADDLECLI_CORE": str(core), "PADDLECLI_DEVICE": on, "HOME": str(folder)}
    place = folder / on
    command = [
        sys.executable,
        "-m",
        "paddlecli",
        "train",
        "--config",
        recipe,
        "--run-dir",
        str(place),
        *more,
    ]
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return dict(load_file(place / "model" / "model.safetensors"))


def compare(wanted: dict[str, np.ndarray], found: dict[str, np.ndarray], limit: float) -> None:
    assert wanted.keys() == found.keys()
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, limit, limit, err_msg=name)


def test_fit_a_line(core: Path, tmp_path: Path, backend: str) -> None:
    """Twenty steps end where they do on the CPU."""
    more = ("--epochs", "1", "--limit-batches", "20")
    runs = [train(tmp_path, core, on, "fit_a_line", *more) for on in ("cpu", backend)]
    compare(*runs, 1e-5)


def test_convolutions(core: Path, tmp_path: Path, backend: str) -> None:
    """A network with convolution, normalisation, pooling and dropout, by Adam: eight steps. The second
    convolution goes in tiles on the CPU, which CUDA does not have."""
    (tmp_path / "recipe.yaml").write_text(CONV)
    runs = [train(tmp_path, core, on, "./recipe.yaml") for on in ("cpu", backend)]
    compare(*runs, 2e-4)


def writer() -> PlanWriter:
    """y keeps its value in a range; it is doubled where the guard is 1, after a look-up."""
    w = PlanWriter()
    guard, index = (
        w.input("guard", Spec.of(1, dtype="i32")),
        w.input("index", Spec.of(2, dtype="i64")),
    )
    table = w.input("table", Spec.of(3, 2))
    rows = w.tensor("rows", Spec.of(2, 2), "slot", w.slot())
    y = w.tensor("y", Spec.of(1), "range", w.range("y", "state", "f32", 4))
    w.node(ops.get("gather_rows").forward, [table, index], [rows])
    w.node(ops.get("scale").forward, [y], [y], {"a": 2.0, "b": 0.0}, guard=guard)
    w.entry("run", 0, 2, inputs=["guard", "index", "table"], fetches=[y], outputs=[rows])
    return w


def test_guards_and_bad_data(backend: str) -> None:
    """A guard of 0 and bad data leave the state alone; the error names row, value and kernel."""
    plan = Plan(writer().finish(), backend)
    params = Params(plan)
    params.write_bytes(0, 0, np.array([3], np.float32))
    session = Session(plan, params, Device(backend, 0, 1))

    def run(guard: int, *index: int) -> Request:
        table = np.arange(6, dtype=np.float32).reshape(3, 2)
        columns = {"guard": np.array([guard], np.int32), "index": np.array(index), "table": table}
        request = Request(plan, 0, [1]).from_columns([columns])
        session.run(request)
        return request

    assert run(1, 2, 0).results[0, 0] == 6
    assert run(0, 2, 0).results[0, 0] == 6
    with pytest.raises(DataError, match=r"index is 7, must be below 3") as caught:
        run(1, 1, 7)
    assert "gather_rows" in str(caught.value) and "1" in str(caught.value)
    assert params.read_bytes(0, 0, 4).view(np.float32)[0] == 6
    assert run(1, 0, 1).results[0, 0] == 12


def test_missing_kernel(backend: str) -> None:
    """A plan that names a kernel without an implementation is refused with its name."""
    w = PlanWriter()
    y = w.tensor("y", Spec.of(1), "range", w.range("y", "state", "f32", 4))
    w.node(ops.get("relu").forward, [y], [y])
    w.entry("run", 0, 1)
    data = w.finish().replace(b"relu.forward(x: f32)", b"rel0.forward(x: f32)")
    with pytest.raises(ResourceError, match=r"rel0\.forward"):
        Plan(data, backend)


def test_devices() -> None:
    """Names of devices; a missing library or device is exit code 7."""
    with pytest.raises(UsageError):
        device("cpu:1")
    with pytest.raises(UsageError):
        device("cuda:x")
    assert device("auto").kind == "cpu" and str(device("cpu")) == "cpu"
    with pytest.raises(ResourceError) as caught:
        device("cuda:99")
    assert caught.value.exit_code == 7
