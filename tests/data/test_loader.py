"""Order, batches, and that resident and streamed data see the same rows."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from paddlecli.data.columns import Column, Rows, Split, pack
from paddlecli.data.loader import Loader, Shuffle, random_words
from paddlecli.errors import ConfigError, DataError


def split(rows: int) -> Split:
    values = np.arange(rows, dtype=np.int64)
    ragged = pack([np.full(i % 4, i) for i in range(rows)], "int64")
    return Split("train", {"x": Column(values), "w": ragged})


@pytest.mark.parametrize(("shuffle", "buffer"), [("none", 0), ("full", 0), ("window", 7)])
def test_every_row_comes_once_an_epoch(shuffle: Shuffle, buffer: int) -> None:
    loader = Loader(split(53), 10, shuffle=shuffle, buffer=buffer, seed=3)
    sizes = [len(rows) for rows in loader.batch_rows(0)]
    assert sizes == [10, 10, 10, 10, 10, 3] and len(loader) == 6
    assert sorted(np.concatenate(list(loader.batch_rows(4)))) == list(range(53))


def test_order_depends_on_seed_and_epoch_alone() -> None:
    def order(seed: int, epoch: int) -> list[int]:
        return Loader(split(100), 10, shuffle="full", seed=seed).order(epoch).tolist()

    assert order(1, 0) == order(1, 0)
    assert len({tuple(order(s, e)) for s in (0, 1, 2) for e in (0, 1, 2)}) == 9


def splitmix(state: int, count: int) -> list[int]:
    """SplitMix64 on plain integers, from its published definition."""
    mask, words = 2**64 - 1, []
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        words.append(z ^ (z >> 31))
    return words


def test_random_words_are_splitmix64() -> None:
    """First outputs for seed 0 as published with the generator."""
    assert splitmix(0, 2) == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4]
    assert random_words(5).tolist() == splitmix(0, 5)
    state = 0
    for part in (7, 123):
        state = splitmix(state + 0x9E3779B97F4A7C15 * part, 1)[0]
    assert random_words(5, 7, 123).tolist() == splitmix(state, 5)


def test_order_is_pinned() -> None:
    """The order is part of what a seed means: a change here changes every recorded run."""
    state = 0
    for part in (0x6F72646572, 11, 3):  # the stream "order", seed, epoch
        state = splitmix(state + 0x9E3779B97F4A7C15 * part, 1)[0]
    keys = splitmix(state, 40)
    full = Loader(split(40), 5, shuffle="full", seed=11).order(3)
    assert full.tolist() == sorted(range(40), key=keys.__getitem__)
    window = Loader(split(40), 5, shuffle="window", buffer=16, seed=11).order(3)
    assert window.tolist() == sorted(range(40), key=lambda row: (row // 16, keys[row]))


def test_full_shuffle_is_uniform() -> None:
    """Each row lands in each place equally often: chi-square of 5x5 counts over 4000 epochs."""
    loader = Loader(split(5), 5, shuffle="full", seed=9)
    counts = np.zeros((5, 5))
    for epoch in range(4000):
        counts[np.arange(5), loader.order(epoch)] += 1
    chi = float(((counts - 800) ** 2 / 800).sum())
    assert chi < 40  # 16 degrees of freedom: 40 has probability 0.0008


def test_window_shuffles_blocks_and_empties_the_buffer() -> None:
    order = Loader(split(53), 10, shuffle="window", buffer=20, seed=1).order(0)
    for first in (0, 20, 40):
        block = order[first : first + 20]
        assert sorted(block) == list(range(first, min(first + 20, 53)))
        assert block.tolist() != sorted(block)


def test_window_of_all_rows_is_a_full_shuffle() -> None:
    full = Loader(split(53), 10, shuffle="full", seed=1).order(2)
    window = Loader(split(53), 10, shuffle="window", buffer=500, seed=1).order(2)
    assert full.tolist() == window.tolist()


def test_resume_in_the_middle_of_an_epoch() -> None:
    loader = Loader(split(53), 10, shuffle="full", seed=1)
    whole = [r.tolist() for r in loader.batch_rows(1)]
    assert [r.tolist() for r in loader.batch_rows(1, start=4)] == whole[4:]
    assert [b.rows.tolist() for b in loader.batches(1, start=4)] == whole[4:]
    assert [b.index for b in loader.batches(1, start=4)] == [4, 5]


def test_streamed_batches_hold_the_resident_rows() -> None:
    data = split(53)
    loader = Loader(data, 8, shuffle="full", seed=5)
    for rows, batch in zip(loader.batch_rows(0), loader.batches(0), strict=True):
        assert batch.rows.tolist() == rows.tolist()
        assert batch.columns["x"].values.tolist() == rows.tolist()
        assert batch.columns["w"].values.tolist() == [i for i in rows for _ in range(i % 4)]


def test_drop_last_and_limit() -> None:
    assert [len(r) for r in Loader(split(25), 10, drop_last=True).batch_rows(0)] == [10, 10]
    assert [len(r) for r in Loader(split(25), 10, limit=1).batch_rows(0)] == [10]
    assert Loader(split(25), 10, limit=2).order(0).size == 20
    assert Loader(split(25), 10, limit=9).order(0).size == 25


def test_a_split_smaller_than_a_batch() -> None:
    assert [len(r) for r in Loader(split(3), 10).batch_rows(0)] == [3]
    with pytest.raises(DataError, match="3 rows, fewer than one batch of 10"):
        Loader(split(3), 10, drop_last=True)


@pytest.mark.parametrize(
    ("size", "options"),
    [(0, {}), (4, {"shuffle": "window"}), (4, {"shuffle": "some"}), (4, {"limit": 0})],
)
def test_bad_settings(size: int, options: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        Loader(split(8), size, **options)  # type: ignore[arg-type]


def test_an_abandoned_epoch_ends_its_thread() -> None:
    before = threading.active_count()
    batches = Loader(split(1000), 1).batches(0)
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before


def test_an_error_in_the_thread_reaches_the_consumer() -> None:
    class Broken(Split):
        def take(self, rows: Rows) -> dict[str, Column]:
            raise DataError("row 3 is damaged")

    with pytest.raises(DataError, match="row 3 is damaged"):
        list(Loader(Broken("train", {"x": Column(np.arange(9))}), 2).batches(0))
