"""Memory of a session: the core lays temporaries over each other as the compiler reports it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from road import Road

from paddlecli.compiler.groups import OptimizerSpec
from paddlecli.compiler.memory import Life, placed
from paddlecli.compiler.pipeline import Passes
from paddlecli.compiler.plan import PlanWriter
from paddlecli.engine.summary import Sizes
from paddlecli.errors import PaddleCliError
from paddlecli.graph.ir import Graph
from paddlecli.ops.spec import BATCH, Spec
from paddlecli.runtime.session import Plan

Load = Callable[[str], tuple[Graph, dict[str, OptimizerSpec]]]


def reserved(road: Road, batch: int) -> int:
    """Bytes of a session for batches of this size."""
    road.session.reserve({s.name: batch for s in road.plan.info.symbols if s.kind == "batch"})
    return road.session.bytes


@pytest.mark.parametrize("name", ["conv", "mlp", "two_networks"])
def test_the_core_places_as_reported(name: str, load: Load) -> None:
    """What sharing saves, at a size that nothing was planned for."""
    apart, shared = (Road(*load(name), passes=Passes(reuse=r)) for r in (False, True))
    sizes = Sizes(37)

    def whole(road: Road) -> int:
        """Entries follow each other, so the largest counts; every place is a multiple of 64 bytes."""
        plans = road.stages.memory.values()
        lives = [[(v, -(-sizes.bytes(v.tensor.spec) // 64) * 64) for v in p.lives] for p in plans]
        return max(placed([n for _, n in found], [v for v, _ in found])[1] for found in lives)

    saved = reserved(apart, 37) - reserved(shared, 37)
    assert saved == whole(apart) - whole(shared) > 0


def test_places() -> None:
    """Two that meet lie side by side, a third over the one that has ended; a gap is filled by what fits best."""
    from paddlecli.graph.ir import Tensor

    def lives(*spans: tuple[int, int]) -> list[Life]:
        return [Life(Tensor("t", Spec.of(BATCH)), *s) for s in spans]

    assert placed([8, 8, 8], lives((0, 1), (1, 2), (2, 3))) == ([0, 8, 0], 16)
    assert placed([4, 8, 2], lives((0, 9), (0, 9), (0, 9))) == ([8, 0, 12], 14)
    assert placed([6, 6, 6, 2, 6], lives((0, 3), (0, 9), (0, 9), (5, 9), (4, 9)))[1] == 20
    assert placed([], []) == ([], 0)
    rng = np.random.default_rng(0)
    for _ in range(20):
        first = rng.integers(0, 20, 15)
        spans = lives(
            *((int(f), int(f + n)) for f, n in zip(first, rng.integers(0, 9, 15), strict=True))
        )
        sizes = [int(n) for n in rng.integers(0, 30, 15)]
        found, total = placed(sizes, spans)
        for i in range(15):
            assert found[i] >= 0 and found[i] + sizes[i] <= total
            for k in range(i):
                meet = spans[i].first <= spans[k].last and spans[k].first <= spans[i].last
                over = found[i] < found[k] + sizes[k] and found[k] < found[i] + sizes[i]
                assert not (meet and over)


def test_a_slot_that_ends_before_it_begins() -> None:
    writer = PlanWriter(0)
    writer.slot(3, 2)
    with pytest.raises(PaddleCliError, match="slot 0 ends before it begins"):
        Plan(writer.finish())
