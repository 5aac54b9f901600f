"""Ops of a user's own: a compiled library and its Python half, from `--code` to a prediction.

A library stays in the process that loaded it, so every test runs programs of their own.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .runs import environment, recipe, run, strict

HEADERS = Path(__file__).resolve().parents[2] / "core" / "include"
FLAGS = [
    "-shared",
    "-fPIC",
    "-O3",
    "-std=c11",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=off",
    "-Wall",
    "-Wextra",
    "-Werror",
]
COMPILER = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler")

SOURCE = """
#include "pk_library.h"

typedef struct cube { float *y; const float *x, *dy; int add; } cube;

static void forward_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const cube *k = context;
    for (int64_t i = begin; i < end; i++) k->y[i] = k->x[i] * k->x[i] * k->x[i] + (k->add ? k->y[i] : 0.0f);
}

static void backward_task(void *context, int64_t begin, int64_t end, int32_t thread, void *scratch) {
    (void)thread, (void)scratch;
    const cube *k = context;
    for (int64_t i = begin; i < end; i++)
        k->y[i] = 3.0f * k->x[i] * k->x[i] * k->dy[i] + (k->add ? k->y[i] : 0.0f);
}

/* x [n] -> y [n] */
static pk_status cube_forward(const pk_call *call) {
    const pk_view *x = &call->in[0];
    const int64_t n = pk_count(x);
    for (int64_t i = 0; i < n; i++)
        if (pk_f32(x)[i] > call->attr[0].f)
            return pk_fail(call, PK_BAD_DATA, x->ndim ? i / (n / x->dim[0]) : 0, "x is %g, at most %g is cubed",
                           (double)pk_f32(x)[i], call->attr[0].f);
    cube k = {pk_f32(&call->out[0]), pk_f32(x), NULL, pk_adds(call, 0)};
    pk_parallel(call, n, 1024, forward_task, &k);
    return PK_OK;
}

/* x, dy [n] -> dx [n] */
static pk_status cube_backward(const pk_call *call) {
    cube k = {pk_f32(&call->out[0]), pk_f32(&call->in[0]), pk_f32(&call->in[1]), pk_adds(call, 0)};
    pk_parallel(call, pk_count(&call->in[0]), 1024, backward_task, &k);
    return PK_OK;
}

PK_OP(cube, {"cube.forward(x: f32; limit: float) -> (y: f32)", cube_forward},
      {"cube.backward(x: f32, dy: f32) -> (dx: f32)", cube_backward});
PK_LIBRARY(PK_TABLE_OF(cube))
"""
CODE = '''
"""The op `cube`, and a layer of it."""

from pathlib import Path

from paddlecli import ops
from paddlecli.config.registry import LAYERS
from paddlecli.config.types import Positive
from paddlecli.ops.base import Kernel, Op


class Cube(Op):
    """y = x^3, for x up to a limit."""

    name = "cube"
    forward = Kernel("cube.forward(x: f32; limit: float) -> (y: f32)", rowwise=True)
    backward = Kernel("cube.backward(x: f32, dy: f32) -> (dx: f32)", rowwise=True)

    def shape(self, args, attrs):
        return {"y": args["x"]}

    def grad(self, g, node, dy):
        return {"x": g.emit(self.backward, {"x": node.args["x"], "dy": dy["y"]}, out={"dx": node.args["x"]})}

    def reference(self, args, attrs, random):
        return {"y": args["x"] ** 3}


ops.add_op(Cube(), Path(__file__).with_name("cube.so"))


@LAYERS.register("cubed")
def cubed(net, x, *, limit: Positive = 100.0):
    with net.layer("cubed"):
        return net.apply("cube", x, limit=limit)
'''
RECIPE = """
name: own
data:
  name: generated
  samples: 640
  test_samples: 16
  fields:
    - {name: x, shape: [3]}
    - {name: y, shape: [1], role: label}
model:
  inputs: {x: {shape: [3]}, y: {shape: [1], role: label}}
  layers:
    - fc: {size: 8}
    - cubed: {}
    - fc: {size: 1}
      name: prediction
  loss: {square_error_cost: {}, from: [prediction, y]}
  outputs: {prediction: prediction}
optimizer: {name: sgd, learning_rate: 0.001}
train: {epochs: 2, batch_size: 64}
"""


def build(folder: Path, text: str = SOURCE, name: str = "cube.so") -> None:
    """Compiles a library with nothing but the headers."""
    assert COMPILER is not None
    (folder / "cube.c").write_text(text)
    done = subprocess.run(
        [COMPILER, *FLAGS, "-I", str(HEADERS), "cube.c", "-o", name], cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with the library, its Python half and a recipe."""
    build(tmp_path)
    (tmp_path / "cube.py").write_text(CODE)
    recipe(tmp_path, RECIPE)
    return tmp_path


def test_from_the_recipe_to_a_prediction(place: Path) -> None:
    """Any threads give the same bits; the record has code and library; without them the error says what to add."""
    for folder, threads in (("one", "1"), ("two", "2")):
        run(
            place,
            "train",
            "./recipe.yaml",
            "--code",
            "cube.py",
            "--run-dir",
            folder,
            "-q",
            "--threads",
            threads,
        )
    weights = [(place / f / "model" / "model.safetensors").read_bytes() for f in ("one", "two")]
    assert weights[0] == weights[1]
    kept = json.loads((place / "one" / "run.json").read_text())["code"]
    assert [Path(f["path"]).name for f in kept] == ["cube.py", "cube.so"]
    for arguments in (
        ("evaluate", "one"),
        ("predict", "one", "--field", "x=[1,2,3]"),
        ("train", "--resume", "one"),
    ):
        message = run(place, *arguments, code=5).stderr
        assert "uses the op 'cube', which this version does not have" in message
        assert f"add --code {place / 'cube.py'}" in message and "cube.so" not in message
    found = run(
        place, "predict", "one", "--field", "x=[1,2,3]", "--code", "cube.py", "--json", "-q"
    )
    assert isinstance(strict(found.stdout)["prediction"], float)
    build(place, SOURCE + "/* edited */\nint edited;\n")
    again = run(place, "evaluate", "one", "--code", "cube.py").stderr
    assert "cube.so has changed since the run was started" in again
    assert "metric" not in run(place, "runs", "show", "one").stderr


def test_an_error_of_an_own_kernel(place: Path) -> None:
    """It names op, layer and row like one of the core's."""
    text = RECIPE.replace("cubed: {}", "cubed: {limit: 0.5}")
    message = run(
        place, "train", recipe(place, text), "--code", "cube.py", "--run-dir", "out", code=4
    ).stderr
    assert "cube" in message and "at most 0.5 is cubed" in message and "recipe.yaml:" in message


def test_the_gradient(place: Path) -> None:
    """Kernels of a library run eagerly, as the core's do."""
    program = """
import numpy as np
from paddlecli import ops
from paddlecli.config.plugins import load_code
from paddlecli.runtime import native
from paddlecli.runtime.eager import Out, run_kernel
load_code(["cube.py"])
x = np.linspace(-2, 2, 5000, dtype=np.float32)
op = ops.get("cube")
y = run_kernel(op.forward, {"x": x}, {"limit": 9.0}, {"y": Out(x.shape)}, threads=2)["y"]
dx = run_kernel(op.backward, {"x": x, "dy": np.ones_like(x)}, {}, {"dx": Out(x.shape)})["dx"]
assert np.allclose(y, x**3) and np.allclose(dx, 3 * x**2), "values"
assert native.mismatches() == [] and "cube" in ops.names(), "one list of kernels"
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=place,
        env=environment(place),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


BAD = {
    "another signature": (
        SOURCE.replace("x: f32; limit: float", "x: f32; most: float"), CODE,
        "cube.so: it has cube.forward(x: f32; most: float) -> (y: f32); the Python half says cube.forward(x: f32; limit: float)",
    ),
    "a kernel is missing": (
        SOURCE.replace('cube.backward(x', 'cube.backwards(x'), CODE, "cube.so: it has no kernel cube.backward; the Python half",
    ),
    "no table": (SOURCE.replace("PK_LIBRARY(PK_TABLE_OF(cube))", ""), CODE, "PK_LIBRARY is missing"),
    "another version": (
        SOURCE.replace('#include "pk_library.h"', '#include "pk_library.h"\n#undef PK_LIBRARY_ABI\n#define PK_LIBRARY_ABI 99'), CODE,
        "it was made for another version of the core: compile it again",
    ),
    "a kernel of the core": (
        SOURCE.replace("PK_OP(cube, {\"cube", "PK_OP(relu, {\"relu").replace('{"cube.backward', '{"relu.backward').replace("OF(cube)", "OF(relu)"),
        CODE, "there is a kernel of that name: relu.forward",
    ),
    "rows of another op": (SOURCE.replace('{"cube.backward', '{"cubes.backward'), CODE, "the table of the op cube has a row that is not its own"),
    "an op of the core": (SOURCE, CODE.replace('"cube"', '"relu"'), "there is an op `relu` already"),
    "no file": (SOURCE, CODE.replace("cube.so", "cubes.so"), "cubes.so: the library of the op `cube` does not exist"),
}  # fmt: skip


@pytest.mark.parametrize("fault", BAD)
def test_what_cannot_be_loaded(fault: str, tmp_path: Path) -> None:
    source, code, words = BAD[fault]
    if fault == "no table":
        source = "const int nothing = 1;\n"
    build(tmp_path, source)
    (tmp_path / "cube.py").write_text(code)
    importing = fault in ("an op of the core", "no file")
    name = recipe(tmp_path, RECIPE)
    message = run(tmp_path, "train", name, "--code", "cube.py", code=3, users=importing).stderr
    assert words in message
    assert not (tmp_path / "runs").exists()


def test_what_is_no_library(place: Path) -> None:
    (place / "cube.so").write_text("no library")
    message = run(place, "train", "./recipe.yaml", "--code", "cube.py", code=3).stderr
    assert "cube.so: file too short" in message or "invalid ELF" in message
