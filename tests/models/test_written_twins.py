"""Written networks and their registered twins train to the same bits on the core."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from null.test_twins import TWINS, registered
from null.world import draw, graph_of, recipe_of
from road import Road

from paddlecli.compiler.optimizer import optimizers
from paddlecli.config.recipe import Recipe

STEPS = 3
SIZE = 3


def trained(recipe: Recipe) -> tuple[list[bytes], dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Losses, all arrays and the prediction after some steps."""
    graph = graph_of(recipe)
    road = Road(graph, optimizers(recipe), threads=2)
    losses = [
        np.float64(road.step("train_step", draw(graph, SIZE, i), rate=1e-3).loss).tobytes()
        for i in range(STEPS)
    ]
    found = road.step("predict", draw(graph, SIZE, 9), outputs=True).outputs
    return losses, road.everything(), found


@pytest.mark.parametrize("name", ["recognize_digits/conv", "vgg_bn_drop", "resnet_cifar10"])
def test_same_bits(name: str, tmp_path: Path) -> None:
    first, second = (
        trained(r) for r in (registered(name, tmp_path), recipe_of(TWINS[name], tmp_path))
    )
    assert first[0] == second[0]
    for mine, theirs in zip(first[1:], second[1:], strict=True):
        assert mine.keys() == theirs.keys() and len(mine) > 0
        for key, value in mine.items():
            assert value.tobytes() == theirs[key].tobytes(), key
