"""Running the core beside the main thread, so that signals and the display live while C works.

A Python signal handler runs in the main thread only, and not while that thread is inside a foreign call. So requests run in
one worker thread and the main thread waits for them in short naps.
"""

from __future__ import annotations

import queue
import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, TypeVar

from paddlecli.errors import Interrupted

T = TypeVar("T")
_NAP = 0.1
_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}
if hasattr(signal, "SIGHUP"):  # not on Windows
    _CODES[signal.SIGHUP] = 129


class Worker:
    """One thread that runs functions handed to it, one at a time."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name="core", daemon=True)
        self._thread.start()

    def call(self, function: Callable[[], T], nap: Callable[[], None] = lambda: None) -> T:
        """The function's result; its exception is raised here. `nap` is called ten times a second meanwhile."""
        done = threading.Event()
        result: list[T] = []
        error: list[BaseException] = []

        def job() -> None:
            try:
                result.append(function())
            except BaseException as problem:
                error.append(problem)
            finally:
                done.set()

        self._jobs.put(job)
        while not done.wait(_NAP):
            nap()
        if error:
            raise error[0]
        return result[0]

    def close(self) -> None:
        """Ends the thread; waits a moment for what it is doing."""
        self._jobs.put(None)
        self._thread.join(timeout=2.0)

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()


class Signals:
    """SIGINT, SIGTERM and SIGHUP (the terminal was closed) inside a `with`: the first asks for an orderly end, the second
    ends at once. A hangup that is ignored, as under nohup, stays ignored.

    `signal` is the number of the first signal, 0 before it. `interrupt(urgent)` reaches the running request.
    """

    def __init__(self, interrupt: Callable[[bool], None]) -> None:
        self.signal = 0
        self._interrupt = interrupt
        self._saved: dict[signal.Signals, Any] = {}

    @property
    def exit_code(self) -> int:
        """The exit code that belongs to the signal; 0 without one."""
        return _CODES[signal.Signals(self.signal)] if self.signal else 0

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():
            self._saved = {n: signal.signal(n, self._handle) for n in _CODES if not _nohup(n)}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._saved.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.signal:
            self._interrupt(True)
            raise Interrupted(
                "stopped at once, without saving", exit_code=_CODES[signal.Signals(number)]
            )
        self.signal = number
        self._interrupt(False)


def _nohup(number: signal.Signals) -> bool:
    return number.name == "SIGHUP" and signal.getsignal(number) == signal.SIG_IGN
