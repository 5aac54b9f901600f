"""SGEMM and convolutions of the core against numpy (OpenBLAS) and, where it is installed, torch.

    cmake -S core -B build -G Ninja -DPK_TESTS=ON && cmake --build build
    python tests/bench/bench_sgemm.py build/tests/libbench_products.so --threads 1

All competitors run interleaved in one process, a round each in turn, so that a change of the machine's speed meets all
of them; a row shows the best round of each.  One thread is measured by its processor time, several by the clock.
Ratios above 1 mean that the core is faster.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from time import perf_counter, sleep, thread_time
from typing import Any

Shape = tuple[int, int, int, str]

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
        "--largest", type=float, default=1e12, help="leave out products above so many FLOP"
    )
    return parser.parse_args()


def load(path: str) -> ctypes.CDLL:
    library = ctypes.CDLL(str(Path(path).resolve()))
    library.bench_best_level.restype = ctypes.c_char_p
    library.bench_pool.restype = ctypes.c_void_p
    library.bench_product.restype = library.bench_conv.restype = ctypes.c_double
    return library


def best_of(
    competitors: dict[str, Callable[[int], float]], rounds: int, pause: float
) -> dict[str, float]:
    """Seconds a call of each, the best of `rounds` interleaved rounds of about 5 ms.

    With several threads each round follows a pause: idle threads of a peer spin for a while and would
    take the processor from the next competitor.
    """
    repeats = {
        name: max(1, int(0.005 / max(run(3) / 3, 1e-7))) for name, run in competitors.items()
    }
    best = dict.fromkeys(competitors, float("inf"))
    for _ in range(rounds):
        for name, run in competitors.items():
            sleep(pause)
            run(1)
            best[name] = min(best[name], run(repeats[name]) / repeats[name])
    return best


def timed(call: Callable[[], Any], threads: int) -> Callable[[int], float]:
    clock = thread_time if threads == 1 else perf_counter

    def run(repeats: int) -> float:
        start = clock()
        for _ in range(repeats):
            call()
        return clock() - start

    return run


def pointer(array: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


class Bench:
    """The loaded library with a pool, and the peers that could be imported."""

    def __init__(self, options: argparse.Namespace) -> None:
        import numpy

        self.numpy: Any = numpy
        self.torch: Any = None
        try:
            self.torch = import_module("torch")  # only a competitor, never a dependency
            self.torch.set_num_threads(options.threads)
        except ImportError:
            pass
        self.core = load(options.core)
        self.level = (options.level or self.core.bench_best_level().decode()).encode()
        self.pool = ctypes.c_void_p(self.core.bench_pool(options.threads))
        self.random = numpy.random.default_rng(1)
        self.threads = options.threads
        self.rounds, self.pause = options.rounds, 0.15 if options.threads > 1 else 0.0

    def floats(self, *shape: int) -> Any:
        return self.random.standard_normal(shape).astype(self.numpy.float32)

    def product(self, m: int, k: int, n: int, storage: str) -> dict[str, float]:
        a = self.floats(*((k, m) if storage[0] == "t" else (m, k)))
        b = self.floats(*((n, k) if storage[1] == "t" else (k, n)))
        c, d = self.floats(m, n), self.floats(m, n)
        sizes = [ctypes.c_int64(v) for v in (m, n, k)]
        flags = [ctypes.c_int32(v == "t") for v in storage]

        def core(repeats: int) -> float:
            return float(
                self.core.bench_product(
                    self.level,
                    self.pool,
                    *sizes,
                    *flags,
                    pointer(a),
                    pointer(b),
                    pointer(c),
                    ctypes.c_int64(repeats),
                )
            )

        left = a.T if storage[0] == "t" else a
        right = b.T if storage[1] == "t" else b
        runs = {
            "core": core,
            "numpy": timed(lambda: self.numpy.dot(left, right, out=d), self.threads),
        }
        if self.torch is not None:
            tl, tr, to = (self.torch.from_numpy(v) for v in (left, right, d))
            runs["torch"] = timed(lambda: self.torch.mm(tl, tr, out=to), self.threads)
        if core(1) < 0:
            sys.exit(f"this machine has no level {self.level.decode()}")
        self.numpy.dot(left, right, out=d)
        error = float(abs(c - d).max() / abs(d).max())
        if error > 1e-4:
            sys.exit(f"wrong product {m}x{k}@{k}x{n} {storage}: relative error {error:g}")
        return best_of(runs, self.rounds, self.pause)

    def convolution(
        self, n: int, c: int, size: int, out: int, kernel: int, pad: int
    ) -> list[dict[str, float]]:
        to = size + 2 * pad - kernel + 1
        x, w, y = (
            self.floats(n, c, size, size),
            self.floats(out, c, kernel, kernel),
            self.floats(n, out, to, to),
        )
        numbers = (n, c, size, size, out, to, to, kernel, kernel, 1, 1, pad, pad, 1, 1, 1)
        shape = (ctypes.c_int64 * len(numbers))(*numbers)

        def core(which: int) -> Callable[[int], float]:
            return lambda repeats: float(
                self.core.bench_conv(
                    self.level,
                    self.pool,
                    which,
                    shape,
                    pointer(x),
                    pointer(w),
                    pointer(y),
                    ctypes.c_int64(repeats),
                )
            )

        peers: list[dict[str, Callable[[int], float]]] = [{}, {}, {}]
        if self.torch is not None:
            t = self.torch
            tx, tw, ty = (t.from_numpy(v.copy()) for v in (x, w, y))

            def backward(mask: list[bool]) -> Callable[[], Any]:
                return lambda: t.ops.aten.convolution_backward(
                    ty, tx, tw, [0], [1, 1], [pad, pad], [1, 1], False, [0, 0], 1, mask
                )

            peers[0]["torch"] = timed(
                lambda: t.nn.functional.conv2d(tx, tw, padding=pad), self.threads
            )
            peers[1]["torch"] = timed(backward([True, False, False]), self.threads)
            peers[2]["torch"] = timed(backward([False, True, False]), self.threads)
        return [best_of({"core": core(i)} | peers[i], self.rounds, self.pause) for i in range(3)]


def show(title: str, flop: float, times: dict[str, float]) -> None:
    ours = times["core"]
    ratios = "".join(
        f"  {name} {seconds * 1e6:10.2f} us, ratio {seconds / ours:5.2f}"
        for name, seconds in times.items()
        if name != "core"
    )
    print(
        f"{title:34s} core {ours * 1e6:10.2f} us {flop / ours * 1e-9:7.1f} GFLOP/s{ratios}",
        flush=True,
    )


def main() -> None:
    options = arguments()
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(options.threads)  # read when the peers are imported
    bench = Bench(options)
    print(f"level {bench.level.decode()}, {options.threads} thread(s)")
    if options.only != "convolutions":
        for m, k, n, storage in SHAPES:
            if 2.0 * m * n * k <= options.largest:
                show(f"{m}x{k}@{k}x{n} {storage}", 2.0 * m * n * k, bench.product(m, k, n, storage))
    if options.only != "products":
        for conv in CONVS:
            n, c, size, out, kernel, pad = conv
            flop = 2.0 * n * out * (size + 2 * pad - kernel + 1) ** 2 * c * kernel**2
            for name, times in zip(("y", "dx", "dw"), bench.convolution(*conv), strict=True):
                show(
                    f"[{n},{c},{size},{size}]*{out}x{kernel}x{kernel} pad {pad} {name}", flop, times
                )


if __name__ == "__main__":
    main()
