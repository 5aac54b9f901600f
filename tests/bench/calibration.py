"""What several threads of this machine give over one, just now.

Virtual machines move. For minutes two processors may be the two halves of one core, and then everything that runs on two
threads takes nearly twice as long; or they may be cores that share no cache, and what one of them has written takes the
other twice as long to read. A comparison across such a change says nothing about either side.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from dataclasses import dataclass

OWN_CORE = 0.85
"""Threads that each give this much of what one alone gives have a core each; two that share one give 0.5 to 0.7."""
NEAR = 0.85
"""Reading what another processor has written is this fast where they share a cache, measured by what a processor has
written itself."""
_BYTES = 500_000  # fits into a core's own cache
_ROUNDS = 40_000  # of a hash whose state stays in registers: some 20 ms
_TRIES = 4


def _seconds(threads: int) -> float:
    """From the start of the first to the end of the last of `threads` equal pieces of work."""
    start = threading.Barrier(threads)
    begun, ended = [0.0] * threads, [0.0] * threads

    def work(i: int) -> None:
        start.wait()
        begun[i] = time.perf_counter()
        hashlib.pbkdf2_hmac("sha512", b"word", b"salt", _ROUNDS)  # without Python's lock
        ended[i] = time.perf_counter()

    pieces = [threading.Thread(target=work, args=(i,)) for i in range(threads)]
    for piece in pieces:
        piece.start()
    for piece in pieces:
        piece.join()
    return max(ended) - min(begun)


@dataclass(frozen=True)
class State:
    """gain: how many times the work of one thread `threads` of them do in the same time. shared: how fast
    a processor reads what its neighbour wrote, with what it wrote itself as 1. One thread has 1 and 1."""

    threads: int
    gain: float
    shared: float

    @property
    def good(self) -> bool:
        """A core for each thread, and one cache for all."""
        return self.gain >= OWN_CORE * self.threads and self.shared >= NEAR

    def __str__(self) -> str:
        return f"{self.gain:.2f} {self.shared:.2f}"


def state(threads: int) -> State:
    """Takes a quarter of a second; least times of a few tries, taken in turns."""
    if threads == 1:
        return State(1, 1.0, 1.0)
    alone, together = [], []
    for _ in range(_TRIES):
        alone.append(_seconds(1))
        together.append(_seconds(threads))
    return State(threads, threads * min(alone) / min(together), _shared())


def _shared() -> float:
    """Moves this thread from one processor to the other between writing and reading."""
    all_of = os.sched_getaffinity(0)
    first, second = sorted(all_of)[:2] if len(all_of) > 1 else 2 * [*all_of]
    source, middle, end = (memoryview(bytearray(_BYTES)) for _ in range(3))
    least = {first: 1.0, second: 1.0}
    try:
        for _ in range(4 * _TRIES):
            for writer in (first, second):
                os.sched_setaffinity(0, {writer})
                middle[:] = source
                os.sched_setaffinity(0, {second})
                start = time.perf_counter()
                end[:] = middle
                least[writer] = min(least[writer], time.perf_counter() - start)
    finally:
        os.sched_setaffinity(0, all_of)
    return least[second] / least[first]
