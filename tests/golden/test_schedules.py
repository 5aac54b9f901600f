"""Learning rates of the first 15 steps against the original's, and what the tables do not show."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paddlecli.config.schema import Optimizer
from paddlecli.engine.schedule import Run, Schedule, make_schedule
from paddlecli.errors import ConfigError

GOLDEN = json.loads((Path(__file__).parent / "schedules.json").read_text())
del GOLDEN["note"]
LONG = Run(total_steps=1000, steps_per_epoch=1)

SETTINGS: dict[str, dict[str, Any]] = {
    "noam_d512_w10": {"name": "noam", "d_model": 512, "warmup_steps": 10, "first": 0},
    "exponential_g0.9": {"name": "exponential", "decay_rate": 0.9},
    "natural_exp_g0.1": {"name": "natural_exp", "decay_rate": 0.1},
    "inverse_time_g0.1": {"name": "inverse_time", "decay_rate": 0.1},
    "polynomial_s10_end0.01_p2": {"name": "polynomial", "steps": 10, "end": 0.01, "power": 2.0},
    "piecewise_3_6": {"name": "piecewise", "boundaries": [3, 6], "values": [0.5, 0.1, 0.02]},
    "step_3_g0.1": {"name": "step", "step_size": 3},
    "multistep_3_6": {"name": "multistep", "milestones": [3, 6]},
    "cosine_T10": {"name": "cosine", "steps": 10},
    "linear_warmup_5_0_to_0.5": {"name": "constant", "warmup": {"steps": 5}},
    # A free function of the step has no place in a recipe; this one is an exponential.
    "lambda_0.95": {"name": "exponential", "decay_rate": 0.95},
}


def made(schedule: dict[str, Any] | None, run: Run = LONG, rate: float = 0.5) -> Schedule:
    settings: dict[str, Any] = {"name": "sgd", "learning_rate": rate}
    return make_schedule(
        Optimizer.model_validate(settings | ({"schedule": schedule} if schedule else {})), run
    )


def test_no_table_is_left_out() -> None:
    assert set(SETTINGS) == set(GOLDEN)


@pytest.mark.parametrize("name", GOLDEN)
def test_first_steps(name: str) -> None:
    schedule = made(SETTINGS[name], rate=1.0 if name.startswith("noam") else 0.5)
    np.testing.assert_allclose(schedule.rates(0, 15), GOLDEN[name], rtol=1e-7, atol=5e-10)
    assert [schedule(s) for s in range(15)] == schedule.rates(0, 15).tolist()
    assert schedule.rates(4, 6).tolist() == schedule.rates(0, 15)[4:10].tolist()
    assert schedule.state_dict() == {}


def test_without_a_section_the_rate_is_constant() -> None:
    assert made(None).rates(0, 3).tolist() == [0.5, 0.5, 0.5]


def test_cosine_covers_the_whole_run_if_nothing_is_said() -> None:
    schedule = made({"name": "cosine"}, Run(total_steps=8, steps_per_epoch=2))
    assert schedule(0) == 0.5
    assert schedule(4) == pytest.approx(0.25)
    assert schedule(8) == pytest.approx(0.0, abs=1e-12)


def test_cosine_by_epoch_is_the_originals_stair() -> None:
    run = Run(total_steps=12, steps_per_epoch=3)
    rates = made({"name": "cosine", "by": "epoch"}, run).rates(0, 12)
    expected = [0.25 * (math.cos(math.floor(t / 3) * math.pi / 4) + 1) for t in range(12)]
    np.testing.assert_allclose(rates, expected, rtol=1e-12)


def test_a_short_last_epoch_counts_as_one() -> None:
    assert Run(total_steps=7, steps_per_epoch=3).ticks("epoch") == 3


def test_the_schedule_starts_at_its_own_0_after_the_warm_up() -> None:
    plain = made({"name": "exponential", "decay_rate": 0.5})
    warm = made({"name": "exponential", "decay_rate": 0.5, "warmup": {"steps": 4, "start": 0.1}})
    np.testing.assert_allclose(warm.rates(0, 4), [0.1, 0.2, 0.3, 0.4])
    assert warm.rates(4, 5).tolist() == plain.rates(0, 5).tolist()


def test_a_whole_run_after_a_warm_up_is_the_rest() -> None:
    schedule = made(
        {"name": "cosine", "warmup": {"steps": 2}}, Run(total_steps=10, steps_per_epoch=5)
    )
    assert schedule(2) == 0.5
    assert schedule(6) == pytest.approx(0.25)
    assert schedule(10) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(("name", "rates"), [
    ("exponential", [0.5, 0.5, 0.45, 0.45]),
    ("natural_exp", [0.5, 0.5, 0.5 * math.exp(-0.9), 0.5 * math.exp(-0.9)]),
    ("inverse_time", [0.5, 0.5, 0.5 / 1.9, 0.5 / 1.9]),
])  # fmt: skip
def test_staircases(name: str, rates: list[float]) -> None:
    schedule = made({"name": name, "decay_rate": 0.9, "decay_steps": 2, "staircase": True})
    np.testing.assert_allclose(schedule.rates(0, 4), rates, rtol=1e-12)


def test_by_epoch_stays_within_an_epoch() -> None:
    schedule = made({"name": "step", "step_size": 1}, Run(total_steps=9, steps_per_epoch=3))
    np.testing.assert_allclose(schedule.rates(0, 9), [0.5] * 3 + [0.05] * 3 + [0.005] * 3)
    by_step = made(
        {"name": "step", "step_size": 1, "by": "step"}, Run(total_steps=9, steps_per_epoch=3)
    )
    np.testing.assert_allclose(by_step.rates(0, 3), [0.5, 0.05, 0.005])


def test_polynomial_cycles() -> None:
    once = made({"name": "polynomial", "steps": 4, "end": 0.1})
    again = made({"name": "polynomial", "steps": 4, "end": 0.1, "cycle": True})
    assert once(6) == pytest.approx(0.1)
    assert again(4) == pytest.approx(0.1)
    assert again(6) == pytest.approx(0.1 + 0.4 * (1 - 6 / 8))


def test_noam_counts_from_1_as_the_book_does() -> None:
    schedule = made({"name": "noam", "d_model": 64, "warmup_steps": 4}, rate=2.0)
    assert schedule(0) == pytest.approx(2.0 / 8 * 4**-1.5)
    assert schedule(15) == pytest.approx(2.0 / 8 * 16**-0.5)


@pytest.mark.parametrize(("schedule", "words"), [
    ({"name": "piecewise", "boundaries": [3], "values": [0.5]}, "1 boundaries need 2 values"),
    ({"name": "piecewise", "boundaries": [3], "values": [0.1, 0.2]}, "starts with 0.1"),
    ({"name": "piecewise", "boundaries": [6, 3], "values": [0.5, 0.2, 0.1]}, "must ascend"),
    ({"name": "multistep", "milestones": [3, 3]}, "must ascend"),
    ({"name": "reduce_on_plateau", "factor": 1.5}, "must be below 1"),
    ({"name": "cosin"}, "unknown schedule `cosin`"),
    ({"name": "cosine", "epochs": 3}, "epochs"),
    ({"name": "noam", "d_model": 0, "warmup_steps": 4}, "d_model"),
])  # fmt: skip
def test_what_cannot_be_meant_is_refused(schedule: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        made(schedule)


# ---- reduce_on_plateau ----

PLATEAU = {
    "name": "reduce_on_plateau",
    "factor": 0.5,
    "patience": 1,
    "cooldown": 1,
    "min_rate": 0.1,
}


def after(values: list[float], **more: Any) -> list[float]:
    schedule = made(PLATEAU | more)
    rates = []
    for value in values:
        schedule.observe(value)
        rates.append(schedule(7))
    return rates


def test_plateau_waits_and_rests() -> None:
    # better, bad, bad -> lower; rest; bad, bad -> lower; rest; bad, bad -> at the floor
    assert after([1.0, 1.0, 1.0, 0.5, 1.0, 1.0, 9.0, 1.0, 1.0, 1.0]) == [
        0.5, 0.5, 0.25, 0.25, 0.25, 0.125, 0.125, 0.125, 0.1, 0.1
    ]  # fmt: skip


def test_plateau_wants_more_than_the_threshold() -> None:
    assert after([1.0, 0.95, 0.9], threshold=0.2)[-1] == 0.25
    assert after([1.0, 0.7, 0.4], threshold=0.2)[-1] == 0.5
    assert after([10.0, 9.9, 9.8], threshold=0.15, threshold_mode="abs")[-1] == 0.5
    assert after([0.1, 0.2, 0.3], mode="max")[-1] == 0.5
    assert after([0.3, 0.2, 0.1], mode="max")[-1] == 0.25


def test_plateau_takes_a_nan_for_not_better() -> None:
    assert after([float("nan"), float("nan")])[-1] == 0.25


def test_plateau_continues_from_its_state() -> None:
    values = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5]
    whole = made(PLATEAU)
    for v in values:
        whole.observe(v)
    first, second = made(PLATEAU), made(PLATEAU)
    for v in values[:2]:
        first.observe(v)
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    for v in values[2:]:
        second.observe(v)
    assert second.state_dict() == whole.state_dict()
    assert second.monitor == "test.loss"
