"""SGEMM and convolutions of the core against numpy (OpenBLAS) and, where a python has it, torch.

    cmake -S core -B build -G Ninja -DPK_TESTS=ON && cmake --build build
    python tests/bench/bench_sgemm.py build/tests/libbench_products.so --threads 1

Every library works in a process of its own, turn by turn, so that a change of the machine's speed meets all of them. Outside its
turn a process is stopped: threads that would wait spinning for more work cannot take a core from the next one. A row shows each
one's least and median turn; ratios above 1 mean that the core is faster. One thread is measured by its processor time, several by
the clock.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import signal
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from time import perf_counter, thread_time
from typing import Any

Shape = tuple[int, int, int, str]
Run = Callable[[int], float]
"""Seconds that so many calls take."""

# (m, k, n, storage): the square sizes, then the products of the recipes; tn and nt are the two gradients.
SHAPES: list[Shape] = [
    (64, 64, 64, "nn"),
    (128, 128, 128, "nn"),
    (256, 256, 256, "nn"),
    (1024, 1024, 1024, "nn"),
    (1024, 1024, 1024, "nt"),
    (1024, 1024, 1024, "tn"),
    (20, 13, 1, "nn"),
    (64, 784, 128, "nn"),
    (784, 64, 128, "tn"),
    (64, 128, 64, "nn"),
    (64, 784, 10, "nn"),
    (784, 64, 10, "tn"),
    (64, 200, 200, "nn"),
    (64, 200, 200, "nt"),
    (200, 64, 200, "tn"),
    (64, 800, 500, "nn"),
    (64, 500, 800, "nt"),
    (800, 64, 500, "tn"),
    (64, 800, 10, "nn"),
    (64, 10, 800, "nt"),
    (100, 128, 256, "nn"),
    (100, 256, 2073, "nn"),
    (100, 2073, 256, "nt"),
    (256, 100, 2073, "tn"),
    (100, 256, 10000, "nn"),
    (100, 10000, 256, "nt"),
    (256, 100, 10000, "tn"),
    (256, 96, 200, "nn"),
    (128, 128, 512, "nn"),
    (10, 128, 512, "nn"),
    (10, 512, 512, "nn"),
    (10, 512, 512, "nt"),
    (300, 640, 512, "nn"),
    (16, 512, 1536, "nn"),
    (1, 128, 512, "nn"),
    (1, 512, 512, "nn"),
    (384, 27785, 512, "tn"),
    (4096, 256, 1024, "nn"),
]

# (n, channels, size, out, kernel, pad)
CONVS = [
    (64, 1, 28, 20, 5, 0),
    (64, 20, 12, 50, 5, 0),
    (128, 16, 32, 16, 3, 1),
    (128, 64, 8, 64, 3, 1),
    (16, 64, 56, 64, 3, 1),
    (16, 512, 7, 512, 3, 1),
    (1, 1, 28, 20, 5, 0),
    (1, 20, 12, 50, 5, 0),
]
PARTS = ("y", "dx", "dw")
ERROR = 1e-4  # relative, from a sum in another order


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "core", metavar="LIBRARY", help="libbench_products.so of a build with PK_TESTS=ON"
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--level", help="instruction-set level (default: the best of this machine)")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--only", choices=["products", "convolutions"])
    parser.add_argument(
        "--shape", action="append", help="this product instead, m,k,n,storage; may be repeated"
    )
    parser.add_argument(
        "--largest", type=float, default=1e12, help="leave out products above so many FLOP"
    )
    parser.add_argument("--torch-python", help="a python that has torch and numpy")
    parser.add_argument("--library", dest="one", choices=list(LIBRARIES), help=argparse.SUPPRESS)
    return parser.parse_args()


# --- one library, in its own process ------------------------------------------------------------------------------


def pointer(array: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


@dataclass
class Work:
    """The numbers of one case, equal in all processes."""

    np: Any
    case: Sequence[Any]

    def floats(self, *shape: int) -> Any:
        return self.np.random.default_rng(len(shape)).standard_normal(shape, self.np.float32)

    def factors(self) -> tuple[Any, Any]:
        m, k, n, storage = self.case
        return (
            self.floats(*((k, m) if storage[0] == "t" else (m, k))),
            self.floats(*((n, k) if storage[1] == "t" else (k, n))),
        )

    def views(self) -> tuple[Any, Any]:
        a, b = self.factors()
        return a.T if self.case[3][0] == "t" else a, b.T if self.case[3][1] == "t" else b

    def pictures(self) -> tuple[Any, Any, Any]:
        n, c, size, out, kernel, pad = self.case[:6]
        to = size + 2 * pad - kernel + 1
        sizes = (n, c, size, size), (out, c, kernel, kernel), (n, out, to, to)
        x, w, y = (self.floats(*s) for s in sizes)
        return x, w, y


class Core:
    def __init__(self, options: argparse.Namespace) -> None:
        self.core = ctypes.CDLL(str(Path(options.core).resolve()))
        self.core.bench_best_level.restype = ctypes.c_char_p
        self.core.bench_pool.restype = ctypes.c_void_p
        self.core.bench_product.restype = self.core.bench_conv.restype = ctypes.c_double
        self.level = (options.level or self.core.bench_best_level().decode()).encode()
        self.pool = ctypes.c_void_p(self.core.bench_pool(options.threads))

    def product(self, work: Work) -> Run:
        m, k, n, storage = work.case
        (a, b), c = work.factors(), work.floats(m, n)
        sizes = [ctypes.c_int64(v) for v in (m, n, k)]
        flags = [ctypes.c_int32(v == "t") for v in storage]

        def run(repeats: int) -> float:
            data = (pointer(a), pointer(b), pointer(c), ctypes.c_int64(repeats))
            return float(self.core.bench_product(self.level, self.pool, *sizes, *flags, *data))

        if run(1) < 0:
            raise SystemExit(f"this machine has no level {self.level.decode()}")
        left, right = work.views()
        right_one = work.np.dot(left, right)
        error = float(abs(c - right_one).max() / abs(right_one).max())
        if error > ERROR:
            raise SystemExit(f"wrong product {m}x{k}@{k}x{n} {storage}: relative error {error:g}")
        return run

    def convolution(self, work: Work) -> Run:
        n, c, size, out, kernel, pad, part = work.case
        to = size + 2 * pad - kernel + 1
        numbers = (n, c, size, size, out, to, to, kernel, kernel, 1, 1, pad, pad, 1, 1, 1)
        shape = (ctypes.c_int64 * len(numbers))(*numbers)
        arrays = work.pictures()

        def run(repeats: int) -> float:
            data = (*map(pointer, arrays), ctypes.c_int64(repeats))
            return float(
                self.core.bench_conv(self.level, self.pool, PARTS.index(part), shape, *data)
            )

        return run


class Timed:
    """Calls from Python, timed."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.clock = thread_time if options.threads == 1 else perf_counter

    def timed(self, call: Callable[[], Any]) -> Run:
        def run(repeats: int) -> float:
            start = self.clock()
            for _ in range(repeats):
                call()
            return self.clock() - start

        return run


class Numpy(Timed):
    def product(self, work: Work) -> Run:
        left, right = work.views()
        out = work.floats(work.case[0], work.case[2])
        return self.timed(lambda: work.np.dot(left, right, out=out))

    convolution = None


class Torch(Timed):
    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        self.torch: Any = import_module("torch")  # only a competitor, never a dependency
        self.torch.set_num_threads(options.threads)

    def product(self, work: Work) -> Run:
        left, right = map(self.torch.from_numpy, work.views())
        out = self.torch.from_numpy(work.floats(work.case[0], work.case[2]))
        return self.timed(lambda: self.torch.mm(left, right, out=out))

    def convolution(self, work: Work) -> Run:
        t, pad, part = self.torch, work.case[5], work.case[6]
        x, w, y = map(t.from_numpy, work.pictures())
        if part == "y":
            return self.timed(lambda: t.nn.functional.conv2d(x, w, padding=pad))
        mask = [part == "dx", part == "dw", False]
        back = t.ops.aten.convolution_backward
        return self.timed(
            lambda: back(y, x, w, [0], [1, 1], [pad, pad], [1, 1], False, [0, 0], 1, mask)
        )


LIBRARIES: dict[str, Any] = {"core": Core, "numpy": Numpy, "torch": Torch}


def serve(options: argparse.Namespace) -> None:
    """Answers lines: a case is made ready, `turn` is one turn of about 5 ms: seconds a call."""
    import numpy

    library = LIBRARIES[options.one](options)
    run: Run | None = None
    repeats = 1
    for line in sys.stdin:
        if line.strip() == "turn":
            assert run is not None
            run(1)
            answer: Any = run(repeats) / repeats
        else:
            case = json.loads(line)
            make = library.product if isinstance(case[3], str) else library.convolution
            run = make(Work(numpy, case)) if make else None
            repeats = max(1, int(0.005 / max(run(3) / 3, 1e-7))) if run else 1
            answer = run is not None
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


# --- turn by turn --------------------------------------------------------------------------------------------------


class Peer:
    """A library's process, stopped but for its turns."""

    def __init__(self, name: str, python: str, options: argparse.Namespace) -> None:
        command = [python, __file__, options.core, "--library", name]
        command += ["--threads", str(options.threads)]
        command += ["--level", options.level] if options.level else []
        threads = "1" if name == "core" else str(options.threads)  # numpy only checks there
        names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
        environment = {**os.environ, **dict.fromkeys(names, threads)}
        self.name = name
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def ask(self, line: str) -> Any:
        """The answer to one line; the process runs until it has given it."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.send_signal(signal.SIGCONT)
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"{self.name} ended with status {self.process.wait()}")
        self.process.send_signal(signal.SIGSTOP)
        return json.loads(answer)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def compare(peers: Sequence[Peer], case: Sequence[Any], rounds: int) -> dict[str, list[float]]:
    """Seconds a call in each turn, by library."""
    able = [p for p in peers if p.ask(json.dumps(case))]
    turns: dict[str, list[float]] = {p.name: [] for p in able}
    for _ in range(rounds):
        for peer in able:
            turns[peer.name].append(peer.ask("turn"))
    return turns


def show(title: str, flop: float, turns: dict[str, list[float]]) -> None:
    least = {name: min(t) for name, t in turns.items()}
    middle = {name: statistics.median(t) for name, t in turns.items()}
    ratios = "".join(
        f"  {n} {least[n] * 1e6:10.2f} us, ratio {least[n] / least['core']:5.2f}, of medians {middle[n] / middle['core']:5.2f}"
        for n in turns
        if n != "core"
    )
    rate = flop / least["core"] * 1e-9
    print(
        f"{title:34s} core {least['core'] * 1e6:10.2f} us {rate:7.1f} GFLOP/s{ratios}", flush=True
    )


def started(options: argparse.Namespace) -> list[Peer]:
    """The core, numpy, and torch where a python was named."""
    pythons = {"core": sys.executable, "numpy": sys.executable}
    if options.torch_python:
        pythons["torch"] = options.torch_python
    return [Peer(name, python, options) for name, python in pythons.items()]


def products(options: argparse.Namespace) -> list[Shape]:
    if options.only == "convolutions":
        return []
    given = [s.split(",") for s in options.shape or ()]
    chosen = [(int(m), int(k), int(n), storage) for m, k, n, storage in given] or SHAPES
    return [s for s in chosen if 2.0 * s[0] * s[1] * s[2] <= options.largest]


def main() -> None:
    options = arguments()
    if options.one:
        serve(options)
        return
    peers = started(options)
    try:
        print(f"{options.threads} thread(s), {options.rounds} turns")
        for m, k, n, storage in products(options):
            turns = compare(peers, (m, k, n, storage), options.rounds)
            show(f"{m}x{k}@{k}x{n} {storage}", 2.0 * m * n * k, turns)
        if options.only == "products" or options.shape:
            return
        for n, c, size, out, kernel, pad in CONVS:
            flop = 2.0 * n * out * (size + 2 * pad - kernel + 1) ** 2 * c * kernel**2
            for part in PARTS:
                turns = compare(peers, (n, c, size, out, kernel, pad, part), options.rounds)
                show(
                    f"[{n},{c},{size},{size}]*{out}x{kernel}x{kernel} pad {pad} {part}", flop, turns
                )
    finally:
        for peer in peers:
            peer.end()


if __name__ == "__main__":
    main()
