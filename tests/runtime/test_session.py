"""Plans in sessions: binding, capacities, results, updates, tables, guards and the debug modes."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import plans
import pytest

from paddlecli.compiler.plan import PlanWriter
from paddlecli.errors import ConfigError, DataError
from paddlecli.ops.base import Ragged
from paddlecli.ops.spec import BATCH, Spec
from paddlecli.runtime import native
from paddlecli.runtime.device import device
from paddlecli.runtime.errors import CoreError
from paddlecli.runtime.request import Request
from paddlecli.runtime.session import Params, Plan, Session, Table

ONE = device("cpu", 1)


class World:
    """The dense plan with random parameters."""

    def __init__(self, **flags: bool) -> None:
        random = np.random.default_rng(0)
        self.plan = Plan(plans.dense())
        self.params = Params(self.plan)
        self.w = random.normal(size=(4, 3)).astype(np.float32)
        self.b = random.normal(size=3).astype(np.float32)
        self.params.write_bytes(0, 0, self.w)
        self.params.write_bytes(1, 0, self.b)
        self.session = Session(self.plan, self.params, ONE, **flags)
        self.x = random.normal(size=(100, 4)).astype(np.float32)

    def predict(self, x: np.ndarray) -> np.ndarray:
        return np.maximum(x @ self.w + self.b, 0)


@pytest.fixture
def world() -> World:
    return World()


def test_one_plan_serves_every_batch_size(world: World) -> None:
    plans_before = native.counters().plans
    for n in (1, 7, 64, 5, 0, 64):
        request = (
            Request(world.plan, 0, [n], [0.1]).from_columns([{"x": world.x[:n]}]).want_outputs()
        )
        assert world.session.run(request).status == "done"
        assert request.outputs(0)[0].shape == (n, 3)
        np.testing.assert_allclose(
            request.outputs(0)[0], world.predict(world.x[:n]), rtol=1e-5, atol=1e-6
        )
        expected = world.predict(world.x[:n]).mean() if n else 0.0
        np.testing.assert_allclose(request.results[0, 0], expected, rtol=1e-5)
    assert native.counters().plans == plans_before


def test_table_and_columns_give_the_same_bits(world: World) -> None:
    rows = np.random.default_rng(1).permutation(100)
    counts = [32, 32, 32, 4]
    table = Request(world.plan, 0, counts, [0.1]).from_table(
        Table(world.plan, {"x": world.x}), rows
    )
    starts = np.cumsum([0, *counts[:-1]])
    parts = [{"x": world.x[rows[s : s + n]]} for s, n in zip(starts, counts, strict=True)]
    streamed = Request(world.plan, 0, counts, [0.1]).from_columns(parts)
    table.want_outputs()
    streamed.want_outputs()
    for request in (table, streamed):
        assert world.session.run(request).done == 4
    assert table.results.tobytes() == streamed.results.tobytes()
    for i in range(4):
        assert table.outputs(i)[0].tobytes() == streamed.outputs(i)[0].tobytes()


def test_many_steps_in_one_call_allocate_nothing(world: World) -> None:
    table = Table(world.plan, {"x": world.x})
    rows = np.tile(np.arange(100), 20)
    counts = np.tile([32, 32, 32, 4], 20)
    world.session.reserve({"N": 32})
    before = native.counters()
    request = Request(world.plan, 1, counts, [0.01], steps=np.arange(80)).from_table(table, rows)
    assert world.session.run(request).done == 80
    after = native.counters()
    assert after.allocations_in_steps == before.allocations_in_steps == 0
    assert after.steps - before.steps == 80
    assert np.isfinite(request.results[:, 0]).all()


def test_update_changes_params_and_their_version(world: World) -> None:
    version = world.params.version
    h = world.x[:8] @ world.w + world.b
    request = Request(world.plan, 1, [8], [0.5]).from_columns([{"x": world.x[:8]}])
    world.session.run(request)
    assert world.params.version > version
    w = world.params.read_bytes(0, 0, 48).view(np.float32).reshape(4, 3)
    np.testing.assert_allclose(w, world.w - 0.5 * (world.x[:8].T @ h), rtol=1e-4, atol=1e-5)
    assert request.results[0, 1] == 0.5
    version = world.params.version
    world.session.run(Request(world.plan, 0, [8], [0.5]).from_columns([{"x": world.x[:8]}]))
    assert world.params.version == version


def test_params_serve_a_second_plan_with_equal_ranges_only(world: World) -> None:
    other = Plan(plans.dense())
    session = Session(other, world.params, ONE)
    request = Request(other, 0, [8], [0.0]).from_columns([{"x": world.x[:8]}])
    session.run(request)
    np.testing.assert_allclose(request.results[0, 0], world.predict(world.x[:8]).mean(), rtol=1e-5)
    with pytest.raises(CoreError, match="other ranges"):
        Session(Plan(plans.ragged()), world.params, ONE)
    with pytest.raises(CoreError, match="other ranges"):
        Session(other, None, ONE)


def test_a_batch_that_does_not_fit_runs_nothing_and_is_repeated_with_more_room(
    world: World,
) -> None:
    lib, ffi = native.lib(), native.ffi()
    world.session.reserve({"N": 4})
    request = Request(world.plan, 0, [4, 9], [0.1]).from_columns(
        [{"x": world.x[:4]}, {"x": world.x[:9]}]
    )
    error, done = ffi.new("pk_error *"), ffi.new("int32_t *")
    status = lib.pk_session_run(
        world.session.handle, native.pointer(request.steps, "pk_step *"), 2, done, error
    )
    assert (status, done[0], error.step) == (5, 1, 1)
    assert b"N = 9, the session has room for 4" in ffi.string(error.message)
    assert np.isfinite(request.results[0, 0]) and np.isnan(request.results[1, 0])
    small = world.session.bytes
    assert world.session.run(request).done == 2
    assert world.session.bytes > small


def test_the_first_batch_gets_the_room_that_it_needs(world: World) -> None:
    """No more; a larger one later gets half as much again, so that the one behind it often fits."""

    def after(size: int) -> int:
        x = np.tile(world.x, (4, 1))[:size]
        request = Request(world.plan, 0, [size], [0.1]).from_columns([{"x": x}])
        assert world.session.run(request).done == 1
        return world.session.bytes

    def asked(size: int) -> int:
        session = Session(world.plan, world.params, ONE)
        session.reserve({"N": size})
        return session.bytes

    assert [after(128), after(64), after(128)] == 3 * [asked(128)]
    assert [after(200), after(300)] == 2 * [asked(300)]


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ({"x": np.zeros((5, 4), np.float32)}, "has 5 rows, 4 wanted"),
        ({"x": np.zeros((4, 4))}, "is float64"),
        ({"x": np.zeros((4, 3), np.float32)}, r"rows of shape \(3,\)"),
        ({}, "is missing"),
        ({"x": Ragged(np.zeros((4, 4), np.float32), np.array([0, 4]))}, "dense"),
    ],
)
def test_wrong_columns_are_refused(world: World, columns: dict[str, Any], text: str) -> None:
    with pytest.raises(CoreError, match=text):
        world.session.run(Request(world.plan, 0, [4], [0.1]).from_columns([columns]))


def test_wrong_row_numbers_are_refused(world: World) -> None:
    table = Table(world.plan, {"x": world.x})
    for bad in (-1, 100):
        with pytest.raises(CoreError, match=f"row number {bad} of a table of 100 rows"):
            world.session.run(Request(world.plan, 0, [2], [0.1]).from_table(table, [3, bad]))
    with pytest.raises(CoreError, match="3 given"):
        Request(world.plan, 0, [4], [0.1]).from_table(table, [1, 2, 3])
    with pytest.raises(CoreError, match="another plan"):
        other = Table(Plan(plans.dense()), {"x": world.x})
        world.session.run(Request(world.plan, 0, [1], [0.1]).from_table(other, [0]))


def test_arguments_are_wanted(world: World) -> None:
    with pytest.raises(CoreError, match="none given"):
        Request(world.plan, 0, [1])
    with pytest.raises(CoreError, match="the plan takes 1"):
        Request(world.plan, 0, [1], [0.1, 0.2])


def test_profile_names_nodes_and_layers() -> None:
    world = World(profile=True)
    for _ in range(3):
        world.session.run(Request(world.plan, 0, [5], [0.1]).from_columns([{"x": world.x[:5]}]))
    rows = world.session.profile()
    assert [r.signature.partition("(")[0] for r in rows] == [
        "fc.forward",
        "relu.forward",
        "mean.forward",
    ]
    assert [r.calls for r in rows] == [3, 3, 3]
    assert rows[0].path == "fc1" and rows[0].seconds > 0
    assert rows[1].bytes == 3 * 2 * 5 * 3 * 4


def test_interrupt_from_another_thread_ends_a_long_request(world: World) -> None:
    table = Table(world.plan, {"x": world.x})
    steps = 2_000_000
    request = Request(world.plan, 1, np.full(steps, 1), [0.0]).from_table(
        table, np.zeros(steps, np.int64)
    )
    timer = threading.Timer(0.05, world.session.interrupt)
    timer.start()
    outcome = world.session.run(request)
    timer.join()
    assert outcome.status == "interrupted" and 0 < outcome.done < steps
    assert np.isnan(request.results[outcome.done, 0]) and np.isfinite(
        request.results[outcome.done - 1, 0]
    )


def guarded() -> bytes:
    """y keeps its value in a range; it is doubled where the guard is 1; the request halts when ``stop`` is not 0."""
    w = PlanWriter()
    guard, stop = (
        w.input("guard", Spec.of(1, dtype="i32")),
        w.input("stop", Spec.of(1, dtype="i32")),
    )
    y = w.tensor("y", Spec.of(1), "range", w.range("y", "state", "f32", 4))
    w.node(plans.kernel("scale.forward"), [y], [y], {"a": 2.0, "b": 0.0}, guard=guard)
    w.entry("run", 0, 1, inputs=["guard", "stop"], fetches=[y], halt=stop)
    return w.finish()


def test_guards_and_halt() -> None:
    plan = Plan(guarded())
    params = Params(plan)
    params.write_bytes(0, 0, np.float32([3]))
    session = Session(plan, params, ONE)
    values = [(1, 0), (0, 0), (1, 0), (1, 1), (1, 0)]
    request = Request(plan, 0, [1] * 5).from_columns(
        [{"guard": np.array([g], np.int32), "stop": np.array([s], np.int32)} for g, s in values]
    )
    outcome = session.run(request)
    assert (outcome.status, outcome.done) == ("halted", 4)
    np.testing.assert_array_equal(request.results[:, 0], [6, 6, 12, 24, np.nan])


def test_a_kernels_refusal_names_layer_line_and_row() -> None:
    plan = Plan(plans.ragged())
    params = Params(plan)
    session = Session(plan, params, ONE)
    bad = Ragged(np.array([1, 2, 10], np.int64), np.array([0, 3]))
    with pytest.raises(DataError, match=r"\[embedding.forward\].*10"):
        session.run(Request(plan, 0, [1]).from_columns([{"ids": bad}]))


def misfit() -> bytes:
    w = PlanWriter()
    x = w.input("x", Spec.of(BATCH, 4))
    weight = w.input("w", Spec.of(5, 3))
    y = w.tensor("y", Spec.of(BATCH, 3), "slot", w.slot())
    w.node(
        plans.kernel("fc.forward"),
        [x, weight, -1],
        [y],
        plans.FC,
        origin=plans.Recorded("net.yaml", 12, 3, "fc1"),
    )
    w.entry("run", 0, 1, inputs=["x", "w"])
    return w.finish()


def test_shapes_that_do_not_fit_name_the_recipes_line() -> None:
    plan = Plan(misfit())
    columns = {"x": np.zeros((2, 4), np.float32), "w": np.zeros((5, 3), np.float32)}
    with pytest.raises(ConfigError) as caught:
        Session(plan, None, ONE).run(Request(plan, 0, [2]).from_columns([columns]))
    assert str(caught.value).startswith("net.yaml:12:3: [fc.forward]")
    assert (
        "layer fc1" in str(caught.value) and "4" in str(caught.value) and "5" in str(caught.value)
    )


def reads_a_dead_slot(a_late_read: bool) -> bytes:
    w = PlanWriter()
    x = w.input("x", Spec.of(BATCH, 2))
    first, second = w.slot(), w.slot()
    h = w.tensor("h", Spec.of(BATCH, 2), "slot", first)
    y = w.tensor("y", Spec.of(BATCH, 2), "slot", second)
    again = w.tensor("again", Spec.of(BATCH, 2), "slot", first)
    loss = w.tensor("loss", Spec.of(1), "slot", w.slot())
    w.node(plans.kernel("relu.forward"), [x], [h])
    w.node(plans.kernel("relu.forward"), [h], [y])
    w.node(plans.kernel("mean.forward"), [again if a_late_read else y], [loss])
    w.entry("run", 0, 3, inputs=["x"], fetches=[loss])
    return w.finish()


def test_poison_finds_a_read_of_a_dead_slot() -> None:
    columns = {"x": np.ones((2, 2), np.float32)}
    for late in (False, True):
        plan = Plan(reads_a_dead_slot(late))
        request = Request(plan, 0, [2]).from_columns([columns])
        Session(plan, None, ONE).run(request)
        assert request.results[0, 0] == 1.0
        poisoned = Session(plan, None, ONE, poison=True)
        if not late:
            poisoned.run(request)
            assert request.results[0, 0] == 1.0
            continue
        with pytest.raises(DataError, match=r"\[mean.forward\].*nan"):
            poisoned.run(request)


def test_fetches_of_every_type() -> None:
    w = PlanWriter()
    values = {
        "f32": 1.5,
        "f64": 2.5,
        "f16": 0.333251953125,
        "i64": -(2**40),
        "i32": -7,
        "i16": -300,
        "i8": -5,
        "u8": 200,
        "bool": 1,
    }
    tensors = [w.input(d, Spec.of(1, dtype=d)) for d in values]
    bf16 = w.input("bf16", Spec.of(1, dtype="bf16"))
    w.entry("run", 0, 0, inputs=[*values, "bf16"], fetches=[*tensors, bf16])
    plan = Plan(w.finish())
    from paddlecli.runtime.columns import NUMPY

    columns = {d: np.array([v]).astype(NUMPY[d]) for d, v in values.items()}
    columns["bf16"] = (np.array([-3.5], np.float32).view(np.uint32) >> 16).astype(np.uint16)
    request = Request(plan, 0, [1]).from_columns([columns])
    Session(plan, None, ONE).run(request)
    np.testing.assert_array_equal(request.results[0], [*values.values(), -3.5])


def test_argument_types() -> None:
    w = PlanWriter()
    kinds = ("f32", "f64", "i64", "i32")
    w.entry("run", 0, 0, fetches=[w.argument(d, Spec.of(1, dtype=d)) for d in kinds])
    plan = Plan(w.finish())
    session = Session(plan, None, ONE)
    request = Request(plan, 0, [0], [0.1, 0.1, 2**53, -5]).from_columns([{}])
    session.run(request)
    np.testing.assert_array_equal(request.results[0], [np.float32(0.1), 0.1, 2**53, -5])
    for bad in ([0, 0, 0.5, 0], [0, 0, 0, 2**31], [0, 0, np.nan, 0]):
        with pytest.raises(CoreError, match="whole number"):
            session.run(Request(plan, 0, [0], bad).from_columns([{}]))


@pytest.mark.parametrize("flags", [{}, {"poison": True, "profile": True}], ids=["plain", "debug"])
def test_freed_in_any_order(flags: dict[str, bool]) -> None:
    """Python's collector frees what hangs together in no order: nothing looks into a plan that is gone (sanitizers see it)."""
    for order in ("plan params session", "params plan session", "session plan params"):
        world = World(**flags)
        table = Table(world.plan, {"x": world.x})
        for name in order.split():
            native.ffi().release(getattr(world, name).handle)
        native.ffi().release(table.handle)
