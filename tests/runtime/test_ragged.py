"""Ragged axes, nested axes, scans, decodes and the counters of random numbers, against numpy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import plans
import pytest

from paddlecli.compiler.plan import PlanWriter
from paddlecli.ops import _random
from paddlecli.ops.base import Ragged, RandomKey
from paddlecli.ops.spec import BATCH, Axis, Dim, Spec, Symbol
from paddlecli.runtime.device import device
from paddlecli.runtime.errors import CoreError
from paddlecli.runtime.request import Request
from paddlecli.runtime.session import Params, Plan, Session, Table

ONE = device("cpu", 1)
LENGTHS = [(3, 0, 5, 5, 1), (0, 0), (), (4,), (1, 2, 3), (7, 7, 0, 7)]


def edges(lengths: Sequence[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)


def axis_parts(lengths: Sequence[int]) -> dict[str, np.ndarray]:
    """What the core computes, the slow way."""
    offsets = edges(lengths)
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    starts, rows, back = [0], [], []
    for t in range(max(lengths, default=0)):
        running = [s for s in order if lengths[s] > t]
        rows += [int(offsets[s]) + t for s in running]
        back += [int(offsets[s + 1]) - 1 - t for s in running]
        starts.append(len(rows))
    sequence = [i for i, n in enumerate(lengths) for _ in range(n)]
    parts = {
        "offsets": offsets,
        "order": order,
        "starts": starts,
        "map": rows,
        "map_reversed": back,
        "sequence": sequence,
    }
    return {k: np.array(v, np.int64) for k, v in parts.items()}


@pytest.mark.parametrize("lengths", LENGTHS)
def test_axis_parts(lengths: tuple[int, ...]) -> None:
    plan = Plan(plans.ragged())
    params = Params(plan)
    table = np.random.default_rng(0).normal(size=(10, 3)).astype(np.float32)
    params.write_bytes(0, 0, table)
    ids = np.random.default_rng(1).integers(0, 10, sum(lengths))
    request = (
        Request(plan, 0, [len(lengths)])
        .from_columns([{"ids": Ragged(ids, edges(lengths))}])
        .want_outputs()
    )
    Session(plan, params, ONE).run(request)
    pooled, *parts = request.outputs(0)
    offsets = edges(lengths)
    expected = [table[ids[a:b]].sum(0) for a, b in pairwise(offsets)]
    np.testing.assert_allclose(pooled, np.reshape(expected, (-1, 3)), rtol=1e-5, atol=1e-6)
    for found, (name, wanted) in zip(parts, axis_parts(lengths).items(), strict=True):
        np.testing.assert_array_equal(found, wanted, err_msg=name)


def test_rows_of_a_ragged_table_are_gathered() -> None:
    plan = Plan(plans.ragged())
    params = Params(plan)
    params.write_bytes(0, 0, np.random.default_rng(0).normal(size=(10, 3)).astype(np.float32))
    lengths = (3, 0, 5, 1, 2)
    offsets = edges(lengths)
    ids = np.random.default_rng(1).integers(0, 10, sum(lengths))
    rows = [4, 2, 2, 1]
    session = Session(plan, params, ONE)
    from_table = (
        Request(plan, 0, [4])
        .from_table(Table(plan, {"ids": Ragged(ids, offsets)}), rows)
        .want_outputs()
    )
    picked = Ragged(
        np.concatenate([ids[offsets[i] : offsets[i + 1]] for i in rows]),
        edges([lengths[i] for i in rows]),
    )
    streamed = Request(plan, 0, [4]).from_columns([{"ids": picked}]).want_outputs()
    for request in (from_table, streamed):
        session.run(request)
    for a, b in zip(from_table.outputs(0), streamed.outputs(0), strict=True):
        assert a.tobytes() == b.tobytes()


def test_nested_axes_from_columns_and_tables() -> None:
    plan = Plan(plans.nested())
    assert [name for name, _ in plan.info.inputs] == ["ids", "extra", "ids@sentences"]
    sentences, words = (2, 0, 3), (4, 1, 0, 2, 2)
    values = np.arange(9, dtype=np.float32)[:, None]
    ids = Ragged(values, (edges(sentences), edges(words)))  # type: ignore[arg-type]
    extra = np.arange(6, dtype=np.float32).reshape(3, 2)
    session = Session(plan, None, ONE)
    whole = Request(plan, 0, [3]).from_columns([{"ids": ids, "extra": extra}]).want_outputs()
    session.run(whole)
    by_sentence, by_sample, doubled = whole.outputs(0)
    np.testing.assert_array_equal(by_sentence[:, 0], [0 + 1 + 2 + 3, 4, 0, 5 + 6, 7 + 8])
    np.testing.assert_array_equal(by_sample[:, 0], [10, 0, 26])
    np.testing.assert_array_equal(doubled, 2 * extra)
    picked = (
        Request(plan, 0, [3])
        .from_table(Table(plan, {"ids": ids, "extra": extra}), [2, 2, 0])
        .want_outputs()
    )
    session.run(picked)
    np.testing.assert_array_equal(picked.outputs(0)[0][:, 0], [0, 11, 15, 0, 11, 15, 6, 4])
    np.testing.assert_array_equal(picked.outputs(0)[1][:, 0], [26, 26, 10])
    np.testing.assert_array_equal(picked.outputs(0)[2], 2 * extra[[2, 2, 0]])


@pytest.mark.parametrize(
    ("offsets", "text"),
    [
        ([1, 3, 5], "start at 1"),
        ([0, 4, 3], "fall or leave"),
        ([0, 3, 6], "fall or leave"),
        ([0, 3, 4], "end at 4, it has 5 rows"),
        ([0, 5], "has 1 sequences, the batch 2"),
    ],
)
def test_wrong_offsets_are_refused(offsets: list[int], text: str) -> None:
    plan = Plan(plans.ragged())
    values = Ragged(np.zeros(5, np.int64), np.array(offsets, np.int64))
    with pytest.raises(CoreError, match=text):
        Session(plan, Params(plan), ONE).run(Request(plan, 0, [2]).from_columns([{"ids": values}]))


def two_inputs_on_one_axis() -> bytes:
    w = PlanWriter()
    axis = Axis("t", "x")
    x, y = (w.input(n, Spec.of(axis.total, 1, axis=axis)) for n in "xy")
    z = w.tensor("z", Spec.of(axis.total, 1, axis=axis), "slot", w.slot())
    w.node(plans.kernel("sum.forward"), [x, y], [z])
    w.entry("run", 0, 1, inputs=["x", "y"], outputs=[z])
    return w.finish()


def test_inputs_on_one_axis_must_have_equal_offsets() -> None:
    plan = Plan(two_inputs_on_one_axis())
    session = Session(plan, None, ONE)
    values = np.arange(4, dtype=np.float32)[:, None]
    good = {"x": Ragged(values, np.array([0, 1, 4])), "y": Ragged(values, np.array([0, 1, 4]))}
    request = Request(plan, 0, [2]).from_columns([good]).want_outputs()
    session.run(request)
    np.testing.assert_array_equal(request.outputs(0)[0], 2 * values)
    with pytest.raises(CoreError, match="input y has other offsets than input x"):
        bad = {**good, "y": Ragged(values, np.array([0, 2, 4]))}
        session.run(Request(plan, 0, [2]).from_columns([bad]))
    with pytest.raises(CoreError, match="column y has other offsets"):
        Table(plan, bad)


def pairs() -> bytes:
    w = PlanWriter()
    a, b = Axis("a", "x"), Axis("b", "y")
    w.input("x", Spec.of(a.total, 1, axis=a))
    w.input("y", Spec.of(b.total, 1, axis=b))
    sizes = {
        "pairs": Dim(1, Symbol("pairs", axis=a, other=b)), "sum": a.total * 2 + b.total, "plus": a.longest + 3,
        "product": BATCH * b.longest * 2,
    }  # fmt: skip
    outs = [w.tensor(n, Spec.of(d), "slot", w.slot()) for n, d in sizes.items()]
    for t in outs:
        w.node(plans.kernel("fill.forward"), [], [t], {"value": 1.0})
    w.entry("run", 0, len(outs), inputs=["x", "y"], outputs=outs)
    return w.finish()


def test_derived_symbols_grow_with_the_batch() -> None:
    plan = Plan(pairs())
    session = Session(plan, None, ONE)
    for x, y in (
        ((1, 2), (3, 4)),
        ((0, 0, 0), (1, 1, 1)),
        ((9, 1), (1, 9)),
        ((9, 1), (9, 1)),
        ((), ()),
    ):
        columns = {
            n: Ragged(np.zeros((sum(v), 1), np.float32), edges(v)) for n, v in (("x", x), ("y", y))
        }
        request = Request(plan, 0, [len(x)]).from_columns([columns]).want_outputs()
        session.run(request)
        sizes = [o.size for o in request.outputs(0)]
        expected = sum(i * j for i, j in zip(x, y, strict=True))
        assert sizes == [
            expected,
            2 * sum(x) + sum(y),
            max(x, default=0) + 3,
            2 * len(x) * max(y, default=0),
        ]


# ---- loops ----
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("reverse", [False, True])
def test_scan_is_the_loop_over_each_sequence(lengths: tuple[int, ...], reverse: bool) -> None:
    plan = Plan(plans.recurrent(reverse))
    params = Params(plan)
    u = np.array([[0.5, -0.3], [0.2, 0.7]], np.float32)
    params.write_bytes(0, 0, u)
    offsets = edges(lengths)
    x = np.random.default_rng(2).normal(size=(sum(lengths), 2)).astype(np.float32)
    request = (
        Request(plan, 0, [len(lengths)]).from_columns([{"x": Ragged(x, offsets)}]).want_outputs()
    )
    session = Session(plan, params, ONE, poison=True)
    session.run(request)
    expected = np.zeros_like(x)
    for a, b in pairwise(offsets):
        h = np.zeros(2, np.float32)
        for t in range(b - 1, a - 1, -1) if reverse else range(a, b):
            h = expected[t] = np.tanh(x[t] + h @ u)
    np.testing.assert_allclose(request.outputs(0)[0], expected, rtol=1e-5, atol=1e-6)
    assert session.repeats(2) == max(lengths, default=0)
    assert session.repeats(99) == -1


def test_a_scan_draws_the_numbers_of_all_packed_rows() -> None:
    """Dropout inside the loop drops what one call on all packed rows would: row r of the packed order is row first + r."""
    lengths = (3, 5, 1)
    plan = Plan(plans.recurrent(random=True))
    params = Params(plan)  # u = 0: the loop is tanh(dropout(x))
    x = np.ones((9, 2), np.float32)
    request = Request(plan, 0, [3], steps=4, first_rows=[[100]]).from_columns(
        [{"x": Ragged(x, edges(lengths))}]
    )
    request.want_outputs()
    Session(plan, params, ONE).run(request)
    kept = _random.uniform(RandomKey(3, 4, 11), 200, 18).reshape(9, 2) >= 0.5
    expected = np.zeros_like(x)
    expected[axis_parts(lengths)["map"]] = np.tanh(kept.astype(np.float32))
    np.testing.assert_allclose(request.outputs(0)[0], expected, rtol=1e-6)


def test_decode_stops_at_the_flag_or_the_limit() -> None:
    plan = Plan(plans.decode(limit=5))
    session = Session(plan, None, ONE)
    start = np.array([[0, 3, 0, 0], [0, 0, 0.5, 0]], np.float32)
    for grow, repeats in ((1.0, 3), (0.0, 5), (10.0, 1)):
        columns = {"start": start, "grow": np.array([[grow, 0, 0, 0]], np.float32)}
        request = Request(plan, 0, [2]).from_columns([columns]).want_outputs()
        session.run(request)
        log = request.outputs(0)[0].reshape(5, 2)
        scores, wanted, finished = start.copy(), [], np.zeros(2, bool)
        for _ in range(5):
            scores = scores + np.array([grow, 0, 0, 0])
            best = np.where(finished, 0, scores.argmax(1))
            wanted.append(best)
            finished |= best == 0
            if finished.all():
                break
        assert session.repeats(2) == len(wanted) == repeats
        np.testing.assert_array_equal(log[: len(wanted)], wanted)
        assert (log[len(wanted) :] == -1).all()
