"""The order of an epoch, what is left out of it, and settings that are refused."""

from __future__ import annotations

import numpy as np
import pytest

from paddlecli.data.columns import Column, Split, pack
from paddlecli.data.loader import Loader, Shuffle, lengths_of, random_words
from paddlecli.errors import ConfigError, DataError


def split(rows: int) -> Split:
    return Split("train", {"x": Column(np.arange(rows, dtype=np.int64))})


def sizes_of(loader: Loader) -> list[int]:
    """Rows of each batch of the first epoch."""
    order, size = loader.order(0), loader.batch_size
    return [len(order[at : at + size]) for at in range(0, len(order), size)]


@pytest.mark.parametrize(("shuffle", "buffer"), [("none", 0), ("full", 0), ("window", 7)])
def test_every_row_comes_once_an_epoch(shuffle: Shuffle, buffer: int) -> None:
    loader = Loader(split(53), 10, shuffle=shuffle, buffer=buffer, seed=3)
    assert sizes_of(loader) == [10, 10, 10, 10, 10, 3] and len(loader) == 6
    assert sorted(loader.order(4).tolist()) == list(range(53))


def test_order_depends_on_seed_and_epoch_alone() -> None:
    def order(seed: int, epoch: int) -> list[int]:
        return Loader(split(100), 10, shuffle="full", seed=seed).order(epoch).tolist()

    assert order(1, 0) == order(1, 0)
    assert len({tuple(order(s, e)) for s in (0, 1, 2) for e in (0, 1, 2)}) == 9


@pytest.mark.parametrize(
    "options", [{}, {"shuffle": "full"}, {"shuffle": "window", "buffer": 20}, {"drop_last": True}]
)
def test_orders_of_several_epochs(options: dict[str, object]) -> None:
    loader = Loader(split(53), 10, seed=5, **options)  # type: ignore[arg-type]
    assert loader.orders(3, 4).tolist() == [loader.order(e).tolist() for e in range(3, 7)]


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


def test_drop_last_and_limit() -> None:
    assert sizes_of(Loader(split(25), 10, drop_last=True)) == [10, 10]
    assert sizes_of(Loader(split(25), 10, limit=1)) == [10]
    assert Loader(split(25), 10, limit=2).order(0).size == 20
    assert Loader(split(25), 10, limit=9).order(0).size == 25


def test_a_split_smaller_than_a_batch() -> None:
    assert sizes_of(Loader(split(3), 10)) == [3]
    with pytest.raises(DataError, match="3 rows, fewer than one batch of 10"):
        Loader(split(3), 10, drop_last=True)


@pytest.mark.parametrize(
    ("size", "options"),
    [(0, {}), (4, {"shuffle": "window"}), (4, {"shuffle": "some"}), (4, {"limit": 0})],
)
def test_bad_settings(size: int, options: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        Loader(split(8), size, **options)  # type: ignore[arg-type]


def sentences(rows: int) -> Split:
    """Sequences of 1 to 40 items."""
    rng = np.random.default_rng(4)
    return Split(
        "train", {"w": pack([np.zeros(n, np.int64) for n in rng.integers(1, 41, rows)], "int64")}
    )


@pytest.mark.parametrize("rows", [96, 103, 5])
def test_buckets_keep_every_row_and_put_like_lengths_together(rows: int) -> None:
    data = sentences(rows)
    plain = Loader(data, 8, shuffle="full", seed=1)
    loader = Loader(data, 8, shuffle="full", seed=1, bucket=6)
    order = loader.order(2)
    assert sorted(order.tolist()) == list(range(rows)) and len(loader) == len(plain)
    assert order.tolist() == loader.order(2).tolist() != loader.order(3).tolist()
    short = rows % 8
    assert not short or order[-short:].tolist() == plain.order(2)[-short:].tolist()
    if rows > 8:
        assert spread_of(data, order) < 0.5 * spread_of(data, plain.order(2))
    # batches of a bucket are mixed: the first is not always the one of the shortest
    firsts = {float(lengths_of(data)[loader.order(e)[:8]].mean()) for e in range(6)}
    assert rows < 48 or max(firsts) > 1.5 * min(firsts)


def spread_of(data: Split, order: np.ndarray) -> float:
    """Mean over the whole batches of the difference between the longest and the shortest."""
    lengths = lengths_of(data)[order[: len(order) // 8 * 8]].reshape(-1, 8)
    return float((lengths.max(axis=1) - lengths.min(axis=1)).mean())


def test_buckets_need_sequences() -> None:
    with pytest.raises(ConfigError, match="these data have none"):
        Loader(split(10), 2, bucket=2)
