"""What is promised to leave the bits alone: threads, how a batch is shared, how data come in; and what cutting a batch may change."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from null.executor import Batch
from null.world import draw, graph_of, recipe_of
from road import Array, Road, close, same

from paddlecli.compiler.groups import OptimizerSpec
from paddlecli.compiler.optimizer import optimizers
from paddlecli.compiler.pipeline import Passes
from paddlecli.data.columns import Dataset
from paddlecli.data.opening import open_dataset
from paddlecli.errors import ConfigError
from paddlecli.graph.ir import Graph
from paddlecli.ops.base import Ragged

Load = Callable[[str], tuple[Graph, dict[str, OptimizerSpec]]]
NAMES = (
    "fit_a_line",
    "softmax",
    "mlp",
    "conv",
    "decode",
    "scan",
    "two_axes",
    "two_networks",
    "memories",
    "shared",
)

MASKED = """
name: masked
data:
  name: generated
  lengths: {steps: [0, 5]}
  fields:
    - {name: x, shape: [4], axes: [steps]}
    - {name: z, shape: [6]}
    - {name: y, shape: [1], role: label}
model:
  inputs: {x: {shape: [4], ragged: steps}, z: {shape: [6]}, y: {shape: [1], role: label}}
  blocks:
    cell:
      inputs: [x_t]
      memories: {h: {shape: [5], next: h_next}}
      layers:
        - {dropout: {rate: 0.5, mode: upscale_in_train}, from: x_t, name: thin}
        - {fc: {size: 5, activation: tanh}, from: [thin, h], name: h_next}
  layers:
    - {dropout: {rate: 0.3}, from: x, name: tokens}
    - SCAN
    - {sequence_pool: {kind: average}, name: pooled}
    - {dropout: {rate: 0.3}, from: z, name: row}
    - {fc: {size: 1}, from: [pooled, row], name: prediction}
  loss: {square_error_cost: {}, from: [prediction, y]}
  outputs: {prediction: prediction}
optimizer: {name: momentum, learning_rate: 0.1, clip: {global_norm: 0.7}}
"""
"""Random masks on samples, on tokens and, with the scan, in every step of it."""
SCANNED = MASKED.replace("SCAN", "{scan: {block: cell}}")
FLAT = MASKED.replace("SCAN", "{fc: {size: 5, activation: tanh}}")


def masked(text: str, folder: Path) -> tuple[Graph, dict[str, OptimizerSpec]]:
    recipe = recipe_of(text, folder)
    return graph_of(recipe), optimizers(recipe)


# -- threads ------------------------------------------------------------------------------------------------------------
def trained(
    graph: Graph, specs: dict[str, OptimizerSpec], threads: int, grain: bool
) -> tuple[str, dict[str, Array]]:
    road = Road(graph, specs, threads=threads, grain=grain)
    road.shake()
    numbers = []
    for step, size in enumerate((5, 1, 19)):
        batch = replace(draw(graph, size, step), step=step)
        numbers += [road.step(e, batch, 0.01).numbers for e in road.artifact.entries]
    return repr(numbers), road.everything()


@pytest.mark.parametrize("name", [*NAMES, "masked"])
def test_threads(name: str, load: Load, tmp_path: Path) -> None:
    """1, 2 and 3 threads, work cut as usual and as finely as can be."""
    graph, specs = masked(SCANNED, tmp_path) if name == "masked" else load(name)
    numbers, arrays = trained(graph, specs, 1, False)
    for threads, grain in ((1, True), (2, True), (3, True), (2, False)):
        other, theirs = trained(graph, specs, threads, grain)
        assert other == numbers
        same(arrays, theirs)


# -- what shares a batch ------------------------------------------------------------------------------------------------
def alone(batch: Batch, row: int) -> Batch:
    """One sample of a batch."""

    def cut(value: Array | Ragged) -> Array | Ragged:
        if isinstance(value, Ragged):
            low, high = value.offsets[row : row + 2]
            return Ragged(value.values[low:high], np.array([0, high - low]))
        return value[row : row + 1]

    return Batch(1, {k: cut(v) for k, v in batch.columns.items()}, batch.arguments, batch.step)


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_does_not_see_its_batch(name: str, load: Load) -> None:
    """Outputs of entries that evaluate or predict: the bits of a sample are the same whatever comes with it."""
    graph, specs = load(name)
    road = Road(graph, specs, threads=2, grain=True)
    road.shake()
    batch = draw(graph, 37, 5)
    compared = 0
    for entry in (n for n, e in graph.entries.items() if not e.training):
        together = road.step(entry, batch, outputs=True).outputs
        for row in (0, 1, 2, 17, 36):
            for output, value in road.step(entry, alone(batch, row), outputs=True).outputs.items():
                assert value.tobytes() == together[output][row : row + 1].tobytes(), (
                    entry,
                    output,
                    row,
                )
                compared += 1
    assert compared


# -- parts of a batch ---------------------------------------------------------------------------------------------------
def fitted(
    graph: Graph, specs: dict[str, OptimizerSpec], data: Dataset, parts: int
) -> dict[str, Array]:
    """Parameters and slots behind three iterations of the engine on batches of 7, the last one short, each cut into parts."""
    road = Road(graph, specs, accumulate=parts > 1)
    road.shake()
    split = data["train"]
    road.run(road.maker(data.spec, split, 7, 0.05, parts).make(np.arange(17), 0, 3, 0), split)
    return road.everything(but=["metric"])


@pytest.mark.parametrize("parts", [2, 3, 7])
def test_parts_are_the_whole(parts: int, tmp_path: Path) -> None:
    """Masks on samples and on tokens are those of the whole batch however it is cut, and so are clipping and update."""
    recipe = recipe_of(FLAT, tmp_path)
    assert recipe.data is not None
    data = open_dataset(recipe.data.name, recipe.data.arguments)
    graph, specs = graph_of(recipe), optimizers(recipe)
    close(fitted(graph, specs, data, parts), fitted(graph, specs, data, 1), 2e-6)


def test_masks_in_a_scan_forbid_parts(tmp_path: Path) -> None:
    """They are drawn by the place in the batch's order of lengths, which parts of it do not know."""
    with pytest.raises(ConfigError, match=r"\[dropout\] stands in a scan"):
        Road(*masked(SCANNED, tmp_path), accumulate=True)


def test_masks_are_drawn_anew_in_every_step(tmp_path: Path) -> None:
    """Equal batches in two steps of training differ by their masks alone; the same step repeats them."""
    road = Road(*masked(SCANNED, tmp_path))
    road.shake()
    (entry,) = road.graph.roles["train"]
    batch = draw(road.graph, 6, 1)
    losses = [road.step(entry, replace(batch, step=step), rate=0.0).loss for step in (0, 1, 0, 1)]
    assert losses[0] == losses[2] != losses[1] == losses[3]


@pytest.mark.parametrize("switch", ["hoist", "fuse", "reuse", "views", "inplace"])
def test_passes_keep_masks(switch: str, tmp_path: Path) -> None:
    """A pass that moves a random node out of the loop, or into another node, leaves it its stream and its places."""
    graph, specs = masked(SCANNED, tmp_path)
    found = []
    for passes in (Passes(), replace(Passes(), **{switch: False})):
        road = Road(graph, specs, passes=passes)
        road.shake()
        (entry,) = graph.roles["train"]
        losses = [road.step(entry, replace(draw(graph, n, n), step=n)).loss for n in (5, 2, 9)]
        found.append({"losses": np.array(losses), **road.everything(but=["metric"])})
    close(*found, 2e-5)


# -- instruction sets ---------------------------------------------------------------------------------------------------
LEVEL = """
import hashlib, pathlib, sys, tempfile
from dataclasses import replace
from null.world import draw, network
from paddlecli.runtime import native
from road import Road

whole = hashlib.sha256()
for name in sys.argv[1:]:
    road = Road(*network(name, pathlib.Path(tempfile.mkdtemp())))
    road.shake()
    for step, size in enumerate((5, 1, 19)):
        batch = replace(draw(road.graph, size, step), step=step)
        whole.update(repr([road.step(e, batch, 0.01).numbers for e in road.artifact.entries]).encode())
    for value in road.everything().values():
        whole.update(value.tobytes())
print(native.info().level, whole.hexdigest())
"""


def at_level(level: str) -> tuple[str, str]:
    """The level that ran, and a digest of all that training left there. The level is chosen once a process."""
    paths = os.pathsep.join(p for p in (str(Path(__file__).parents[1]), *sys.path) if p)
    done = subprocess.run([sys.executable, "-c", LEVEL, *NAMES], capture_output=True, text=True, check=False,
                          env={**os.environ, "PADDLECLI_ISA": level, "PYTHONPATH": paths})  # fmt: skip
    if "ResourceError" in done.stderr or "UsageError" in done.stderr:
        pytest.skip(f"this machine cannot run {level}: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    ran, digest = done.stdout.split()
    return ran, digest


def test_vector_levels_agree() -> None:
    (first, mine), (second, theirs) = at_level("avx2"), at_level("avx512")
    assert (first, second) == ("avx2", "avx512")
    assert mine == theirs
