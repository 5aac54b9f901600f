"""`bench`: training steps, or forward passes, timed on generated data of a recipe's shapes."""

from __future__ import annotations

import os
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from paddlecli.compiler.artifact import Artifact
from paddlecli.compiler.pipeline import compile_graph
from paddlecli.config.recipe import Recipe
from paddlecli.data.opening import open_dataset
from paddlecli.data.spec import DatasetSpec, FieldSpec
from paddlecli.engine.machine import Machine, ProfileRow
from paddlecli.engine.modeldir import restricted
from paddlecli.engine.passes import passes_for
from paddlecli.engine.prepare import fields_of, prepare
from paddlecli.engine.rates import LearningRates
from paddlecli.engine.requests import Call, Maker
from paddlecli.errors import ConfigError, NumericalError
from paddlecli.graph.ir import Graph
from paddlecli.models.build import build

if TYPE_CHECKING:
    from paddlecli.data.columns import Dataset

_BATCHES = 8  # different batches of generated data
_LENGTHS = [8, 64]  # of sequences, where the recipe's own data would say
_WARM_UP = 0.2  # seconds
_PIECE = 0.001  # seconds that a timed request takes at least: long for the clock, short for whoever shares the machine


@dataclass(frozen=True)
class Timing:
    """What a benchmark found. `ms_per_step` is the median over requests of several steps each."""

    recipe: str
    backend: str
    level: str
    threads: int
    batch_size: int
    steps: int
    ms_per_step_median: float
    ms_per_step_least: float
    samples_per_second: float
    peak_rss_mb: float
    startup_seconds: float
    allocations_in_steps: int
    profile: tuple[ProfileRow, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The object that `bench --json` prints."""
        found: dict[str, Any] = {
            "schema": 1,
            **{k: v for k, v in vars(self).items() if k != "profile"},
        }
        if self.profile:
            found["profile"] = [vars(row) for row in self.profile]
        return found

    def text(self) -> str:
        """Two lines."""
        return (
            f"{self.recipe}: {self.ms_per_step_median:.4g} ms a step (batch {self.batch_size}), "
            f"{self.samples_per_second:,.0f} samples/s, {self.threads} threads, {self.backend}/{self.level}\n"
            f"peak memory {self.peak_rss_mb:.0f} MB, start-up {self.startup_seconds:.2f} s"
        )


def bench(
    recipe: Recipe, steps: int, threads: int | None = None, profile: bool = False, predict: bool = False
) -> Timing:  # fmt: skip
    """Times `steps` training steps after a warm-up; with `predict` forward passes of the entry that predicts.

    Raises:
        ConfigError: the recipe cannot be trained, or has no outputs to predict.
    """
    spec = fields_of(recipe)
    split, size = generated(recipe, spec)["train"], recipe.train.batch_size
    if predict:
        graph, artifact, calls = _forward(recipe, spec)
        rates = None
    else:
        prepared = prepare(recipe, spec)
        graph, artifact, calls = prepared.graph, prepared.artifact, prepared.calls
        rates = LearningRates(recipe, steps, max(1, len(split) // size))
    machine = Machine(artifact, threads=threads, profile=profile)
    machine.write(graph.starts(recipe.train.seed, zeros=False))
    runner = _Runner(machine, Maker(artifact, calls, spec, split, size, rates))
    runner.run(1)
    startup = since_process_start()
    per_step = runner.warm_up()
    machine.clear_profile()
    pieces = runner.timed(steps, max(1, min(steps, round(_PIECE / per_step))))
    info = machine.info()
    return Timing(
        recipe.name, str(info["backend"]), str(info["level"]), int(info["threads"]), size, steps,
        1e3 * statistics.median(pieces), 1e3 * min(pieces), size / statistics.median(pieces), peak_rss_mb(), startup,
        machine.allocations_in_steps(), machine.profile() if profile else (),
    )  # fmt: skip


def _forward(recipe: Recipe, spec: DatasetSpec) -> tuple[Graph, Artifact, tuple[Call, ...]]:
    """The network, what predicts of it, and that one call."""
    graph = build(recipe, spec)
    name = graph.roles.get("predict")
    if name is None:
        raise ConfigError(f"{recipe.source or recipe.name}: this network has no outputs to predict")
    artifact = compile_graph(restricted(graph, ("predict",)), passes=passes_for())
    return graph, artifact, (Call(artifact.entries[name]),)


class _Runner:
    """Runs steps, going around the data."""

    def __init__(self, machine: Machine, maker: Maker) -> None:
        self._machine, self._maker = machine, maker
        self._whole = len(maker.split) // maker.batch_size
        self._step = 0

    def run(self, count: int) -> float:
        """Seconds inside the core for `count` steps."""
        size = self._maker.batch_size
        first = self._step % self._whole
        order = np.arange(first * size, (first + count) * size, dtype=np.int64) % (
            self._whole * size
        )
        outcome = self._machine.run(
            self._maker.make(order, 0, count, self._step), self._maker.split
        )
        if outcome.halted:
            raise NumericalError(
                f"the loss became infinite or NaN at step {self._step + outcome.done}",
                hint="generated data are not the recipe's: bench with a smaller -o optimizer.learning_rate",
            )
        self._step += count
        return outcome.seconds

    def warm_up(self) -> float:
        """Runs for a moment; seconds a step."""
        count, total, steps = 1, 0.0, 0
        while total < _WARM_UP:
            total += self.run(count)
            steps += count
            count = min(2 * count, 4096)
        return total / steps

    def timed(self, steps: int, piece: int) -> list[float]:
        """Seconds a step of each request; every request runs `piece` steps, the last one what is left."""
        counts = [piece] * (steps // piece) or [steps]
        if steps > piece * len(counts):
            counts.append(steps - piece * len(counts))
        return [self.run(count) / count for count in counts]


def generated(recipe: Recipe, spec: DatasetSpec) -> Dataset:
    """What is timed: a few batches of the recipe's fields; its own data where they are generated."""
    size = {"samples": _BATCHES * recipe.train.batch_size, "test_samples": 0}
    if spec.generated and recipe.data is not None:
        return open_dataset(recipe.data.name, {**recipe.data.arguments, **size})
    axes = {axis for f in spec.fields for axis in f.axes}
    return open_dataset("generated", {
        "fields": [_field(f) for f in spec.fields],
        "lengths": dict.fromkeys(sorted(axes), _LENGTHS),
        **size,
    })  # fmt: skip


def _field(spec: FieldSpec) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": spec.name, "role": spec.role, "shape": list(spec.shape), "dtype": spec.dtype, "axes": list(spec.axes),
    }  # fmt: skip
    if spec.classes is not None:
        found["classes"] = spec.classes
    if spec.preprocess is not None:
        found["preprocess"] = dict(vars(spec.preprocess))
    return found


def peak_rss_mb() -> float:
    """Most memory this process has held, in MB of 1e6 bytes. Linux' own counter starts anew with the program, which
    `ru_maxrss` does not when a large process started it."""
    status = Path("/proc/self/status")
    if status.is_file():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    import resource
    import sys

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6


def since_process_start() -> float:
    """Seconds since the process was started, imports and all; to 0.01 s."""
    stat = Path("/proc/self/stat")
    if stat.is_file():
        started = int(stat.read_text().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
        return time.clock_gettime(time.CLOCK_BOOTTIME) - started
    return time.process_time()


def table(rows: tuple[ProfileRow, ...]) -> str:
    """A profile as lines, the slowest first."""
    total = sum(r.seconds for r in rows) or 1.0
    lines = [f"{'share':>6} {'ms':>10} {'calls':>9} {'us/call':>9} {'GB/s':>7}  kernel"]
    for r in sorted(rows, key=lambda r: -r.seconds):
        rate = r.bytes / r.seconds / 1e9 if r.seconds else 0.0
        lines.append(
            f"{r.seconds / total:6.1%} {1e3 * r.seconds:10.3f} {r.calls:9} {1e6 * r.seconds / max(r.calls, 1):9.2f} "
            f"{rate:7.2f}  {r.name}"
        )
    return "\n".join(lines)
