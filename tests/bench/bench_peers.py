"""Steps of paddlecli and of its peers on the same work, turn by turn in one run.

    python tests/bench/bench_peers.py --torch-python PYTHON [--jax-python PYTHON] [CASE ...] [--threads 2] [--repeats 3] [--check]

A case is a file of `peers/`, found by its name: `CASE` says our recipe, its batch and what is asked for; `peer(variant,
batches)` builds the torch network, in every way that its users might choose (padded, packed, a loop, channels_last), and
returns its step. `peers/jax/` has jax networks of some cases, compiled as a whole. All sides read the same generated data,
which this file writes: a field is a tensor [N, ...], on a ragged axis (values, lengths). `_case.py` has the training step
and the forward pass that all torch cases share, `_sequences.py` padding and recurrent layers, `jax/_network.py` the same
for jax. Cases with `predict=True` time forward passes.

The other pythons need torch or jax, and numpy; paddlecli is run by this one. Each turn of each variant is a fresh process
that warms up and reports the median time of a step and its peak memory. Of all turns the best counts, for all sides alike;
of the peers' variants the fastest is what our speed is compared with (a case may say `against`, when its goal is one peer),
the leanest what our memory is.

Before the first and behind every turn the machine is asked what its threads give over one, and how fast one processor reads
what another wrote (`calibration.py`; both stand behind each time). Times of turns between which the machine was not as it
should be, before or behind, are printed and do not count, on any side; `--any-state` counts them, for a machine that has no
better state.
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
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from calibration import State, state

PEERS = Path(__file__).parent / "peers"
NAMES = sorted(p.stem for p in PEERS.glob("*.py") if not p.stem.startswith("_"))
_LEAST = 3  # timed steps of a turn, however long they take
_COMPILED = ("jit",)  # the variants of a jax network


# --- the other sides: run in the python that has torch or jax ------------------------------------------------------


def torch_side(name: str, variant: str, data: str, threads: int) -> Callable[[int], None]:
    """The step of a torch network."""
    import torch

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    case = import_module(f"peers.{name}")
    made: Callable[[int], None] = case.peer(
        variant, _batches(data, case.CASE.batch, torch.from_numpy)
    )
    return made


def jax_side(name: str, batch: int, data: str, threads: int) -> Callable[[int], None]:
    """The step of a jax network. As many processors as threads: jax starts a thread on each it may use."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    import numpy as np

    made: Callable[[int], None] = import_module(f"peers.jax.{name}").peer(
        _batches(data, batch, np.asarray)
    )
    return made


def measured(build: Callable[[], Callable[[int], None]], seconds: float) -> dict[str, Any]:
    """Median milliseconds of a step, peak memory, seconds to the end of the first step."""
    began = time.perf_counter()
    step = build()
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


def _batches(path: str, size: int, made: Callable[[Any], Any]) -> list[dict[str, Any]]:
    """The written data, batch by batch: `made` of views of the columns."""
    import numpy as np

    with np.load(path) as file:
        columns = dict(file)
    found: list[dict[str, Any]] = []
    for first in range(0, int(columns["rows"]), size):
        batch: dict[str, Any] = {}
        for key, values in columns.items():
            kind, _, name = key.partition(":")
            if kind == "values":
                batch[name] = made(values[first : first + size])
            elif kind == "ragged":
                edges = columns[f"offsets:{name}"][first : first + size + 1]
                batch[name] = made(values[edges[0] : edges[-1]]), made(np.diff(edges))
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


@dataclass(frozen=True)
class Settings:
    """What the command line asks for. `pythons` by peer: torch, jax; `only`: variants as they are
    printed, all where it is empty."""

    pythons: dict[str, str]
    threads: int
    repeats: int
    seconds: float
    only: tuple[str, ...]
    any_state: bool = False

    def child(self, peer: str, name: str, *options: str) -> dict[str, Any]:
        """What this file prints when the peer's python runs it."""
        common = [__file__, "--threads", str(self.threads), "--seconds", str(self.seconds), name]
        return _output([self.pythons[peer], *common, *options], self.threads)


@dataclass(frozen=True)
class Turn:
    """One process of one side, and how the machine was before and behind it."""

    side: str
    ms: float
    mb: float
    startup: float
    before: State
    behind: State
    any_state: bool = False

    @property
    def counts(self) -> bool:
        """Whether its time says something about the side and not about the machine."""
        return self.any_state or (self.before.good and self.behind.good)

    def as_dict(self) -> dict[str, Any]:
        """For the object that is printed."""
        states = {"before": vars(self.before), "behind": vars(self.behind)}
        return {**vars(self), **states, "counts": self.counts, "state": self.state}

    @property
    def state(self) -> str:
        """The worse of the two."""
        return str(self.before if self.behind.good else self.behind)


def runs_of(name: str, case: dict[str, Any], data: Path, s: Settings) -> dict[str, Callable[[], dict[str, Any]]]:  # fmt: skip
    """By the name of a side, what one turn of it is."""
    runs: dict[str, Callable[[], dict[str, Any]]] = {"ours": lambda: ours(case, s.threads)}
    networks = {"torch": case["variants"]}
    if "jax" in s.pythons and (PEERS / "jax" / f"{name}.py").exists():
        networks["jax"] = _COMPILED
    for peer, variants in networks.items():
        for variant in variants:
            options = ["--child", f"{peer} {variant}", "--data", str(data), "--batch", str(case["batch"])]  # fmt: skip
            if not s.only or f"{peer} {variant}" in s.only:
                runs[f"{peer} {variant}"] = lambda p=peer, o=options: s.child(p, name, *o)  # type: ignore[misc]
    if len(runs) == 1 or (case["against"] and case["against"] not in runs):
        wanted = case["against"] or "one of its variants"
        raise SystemExit(f"{name} is to be compared with {wanted}, which --only leaves out")
    return runs


def turns_of(name: str, case: dict[str, Any], s: Settings) -> list[Turn]:
    """All turns in the order in which they ran."""
    turns: list[Turn] = []
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data.npz"
        write_data(case, data)
        runs = runs_of(name, case, data, s)
        before = state(s.threads)
        for _ in range(s.repeats):
            for side, run in runs.items():
                found, behind = run(), state(s.threads)
                turns.append(
                    Turn(side, **found, before=before, behind=behind, any_state=s.any_state)
                )
                before = behind
    return turns


def compare(name: str, s: Settings) -> dict[str, Any]:
    """The best turn of each side and their ratios; no ratio where a side has no turn that counts."""
    case = s.child("torch", name, "--facts")
    turns = turns_of(name, case, s)
    sides = list(dict.fromkeys(t.side for t in turns))
    best = {side: _best([t for t in turns if t.side == side]) for side in sides}
    mine = best.pop("ours")
    rivals = {v: b for v, b in best.items() if not case["against"] or v == case["against"]}
    rival, fastest = _fastest(rivals), _fastest(best)
    leanest = min(rivals, key=lambda v: rivals[v]["mb"])
    timed = all(side["ms"] is not None for side in (mine, *rivals.values()))
    speed = rivals[rival]["ms"] / mine["ms"] if timed and rival else None
    memory = mine["mb"] / best[leanest]["mb"]
    small = memory <= case["memory"] or mine["mb"] <= case["least_mb"]
    return {
        "name": name, "threads": s.threads, "ours": mine, "peers": best, "against": rival, "fastest": fastest,
        "leanest": leanest, "speed": speed, "speed_goal": case["speed"], "memory": memory, "memory_goal": case["memory"],
        "met": speed is not None and speed >= case["speed"] and small,
        "turns": [t.as_dict() for t in turns],
    }  # fmt: skip


def _fastest(sides: dict[str, dict[str, Any]]) -> str | None:
    timed = [v for v, b in sides.items() if b["ms"] is not None]
    return min(timed, key=lambda v: sides[v]["ms"], default=None)


def _best(turns: list[Turn]) -> dict[str, Any]:
    """The least of each; of times only those that count, and None where none does."""
    times = [t.ms for t in turns if t.counts]
    return {
        "ms": min(times, default=None),
        "mb": min(t.mb for t in turns),
        "startup": min(t.startup for t in turns),
    }


def lines(row: dict[str, Any]) -> str:
    """A row for people: what was asked, then the turns of every side."""
    mine, best, lean = row["ours"], row["peers"], row["leanest"]
    rival, fastest = row["against"], row["fastest"]
    speed = "no comparison: a side has no turn that counts"
    if row["speed"] is not None:
        speed = f"{mine['ms']:9.4f} ms  {rival} {best[rival]['ms']:9.4f} ms  {row['speed']:6.2f} times as fast"
    found = (
        f"{row['name']:24} {row['threads']} threads  {speed} (goal {row['speed_goal']:g})  {mine['mb']:4.0f} MB  "
        f"{lean} {best[lean]['mb']:4.0f} MB  {row['memory']:.2f} of its memory (goal {row['memory_goal']:g})"
        f"{'' if row['met'] else '  MISSED'}"
    )
    if row["speed"] is not None and fastest != rival:
        ratio = best[fastest]["ms"] / mine["ms"]
        found += f"\n    the fastest peer is {fastest}: {best[fastest]['ms']:.4f} ms, {ratio:.2f} times ours (reported, no goal)"
    for side in ("ours", *best):
        turns = [t for t in row["turns"] if t["side"] == side]
        found += f"\n    {side:14} ms " + "  ".join(_turn(t) for t in turns)
    left = sum(not t["counts"] for t in row["turns"])
    if left:
        found += f"\n    in parentheses: {left} of {len(row['turns'])} turns that do not count, for before or behind them the"
        found += " machine's processors shared a core, or no cache"
    return found


def _turn(turn: dict[str, Any]) -> str:
    told = f"{turn['ms']:.4f} [{turn['state']}]"
    return told if turn["counts"] else f"({told})"


# --- the command line ----------------------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(NAMES)}")
    for peer in ("torch", "jax"):
        default = os.environ.get(f"PADDLECLI_{peer.upper()}_PYTHON")
        parser.add_argument(f"--{peer}-python", default=default, help=f"a python that has {peer}")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0, help="timed seconds of a peer's turn")
    parser.add_argument(
        "--only", action="append", default=[], metavar="VARIANT", help='of the peers only this, "jax jit"; repeatable'
    )  # fmt: skip
    parser.add_argument(
        "--any-state", action="store_true", help="count turns in whatever state the machine is"
    )
    parser.add_argument("--check", action="store_true", help="exit with 1 when a goal is missed")
    parser.add_argument("--json", action="store_true", help="one object a line")
    for hidden in ("--child", "--data"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--batch", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--facts", action="store_true", help=argparse.SUPPRESS)
    return parser


def _child(given: argparse.Namespace) -> dict[str, Any]:
    """What a peer's process prints."""
    (name,) = given.cases
    if given.facts:
        return facts(name)
    peer, _, variant = given.child.partition(" ")
    if peer == "torch":
        build = lambda: torch_side(name, variant, given.data, given.threads)  # noqa: E731
    else:
        build = lambda: jax_side(name, given.batch, given.data, given.threads)  # noqa: E731
    return measured(build, given.seconds)


def main() -> int:
    """The command line."""
    parser = _parser()
    given = parser.parse_args()
    unknown = [name for name in given.cases if name not in NAMES]
    if unknown:
        parser.error(f"no case {unknown[0]}: there are {', '.join(NAMES)}")
    if given.facts or given.child:
        sys.stdout.write(json.dumps(_child(given)) + "\n")
        return 0
    if not given.torch_python:
        parser.error("--torch-python, or PADDLECLI_TORCH_PYTHON, must name a python that has torch")
    pythons = {"torch": given.torch_python} | (
        {"jax": given.jax_python} if given.jax_python else {}
    )
    settings = Settings(
        pythons, given.threads, given.repeats, given.seconds, tuple(given.only), given.any_state
    )
    met = True
    for name in given.cases or NAMES:
        row = compare(name, settings)
        met &= row["met"]
        sys.stdout.write((json.dumps(row) if given.json else lines(row)) + "\n")
        sys.stdout.flush()
    return int(given.check and not met)


if __name__ == "__main__":
    sys.exit(main())
