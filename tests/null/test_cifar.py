"""The residual net and VGG have the published numbers of parameters."""

from __future__ import annotations

from math import prod

import pytest

from paddlecli.config.load import load_recipe
from paddlecli.data.opening import describe
from paddlecli.errors import ConfigError
from paddlecli.graph.ir import Graph
from paddlecli.models.build import build


def made(recipe: str, *overrides: str) -> Graph:
    loaded = load_recipe(recipe, overrides)
    assert loaded.data is not None
    return build(loaded, describe(loaded.data.name, loaded.data.arguments))


@pytest.mark.parametrize(
    ("depth", "count"), [(20, 272_810), (32, 467_466), (44, 662_122), (56, 856_778)]
)
def test_residual_nets(depth: int, count: int) -> None:
    graph = made("bench/cifar_resnet32", "model.bias=true", f"model.depth={depth}")
    sizes = [prod(d.coefficient for d in t.spec.shape) for t in graph.parameters.values()]
    assert sum(sizes) == count


def test_vgg() -> None:
    graph = made("bench/cifar_vgg16_bn")
    parameters = [prod(d.coefficient for d in t.spec.shape) for t in graph.parameters.values()]
    states = [prod(d.coefficient for d in t.spec.shape) for t in graph.states.values()]
    assert (sum(parameters), sum(states)) == (15_254_602, 9_472)


def test_a_depth_that_does_not_exist() -> None:
    with pytest.raises(ConfigError, match="6 n \\+ 2"):
        made("bench/cifar_resnet32", "model.depth=33")
