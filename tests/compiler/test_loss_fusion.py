"""Softmax, cross entropy and their gradient in one kernel: the numbers of the two, and where the compiler takes it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from null.world import graph_of, recipe_of

from paddlecli import ops
from paddlecli.compiler.fuse_losses import fuse_losses
from paddlecli.compiler.memory import plan_memory
from paddlecli.compiler.optimizer import optimizers
from paddlecli.compiler.pipeline import Passes, run_passes
from paddlecli.graph.ir import Entry, flat
from paddlecli.ops.base import Attr
from paddlecli.runtime.eager import Out, run_kernel

OP: Any = ops.get("softmax_with_cross_entropy")
SHAPES = [(5, 3), (1, 1), (7, 16), (9, 41), (3, 2073), (0, 5)]
IGNORED = 1


def arguments(rows: int, classes: int, weighted: bool, spread: float = 4.0) -> dict[str, Any]:
    """Scores, labels of which some are ignored, what a label counts, gradients of the losses."""
    rng = np.random.default_rng(rows + classes)
    label = rng.integers(0, classes, (rows, 1))
    return {
        "x": rng.normal(0, spread, (rows, classes)).astype(np.float32),
        "label": label,
        "weight": rng.uniform(0.5, 2, classes).astype(np.float32) if weighted else None,
        "dloss": rng.uniform(-1, 1, (rows, 1)).astype(np.float32),
    }


def one(args: dict[str, Any], **how: Any) -> dict[str, Any]:
    """Of the kernel that makes both."""
    out = {"loss": Out(args["label"].shape), "dx": Out(args["x"].shape)}
    return run_kernel(OP.forward_backward, args, {"ignore_index": IGNORED}, out, **how)


def two(args: dict[str, Any]) -> dict[str, Any]:
    """Of the two kernels."""
    attrs: dict[str, Attr] = {"soft_label": False, "axis": -1, "ignore_index": IGNORED}
    given = {k: args[k] for k in ("x", "label", "weight")}
    rows = len(args["x"])
    outs = {"loss": Out(args["label"].shape), "stats": Out((rows, 1, 2))}
    found = run_kernel(OP.forward, given, attrs, outs)
    back = {**given, "stats": found["stats"], "dloss": args["dloss"]}
    return {**found, **run_kernel(OP.backward_x, back, attrs, {"dx": Out(args["x"].shape)})}


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_numbers_of_the_two(shape: tuple[int, int], weighted: bool) -> None:
    """The loss in its bits, the gradient to rounding; the same bits by two threads and in place."""
    args = arguments(*shape, weighted)
    found, wanted = one(args), two(args)
    assert found["loss"].tobytes() == wanted["loss"].tobytes()
    np.testing.assert_allclose(found["dx"], wanted["dx"], 3e-6, 1e-9)
    assert not found["dx"][args["label"].ravel() == IGNORED].any()
    for how in ({"threads": 2, "smallest_grain": True}, {"inplace": True}):
        other = one(args, **how)
        assert all(other[k].tobytes() == found[k].tobytes() for k in found), how


def test_rows_stand_alone() -> None:
    """A row has the bits that it has among others."""
    args = arguments(9, 41, weighted=True)
    whole = one(args)
    for i in range(9):
        row = {k: v if k == "weight" else v[i : i + 1] for k, v in args.items()}
        for name, value in one(row).items():
            assert value.tobytes() == whole[name][i : i + 1].tobytes(), name


def test_large_scores() -> None:
    """Neither overflow nor lost digits where one score is far above the others; a sure row keeps a gradient."""
    args = arguments(6, 5, weighted=False)
    args["x"] = np.array([[1e4, 0, -1e4, 3, 2], [-200, 0, -200, -200, -200], [40, 20, 0, 0, 0]] * 2, np.float32)  # fmt: skip
    args["label"] = np.array([[0], [0], [0], [2], [3], [4]])
    x = args["x"].astype(np.float64)
    p = np.exp(x - x.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    p[np.arange(6), args["label"].ravel()] = -(1 - p[np.arange(6), args["label"].ravel()])
    p[2, 0] = -(np.exp(-20.0) + 3 * np.exp(-40.0))
    found = one(args)
    np.testing.assert_allclose(found["dx"], p * args["dloss"], 1e-5, 1e-37)
    assert np.isfinite(found["loss"]).all()


def test_adds() -> None:
    """Told to add, it adds."""
    args = arguments(7, 19, weighted=True)
    start = {"loss": np.full((7, 1), 2, np.float32), "dx": np.ones((7, 19), np.float32)}
    plain, found = one(args), one(args, accumulate=start)
    for name, value in start.items():
        np.testing.assert_allclose(found[name], value + plain[name], 1e-6, 1e-6)


def test_a_score_that_is_no_number() -> None:
    """It makes the row's loss and gradient NaN, and no other row's."""
    args = arguments(4, 20, weighted=False)
    args["label"][:] = 5
    args["x"][2, 7] = np.nan
    found = one(args)
    assert np.isnan(found["loss"]).ravel().tolist() == [False, False, True, False]
    assert np.isnan(found["dx"]).all(1).tolist() == [False, False, True, False]


RECIPE = """
name: words
data:
  name: generated
  fields:
    - {name: x, shape: [6]}
    - {name: y, dtype: int64, classes: 5, role: label}
model:
  inputs: {x: {shape: [6]}, y: {dtype: int64, below: 5, role: label}}
  layers:
    - {fc: {size: 5}, name: scores}
  loss: {softmax_with_cross_entropy: {}, from: [scores, y]}
  outputs: {scores: scores}
metrics: [{accuracy: {}, from: [scores, y]}]
optimizer: {name: sgd, learning_rate: 0.1}
"""


@pytest.fixture(scope="module")
def entries(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Entry]:
    """The training step, fused or not."""
    recipe = recipe_of(RECIPE, tmp_path_factory.mktemp("recipes"))
    network = graph_of(recipe), optimizers(recipe)
    return {
        on: run_passes(*network, replace(Passes(), fuse=on)).fused.entries["train_step"]
        for on in (True, False)
    }


def names(entry: Entry) -> list[str]:
    return [n.kernel.full_name for n in flat(entry.items)]


def test_where_it_stands(entries: dict[bool, Entry]) -> None:
    """Behind what reads the scores, so that their gradient can take their place, and before what reads the loss."""
    with_, without = names(entries[True]), names(entries[False])
    both, forward = OP.forward_backward.full_name, OP.forward.full_name
    assert with_.count(both) == 1 and not {forward, OP.backward_x.full_name} & set(with_)
    assert without.index("accuracy.forward") > without.index(forward)
    assert (
        with_.index("accuracy.forward") < with_.index(both) < with_.index("weighted_mean.forward")
    )
    assert plan_memory(entries[True]).inplace > 0


def test_a_gradient_that_needs_the_loss(entries: dict[bool, Entry]) -> None:
    """Then the two stay two."""
    entry = entries[False]
    nodes = list(flat(entry.items))
    loss = next(n for n in nodes if n.kernel is OP.forward).results["loss"]
    items = [
        replace(n, args={**n.args, "dloss": loss}) if n.kernel is OP.backward_x else n
        for n in nodes
    ]
    changed = Entry(**{**vars(entry), "items": items})
    assert names(fuse_losses(changed)) == names(entry)
    assert names(fuse_losses(entry)) != names(entry)
