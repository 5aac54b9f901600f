"""What the jax networks share: first values, layers, losses, and a training step that is compiled as a whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Step = Callable[[int], None]
"""Runs step i."""
Batch = Mapping[str, Any]
"""By field of the recipe's data: an array [N, ...], or on a ragged axis (values [T, ...], lengths [N])."""
Rule = Callable[..., tuple[Any, tuple[Any, ...]]]
"""(parameter, gradient, its slots, number of the update from 1) -> the parameter and the slots."""

_RANDOM = np.random.default_rng(1)


def table(rows: int, columns: int) -> Any:
    """First values of a matrix."""
    return _RANDOM.standard_normal((rows, columns), np.float32) / np.float32(rows) ** 0.5


def dense(inputs: int, outputs: int) -> tuple[Any, Any]:
    """Weight and bias of a fully connected layer."""
    return table(inputs, outputs), np.zeros(outputs, np.float32)


def apply(layer: tuple[Any, Any], x: Any) -> Any:
    """x w + b."""
    return x @ layer[0] + layer[1]


def cross_entropy(scores: Any, label: Any) -> Any:
    """The mean over scores [N, classes] and label [N]."""
    return -jnp.take_along_axis(jax.nn.log_softmax(scores), label[:, None], 1).mean()


def padded(ragged: tuple[Any, Any], longest: int) -> tuple[Any, Any]:
    """[N, longest] with zeros behind each sequence, and 1.0 where there is a token. One length for all
    batches: another one would be compiled anew."""
    values, lengths = ragged
    real = np.arange(longest)[None] < lengths[:, None]
    ids = np.zeros(real.shape, values.dtype)
    ids[real] = values
    return ids, real.astype(np.float32)


def sgd(rate: float) -> tuple[int, Rule]:
    """Number of slots, and the rule."""
    return 0, lambda p, g, slots, t: (p - rate * g, slots)


def adagrad(rate: float, epsilon: float = 1e-6) -> tuple[int, Rule]:
    """Number of slots, and the rule."""

    def rule(p: Any, g: Any, slots: tuple[Any, ...], t: Any) -> tuple[Any, tuple[Any, ...]]:
        m = slots[0] + g * g
        return p - rate * g / (jnp.sqrt(m) + epsilon), (m,)

    return 1, rule


def adam(rate: float, epsilon: float = 1e-8) -> tuple[int, Rule]:
    """Number of slots, and the rule."""

    def rule(p: Any, g: Any, slots: tuple[Any, ...], t: Any) -> tuple[Any, tuple[Any, ...]]:
        m, v = 0.9 * slots[0] + 0.1 * g, 0.999 * slots[1] + 0.001 * g * g
        size = rate * jnp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        return p - size * m / (jnp.sqrt(v) + epsilon), (m, v)

    return 2, rule


def trained(
    loss: Callable[..., Any], parameters: Any, optimizer: tuple[int, Rule], batches: Sequence[Any]
) -> Step:
    """Steps that train: `loss(parameters, *batch)` is a scalar. Gradient and update are compiled together, and
    the old parameters' memory is given to the new ones. A step ends when its loss is there."""
    count, rule = optimizer

    def whole(state: tuple[Any, ...], batch: Any) -> tuple[tuple[Any, ...], Any]:
        params, slots, t = state
        value, grads = jax.value_and_grad(loss)(params, *batch)
        leaves, shape = jax.tree.flatten(params)
        moved = [
            rule(p, g, s, t + 1)
            for p, g, s in zip(leaves, jax.tree.leaves(grads), slots, strict=True)
        ]
        new = jax.tree.unflatten(shape, [p for p, _ in moved]), [s for _, s in moved], t + 1
        return new, value

    compiled = jax.jit(whole, donate_argnums=0)
    params = jax.tree.map(jnp.asarray, parameters)
    slots = [tuple(jnp.zeros_like(p) for _ in range(count)) for p in jax.tree.leaves(params)]
    state = [(params, slots, jnp.float32(0))]
    data = [jax.tree.map(_on_device, batch) for batch in batches]

    def step(i: int) -> None:
        state[0], value = compiled(state[0], data[i % len(data)])
        value.block_until_ready()

    return step


def _on_device(array: Any) -> Any:
    return jnp.asarray(array.astype(np.int32) if array.dtype == np.int64 else array)
