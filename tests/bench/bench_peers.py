"""Training steps of paddlecli and of PyTorch eager on the same work, turn by turn in one run.

    python tests/bench/bench_peers.py --torch-python PATH/TO/python [--threads 2] [--repeats 3] [--check]

The other python needs torch and numpy; paddlecli is run by this one. Each turn is a fresh process that generates its data, warms
up, and reports the median time of a step and its peak memory. Of all turns the best counts, for both sides alike.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Case:
    """One network: the recipe, steps of ours, and what is asked for (times as many samples/s; share of memory)."""

    recipe: str
    batch: int
    steps: int
    speed: float
    memory: float = 0.25


CASES = {
    "fit_a_line": Case("bench/fit_a_line", 20, 200_000, 50.0),
    "mnist_mlp": Case("bench/mnist_mlp", 64, 4_000, 2.0),
    "mnist_lenet": Case("bench/mnist_lenet", 64, 150, 1.5),
}


# --- the other side: runs in the python that has torch ------------------------------------------------------------


def torch_side(name: str, threads: int, seconds: float) -> dict[str, Any]:
    """Median milliseconds of an eager training step, and peak memory."""
    began = time.perf_counter()
    import torch
    from torch import nn
    from torch.nn import functional

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    batch = CASES[name].batch
    network: nn.Module
    if name == "fit_a_line":
        network, shape, loss_of = nn.Linear(13, 1), (13,), functional.mse_loss
        labels = [torch.randn(batch, 1) for _ in range(8)]
        optimizer: torch.optim.Optimizer = torch.optim.SGD(network.parameters(), 0.001, fused=True)
    else:
        network, shape = _digits(nn, name)
        loss_of = functional.cross_entropy
        labels = [torch.randint(0, 10, (batch,)) for _ in range(8)]
        optimizer = torch.optim.Adam(network.parameters(), 1e-3, fused=True)
    inputs = [torch.randn(batch, *shape) for _ in range(8)]

    def step(i: int) -> None:
        optimizer.zero_grad(set_to_none=True)
        loss_of(network(inputs[i % 8]), labels[i % 8]).backward()
        optimizer.step()

    step(0)
    startup = time.perf_counter() - began
    end = time.perf_counter() + seconds / 4
    while time.perf_counter() < end:
        step(1)
    times: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 10:
        start = time.perf_counter()
        step(len(times))
        times.append(time.perf_counter() - start)
    return {"ms": 1e3 * statistics.median(times), "mb": peak_mb(), "startup": startup}


def _digits(nn: Any, name: str) -> tuple[Any, tuple[int, ...]]:
    if name == "mnist_mlp":
        layers = [nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10)]
        return nn.Sequential(*layers), (784,)
    layers = [
        nn.Conv2d(1, 20, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, 10),
    ]  # fmt: skip
    return nn.Sequential(*layers), (1, 28, 28)


def peak_mb() -> float:
    """Most memory this process has held, in MB of 1e6 bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise SystemExit("this benchmark reads /proc, which this system does not have")


# --- turn by turn --------------------------------------------------------------------------------------------------


def ours(case: Case, threads: int) -> dict[str, Any]:
    """One turn of paddlecli."""
    command = [sys.executable, "-m", "paddlecli", "bench", case.recipe, "--steps", str(case.steps)]
    found = _output([*command, "--threads", str(threads), "--json"], threads)
    return {
        "ms": found["ms_per_step_median"],
        "mb": found["peak_rss_mb"],
        "startup": found["startup_seconds"],
    }


def theirs(python: str, name: str, threads: int, seconds: float) -> dict[str, Any]:
    """One turn of PyTorch."""
    command = [
        python,
        __file__,
        "--child",
        name,
        "--threads",
        str(threads),
        "--seconds",
        str(seconds),
    ]
    return _output(command, threads)


def _output(command: list[str], threads: int) -> dict[str, Any]:
    count = {
        name: str(threads)
        for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    }
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **count}, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def compare(name: str, python: str, threads: int, repeats: int, seconds: float) -> dict[str, Any]:
    """The best turn of each side and their ratios."""
    case = CASES[name]
    turns = [(ours(case, threads), theirs(python, name, threads, seconds)) for _ in range(repeats)]
    best = [
        {key: min(turn[side][key] for turn in turns) for key in ("ms", "mb", "startup")}
        for side in (0, 1)
    ]
    speed, memory = best[1]["ms"] / best[0]["ms"], best[0]["mb"] / best[1]["mb"]
    met = speed >= case.speed and memory <= case.memory
    return {
        "name": name,
        "threads": threads,
        "ours": best[0],
        "torch": best[1],
        "speed": speed,
        "memory": memory,
        "met": met,
    }


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--torch-python",
        default=os.environ.get("PADDLECLI_TORCH_PYTHON"),
        help="a python that has torch",
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--seconds", type=float, default=3.0, help="timed seconds of a turn of torch"
    )
    parser.add_argument("--only", choices=list(CASES), action="append")
    parser.add_argument("--check", action="store_true", help="exit with 1 when a goal is missed")
    parser.add_argument("--json", action="store_true", help="one object a line")
    parser.add_argument("--child", choices=list(CASES), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        sys.stdout.write(json.dumps(torch_side(given.child, given.threads, given.seconds)) + "\n")
        return 0
    if not given.torch_python:
        parser.error("--torch-python, or PADDLECLI_TORCH_PYTHON, must name a python that has torch")
    met = True
    for name in given.only or CASES:
        row = compare(name, given.torch_python, given.threads, given.repeats, given.seconds)
        met &= row["met"]
        sys.stdout.write((json.dumps(row) if given.json else line(row)) + "\n")
        sys.stdout.flush()
    return int(given.check and not met)


def line(row: dict[str, Any]) -> str:
    """A row for people."""
    case = CASES[row["name"]]
    return (
        f"{row['name']:12} {row['threads']} threads  {row['ours']['ms']:9.4f} ms  torch {row['torch']['ms']:9.4f} ms  "
        f"{row['speed']:6.1f} times as fast (goal {case.speed:g})  {row['ours']['mb']:4.0f} MB  torch {row['torch']['mb']:4.0f} MB  "
        f"{row['memory']:.2f} of its memory (goal {case.memory:g}){'' if row['met'] else '  MISSED'}"
    )


if __name__ == "__main__":
    sys.exit(main())
