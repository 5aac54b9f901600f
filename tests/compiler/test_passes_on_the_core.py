"""Passes on the real core: on equals off over three steps of every entry, in bits where they promise bits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from null.world import draw
from road import Array, Road, close, same

from paddlecli.compiler.groups import OptimizerSpec
from paddlecli.compiler.pipeline import Passes
from paddlecli.graph.ir import Graph

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
    "twice",
    "shared",
)
TOLERANCE = 2e-5
EXACT = ("inplace", "views", "reuse", "layout")
PLAIN = Passes(
    hoist=False, fuse=False, tiles=False, layout=False, inplace=False, views=False, reuse=False
)


def trained(
    load: Load, name: str, passes: Passes, **how: Any
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Numbers and outputs of every entry over three batches, by step, entry and name; and all that is left behind."""
    road = Road(*load(name), passes=passes, **how)
    road.shake()
    found: dict[str, Any] = {}
    for step, size in enumerate((5, 1, 9)):
        batch = replace(draw(road.graph, size, step), step=step)
        for entry in road.artifact.entries:
            done = road.step(entry, batch, rate=0.01, outputs=True)
            assert done.status == "done"
            values = {**done.outputs, **{k: _number(v) for k, v in done.numbers.items()}}
            found |= {f"{step} {entry} {k}": v for k, v in values.items()}
    return found, road.everything()


def _number(value: float) -> Array:
    import numpy as np

    return np.array([value])


@pytest.mark.parametrize("switch", EXACT)
@pytest.mark.parametrize("name", NAMES)
def test_same_bits(name: str, switch: str, load: Load) -> None:
    """Against the plan with this pass alone switched off, and alone switched on."""
    for base in (Passes(), PLAIN):
        results, arrays = trained(load, name, base)
        other, theirs = trained(load, name, replace(base, **{switch: not getattr(base, switch)}))
        same(results, other)
        same(arrays, theirs)


@pytest.mark.parametrize("switch", ["fuse", "hoist"])
@pytest.mark.parametrize("name", NAMES)
def test_same_within_rounding(name: str, switch: str, load: Load) -> None:
    results, arrays = trained(load, name, Passes())
    other, theirs = trained(load, name, replace(Passes(), **{switch: False}))
    close(results, other, TOLERANCE)
    for name in [
        n for n in arrays if "/" in n and arrays[n].dtype.kind == "i"
    ]:  # metrics: fixed-point sums, 2^-20 a unit
        assert abs(arrays.pop(name) - theirs.pop(name)).max() <= TOLERANCE * 2**40, name
    close(arrays, theirs, TOLERANCE)


def test_every_pass_does_something(load: Load) -> None:
    """A comparison of equal plans would prove nothing: each switch changes the plan of some network here."""
    plans = {name: Road(*load(name)).artifact.plan for name in NAMES}
    without = {s: {n: Road(*load(n), passes=replace(Passes(), **{s: False})).artifact.plan for n in NAMES}
               for s in ("inplace", "views", "reuse", "fuse", "hoist")}  # fmt: skip
    for switch, others in without.items():
        assert any(plans[n] != others[n] for n in NAMES), switch


@pytest.mark.parametrize("name", NAMES)
def test_all_off_is_the_definition(name: str, load: Load) -> None:
    """The plan as written, one node an op, against all passes; threads and smallest grain on top."""
    results, arrays = trained(load, name, Passes(), threads=2, grain=True)
    other, theirs = trained(load, name, PLAIN)
    close(results, other, TOLERANCE)
    floats = [n for n in arrays if arrays[n].dtype.kind == "f"]
    close({n: arrays[n] for n in floats}, {n: theirs[n] for n in floats}, TOLERANCE)
