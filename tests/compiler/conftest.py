"""Small networks, read once a session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from null.world import network

from paddlecli.compiler.groups import OptimizerSpec
from paddlecli.graph.ir import Graph

Load = Callable[[str], tuple[Graph, dict[str, OptimizerSpec]]]


@pytest.fixture(scope="session")
def load(tmp_path_factory: pytest.TempPathFactory) -> Load:
    """Forward graph and optimizers of a small network by name (``null.world.network``)."""
    known: dict[str, tuple[Graph, dict[str, OptimizerSpec]]] = {}
    folder: Path = tmp_path_factory.mktemp("recipes")

    def get(name: str) -> tuple[Graph, dict[str, OptimizerSpec]]:
        if name not in known:
            known[name] = network(name, folder)
        return known[name]

    return get
