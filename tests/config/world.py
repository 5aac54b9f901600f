"""A small world of registered names, so that these tests need no other part of the package."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import pytest

from paddlecli.config import registry
from paddlecli.config.load import Recipe, load_recipe
from paddlecli.config.registry import Call
from paddlecli.config.types import Count, Fraction, Positive
from paddlecli.errors import ConfigError, Fault

SMALL = """\
model: {name: linear}
optimizer: {name: sgd, learning_rate: 0.1}
"""


def linear(net: Any, *, size: Count = 1, bias: bool = True) -> None: ...


def digits(net: Any, *, hidden: Count = 200) -> None: ...


def fc(
    net: Any,
    x: Any,
    *,
    size: Count,
    activation: str | None = None,
    init: Annotated[str | dict[str, Any], Call("initializer")] = "xavier",
) -> None: ...


def conv2d(
    net: Any, x: Any, *, filters: Count, size: Count | tuple[Count, Count], groups: Count = 1
) -> None: ...


def block_layer(net: Any, x: Any, *, block: str) -> None: ...


def pool(net: Any, x: Any, *, kind: str = "max") -> None: ...


def loss(net: Any, x: Any, y: Any) -> None: ...


def sgd(net: Any) -> None: ...


def momentum(net: Any, *, mu: Fraction = 0.9, nesterov: bool = False) -> None: ...


def adam(net: Any, *, beta1: Fraction = 0.9, epsilon: Positive = 1e-8) -> None: ...


def cosine(*, epochs: Count = 1) -> None: ...


def piecewise(*, boundaries: tuple[Count, ...], values: tuple[Positive, ...]) -> None: ...


def accuracy(*, k: Count = 1) -> None: ...


def table(*, path: Path, columns: tuple[str, ...] = ()) -> None: ...


def shipped() -> None: ...


def constant(*, value: float = 0.0) -> None: ...


WORLD: dict[registry.Registry, dict[str, Callable[..., Any]]] = {
    registry.MODELS: {
        "linear": linear,
        "digits_softmax": linear,
        "digits_mlp": digits,
        "digits_conv": linear,
    },
    registry.LAYERS: {
        "fc": fc,
        "conv2d": conv2d,
        "pool2d": conv2d,
        "scan": block_layer,
        "sequence_pool": pool,
    },
    registry.LOSSES: {"square_error_cost": loss, "cross_entropy": loss},
    registry.OPTIMIZERS: {"sgd": sgd, "momentum": momentum, "adam": adam},
    registry.SCHEDULES: {"cosine": cosine, "piecewise": piecewise},
    registry.METRICS: {"accuracy": accuracy},
    registry.DATASETS: {"table": table, "mnist": shipped, "uci_housing": shipped},
    registry.INITIALIZERS: {"xavier": shipped, "constant": constant},
    registry.CALLBACKS: {"note": shipped},
}


def load(text: str | bytes, *overrides: str, name: str = "r.yaml") -> Recipe:
    """Write the text into the working directory and load it."""
    Path(name).write_bytes(text.encode() if isinstance(text, str) else text)
    return load_recipe(f"./{name}", overrides)


def faults(text: str | bytes, *overrides: str) -> list[Fault]:
    """The faults of a recipe that must not load; nothing may have been written."""
    before = set(Path.cwd().rglob("*")) | {Path.cwd() / "r.yaml"}
    with pytest.raises(ConfigError) as caught:
        load(text, *overrides)
    assert caught.value.exit_code == 3
    assert set(Path.cwd().rglob("*")) == before
    return list(caught.value.faults)


def fault(text: str | bytes, *overrides: str) -> Fault:
    """The one fault of a recipe."""
    found = faults(text, *overrides)
    assert len(found) == 1, "\n".join(map(str, found))
    return found[0]


def place(found: Fault) -> str:
    """file:line:column."""
    return str(found.where)
