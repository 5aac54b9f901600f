"""Fusion in residual networks: what is fused, and that it changes nothing but the order of sums."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from null.world import draw, graph_of, recipe_of
from road import Road, close

from paddlecli.compiler.groups import OptimizerSpec
from paddlecli.compiler.optimizer import optimizers
from paddlecli.compiler.pipeline import Passes, run_passes
from paddlecli.engine.passes import passes_for
from paddlecli.graph.ir import Entry, Graph, flat

RECIPE = """
name: residual
data:
  name: generated
  fields:
    - {name: image, shape: [3, 12, 12]}
    - {name: label, dtype: int64, classes: 4, role: label}
model: {name: resnet_cifar10, depth: 8, classes: 4}
optimizer: {name: momentum, learning_rate: 0.1, momentum: 0.9}
"""
Network = tuple[Graph, dict[str, OptimizerSpec]]


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Network:
    """A net of a residual and two projection blocks."""
    recipe = recipe_of(RECIPE, tmp_path_factory.mktemp("recipes"))
    return graph_of(recipe), optimizers(recipe)


def kernels(entry: Entry) -> Counter[str]:
    return Counter(n.kernel.full_name for n in flat(entry.items))


def test_what_is_fused(network: Network) -> None:
    """The stem's and the first block's relu are masks of batch norms alone; behind the identity block both ways are read."""
    found = {
        fuse: run_passes(*network, replace(Passes(), fuse=fuse)).fused for fuse in (True, False)
    }
    with_, without = (kernels(found[f].entries["train_step"]) for f in (True, False))
    assert without["relu.forward"] == 7 and without["add.forward"] == 3
    assert not with_["relu.forward"] and not with_["add.forward"] and not with_["sum.forward"]
    assert without["sum.forward"] == 1 and without["relu.backward"] == 7
    assert with_["relu.backward"] == 1
    predict = kernels(found[True].entries["predict"])
    assert not predict["relu.forward"] and not predict["add.forward"]
    assert not predict["batch_norm.inference"] and predict["batch_norm.fold"] == 9


@pytest.mark.parametrize("switch", ["fuse", "tiles"])
def test_on_equals_off(switch: str, network: Network) -> None:
    roads = [Road(*network, passes=replace(Passes(), **{switch: on})) for on in (True, False)]
    assert roads[0].artifact.plan != roads[1].artifact.plan
    for road in roads:
        road.shake()
    for step, size in enumerate((5, 3)):
        batch = replace(draw(network[0], size, step), step=step)
        for entry in roads[0].artifact.entries:
            a, b = (r.step(entry, batch, rate=0.01, outputs=True) for r in roads)
            assert a.loss == pytest.approx(b.loss, rel=2e-4) if "loss" in a.numbers else True
            close(a.outputs, b.outputs, 2e-3)
    arrays = [{k: v for k, v in r.everything().items() if v.dtype.kind == "f"} for r in roads]
    close(*arrays, 2e-3)


def test_which_convolutions_go_in_tiles(network: Network) -> None:
    """Those of 3x3 and stride 1 with 16 channels on both sides; the first reads a picture, those of
    stride 2 and of one pixel stay. A switch turns it off, and no scratch is asked for then."""
    on, off = (run_passes(*network, replace(Passes(), tiles=t)).fused for t in (True, False))
    for name, entry in on.entries.items():
        found, without = kernels(entry), kernels(off.entries[name])
        assert found["conv2d_tiled.forward"] == 4, name
        assert found["conv2d.forward"] == without["conv2d.forward"] - 4
        if name == "train_step":
            assert found["conv2d_tiled.backward_x"] == found["conv2d_tiled.backward_w"] == 4
        nodes = [n for n in flat(off.entries[name].items) if n.kernel.op.startswith("conv2d")]
        assert nodes and not any("work" in n.results for n in nodes)


def test_a_cuda_plan_has_no_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """CUDA has no kernels for them."""
    for device, tiles in (("cpu", True), ("auto", True), ("cuda", False), ("cuda:1", False)):
        monkeypatch.setenv("PADDLECLI_DEVICE", device)
        assert passes_for().tiles is tiles
