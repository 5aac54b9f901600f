"""Data in memory: the row numbers and arguments of whole epochs are made ahead in a thread, those of short epochs many
together, so that a step of a few microseconds does not wait longer for them than it takes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future

from paddlecli.data.loader import Loader
from paddlecli.engine.requests import Maker, Work

_MOST_ROWS, _MOST_EPOCHS = 1 << 20, 256
"""Of what is made together: 8 MiB of row numbers."""
_GROWTH = 4


class Stock:
    """Makes the requests of a training whose rows the core gathers: a block of whole epochs at a time, the block behind it in
    a thread and larger.

    Args:
        maker: makes them.
        loader: the order of epochs.
        certain: told an iteration, says how many whole epochs will be trained from there on, with learning rates that nothing
            measured on the way changes.
        thread: makes blocks ahead.
    """

    def __init__(
        self, maker: Maker, loader: Loader, certain: Callable[[int], int], thread: Executor
    ) -> None:
        self._maker, self._loader, self._certain, self._thread = maker, loader, certain, thread
        self._size = len(loader)
        self._most = min(_MOST_EPOCHS, _MOST_ROWS // max(1, len(loader.split)))
        self._first = 0
        self._held: list[Work] = []
        self._next: tuple[int, Future[list[Work]]] | None = None

    def take(self, epoch: int, batch: int, step: int, count: int) -> Work:
        """`count` iterations from batch `batch` of an epoch on, as `Maker.make` makes them; the first is iteration `step` of
        the training."""
        held = 0 <= epoch - self._first < len(self._held)
        if not held and (batch or not self._fill(epoch, step)):
            return self._maker.make(self._loader.order(epoch), batch, count, step)
        whole = self._held[epoch - self._first]
        return whole if count == self._size else whole.part(batch, count)

    def _fill(self, epoch: int, step: int) -> bool:
        made, self._next = self._next, None
        if made is not None and made[0] == epoch:
            block = made[1].result()
        else:
            if not self._epochs(step, 1):
                return False
            block = self._make(epoch, step, 1)
        self._first, self._held = epoch, block
        epoch, step = epoch + len(block), step + len(block) * self._size
        together = self._epochs(step, _GROWTH * len(block))
        if together:
            self._next = (epoch, self._thread.submit(self._make, epoch, step, together))
        return True

    def _epochs(self, step: int, wanted: int) -> int:
        """How many are made together from an iteration on."""
        return max(min(wanted, self._most, self._certain(step)), 0)

    def _make(self, epoch: int, step: int, count: int) -> list[Work]:
        return alike(self._maker.epochs(self._loader.orders(epoch, count), step), count)


def alike(work: Work, count: int) -> list[Work]:
    """Cuts the work of `count` whole epochs, which differ in their rows and arguments only, into one for each."""
    first = work.part(0, (int(work.iterations[-1]) + 1) // count)
    steps = work.steps.reshape(count, -1)
    rows, args = work.rows.reshape(count, -1), work.args.reshape(*steps.shape, -1)
    axes = {axis: firsts.reshape(count, -1) for axis, firsts in work.axis_firsts.items()}
    return [
        Work(
            first.entries, first.counts, first.firsts, steps[i], first.starts, rows[i], args[i], first.iterations,
            {axis: firsts[i] for axis, firsts in axes.items()},
        )
        for i in range(count)
    ]  # fmt: skip
