"""The tracer networks on the real core: true gradients, same bits however they are run, decoding from the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli.runs import command, environment, run
from engine.tiny_runs import same_results
from null.executor import Batch
from null.world import TRACERS, draw, network
from road import Array, Road, plain, same
from safetensors.numpy import load_file

from paddlecli.config.load import load_recipe
from paddlecli.data.opening import open_dataset
from paddlecli.engine.fit import Options, fit, resume
from paddlecli.engine.rundir import RunDir

NAMES = sorted(p.stem for p in TRACERS.glob("*.yaml"))
SCAN, DECODE = 1, 2
"""Kinds of a plan's nodes."""


def test_there_are_five() -> None:
    assert NAMES == ["attention", "decode", "scan", "two_axes", "two_networks", "written_blocks"]


# -- gradients ----------------------------------------------------------------------------------------------------------
LENGTHS = ((3, 0, 5, 1), (0, 0, 0), (1,), (0,), (7, 1, 0, 7, 2))
MOST = 8
"""Elements of a parameter that are checked; a larger one is sampled."""
STEP = 0.04
KINKED = ("two_networks", "memories")
"""Networks with relu or a maximum: where the loss has a kink within STEP, no slope is compared."""


def lengths_of(road: Road, case: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """Other lengths on every axis."""
    axes = {
        t.spec.axis.name: t.spec.axis for t in road.graph.inputs.values() if t.spec.axis is not None
    }
    return {name: case[i:] + case[:i] for i, name in enumerate(axes)}


def slope(road: Road, entry: str, batch: Batch, name: str, place: int) -> tuple[float, float]:
    """Slope of the loss at an element: central differences of two widths, extrapolated; and how far the two are apart, which is
    much where the loss has a kink in between."""
    start = road.read(name)

    def loss(shift: float) -> float:
        moved = start.copy()
        moved.reshape(-1)[place] += np.float32(shift)
        road.write({name: moved})
        return road.step(entry, batch, rate=0.0).loss

    wide, narrow = ((loss(h) - loss(-h)) / (2 * h) for h in (STEP, STEP / 2))
    road.write({name: start})
    return (4 * narrow - wide) / 3, abs(wide - narrow)


def gradients(road: Road, entry: str, batch: Batch) -> dict[str, Array]:
    """What one step of plain descent at rate 1 takes away; where a gradient is stored, it is that very number, times the
    parameter's own factor."""
    names = [p for u in road.graph.entries[entry].updates for p in u.parameters]
    before = road.everything()
    road.step(entry, batch, rate=1.0)
    after = road.everything()
    road.write(before)
    factors = {
        n: np.float32(t.info.rate if t.info else 1) for n, t in road.graph.parameters.items()
    }
    found = {n: (before[n].astype(np.float64) - after[n]) / factors[n] for n in names}
    for name in set(names) & {
        k.removeprefix("gradient:") for k in road.places if k.startswith("gradient:")
    }:
        stored = road.read(f"gradient:{name}")
        np.testing.assert_array_equal(
            before[name] - factors[name] * stored, after[name], err_msg=name
        )
        found[name] = stored.astype(np.float64)
    others = road.graph.parameters.keys() - found.keys()
    assert all(np.array_equal(before[n], after[n]) for n in others)
    return found


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", [*NAMES, "memories"])
def test_gradients_are_slopes(name: str, seed: int, tmp_path: Path) -> None:
    graph, optimizers = network(name, tmp_path)
    road = Road(graph, plain(optimizers), seed=seed)
    road.shake(seed)
    rng = np.random.default_rng(seed)
    checked = kinks = 0
    ragged = any(t.spec.axis is not None for t in graph.inputs.values())
    for case in LENGTHS if ragged else LENGTHS[1:3]:
        batch = draw(graph, len(case), seed, lengths_of(road, case))
        for entry in graph.roles["train"]:
            for parameter, gradient in gradients(road, entry, batch).items():
                flat = gradient.reshape(-1)
                for place in rng.permutation(flat.size)[:MOST]:
                    expected, apart = slope(road, entry, batch, parameter, place)
                    checked += 1
                    if name in KINKED and apart > 2e-3 * max(0.1, abs(expected)):
                        kinks += 1
                        continue
                    limit = 5e-4 * max(0.1, np.abs(flat).max())
                    assert flat[place] == pytest.approx(expected, abs=limit), (
                        entry,
                        parameter,
                        place,
                        case,
                    )
    assert kinks <= 0.2 * checked


@pytest.mark.parametrize("name", ["scan", "two_axes", "decode"])
def test_sequences_of_nothing_move_nothing_but_what_sees_no_sequence(name: str) -> None:
    """Of a batch whose sequences are all empty the recurrent parts get exact zeros, not rubbish."""
    graph, optimizers = network(name, Path())
    road = Road(graph, plain(optimizers))
    road.shake()
    case = (0, 0, 0)
    batch = draw(graph, 3, 1, lengths_of(road, case))
    inside = [n for n in graph.parameters if n.startswith(("cell", "bag", "step"))]
    assert inside
    for entry in graph.roles["train"]:
        found = gradients(road, entry, batch)
        assert not any(found[n].any() for n in inside)


# -- same bits ----------------------------------------------------------------------------------------------------------
def batches(road: Road) -> Iterator[Batch]:
    """Ragged ones, one sample, many samples, none of whose sizes is a multiple of another."""
    for seed, size in enumerate((5, 1, 33)):
        yield draw(road.graph, size, seed)


def trained(name: str, **how: Any) -> tuple[list[dict[str, float]], dict[str, Array]]:
    """Every entry on some batches: the numbers, and all that is left behind."""
    road = Road(*network(name, Path()), **how)
    road.shake()
    entries = [n for n in road.artifact.entries if n != "predict"]
    numbers = [road.step(e, b).numbers for b in batches(road) for e in entries]
    return numbers, road.everything()


@pytest.mark.parametrize("name", NAMES)
def test_threads_and_grain_leave_the_bits(name: str) -> None:
    numbers, arrays = trained(name)
    for how in ({"threads": 2, "grain": True}, {"threads": 2}, {"threads": 1, "grain": True}):
        other, theirs = trained(name, **how)
        assert repr(other) == repr(numbers)
        same(arrays, theirs)


@pytest.mark.parametrize("name", NAMES)
def test_resident_is_streamed(name: str) -> None:
    """Many iterations in one request from rows in memory, or from columns gathered outside; the short last batch too."""
    recipe = load_recipe(TRACERS / f"{name}.yaml")
    assert recipe.data is not None
    data = open_dataset(recipe.data.name, recipe.data.arguments)
    split = data["train"]
    found = []
    for gather in (False, True):
        road = Road(*network(name, Path()))
        maker = road.maker(data.spec, split, 7, 0.01)
        order = np.random.default_rng(3).permutation(len(split))
        found.append(
            (road.run(maker.make(order, 0, 10, 0, gather=gather), split), road.everything())
        )
    (first, mine), (second, theirs) = found
    assert first.tobytes() == second.tobytes()
    assert np.isfinite(first[:, 0]).all()  # the loss; what an entry does not measure is NaN
    same(mine, theirs)


EPOCHS = 30


@pytest.mark.parametrize("name", NAMES)
def test_killed_and_resumed(name: str, tmp_path: Path) -> None:
    """SIGKILL in the midst of training: what a checkpoint behind it holds is what an undisturbed run's does, and metrics.jsonl has
    every step once."""
    overrides = [
        f"train.epochs={EPOCHS}",
        "checkpoint.every_epochs=0",
        "checkpoint.every_steps=12",
        "checkpoint.keep_last=1",
    ]
    recipe = load_recipe(TRACERS / f"{name}.yaml", overrides)
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    fit(recipe, Options(run_dir=whole, threads=1))
    kill(["train", "--config", str(TRACERS / f"{name}.yaml"), *(a for o in overrides for a in ("-o", o)),
          "--run-dir", str(cut), "--threads", "2"], cut / "checkpoints", tmp_path)  # fmt: skip
    assert json.loads((cut / "run.json").read_text())["status"] == "running"
    result = resume(RunDir(cut), (), Options(threads=2))
    assert result.status == "completed" and result.epochs == EPOCHS
    same_results(whole, cut)
    steps = [json.loads(line)["step"] for line in (cut / "metrics.jsonl").read_text().splitlines() if '"event":"step"' in
             line.replace(" ", "")]  # fmt: skip
    assert steps == list(range(1, EPOCHS * 8 + 1))


def kill(arguments: list[str], checkpoints: Path, folder: Path) -> None:
    """Runs a command until a checkpoint of the third epoch or later is there."""
    process = subprocess.Popen(
        command(*arguments), cwd=folder, env=environment(folder), stderr=subprocess.PIPE
    )
    try:
        deadline = time.monotonic() + 60
        while not any(int(p.name[5:]) > 20 for p in checkpoints.glob("step-*")):
            assert process.poll() is None and time.monotonic() < deadline, (
                "the training ended before it was killed"
            )
            time.sleep(0.002)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert process.stderr is not None
        process.stderr.close()
    assert process.returncode == -signal.SIGKILL


# -- decode -------------------------------------------------------------------------------------------------------------
LIMIT, START, END = 12, 0, 1


def decoded(values: Mapping[str, Array], context: Array) -> tuple[Array, Array]:
    """Greedy decoding in numpy, from the definition: ids [N, LIMIT], END behind the end, and lengths [N] without the end mark."""
    w = {k: v.astype(np.float64) for k, v in values.items()}
    ids, lengths = np.full((len(context), LIMIT), END), np.zeros(len(context), int)
    for row, x in enumerate(context):
        h = np.tanh(x @ w["state/w"] + w["state/b"])
        last = START
        for t in range(LIMIT):
            word = w["step/word/w"][last]
            h = np.tanh(word @ w["step/h_next/w"] + h @ w["step/h_next/w1"] + w["step/h_next/b"])
            last = int(np.argmax(h @ w["step/probability/w"] + w["step/probability/b"]))
            if last == END:
                break
            ids[row, t] = last
            lengths[row] += 1
    return ids, lengths


def decoder(seed: int, towards_end: float) -> Road:
    """Random parameters, lively ones; the end is chosen the sooner, the larger ``towards_end``."""
    graph, optimizers = network("decode", Path())
    road = Road(graph, optimizers, seed=seed)
    rng = np.random.default_rng(seed)
    road.write({n: rng.standard_normal(road.places[n].shape) for n in graph.parameters})
    bias = road.read("step/probability/b")
    bias[END] = towards_end
    road.write({"step/probability/b": bias})
    return road


@pytest.mark.parametrize("towards_end", [-100.0, 2.0, 100.0])
@pytest.mark.parametrize("size", [1, 6])
def test_decode(size: int, towards_end: float) -> None:
    """Ids and lengths by the definition; the loop stops with the longest row: the block is repeated no more often."""
    seen = set()
    for seed in range(4):
        road = decoder(seed, towards_end)
        batch = draw(road.graph, size, seed)
        name = road.graph.roles["predict"]
        step = road.step(name, batch, outputs=True)
        context = np.asarray(batch.columns["context"], np.float32)
        ids, lengths = decoded({n: road.read(n) for n in road.graph.parameters}, context)
        np.testing.assert_array_equal(step.outputs["ids"], ids)
        np.testing.assert_array_equal(step.outputs["length"], lengths)
        (loop,) = (i for i, n in enumerate(road.plan.info.nodes) if n.kind == DECODE)
        assert road.session.repeats(loop) == min(LIMIT, lengths.max() + 1)
        seen.update(lengths.tolist())
    assert {-100.0: seen == {LIMIT}, 2.0: len(seen) > 1, 100.0: seen == {0}}[towards_end]


def test_rows_of_a_batch_decode_as_alone() -> None:
    road = decoder(3, 1.0)
    batch = draw(road.graph, 6, 3)
    name = road.graph.roles["predict"]
    together = road.step(name, batch, outputs=True).outputs["ids"]
    context = np.asarray(batch.columns["context"])
    for row in range(6):
        alone = Batch(1, {**batch.columns, "context": context[row : row + 1]}, batch.arguments)
        np.testing.assert_array_equal(
            road.step(name, alone, outputs=True).outputs["ids"][0], together[row]
        )


def test_predict_decodes(tmp_path: Path) -> None:
    """Trained by teacher forcing through the scan, written by the decode: one block, one set of parameters."""
    recipe = load_recipe(TRACERS / "decode.yaml", ["train.epochs=3"])
    fit(recipe, Options(run_dir=tmp_path / "run"))
    context = np.random.default_rng(5).standard_normal((7, 6)).round(3).astype(np.float32)
    lines = "".join(json.dumps({"context": row.tolist()}) + "\n" for row in context)
    done = run(tmp_path, "predict", "run", "-", "--json", stdin=lines.encode())
    values = load_file(tmp_path / "run" / "model" / "model.safetensors")
    assert set(values) == {"state/w", "state/b", "step/word/w", "step/h_next/w", "step/h_next/w1", "step/h_next/b",
                           "step/probability/w", "step/probability/b"}  # fmt: skip
    ids, _ = decoded(values, context)
    assert [json.loads(line)["prediction"] for line in done.stdout.splitlines()] == ids.tolist()


def test_the_scan_learns_what_the_decode_writes(tmp_path: Path) -> None:
    """A rule of 3 letters is learnt from sequences and then written by the decode, end mark included."""
    graph, optimizers = network("decode", tmp_path)
    road = Road(graph, optimizers)
    batch = draw(graph, 4, 1, {"ids": (4, 4, 4, 4)})
    sequence = np.array([7, 3, 9, END])
    columns = dict(batch.columns)
    columns["after"] = type(columns["after"])(np.tile(sequence, 4), columns["after"].offsets)
    columns["before"] = type(columns["before"])(
        np.tile([START, 7, 3, 9], 4), columns["before"].offsets
    )
    taught = Batch(4, columns, batch.arguments)
    (entry,) = graph.roles["train"]
    losses = [road.step(entry, taught, rate=0.05).loss for _ in range(150)]
    assert losses[-1] < 0.1 < losses[0]
    found = road.step(graph.roles["predict"], taught, outputs=True).outputs
    assert found["ids"].tolist() == [[7, 3, 9] + [END] * (LIMIT - 3)] * 4
    assert found["length"].tolist() == [3] * 4
