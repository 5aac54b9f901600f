"""Which rows, arguments and numbers every step of a request gets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddlecli.compiler.artifact import Argument, Artifact, EntryInfo
from paddlecli.data.columns import Column, Rows, Split, pack
from paddlecli.data.loader import Loader
from paddlecli.data.spec import DatasetSpec, FieldSpec
from paddlecli.engine.ahead import Ahead
from paddlecli.engine.averages import Averages, by_iteration, keys_of
from paddlecli.engine.requests import Call, Maker, Pace, Work, iteration
from paddlecli.engine.stock import Stock
from paddlecli.errors import ConfigError, DataError


def entry(name: str, index: int, *fetches: str) -> EntryInfo:
    return EntryInfo(
        name, index, ("x",), fetches, {}, {}, True, frozenset({"lr", "n", "tokens", "labels"})
    )


def artifact(
    *arguments: Argument,
    entries: tuple[EntryInfo, ...] = (),
    roles: Mapping[str, Any] | None = None,
) -> Artifact:
    known = {e.name: e for e in entries}
    return Artifact(b"", known, arguments, (), {}, {}, {}, {}, {}, roles or {})


LABELS = np.array([0, 1, -100, 2, -100, 0, 1, 1, 2, 0])
SPEC = DatasetSpec("d", "", (
    FieldSpec("x", "input", (), "float32", ("words",)),
    FieldSpec("y", "label", (), "int64"),
), {})  # fmt: skip
SPLIT = Split("train", {
    "x": pack([np.zeros(n) for n in (3, 0, 2, 5, 1, 1, 4, 0, 2, 6)], "float32"),
    "y": Column(LABELS),
})  # fmt: skip
RATE = Argument("lr", "learning_rate", "default")
WEIGHTS = (
    Argument("n", "weight", "loss"),
    Argument("tokens", "weight", "loss", "axis:words"),
    Argument("labels", "weight", "loss", "labels:y:-100"),
)


def rates(first: int, count: int) -> dict[str, np.ndarray]:
    return {"default": np.arange(first, first + count) / 10}


def test_rows_counts_and_arguments() -> None:
    order = np.array([9, 3, 0, 1, 7, 2, 4, 5, 8, 6])
    maker = Maker(artifact(RATE, *WEIGHTS), [Call(entry("t", 2, "loss"))], SPEC, SPLIT, 4, rates)
    work = maker.make(order, 1, 2, 7)
    assert work.rows.tolist() == order[4:].tolist()
    assert work.starts.tolist() == [0, 4] and work.counts.tolist() == [4, 2]
    assert work.steps.tolist() == [7, 8] and work.entries.tolist() == [2, 2]
    assert work.firsts.tolist() == [0, 0]
    lengths = [3, 0, 2, 5, 1, 1, 4, 0, 2, 6]
    for step, rows in enumerate(([7, 2, 4, 5], [8, 6])):
        tokens, labels = sum(lengths[r] for r in rows), sum(int(LABELS[r]) != -100 for r in rows)
        assert work.args[step].tolist() == [(7 + step) / 10, len(rows), tokens, labels]


@given(st.integers(1, 9), st.integers(1, 4), st.integers(1, 6))
def test_parts_cover_the_batch_once(batch_size: int, count: int, parts: int) -> None:
    """Accumulation: the parts of a batch are its rows in order, each told its place and the whole batch's weight."""
    calls = [*(Call(entry("a", 0, "loss"), i, parts) for i in range(parts)), Call(entry("b", 1))]
    maker = Maker(artifact(RATE, *WEIGHTS), calls, SPEC, SPLIT, batch_size, rates)
    order = np.arange(10)[: batch_size * count]
    work = maker.make(order, 0, count, 0)
    whole = Maker(
        artifact(RATE, *WEIGHTS), [Call(entry("t", 0))], SPEC, SPLIT, batch_size, rates
    ).make(order, 0, count, 0)
    for i in range(len(whole)):
        mine = np.flatnonzero((work.iterations == i) & (work.entries == 0))
        rows = np.concatenate(
            [work.rows[work.starts[s] : work.starts[s] + work.counts[s]] for s in mine]
        )
        assert (
            rows.tolist()
            == whole.rows[whole.starts[i] : whole.starts[i] + whole.counts[i]].tolist()
        )
        assert work.firsts[mine].tolist() == [0, *np.cumsum(work.counts[mine])[:-1].tolist()]
        assert (work.counts[mine] > 0).all() and np.ptp(work.counts[mine]) <= 1
        assert (work.args[work.iterations == i] == whole.args[i]).all()
        assert work.entries[work.iterations == i][-1] == 1, "the update comes last"


def test_gathering_here_takes_the_same_rows() -> None:
    maker = Maker(artifact(RATE), [Call(entry("t", 0))], SPEC, SPLIT, 4, rates)
    work = maker.make(np.arange(9, -1, -1), 0, 3, 0, gather=True)
    assert work.columns is not None and [len(c["y"]) for c in work.columns] == [4, 4, 2]
    assert np.concatenate([c["y"].values for c in work.columns]).tolist() == LABELS[::-1].tolist()
    assert work.columns[0]["x"].offsets[0].tolist() == [0, 6, 8, 8, 12]


@pytest.fixture
def thread() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


def test_what_is_gathered_ahead_is_what_is_gathered_now(thread: ThreadPoolExecutor) -> None:
    """Also after a request that ended early, so that what was made ahead is of no use."""
    maker = Maker(artifact(RATE), [Call(entry("t", 0))], SPEC, SPLIT, 2, rates)
    order, ahead = np.arange(9, -1, -1), Ahead(maker, thread)
    for batch, count, sizes in ((0, 2, [2, 2]), (2, 3, [2, 2]), (3, 2, [2, 2])):
        work = ahead.make(order, batch, count, batch, 5 - batch)
        alone = maker.make(order, batch, len(sizes), batch, gather=True)
        assert (
            work.counts.tolist() == sizes
            and (work.args == alone.args).all()
            and (work.steps == alone.steps).all()
        )
        assert work.columns is not None and alone.columns is not None
        for mine, theirs in zip(work.columns, alone.columns, strict=True):
            assert all(mine[k].values.tolist() == theirs[k].values.tolist() for k in theirs)


def test_damage_found_ahead_is_told_when_its_step_comes(thread: ThreadPoolExecutor) -> None:
    class Damaged(Split):
        def take(self, rows: Rows, epoch: int | None = None) -> dict[str, Column]:
            if 4 in rows:
                raise DataError("row 4 is damaged")
            return super().take(rows)

    maker = Maker(
        artifact(RATE), [Call(entry("t", 0))], SPEC, Damaged("train", SPLIT.columns), 2, rates
    )
    ahead = Ahead(maker, thread)
    for batch in (0, 1):
        assert len(ahead.make(np.arange(10), batch, 1, batch, 5 - batch)) == 1
    with pytest.raises(DataError, match="row 4 is damaged"):
        ahead.make(np.arange(10), 2, 1, 2, 3)


def same_work(one: Work, other: Work) -> bool:
    pairs = [
        (getattr(one, k), getattr(other, k))
        for k in vars(one)
        if k not in ("axis_firsts", "columns")
    ]
    pairs += [(one.axis_firsts[a], other.axis_firsts[a]) for a in other.axis_firsts]
    return one.axis_firsts.keys() == other.axis_firsts.keys() and all(
        a.dtype == b.dtype and a.tolist() == b.tolist() for a, b in pairs
    )


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 11), st.integers(1, 3), st.integers(0, 7), st.data())
def test_epochs_made_together_are_those_made_one_by_one(
    batch_size: int, parts: int, certain: int, data: st.DataObject
) -> None:
    """Any cut into requests, from any batch on (a resumed run), whatever is certain of the epochs to come."""
    calls = [*(Call(entry("a", 0, "loss"), i, parts) for i in range(parts)), Call(entry("b", 1))]
    maker = Maker(artifact(RATE, *WEIGHTS), calls, SPEC, SPLIT, batch_size, rates)
    loader = Loader(SPLIT, batch_size, shuffle="window", buffer=6, seed=3)
    made: list[int] = []
    maker.epochs = lambda o, s, real=maker.epochs: (made.append(len(o)), real(o, s))[1]  # type: ignore[misc, method-assign]
    with ThreadPoolExecutor(1) as pool:
        stock = Stock(maker, loader, lambda step: certain - step // len(loader), pool)
        step = data.draw(st.integers(0, len(loader)))
        while step < 8 * len(loader):
            epoch, batch = divmod(step, len(loader))
            count = data.draw(st.integers(1, len(loader) - batch))
            work = stock.take(epoch, batch, step, count)
            assert same_work(work, maker.make(loader.order(epoch), batch, count, step))
            step += count
    assert sum(made) <= certain


def test_the_rest_of_an_iteration() -> None:
    calls = [Call(entry("a", 0)), Call(entry("b", 1)), Call(entry("c", 2))]
    work = Maker(artifact(RATE), calls, SPEC, SPLIT, 2, rates).make(np.arange(10), 0, 5, 0)
    rest = work.behind(4, int(work.iterations[4]) + 1)
    assert rest.entries.tolist() == [1, 2] and rest.steps.tolist() == [1, 1]


def test_iteration_of_a_graph() -> None:
    entries = (entry("a", 0), entry("b", 1), entry("p", 2), entry("q", 3), entry("u", 4))
    made = artifact(
        entries=entries, roles={"train": ["a", "b"], "accumulate": ("p", "q"), "apply": "u"}
    )
    assert [c.entry.name for c in iteration(made, (), 1)] == ["a", "b"]
    assert [c.entry.name for c in iteration(made, ("b", "b", "a"), 1)] == ["b", "b", "a"]
    assert [(c.entry.name, c.part, c.parts) for c in iteration(made, (), 3)] == [
        ("p", 0, 3), ("q", 1, 3), ("q", 2, 3), ("u", 0, 1)]  # fmt: skip
    with pytest.raises(ConfigError, match="no entry `z`"):
        iteration(made, ("z",), 1)
    with pytest.raises(ConfigError, match="trains"):
        iteration(artifact(entries=entries), (), 1)
    with pytest.raises(ConfigError, match="accumulate"):
        iteration(artifact(entries=entries, roles={"train": ["a"]}), (), 2)


def work_of(iterations: list[int], entries: list[int]) -> Work:
    zeros = np.zeros(len(entries), np.int64)
    return Work(
        np.array(entries, np.int32),
        zeros,
        zeros,
        zeros,
        zeros,
        zeros,
        np.zeros((len(entries), 0)),
        np.array(iterations),
    )


def test_parts_are_added_and_entries_told_apart() -> None:
    one, two = entry("a", 0, "loss", "finite"), entry("b", 1, "finite", "loss")
    keys = keys_of([Call(one), Call(two)])
    work = work_of([0, 0, 0, 1, 1], [0, 0, 1, 0, 1])
    results = np.array([[1.0, 1], [2.0, 1], [1, 5.0], [4.0, 1], [1, 6.0]])
    found = by_iteration(keys, work, results, 2)
    assert {k: v.tolist() for k, v in found.items()} == {"a.loss": [3.0, 4.0], "b.loss": [5.0, 6.0]}
    assert keys_of([Call(one)]) == {(0, 0): "loss"}


def test_parts_of_a_batch_report_together() -> None:
    first, more, update = (
        entry("t.first", 0, "loss"),
        entry("t.more", 1, "loss"),
        entry("t.apply", 2),
    )
    keys = keys_of([Call(first, 0, 3), Call(more, 1, 3), Call(more, 2, 3), Call(update)])
    work = work_of([0, 0, 0, 0, 1, 1, 1], [0, 1, 1, 2, 0, 1, 2])
    found = by_iteration(
        keys, work, np.array([[1.0], [2.0], [4.0], [99.0], [10.0], [20.0], [99.0]]), 2
    )
    assert {k: v.tolist() for k, v in found.items()} == {"loss": [7.0, 30.0]}


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.floats(-10, 10), st.integers(1, 20)), min_size=1, max_size=30), st.data()
)
def test_averages_do_not_depend_on_requests(
    batches: list[tuple[float, int]], data: st.DataObject
) -> None:
    """Any cut into requests, with a checkpoint in between, gives the same bits."""
    values, counts = np.array([b[0] for b in batches]), np.array([b[1] for b in batches])
    whole = Averages()
    whole.add({"loss": values}, counts)
    cut = data.draw(st.integers(0, len(batches)))
    first, second = Averages(), Averages()
    first.add({"loss": values[:cut]}, counts[:cut])
    second.restore(first.state())
    second.add({"loss": values[cut:]}, counts[cut:])
    assert second.state() == whole.state()
    assert whole.by_sample()["loss"] == pytest.approx(
        float((values * counts).sum() / counts.sum()), abs=1e-9
    )
    assert whole.by_batch()["loss"] == pytest.approx(float(values.mean()), abs=1e-9)


def test_pace_finds_a_tenth_of_a_second() -> None:
    pace = Pace()
    assert pace.count(1000) == 1
    for _ in range(10):
        count = pace.count(10**9)
        pace.took(count, 1e-3 * count + 1e-4)
    assert 90 <= pace.count(10**9) <= 100
    assert pace.count(7) == 7
    pace.took(90, 90.0)
    assert pace.count(1000) == 1
