"""Compiled once a session: every small network with all passes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from paddlecli.compiler.groups import OptimizerSpec
from paddlecli.compiler.pipeline import Stages, run_passes
from paddlecli.graph.ir import Graph

from .world import network

Load = Callable[[str], tuple[Graph, dict[str, OptimizerSpec]]]
Compiled = Callable[[str], Stages]


@pytest.fixture(scope="session")
def load(tmp_path_factory: pytest.TempPathFactory) -> Load:
    """Forward graph and optimizers of a small network by name."""
    known: dict[str, tuple[Graph, dict[str, OptimizerSpec]]] = {}
    folder: Path = tmp_path_factory.mktemp("recipes")

    def get(name: str) -> tuple[Graph, dict[str, OptimizerSpec]]:
        if name not in known:
            known[name] = network(name, folder)
        return known[name]

    return get


@pytest.fixture(scope="session")
def compiled(load: Load) -> Compiled:
    """All passes run over a small network."""
    known: dict[str, Stages] = {}

    def get(name: str) -> Stages:
        if name not in known:
            graph, optimizers = load(name)
            known[name] = run_passes(graph, optimizers)
        return known[name]

    return get
