"""From a split to the batches of an epoch: batch i is rows i * batch_size and on of its order. The
core gathers them from data in memory, the engine those of streamed data.

The order of an epoch is a function of (seed, epoch) alone: each row gets a 64-bit key from a
counter-based generator and rows are sorted by key, so a run resumes in the middle of an epoch
without saved state, and any process can compute any epoch. A window shuffle has the original
reader's meaning: a buffer of `buffer` rows is filled, shuffled, emitted whole and refilled; sorting
by key inside each block of `buffer` rows is exactly that.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from paddlecli.data.columns import Column, Rows, Split
from paddlecli.errors import ConfigError, DataError

Shuffle = Literal["full", "window", "none"]

_ORDER_STREAM = 0x6F72646572  # keeps these keys apart from any other use of the same seed
_BUCKET_STREAM = 0x6275636B6574
_WORD = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15


def mix64(counter: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection of 64-bit words that
    scatters counters."""
    x = counter.astype(np.uint64, copy=True)
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return x


def _mix(x: int) -> int:
    """`mix64` of one word; for a single one Python's integers are ten times faster than arrays."""
    x &= _WORD
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 & _WORD
    x ^= x >> 27
    x = x * 0x94D049BB133111EB & _WORD
    return x ^ x >> 31


def random_words(count: int, *key: int, first: int = 0) -> NDArray[np.uint64]:
    """`count` 64-bit words that depend on the key and the position alone, those from `first` on."""
    counter = np.arange(first + 1, first + count + 1, dtype=np.uint64)
    return mix64(counter * np.uint64(_GOLDEN) + np.uint64(_state(*key)))


def _state(*key: int) -> int:
    state = 0
    for part in key:
        state = _mix(state + _GOLDEN * (part + 1))
    return state


class Loader:
    """The batches of a split, epoch after epoch.

    Args:
        split: the rows.
        batch_size: rows a batch; the last batch may be shorter.
        shuffle: `full` permutes all rows, `window` blocks of `buffer` rows, `none` keeps the file's
            order.
        buffer: rows of the window's buffer.
        seed: key of the order, with the epoch.
        drop_last: leave a short last batch out.
        limit: at most so many batches an epoch.
        bucket: for sequences, batches whose rows are sorted by length before they are cut into
            batches of rows of like length; those batches are mixed. 0 does not sort.

    Raises:
        ConfigError: a size out of range, or `bucket` without sequences.
        DataError: no batch can be made.
    """

    def __init__(
        self,
        split: Split,
        batch_size: int,
        *,
        shuffle: Shuffle = "none",
        buffer: int = 0,
        seed: int = 0,
        drop_last: bool = False,
        limit: int | None = None,
        bucket: int = 0,
    ) -> None:
        if batch_size < 1:
            raise ConfigError(f"batch_size is {batch_size}; it must be at least 1")
        if shuffle not in ("full", "window", "none"):
            raise ConfigError(f"shuffle is {shuffle!r}; it must be full, window or none")
        if shuffle == "window" and buffer < 1:
            raise ConfigError(f"shuffle: window needs a shuffle_buffer of at least 1, not {buffer}")
        if limit is not None and limit < 1:
            raise ConfigError(f"the limit of batches is {limit}; it must be at least 1")
        self.split, self.batch_size, self.shuffle, self.buffer = split, batch_size, shuffle, buffer
        self.seed, self.drop_last, self.limit = seed, drop_last, limit
        self.bucket, self._lengths = bucket, lengths_of(split) if bucket else None
        self._newest: tuple[int, Rows] | None = None
        if len(self) == 0:
            raise DataError(
                f"split {split.name} has {len(split)} rows, fewer than one batch of "
                f"{batch_size}, and short batches are dropped: there is no batch to train on"
            )

    def __len__(self) -> int:
        """Batches an epoch."""
        full, rest = divmod(len(self.split), self.batch_size)
        count = full + (1 if rest and not self.drop_last else 0)
        return count if self.limit is None else min(count, self.limit)

    def order(self, epoch: int) -> Rows:
        """Row numbers of the epoch in the order of use, without what drop_last and limit cut."""
        if self._newest is None or self._newest[0] != epoch:
            self._newest = (epoch, self.orders(epoch, 1)[0])
        return self._newest[1]

    def orders(self, epoch: int, count: int) -> Rows:
        """The orders of `count` epochs, [count, rows of an epoch]: for small sets in a fraction of the
        time that they take one by one."""
        rows = len(self.split)
        if self.shuffle == "none":
            orders = np.tile(np.arange(rows, dtype=np.int64), (count, 1))
        else:
            states = [_state(_ORDER_STREAM, self.seed, e) for e in range(epoch, epoch + count)]
            counter = np.arange(1, rows + 1, dtype=np.uint64) * np.uint64(_GOLDEN)
            keys = mix64(counter + np.array(states, np.uint64)[:, None])
            orders = _sort_in_blocks(keys, rows if self.shuffle == "full" else self.buffer)
        if self._lengths is not None:
            pairs = zip(range(epoch, epoch + count), orders, strict=True)
            orders = np.stack([self._bucketed(order, self._lengths, e) for e, order in pairs])
        return orders[:, : len(self) * self.batch_size]

    def _bucketed(self, order: Rows, lengths: Rows, epoch: int) -> Rows:
        """The order with rows of like length side by side; a short batch stays the last one."""
        size, found = self.batch_size, []
        for number, first in enumerate(range(0, order.size, self.bucket * size)):
            rows = order[first : first + self.bucket * size]
            whole = rows.size // size
            rows, rest = rows[: whole * size], rows[whole * size :]
            rows = rows[np.argsort(lengths[rows], kind="stable")]
            keys = random_words(whole, _BUCKET_STREAM, self.seed, epoch, number)
            found += [rows.reshape(whole, size)[np.argsort(keys, kind="stable")].reshape(-1), rest]
        return np.concatenate(found)


def lengths_of(split: Split) -> Rows:
    """For each row how many items its sequences have, all ragged fields together.

    Raises:
        ConfigError: the split has no sequences.
    """
    found = [_items(column) for column in split.columns.values() if column.offsets]
    if not found:
        raise ConfigError(
            "train.bucket sorts by the length of sequences, and these data have none",
            hint="remove it (-o ~train.bucket)",
        )
    return np.asarray(np.sum(found, axis=0), np.int64)


def _items(column: Column) -> Rows:
    edges = column.offsets[0]
    for level in column.offsets[1:]:
        edges = level[edges]
    return np.diff(edges)


def _sort_in_blocks(keys: NDArray[np.uint64], block: int) -> Rows:
    """For each line of keys the row numbers, sorted by key inside each block of `block` rows. No key is
    there twice (`mix64` is a bijection), so the fastest sort gives the order that a stable one gives."""
    orders = np.empty(keys.shape, np.int64)
    for first in range(0, keys.shape[1], block):
        part = np.s_[:, first : first + block]
        orders[part] = np.argsort(keys[part], axis=1) + first
    return orders
