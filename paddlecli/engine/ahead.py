"""Streamed data: the rows of the next request are gathered in a thread while the core runs the present one."""

from __future__ import annotations

from concurrent.futures import Executor, Future

from paddlecli.data.columns import Rows
from paddlecli.engine.requests import Maker, Work


class Ahead:
    """Makes the requests of a training with gathered columns, one ahead of the one in use.

    What was made ahead is used for the very step that it was made for, or not at all: no result depends on it.
    """

    def __init__(self, maker: Maker, thread: Executor) -> None:
        self._maker, self._thread = maker, thread
        self._next: tuple[int, Future[Work]] | None = None

    def make(
        self, order: Rows, batch: int, count: int, step: int, most: int, epoch: int | None = None
    ) -> Work:
        """As `Maker.make` with `gather`: `count` iterations, or as many as were made ahead. Begins with those behind them,
        up to iteration `most` from here.

        Raises:
            DataError: the rows cannot be read; also where that was found ahead.
        """
        made, self._next = self._next, None
        fits = made is not None and made[0] == step
        work = (
            made[1].result()
            if made and fits
            else self._maker.make(order, batch, count, step, gather=True, epoch=epoch)
        )
        done = int(work.iterations[-1]) + 1
        following = min(count, most - done)
        if following > 0:
            place = (order, batch + done, following, step + done)
            self._next = (
                step + done,
                self._thread.submit(self._maker.make, *place, gather=True, epoch=epoch),
            )
        return work
