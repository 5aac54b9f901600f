"""Memory of a session: the core lays temporaries over each other as the compiler reports it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from road import Road

from paddlecli.compiler.groups import OptimizerSpec
from paddlecli.compiler.memory import Life, placed
from paddlecli.compiler.pipeline import Passes
from paddlecli.compiler.plan import PlanWriter
from paddlecli.engine.summary import Sizes
from paddlecli.errors import PaddleCliError
from paddlecli.graph.ir import Graph, Tensor
from paddlecli.ops.spec import BATCH, Spec
from paddlecli.runtime.device import device
from paddlecli.runtime.session import Plan, Session

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


def lives_of(spans: Sequence[tuple[int, int]]) -> list[Life]:
    return [Life(Tensor("t", Spec.of(BATCH)), *s) for s in spans]


def session_of(sizes: Sequence[int], spans: Sequence[tuple[int, int]]) -> Session:
    """A session of a plan that has slots of so many bytes and nothing else."""
    writer = PlanWriter(0)
    for size, span in zip(sizes, spans, strict=True):
        writer.tensor("t", Spec.of(size, dtype="u8"), "slot", writer.slot(*span))
    return Session(Plan(writer.finish()), None, device("cpu", 1))


def taken(sizes: Sequence[int], spans: Sequence[tuple[int, int]]) -> int:
    """Bytes that the core takes for slots of so many bytes."""
    session = session_of(sizes, spans)
    session.reserve({})
    return session.bytes


def drawn(rng: np.random.Generator, count: int, clock: int, most: int) -> list[tuple[int, int]]:
    first, longer = rng.integers(0, clock, count), rng.integers(0, most, count)
    return [(int(f), int(f + n)) for f, n in zip(first, longer, strict=True)]


def test_places() -> None:
    """Two that meet lie side by side, a third over the one that has ended; a gap is filled by what fits best; all
    at multiples of 64 bytes."""

    def places(sizes: list[int], *spans: tuple[int, int]) -> tuple[list[int], int]:
        return placed(sizes, lives_of(spans))

    assert places([512, 512, 512], (0, 1), (1, 2), (2, 3)) == ([0, 512, 0], 1024)
    assert places([256, 512, 128], (0, 9), (0, 9), (0, 9)) == ([512, 0, 768], 896)
    assert places([6, 6, 6, 2, 6], (0, 3), (0, 9), (0, 9), (5, 9), (4, 9))[1] == 4 * 64
    assert places([65, 1, 0], (0, 1), (0, 1), (0, 1)) == ([0, 128, 0], 192)
    assert placed([], []) == ([], 0)
    rng = np.random.default_rng(0)
    for _ in range(20):
        spans = drawn(rng, 15, 20, 9)
        sizes = [int(n) for n in rng.integers(0, 30 * 64, 15)]
        found, total = placed(sizes, lives_of(spans))
        for i in range(15):
            assert found[i] >= 0 and found[i] % 64 == 0 and found[i] + sizes[i] <= total
            for k in range(i):
                meet = spans[i][0] <= spans[k][1] and spans[k][0] <= spans[i][1]
                over = found[i] < found[k] + sizes[k] and found[k] < found[i] + sizes[i]
                assert not (meet and over)


def test_the_core_has_the_same_places() -> None:
    """For lives and sizes of every kind, equal ones and empty ones among them."""
    rng = np.random.default_rng(1)
    nothing = taken([], [])
    for count in (1, 2, 3, 40, 200):
        for clock, most in ((1, 1), (5, 3), (count, 9), (3 * count, count)):
            spans, steps = drawn(rng, count, clock, most), rng.integers(0, 6, count)
            for unit in (1, 64, 1000):
                sizes = [int(n) * unit for n in steps]
                whole = placed(sizes, lives_of(spans))[1]
                assert taken(sizes, spans) == nothing + whole, (count, clock, most, unit)


def test_a_large_plan_takes_little_longer_than_its_slots() -> None:
    """Four times the slots, each with the same number of neighbours: far from the sixteen times of comparing all
    with all."""
    rng, seconds = np.random.default_rng(2), []
    for count in (15_000, 60_000):
        session = session_of(
            [int(n) for n in rng.integers(1, 10_000, count)], drawn(rng, count, count, 8)
        )
        start = time.process_time()
        session.reserve({})
        seconds.append(time.process_time() - start)
    assert seconds[1] < 9 * max(seconds[0], 0.005), seconds


def test_a_slot_that_ends_before_it_begins() -> None:
    writer = PlanWriter(0)
    writer.slot(3, 2)
    with pytest.raises(PaddleCliError, match="slot 0 ends before it begins"):
        Plan(writer.finish())
