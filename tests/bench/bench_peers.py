"""Steps of paddlecli and of PyTorch on the same work, turn by turn in one run.

    python tests/bench/bench_peers.py --torch-python PATH/TO/python [CASE ...] [--threads 2] [--repeats 3] [--check]

A case is a file of `peers/`, found by its name: `CASE` says our recipe, its batch and what is asked for; `peer(variant,
batches)` builds the torch network, in every way that its users might choose (padded, packed, a loop, channels_last), and
returns its step. Both sides read the same generated data, which this file writes: a field is a tensor [N, ...], on a ragged
axis (values, lengths). `_case.py` has the training step and the forward pass that all share, `_sequences.py` padding and
recurrent layers. Cases with `predict=True` time forward passes.

The other python needs torch and numpy; paddlecli is run by this one. Each turn of each variant is a fresh process that warms up
and reports the median time of a step and its peak memory. Of all turns the best counts, for both sides alike; of the peer's
variants the fastest is what our speed is compared with, the leanest what our memory is.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

PEERS = Path(__file__).parent / "peers"
NAMES = sorted(p.stem for p in PEERS.glob("*.py") if not p.stem.startswith("_"))
_LEAST = 3  # timed steps of a turn, however long they take


# --- the other side: runs in the python that has torch ------------------------------------------------------------


def torch_side(name: str, variant: str, data: str, threads: int, seconds: float) -> dict[str, Any]:
    """Median milliseconds of a step, and peak memory."""
    began = time.perf_counter()
    import torch

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    case = import_module(f"peers.{name}")
    step = case.peer(variant, _batches(data, case.CASE.batch))
    step(0)
    startup = time.perf_counter() - began
    _timed(step, seconds / 4, 1)
    times = _timed(step, seconds, _LEAST)
    return {"ms": 1e3 * statistics.median(times), "mb": _peak_mb(), "startup": startup}


def _timed(step: Callable[[int], None], seconds: float, least: int) -> list[float]:
    times: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < least:
        start = time.perf_counter()
        step(len(times))
        times.append(time.perf_counter() - start)
    return times


def _batches(path: str, size: int) -> list[dict[str, Any]]:
    """The written data, batch by batch: views of the columns."""
    import numpy as np
    import torch

    with np.load(path) as file:
        columns = dict(file)
    found: list[dict[str, Any]] = []
    for first in range(0, int(columns["rows"]), size):
        batch: dict[str, Any] = {}
        for key, values in columns.items():
            kind, _, name = key.partition(":")
            if kind == "values":
                batch[name] = torch.from_numpy(values[first : first + size])
            elif kind == "ragged":
                edges = columns[f"offsets:{name}"][first : first + size + 1]
                piece = torch.from_numpy(values[edges[0] : edges[-1]])
                batch[name] = piece, torch.from_numpy(np.diff(edges))
        found.append(batch)
    return found


def _peak_mb() -> float:
    """Most memory this process has held, in MB of 1e6 bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise SystemExit("this benchmark reads /proc, which this system does not have")


def facts(name: str) -> dict[str, Any]:
    """What the case says of itself."""
    return dict(vars(import_module(f"peers.{name}").CASE))


# --- this side -----------------------------------------------------------------------------------------------------


def write_data(case: dict[str, Any], path: Path) -> None:
    """The generated columns of the case's recipe as a file of arrays."""
    import numpy as np

    from paddlecli.engine import api
    from paddlecli.engine.bench import generated
    from paddlecli.engine.prepare import fields_of

    options = [*case["options"], f"train.batch_size={case['batch']}"]
    recipe = api.load_recipe(case["recipe"], options)
    split = generated(recipe, fields_of(recipe))["train"]
    arrays: dict[str, Any] = {"rows": np.int64(len(split))}
    for name, column in split.columns.items():
        arrays[f"{'ragged' if column.offsets else 'values'}:{name}"] = column.values
        if column.offsets:
            arrays[f"offsets:{name}"] = column.offsets[0]
    np.savez(path, **arrays)


def ours(case: dict[str, Any], threads: int) -> dict[str, Any]:
    """One turn of paddlecli."""
    command = [sys.executable, "-m", "paddlecli", "bench", case["recipe"], "--json", "--threads", str(threads)]  # fmt: skip
    command += ["--steps", str(case["steps"]), "--batch-size", str(case["batch"])]
    command += [word for option in case["options"] for word in ("-o", option)]
    found = _output([*command, *(["--predict"] if case["predict"] else [])], threads)
    return {
        "ms": found["ms_per_step_median"],
        "mb": found["peak_rss_mb"],
        "startup": found["startup_seconds"],
    }


def _output(command: list[str], threads: int) -> dict[str, Any]:
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    environment = {**os.environ, **dict.fromkeys(names, str(threads))}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


# --- turn by turn --------------------------------------------------------------------------------------------------


def compare(name: str, python: str, threads: int, repeats: int, seconds: float) -> dict[str, Any]:
    """The best turn of each side and their ratios."""
    child = [python, __file__, "--threads", str(threads), "--seconds", str(seconds), name]
    case = _output([*child, "--facts"], threads)
    turns: dict[str, list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data.npz"
        write_data(case, data)
        for _ in range(repeats):
            turns.setdefault("ours", []).append(ours(case, threads))
            for variant in case["variants"]:
                found = _output([*child, "--child", variant, "--data", str(data)], threads)
                turns.setdefault(variant, []).append(found)
    best = {
        side: {key: min(turn[key] for turn in found) for key in ("ms", "mb", "startup")}
        for side, found in turns.items()
    }
    mine = best.pop("ours")
    fastest = min(best, key=lambda v: best[v]["ms"])
    leanest = min(best, key=lambda v: best[v]["mb"])
    speed, memory = best[fastest]["ms"] / mine["ms"], mine["mb"] / best[leanest]["mb"]
    small = memory <= case["memory"] or mine["mb"] <= case["least_mb"]
    return {
        "name": name, "threads": threads, "ours": mine, "torch": best, "fastest": fastest, "leanest": leanest,
        "speed": speed, "speed_goal": case["speed"], "memory": memory, "memory_goal": case["memory"],
        "met": speed >= case["speed"] and small,
    }  # fmt: skip


def line(row: dict[str, Any]) -> str:
    """A row for people."""
    mine, fast, lean = row["ours"], row["fastest"], row["leanest"]
    return (
        f"{row['name']:24} {row['threads']} threads  {mine['ms']:9.4f} ms  torch {row['torch'][fast]['ms']:9.4f} ms ({fast})  "
        f"{row['speed']:6.2f} times as fast (goal {row['speed_goal']:g})  {mine['mb']:4.0f} MB  torch "
        f"{row['torch'][lean]['mb']:4.0f} MB ({lean})  {row['memory']:.2f} of its memory (goal {row['memory_goal']:g})"
        f"{'' if row['met'] else '  MISSED'}"
    )


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(NAMES)}")
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
    parser.add_argument("--check", action="store_true", help="exit with 1 when a goal is missed")
    parser.add_argument("--json", action="store_true", help="one object a line")
    for hidden in ("--child", "--data"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--facts", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    unknown = [name for name in given.cases if name not in NAMES]
    if unknown:
        parser.error(f"no case {unknown[0]}: there are {', '.join(NAMES)}")
    if given.facts or given.child:
        (name,) = given.cases
        found = (
            facts(name)
            if given.facts
            else torch_side(name, given.child, given.data, given.threads, given.seconds)
        )
        sys.stdout.write(json.dumps(found) + "\n")
        return 0
    if not given.torch_python:
        parser.error("--torch-python, or PADDLECLI_TORCH_PYTHON, must name a python that has torch")
    met = True
    for name in given.cases or NAMES:
        row = compare(name, given.torch_python, given.threads, given.repeats, given.seconds)
        met &= row["met"]
        sys.stdout.write((json.dumps(row) if given.json else line(row)) + "\n")
        sys.stdout.flush()
    return int(given.check and not met)


if __name__ == "__main__":
    sys.exit(main())
