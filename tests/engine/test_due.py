"""Where a training ends."""

from __future__ import annotations

import pytest

from paddlecli.config.load import load_recipe
from paddlecli.engine.due import Due
from paddlecli.engine.place import Place


def due(*overrides: str) -> Due:
    return Due(load_recipe("fit_a_line", ["train.epochs=3", *overrides]), 10)


def test_without_a_last_step() -> None:
    found = due("train.max_steps=null")
    assert found.steps == 30
    assert not found.at_last(Place(step=29, epoch=2, batch=9))
    assert found.at_end(Place(step=30, epoch=2, batch=10))


@pytest.mark.parametrize("step", [13, 14, 19])
def test_the_last_step_or_behind_it(step: int) -> None:
    """A run that is at step 19 and goes on with 13 closes its epoch; it never counts down to a step that is over."""
    found = due("train.max_steps=13", "train.eval_every=0")
    place = Place(step=step, epoch=1, batch=step - 10)
    assert found.steps == 13
    assert found.at_last(place) and found.at_end(place) and found.evaluation(place, whole=False)


def test_before_the_last_step() -> None:
    found = due("train.max_steps=13", "train.eval_every=0", "checkpoint.every_steps=null")
    place = Place(step=12, epoch=1, batch=2)
    assert not found.at_last(place) and not found.at_end(place)
    assert found.until_event(place) == 1 and not found.evaluation(place, whole=False)
    assert due("train.max_steps=99").steps == 30
