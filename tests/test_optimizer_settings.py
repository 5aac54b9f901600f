"""Optimizer sections of recipes: defaults, what is refused, which notes they give."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecli.compiler.groups import OptimizerSpec, Segment
from paddlecli.compiler.optimizer import optimizer_spec, table_notes
from paddlecli.config.registry import OPTIMIZERS
from paddlecli.config.schema import Optimizer
from paddlecli.errors import ConfigError

TABLE = Segment("words", 0, 5000, 1.0, 0.0, 0.0, True)


def spec(**settings: Any) -> OptimizerSpec:
    return optimizer_spec("default", Optimizer.model_validate({"learning_rate": 0.1, **settings}))


def test_every_optimizer_of_the_book_is_there() -> None:
    book = "sgd momentum lars_momentum adagrad decayed_adagrad adam adamw adamax adadelta rmsprop ftrl lamb"
    assert set(book.split()) <= set(OPTIMIZERS.names())


def test_defaults_are_the_originals() -> None:
    assert spec(name="adam").attrs == {
        "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "scale_epsilon": True, "lazy": False
    }  # fmt: skip
    assert spec(name="adagrad").attrs["epsilon"] == 1e-6
    assert spec(name="rmsprop").attrs["rho"] == 0.95
    assert spec(name="adamw").attrs["weight_decay"] == 0.01
    assert spec(name="lars_momentum").attrs["coefficient"] == 0.001


def test_regulariser_and_clip_are_taken_over() -> None:
    found = spec(name="sgd", regularizer={"l2": 8e-4}, clip={"global_norm": 5.0})
    assert found.regularizer == {"l2": 8e-4}
    assert found.clip == {"global_norm": 5.0}
    assert spec(name="sgd").clip == {}


@pytest.mark.parametrize(("settings", "words"), [
    ({"name": "adma"}, "unknown optimizer `adma`"),
    ({"name": "relu"}, "unknown optimizer `relu`"),
    ({"name": "adam", "beta3": 0.1}, "beta3"),
    ({"name": "adam", "beta1": 1.0}, "beta1"),
    ({"name": "momentum", "momentum": -0.1}, "momentum"),
    ({"name": "momentum", "nesterov": 1}, "nesterov"),
    ({"name": "rmsprop", "epsilon": 0.0}, "epsilon"),
    ({"name": "ftrl", "power": 0.5}, "power"),
])  # fmt: skip
def test_what_cannot_be_meant_is_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        spec(**settings)


def test_rules_that_walk_a_whole_table_say_so() -> None:
    tables = [(TABLE, 20_000)]
    assert table_notes(spec(name="sgd"), tables) == []
    assert table_notes(spec(name="adagrad"), tables) == []
    assert table_notes(spec(name="adam", lazy=True), tables) == []
    (note,) = table_notes(spec(name="adam"), tables)
    assert "words" in note
    assert "0.1 MB" in note
    shrunk = Segment("words", 0, 5000, 1.0, 8e-4, 0.0, True)
    (note,) = table_notes(spec(name="adam", lazy=True), [(shrunk, 20_000)])
    assert "regulariser" in note
