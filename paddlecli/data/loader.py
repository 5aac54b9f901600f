"""From a split to the batches of an epoch.

The order of an epoch is a function of (seed, epoch) alone: each row gets a 64-bit key from a
counter-based generator and rows are sorted by key, so a run resumes in the middle of an epoch
without saved state, and any process can compute any epoch. A window shuffle has the original
reader's meaning: a buffer of `buffer` rows is filled, shuffled, emitted whole and refilled; sorting
by key inside each block of `buffer` rows is exactly that.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from paddlecli.data.columns import Column, Rows, Split
from paddlecli.errors import ConfigError, DataError

Shuffle = Literal["full", "window", "none"]

_PREFETCH = 4  # batches made ahead of the one in use
_ORDER_STREAM = 0x6F72646572  # keeps these keys apart from any other use of the same seed


@dataclass(frozen=True)
class Batch:
    """One batch: its number in the epoch, the row numbers and the gathered columns."""

    index: int
    rows: Rows
    columns: Mapping[str, Column]


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


def random_words(count: int, *key: int) -> NDArray[np.uint64]:
    """`count` 64-bit words that depend on the key and the position alone."""
    golden = 0x9E3779B97F4A7C15
    state = 0
    for part in key:
        word = np.array([(state + golden * (part + 1)) % 2**64], np.uint64)
        state = int(mix64(word)[0])
    counter = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(golden) + np.uint64(state)
    return mix64(counter)


class Loader:
    """Batches of a split.

    Args:
        split: the rows.
        batch_size: rows a batch; the last batch may be shorter.
        shuffle: `full` permutes all rows, `window` blocks of `buffer` rows, `none` keeps the file's
            order.
        buffer: rows of the window's buffer.
        seed: key of the order, with the epoch.
        drop_last: leave a short last batch out.
        limit: at most so many batches an epoch.

    Raises:
        ConfigError: a size out of range.
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
        rows = len(self.split)
        if self.shuffle == "none":
            order = np.arange(rows, dtype=np.int64)
        else:
            keys = random_words(rows, _ORDER_STREAM, self.seed, epoch)
            order = _sort_in_blocks(keys, rows if self.shuffle == "full" else self.buffer)
        return order[: len(self) * self.batch_size]

    def batch_rows(self, epoch: int, start: int = 0) -> Iterator[Rows]:
        """Row numbers of batch `start` and those behind it: enough for resident data, C gathers."""
        order = self.order(epoch)
        for index in range(start, len(self)):
            yield order[index * self.batch_size : (index + 1) * self.batch_size]

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """Gathered batches (streamed data), the same rows as `batch_rows`, made ahead in a
        thread."""
        made: queue.Queue[Batch | BaseException | None] = queue.Queue(_PREFETCH)
        stop = threading.Event()
        worker = threading.Thread(
            target=self._produce, args=(epoch, start, made, stop), daemon=True
        )
        worker.start()
        try:
            while (item := made.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            stop.set()
            worker.join()

    def _produce(
        self,
        epoch: int,
        start: int,
        made: queue.Queue[Batch | BaseException | None],
        stop: threading.Event,
    ) -> None:
        try:
            for index, rows in enumerate(self.batch_rows(epoch, start), start):
                if not _put(made, Batch(index, rows, self.split.take(rows)), stop):
                    return
            _put(made, None, stop)
        except BaseException as error:  # handed over: the consumer raises it in its own thread
            _put(made, error, stop)


def _put(
    made: queue.Queue[Batch | BaseException | None],
    item: Batch | BaseException | None,
    stop: threading.Event,
) -> bool:
    """Waits for room, but no longer than the consumer lives."""
    while not stop.is_set():
        try:
            made.put(item, timeout=0.1)
            return True
        except queue.Full:
            continue
    return False


def _sort_in_blocks(keys: NDArray[np.uint64], block: int) -> Rows:
    """Row numbers sorted by key inside each block of `block` rows."""
    order = np.empty(keys.size, np.int64)
    for first in range(0, keys.size, block):
        order[first : first + block] = (
            np.argsort(keys[first : first + block], kind="stable") + first
        )
    return order
